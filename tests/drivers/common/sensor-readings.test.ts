/** Which sensor readings become numbers: Ironic's fields of IPMI and Redfish, and invalid values. */
import { readingsOf } from '../../../drivers/common/sensor-readings';
import type { JsonObject } from '../../../model/records';

const ipmi = (reading: string): JsonObject => ({
  Fan: { 'x (0x1)': { 'Sensor ID': 'x (0x1)', 'Entity ID': '7.1 (System Board)', 'Sensor Reading': reading } },
});
it.each<[string, string, number]>([
  ['45 (+/- 0) degrees C', 'celsius', 45],
  ['-5.250 (+/- 0.500) degrees C', 'celsius', -5.25],
  ['12.1 Volts', 'volts', 12.1],
  ['4200 (+/- 75) RPM', 'rpm', 4200],
  ['40 percent', 'percent', 40],
  ['3 furlongs', 'other', 3],
])('reads the IPMI value "%s" in the unit %s as %s', (said, unit, value) => {
  expect(readingsOf(ipmi(said)).readings).toEqual([{ kind: 'fan', sensor: 'x (0x1)', entity: '7.1 (System Board)', unit, value }]);
});
it.each(['No Reading', 'Disabled', '0h', '', 'RPM 5', '1e999 RPM'])('ignores the IPMI value "%s", which is not a number', (said) => {
  expect(readingsOf(ipmi(said))).toEqual({ readings: [], health: [] });
});

it('reads Redfish sensors with their units and their health', () => {
  const found = readingsOf({
    Extra: { Manufacturer: 'M' },
    Fan: { 'F1@1': { identity: 'F1', reading: 40, reading_units: 'Percent', physical_context: 'CPU', health: 'OK' } },
    Temperature: { 'T1@1': { identity: 'T1', reading_celsius: 41.5, physical_context: 'Intake', health: 'Critical' } },
    Power: { '0:Power@1': { last_power_output_watts: 90, line_input_voltage: 230, health: 'Warning' } },
    Drive: { 'd:s@1': { capacity_bytes: 5, health: null } },
  });
  expect(found.readings).toEqual([
    { kind: 'fan', sensor: 'F1@1', entity: 'CPU', unit: 'percent', value: 40 },
    { kind: 'temperature', sensor: 'T1@1', entity: 'Intake', unit: 'celsius', value: 41.5 },
    { kind: 'power', sensor: '0:Power@1', entity: 'PSU', unit: 'watts', value: 90 },
    { kind: 'power', sensor: '0:Power@1', entity: 'PSU', unit: 'volts', value: 230 },
  ]);
  expect(found.health).toEqual([
    { kind: 'fan', sensor: 'F1', entity: 'CPU', bad: false },
    { kind: 'power', sensor: '0:Power@1', entity: 'PSU', bad: true },
    { kind: 'drive', sensor: 'd:s@1', entity: 'HDD', bad: true },
  ]);
});

it('limits the number and the length of readings from a BMC', () => {
  const many = Object.fromEntries(
    Array.from({ length: 5000 }, (_, n) => [`${n}`.padEnd(500, 'x'), { reading: n, reading_units: 'x'.repeat(500), health: 'x' }]),
  );
  const { readings, health } = readingsOf({
    Fan: many,
    Temperature: 5,
    Power: { a: null, b: [5] },
    ['Fan'.padEnd(300, 'n')]: {},
  });
  expect([readings.length, health.length]).toEqual([512, 512]);
  expect(Math.max(...readings.map(({ sensor, unit }) => sensor.length + unit.length))).toBeLessThan(110);
});
