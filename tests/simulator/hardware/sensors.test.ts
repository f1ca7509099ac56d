import { SENSORS } from '../../../simulator/redfish/resources/sensors';

it('Redfish shows as values what IPMI tells raw', () => {
  expect(SENSORS.map(({ id, units, on, off, caution, critical, most }) => [id, units, on, off, caution, critical, most])).toEqual([
    ['InletTemp', 'Cel', 24, 21, 42, 47, 127],
    ['CPU1Temp', 'Cel', 48, undefined, 90, 95, 255],
    ['Fan1', '{rev}/min', 6100, 0, undefined, undefined, 12_000],
    ['Fan2', '{rev}/min', 6000, 0, undefined, undefined, 12_000],
    ['P12V', 'V', 12.096, undefined, 13.104, 13.356, 16.065],
    ['PSU1Power', 'W', 182, 10, undefined, undefined, 750],
  ]);
});
