import { bmcOf } from '../../../conductor/runtime/bmc-turns';
import { nodeRecord } from '../../support/task';

const of = (driver_info: Record<string, string>): string => bmcOf(nodeRecord({ driver_info }));
it.each([
  ['2001:DB8::5', 'https://[2001:db8::5]'],
  ['https://[2001:db8:0:0::5]/redfish', 'https://[2001:db8::5]/'],
  ['BMC.example', 'https://bmc.example'],
  ['https://bmc.example:443', 'https://bmc.example'],
])('the addresses %s and %s are of one BMC', (one, other) => {
  expect(of({ redfish_address: one })).toBe(of({ redfish_address: other }));
});
it('other ports and hosts are other BMCs', () => {
  const names = ['https://bmc.example', 'https://bmc.example:8443', 'https://bmc2.example', '2001:db8::5'].map((address) =>
    of({ redfish_address: address }),
  );
  expect(new Set(names).size).toBe(4);
});
it.each([
  ['2001:DB8::5', '2001:db8:0::5'],
  ['::ffff:10.0.0.1', '10.0.0.1'],
  ['BMC.example', 'bmc.example'],
])('the IPMI addresses %s and %s are of one BMC', (one, other) => {
  expect(of({ ipmi_address: one })).toBe(of({ ipmi_address: other }));
});
