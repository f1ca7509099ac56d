import { bareTimestamp, instantOf, timestamp } from '../../model/clock';

const MOMENT = Date.UTC(2026, 1, 3, 4, 5, 6, 789);

it('timestamp writes a UTC offset, and bareTimestamp none', () => {
  expect(timestamp(MOMENT)).toBe('2026-02-03T04:05:06.789000+00:00');
  expect(bareTimestamp(MOMENT)).toBe('2026-02-03T04:05:06.789000');
});

it.each([
  ['2026-02-03T04:05:06.789000+00:00', MOMENT],
  ['2026-02-03T04:05:06.789Z', MOMENT],
  ['2026-02-03T06:05:06.789000+02:00', MOMENT],
  // In UTC, wherever the server is.
  ['2026-02-03T04:05:06.789000', MOMENT],
  ['2026-02-03 04:05:06.789000', MOMENT],
  ['2028-02-29T00:00:00Z', Date.UTC(2028, 1, 29)],
  ['2026-02-29T00:00:00Z', NaN],
  ['2026-04-31', NaN],
  ['soon', NaN],
])('instantOf reads %s', (text, moment) => expect(instantOf(text)).toBe(moment));
