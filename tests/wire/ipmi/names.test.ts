/** Texts for the numbers that BMCs send: every number of the specification's tables has one. */
import { COMMANDS, completionText, rakpStatusText } from '../../../wire/ipmi/constants';
import { entityName, sensorTypeName, unitName } from '../../../wire/ipmi/records/sensor-names';

const range = (from: number, to: number): number[] => Array.from({ length: to - from + 1 }, (_, at) => from + at);
const UNKNOWN = 'command-specific or OEM code';

it.each([...range(0xc0, 0xd6), 0xff])('completion code %i has a text', (code) => {
  const [text, more] = completionText(code).split(' (');
  expect(text).toMatch(/^\w.{3}/);
  expect(text).not.toBe(UNKNOWN);
  expect(more).toBe(`completion code 0x${code.toString(16)})`);
});
it('completion codes and RMCP+ statuses without a meaning have a text that says so', () => {
  expect(completionText(0x05)).toBe(`${UNKNOWN} (completion code 0x05)`);
  expect(completionText(0x81)).toBe(`${UNKNOWN} (completion code 0x81)`);
  expect(rakpStatusText(0x13)).toBe('unknown reason (RMCP+ status 0x13)');
});
it.each<[keyof typeof COMMANDS, readonly number[]]>([
  ['sendMessage', range(0x80, 0x83)],
  ['getSessionChallenge', range(0x81, 0x82)],
  ['activateSession', range(0x81, 0x86)],
  ['setSessionPrivilegeLevel', range(0x80, 0x82)],
  ['closeSession', [0x87]],
  ['activatePayload', range(0x80, 0x84)],
  ['deactivatePayload', range(0x80, 0x81)],
  ['setSystemBootOptions', range(0x80, 0x82)],
  ['getSystemBootOptions', [0x80]],
  ['getSelEntry', [0x81]],
  ['clearSel', range(0x80, 0x81)],
  ['readFruData', [0x81]],
])('the command-specific completion codes of %s have their own texts', (command, codes) => {
  for (const code of codes) {
    const text = completionText(code, COMMANDS[command]);
    expect(text).toMatch(/^\w{2}.* \(completion code 0x8\d\)$/);
    expect(text).not.toContain(UNKNOWN);
  }
  expect(completionText(codes.at(-1)! + 1, COMMANDS[command])).toContain(UNKNOWN);
});
it.each(range(0x01, 0x12))('RMCP+ status %i has a text', (status) => {
  const [text, more] = rakpStatusText(status).split(' (RMCP+');
  expect(text).toMatch(/^\w.{3}/);
  expect(text).not.toBe('unknown reason');
  expect(more).toBe(` status 0x${status.toString(16).padStart(2, '0')})`);
});

it.each<[(value: number) => string, number, string]>([
  [sensorTypeName, 0x01, 'Temperature'],
  [sensorTypeName, 0x2c, 'FRU State'],
  [sensorTypeName, 0x2d, 'Unknown'],
  [sensorTypeName, 0xbf, 'Unknown'],
  [sensorTypeName, 0xc0, 'OEM reserved'],
  [entityName, 0x03, 'Processor'],
  [entityName, 0x35, 'Real Time Clock(RTC)'],
  [entityName, 0x36, 'Unknown (0x36)'],
  [entityName, 0x37, 'Air Inlet'],
  [entityName, 0x40, 'Air Inlet'],
  [entityName, 0x41, 'Processor'],
  [entityName, 0x42, 'Baseboard/Main System Board'],
  [entityName, 0xa0, 'PICMG Front Board'],
  [entityName, 0xf3, 'PICMG Alarm Panel'],
  [entityName, 0xfe, 'Unknown (0xFE)'],
  [unitName, 1, 'degrees C'],
  [unitName, 18, 'RPM'],
  [unitName, 92, 'grams'],
  [unitName, 93, 'invalid'],
])('%p(%i) is %s', (name, value, expected) => {
  expect(name(value)).toBe(expected);
});
it.each([192, 193, 240, 241, 242])('entity %i has a PICMG name', (id) => expect(entityName(id)).toMatch(/^PICMG \w/));
