import { isElsewhere, successorOf, type RetiredKind } from '../../../model/rules/retired-hardware';

it.each<[RetiredKind, string, string | undefined]>([
  ['hardware type', 'ilo', 'use redfish'],
  ['hardware type', 'ilo5', 'use redfish'],
  ['hardware type', 'irmc', 'use redfish'],
  ['hardware type', 'xclarity', 'use redfish'],
  ['hardware type', 'ibmc', 'use redfish'],
  ['hardware type', 'cisco-ucs-managed', 'use redfish'],
  ['hardware type', 'snmp', 'use ipmi or redfish, or manual-management'],
  ['hardware type', 'redfish', undefined],
  ['hardware type', 'idrac-wsman', undefined],
  ['management', 'idrac-wsman', 'use idrac-redfish'],
  ['raid', 'idrac', 'use idrac-redfish'],
  ['power', 'ilo', 'use redfish, with the driver redfish'],
  ['power', 'snmp', 'use ipmitool or redfish, with their drivers'],
  ['boot', 'ilo-virtual-media', 'use redfish-virtual-media, with the driver redfish'],
  ['boot', 'irmc-pxe', 'use pxe'],
  ['network', 'ucsm', undefined],
  ['console', 'ilo', 'use ipmitool-socat'],
  ['inspect', 'idrac-inspector', 'use agent, or discoverd for a service of its own'],
])('what replaces the %s %s', (kind, name, expected) => {
  expect(successorOf(kind, name)).toBe(expected);
  if (expected !== undefined) expect(isElsewhere(name)).toBe(true);
});
it.each(['redfish', 'idrac', 'idrac-redfish', 'redfihs', 'ilox', ''])('the name %j is of no dropped hardware', (name) => {
  expect(isElsewhere(name)).toBe(name === 'idrac');
});
