import { vlansOf } from '../../ramdisk-agent/network/vlans';

const interfaces = [
  { name: 'eth0', mac_address: '52:54:00:00:00:01' },
  { name: 'eth1', mac_address: '52:54:00:00:00:02' },
];
/** VLAN Name TLV of IEEE 802.1: the number, and the length of a name. */
const lldp = {
  eth0: [
    [1, '04'],
    [127, '0080c203006400'],
    [127, '00120f01'],
  ],
  eth1: [[127, '0080c2030fff00']],
} as const;

it.each<[readonly string[], boolean, readonly string[], readonly string[]]>([
  [['eth0.100'], false, ['eth0.100'], []],
  [['52:54:00:00:00:02.7'], false, ['eth1.7'], []],
  [['eth0'], true, ['eth0.100'], []],
  [['all'], true, ['eth0.100'], []],
  [['all'], false, [], ['ipa-enable-vlan-interfaces: all needs ipa-collect-lldp=1']],
  [['eth9.5'], false, [], ['ipa-enable-vlan-interfaces: there is no interface eth9']],
  [['eth0.0', 'eth0.4095'], false, [], []],
])('%j, LLDP %j: %j', (wanted, collects, vlans, warnings) => {
  const said: string[] = [];
  const found = vlansOf(wanted, interfaces, collects ? lldp : null, (message) => said.push(message));
  expect(found.map(({ parent, number }) => `${parent}.${number}`)).toEqual(vlans);
  expect(said).toEqual(warnings);
});
