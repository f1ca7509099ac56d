/** What discrete sensors and the event log of an IPMI BMC say about the health of parts. */
import { ipmiVendor } from '../../../drivers/ipmi/vendor';
import { partStateOfEvent, partStatesOf } from '../../../wire/ipmi/records/sensor-states';

it.each<[string, number, number, number, readonly string[]]>([
  ['a power supply that is there', 0x6f, 0x08, 0b1, []],
  ['a power supply that failed and has no input', 0x6f, 0x08, 0b1011, ['failed', 'input lost']],
  ['a drive that will fail', 0x6f, 0x0d, 0b101, ['predicted failure']],
  ['memory with uncorrectable errors', 0x6f, 0x0c, 0b11, ['correctable errors', 'uncorrectable errors']],
  ['fans without redundancy', 0x0b, 0x04, 0b10, ['redundancy lost']],
  ['a sensor with its own severities', 0x07, 0x04, 0b100, ['critical']],
  ['a watchdog, which says nothing of a part', 0x6f, 0x23, 0xff, []],
  ['a state beyond the last', 0x6f, 0x08, 0x8000, []],
])('reads the states of %s', (_, eventType, sensorType, states, expected) => {
  expect(partStatesOf(eventType, sensorType, states)).toEqual(expected);
});
it.each<[string, number, number, number, string | undefined]>([
  ['a fan below its critical threshold', 0x01, 0x04, 2, 'critical'],
  ['a temperature above its warning', 0x01, 0x01, 7, 'warning'],
  ['a threshold that was crossed backwards', 0x01, 0x01, 8, undefined],
  ['a power cycle', 0x6f, 0x22, 0, undefined],
])('reads the event of %s', (_, eventType, sensorType, offset, expected) => {
  expect(partStateOfEvent(eventType, sensorType, offset)).toBe(expected);
});

/** An entry of the type 02h. */
const entry = (sensorType: number, sensor: number, eventType: number, offset: number, isOver = false) => ({
  raw: Buffer.from([1, 0, 2, 0, 0, 0, 0x40, 0x20, 0, 4, sensorType, sensor, eventType | (isOver ? 0x80 : 0), offset, 0xff, 0xff]).toString(
    'hex',
  ),
});
const { signals } = ipmiVendor.methods!['sel']!;
it('the last entries of the log about each sensor count', () => {
  const entries = [
    entry(0x04, 1, 0x01, 2),
    entry(0x0d, 7, 0x6f, 1),
    entry(0x04, 1, 0x01, 2, true),
    entry(0x22, 9, 0x6f, 0),
    { raw: '00'.repeat(16) },
    { raw: 'nothing' },
  ];
  expect(signals!({ entries })).toEqual([
    { source: 'log', kind: 'fan', subject: 'Fan 0x01', states: [] },
    { source: 'log', kind: 'drive', subject: 'Drive Slot / Bay 0x07', states: ['failed'] },
  ]);
  expect(signals!({ entries, complete: false })).toBeUndefined();
});
