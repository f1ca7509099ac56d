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
  ['soon', NaN],
])('instantOf reads %s', (text, moment) => expect(instantOf(text)).toBe(moment));
