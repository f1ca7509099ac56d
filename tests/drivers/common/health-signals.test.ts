/** What BMCs report becomes observations for the rules of health: Ironic's fields of IPMI and of Redfish. */
import { sensorSignals, noteKey, systemSignals } from '../../../drivers/common/health-signals';
import type { JsonObject } from '../../../model/records';

const none = new Map();
const ipmi = (type: string, fields: JsonObject): JsonObject => ({ [type]: { 'x (0x1)': { 'Sensor ID': 'x (0x1)', ...fields } } });

it.each<[string, JsonObject, readonly string[], number | undefined]>([
  ['ok', { 'Sensor Reading': '4200 (+/- 75) RPM', Status: 'ok' }, [], 4200],
  ['Lower Non-Critical', { 'Sensor Reading': '800 (+/- 75) RPM', Status: 'Lower Non-Critical' }, ['warning'], 800],
  ['Lower Non-Recoverable', { 'Sensor Reading': '0 (+/- 75) RPM', Status: 'Lower Non-Recoverable' }, ['critical'], 0],
])('reads the status %s of an IPMI sensor', (_, fields, states, value) => {
  expect(sensorSignals(ipmi('Fan', fields), none).signals).toEqual([
    { source: 'sensor', kind: 'fan', subject: 'x (0x1)', states, value, unit: 'rpm' },
  ]);
});
it('says nothing of an IPMI sensor without a reading', () => {
  expect(sensorSignals(ipmi('Fan', { 'Sensor Reading': 'No Reading', Status: 'Not Available' }), none).signals).toEqual([]);
  expect(sensorSignals(ipmi('Power', { 'Sensor Reading': '0h' }), none).signals).toEqual([]);
});
it('takes the states of a discrete IPMI sensor from its bits', () => {
  const states = new Map([[noteKey('Power', 'x (0x1)'), { states: ['failed', 'input lost'] as const }]]);
  expect(sensorSignals(ipmi('Power', { 'Sensor Reading': '0h' }), states).signals).toEqual([
    { source: 'sensor', kind: 'power', subject: 'x (0x1)', states: ['failed', 'input lost'] },
  ]);
});

it('reads the health of Redfish parts that are in use', () => {
  const fan = (more: JsonObject): JsonObject => ({
    identity: '0',
    reading: 0,
    reading_units: 'RPM',
    state: 'Enabled',
    health: 'OK',
    ...more,
  });
  expect(
    sensorSignals(
      {
        Extra: { Manufacturer: 'M' },
        Fan: {
          '0@sim-0': fan({ health: 'Critical' }),
          '1@sim-0': fan({ reading: 40, reading_units: 'Percent' }),
          '2@sim-0': fan({ health: 'Critical', state: 'Absent' }),
          '3@sim-0': fan({ health: null, reading: null }),
        },
        Power: { '0:Power@sim-0': { health: 'Warning', state: 'Enabled' } },
        Drive: { 'Disk 1:SATA@sim-0': { health: 'Critical', state: 'Enabled' } },
      },
      none,
    ),
  ).toMatchObject({
    signals: [
      { source: 'sensor', kind: 'fan', subject: 'fan 0', states: ['critical'], value: 0, unit: 'rpm' },
      { source: 'sensor', kind: 'fan', subject: 'fan 1', states: [], value: 40, unit: 'percent' },
      { source: 'sensor', kind: 'power', subject: 'power supply 0', states: ['warning'] },
      { source: 'sensor', kind: 'drive', subject: 'drive Disk 1:SATA', states: ['critical'] },
    ],
    present: new Set(['fan 0', 'fan 1', 'fan 3', 'power supply 0', 'drive Disk 1:SATA']),
  });
});
it.each<[string | null | undefined, readonly unknown[]]>([
  [undefined, []],
  [null, []],
  ['OK', [{ source: 'system', kind: 'machine', subject: 'the machine', states: [] }]],
  ['Critical', [{ source: 'system', kind: 'machine', subject: 'the machine', states: ['critical'] }]],
])('takes the health %s of the machine', (health, signals) => expect(systemSignals({ health })).toEqual(signals));

it('limits the parts of one machine and the length of their names', () => {
  const many = Object.fromEntries(Array.from({ length: 5000 }, (_, n) => [`${n}`.padEnd(500, 'x'), { health: 'Critical' }]));
  const { signals, present } = sensorSignals({ Fan: many, Temperature: 5, Power: { a: null, b: [5] } }, none);
  expect(signals).toHaveLength(512);
  expect(present).toBeUndefined();
  expect(Math.max(...signals.map(({ subject }) => subject.length))).toBeLessThanOrEqual(110);
});

it('adds what the driver notes, also of parts without fields', () => {
  const notes = new Map([
    [noteKey('Drive', 'a:1@s'), { states: ['predicted failure'] as const, reading: { value: 3, unit: 'percent' } }],
    [noteKey('Drive', 'b:1@s'), { states: [] }],
    [noteKey('Drive', 'c:1@s'), { states: ['predicted failure'] as const }],
  ]);
  const fields = { name: 'a', health: 'Warning', state: 'Enabled' };
  const { signals, present } = sensorSignals({ Drive: { 'a:1@s': fields, 'c:1@s': { ...fields, state: 'Absent' } } }, notes);
  expect(signals).toEqual([
    { source: 'sensor', kind: 'drive', subject: 'drive a:1', states: ['warning', 'predicted failure'], value: 3, unit: 'percent' },
    { source: 'sensor', kind: 'drive', subject: 'drive b:1', states: [] },
  ]);
  expect(present).toEqual(new Set(['drive a:1', 'drive b:1']));
});
