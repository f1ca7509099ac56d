/** How each hardware type names the BMC of a node: nodes may share a BMC. */
import { HARDWARE_TYPES } from '../../drivers';
import type { JsonObject } from '../../model/records';

const bmcOf = (driver: string, info: JsonObject): string | undefined => HARDWARE_TYPES[driver]!.bmcOf?.(info);
it.each([
  ['2001:DB8::5', 'https://[2001:db8::5]'],
  ['https://[2001:db8:0:0::5]/redfish', 'https://[2001:db8::5]/'],
  ['BMC.example', 'https://bmc.example'],
  ['https://bmc.example:443', 'https://bmc.example'],
])('the addresses %s and %s are of one BMC', (left, right) => {
  const [name, ofOther] = [left, right].map((redfish_address) => bmcOf('redfish', { redfish_address }));
  expect(name).toEqual(expect.any(String));
  expect(name).toBe(ofOther);
});
it('other ports and hosts are other BMCs', () => {
  const names = ['https://bmc.example', 'https://bmc.example:8443', 'https://bmc2.example', '2001:db8::5'].map((address) =>
    bmcOf('redfish', { redfish_address: address }),
  );
  expect(new Set(names).size).toBe(4);
});
it.each([
  ['2001:DB8::5', '2001:db8:0::5'],
  ['::ffff:10.0.0.1', '10.0.0.1'],
  ['BMC.example', 'bmc.example'],
])('the IPMI addresses %s and %s are of one BMC', (left, right) => {
  const [name, ofOther] = [left, right].map((ipmi_address) => bmcOf('ipmi', { ipmi_address }));
  expect(name).toEqual(expect.any(String));
  expect(name).toBe(ofOther);
});
it('a node without an address names no BMC, and another port is another BMC', () => {
  for (const driver of Object.keys(HARDWARE_TYPES)) expect(bmcOf(driver, {})).toBeUndefined();
  const ports = [undefined, 623, 6230].map((ipmi_port) => bmcOf('ipmi', { ipmi_address: '192.0.2.1', ipmi_port }));
  expect(new Set(ports).size).toBe(3);
});
it('fake hardware may use the BMC of any type', () => {
  for (const [type, info] of [
    ['ipmi', { ipmi_address: '192.0.2.1' }],
    ['redfish', { redfish_address: 'https://bmc.example' }],
  ] as const)
    expect(bmcOf('fake-hardware', info)).toBe(bmcOf(type, info));
});
