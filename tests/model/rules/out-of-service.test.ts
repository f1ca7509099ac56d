/** What is said about nodes out of service: reminders, texts, and the maintenance beneath. */
import type { NodeRecord, Outage } from '../../../model/records';
import { beneath, declared, endedOutage, isReminderDue, outageOf, outageRequestOf, outageText } from '../../../model/rules/out-of-service';

const NOW = Date.parse('2026-03-01T10:00:00Z');
const HOUR = 3_600_000;
const free = { maintenance: false, maintenance_reason: null, fault: null, out_of_service: {} } as unknown as NodeRecord;
const requested = (until: string) => outageRequestOf({ reason: ' a fan ', until }, NOW);
const node = { ...free, ...declared(free, { reason: 'a fan', ticket: null, until: '2026-03-02T10:00:00.000000+00:00' }, 'jo', NOW) };
const outage = outageOf(node)!;

it.each([
  ['2026-03-02', '2026-03-02T00:00:00.000000+00:00'],
  ['2026-03-02T10:00', '2026-03-02T10:00:00.000000+00:00'],
  ['2026-03-02T10:00:00.5Z', '2026-03-02T10:00:00.500000+00:00'],
  ['2026-03-02T10:00:00+02:00', '2026-03-02T08:00:00.000000+00:00'],
])('the time %s is %s', (given, until) => expect(requested(given)).toEqual({ reason: 'a fan', ticket: null, until }));
it.each(['2026-03-01T10:00:00Z', '2026-02-30', '2027-03-03', '02.03.2026', '2026-03-02T10:00:00+99:00', ''])(
  'refuses the time %s with the name of the field',
  (given) => expect(requested(given)).toMatch(/^until: it /),
);

it('says all of it in one sentence', () =>
  expect(outageText({ ...outage, ticket: 'https://tickets.example/1' })).toBe(
    'Out of service until 2026-03-02T10:00:00Z: a fan (https://tickets.example/1), declared by jo',
  ));

it.each<[hours: number, reminded: number | null, due: boolean]>([
  [23, null, false],
  [24, null, true],
  [25, 24, false],
  [47, 24, false],
  [48, 24, true],
])('%i hours later, reminded after %j hours: due is %s', (hours, reminded, due) => {
  const at = (later: number): string => new Date(NOW + later * HOUR).toISOString();
  const told: Outage = { ...outage, reminded_at: reminded === null ? null : at(reminded) };
  expect(isReminderDue(told, NOW + hours * HOUR)).toBe(due);
});

it('writes maintenance beneath, and leaves other changes alone', () => {
  expect(beneath(free, { maintenance: true })).toEqual({ maintenance: true });
  const others = { fault: 'power failure', power_state: null };
  expect(beneath(node, others)).toBe(others);
  const changes = beneath(node, { ...others, maintenance: true, maintenance_reason: 'no route' });
  expect(changes).toEqual({ ...others, out_of_service: { ...outage, before: { maintenance: true, maintenance_reason: 'no route' } } });
  expect(endedOutage(outageOf({ ...node, ...changes })!)).toEqual({
    out_of_service: {},
    maintenance: true,
    maintenance_reason: 'no route',
  });
});
