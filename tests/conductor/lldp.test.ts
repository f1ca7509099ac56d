/** LLDP: the meaning of TLVs. Values by IEEE 802.1AB, 802.1Q Annex D, 802.3 §79; names are those of Ironic. */
import { lldpFacts, tlvOf } from '../../conductor/inspection/hooks/lldp';

const facts = (...pairs: readonly unknown[]): object => lldpFacts(pairs.flatMap((pair) => tlvOf(pair) ?? []));
const hex = (text: string): string => Buffer.from(text).toString('hex');

it.each<[string, readonly unknown[], object]>([
  ['chassis, MAC address', [1, '04525400aabbcc'], { switch_chassis_id: '52:54:00:aa:bb:cc' }],
  ['chassis, name', [1, `07${hex('sw 1')}`], { switch_chassis_id: 'sw 1' }],
  ['chassis, IPv4', [1, '0501c0000207'], { switch_chassis_id: '192.0.2.7' }],
  ['chassis, IPv6', [1, '050220010db8000000000000000000000001'], { switch_chassis_id: '2001:db8::1' }],
  ['chassis, unknown subtype', [1, '0901'], {}],
  ['chassis, cut short', [1, '045254'], {}],
  ['port, MAC address', [2, '03525400aabbcc'], { switch_port_id: '52:54:00:aa:bb:cc' }],
  ['port, name', [2, `05${hex('Eth1/1')}`], { switch_port_id: 'Eth1/1' }],
  ['time to live', [3, '0078'], {}],
  ['description', [4, hex('up')], { switch_port_description: 'up' }],
  ['not UTF-8', [5, 'ff'], {}],
  ['capabilities', [7, '00140004'], { switch_capabilities_support: ['Bridge', 'Router'], switch_capabilities_enabled: ['Bridge'] }],
  ['capabilities of another length', [7, '0014'], {}],
  ['management address', [8, '0501c000020701'], { switch_mgmt_addresses: ['192.0.2.7'] }],
  ['VLAN', [127, '0080c2010064'], { switch_port_untagged_vlan_id: 100 }],
  [
    'protocol VLAN',
    [127, '0080c202060065'],
    { switch_port_protocol_vlan_enabled: true, switch_port_protocol_vlan_support: true, switch_port_protocol_vlan_ids: [101] },
  ],
  ['VLAN name', [127, `0080c203006604${hex('left')}`], { switch_port_vlans: [{ name: 'left', id: 102 }] }],
  ['VLAN name, cut short', [127, `0080c2030066ff${hex('left')}`], {}],
  ['protocol identity', [127, '0080c204028100'], { switch_protocol_identities: ['8100'] }],
  ['management VLAN', [127, '0080c2060067'], { switch_port_management_vlan_id: 103 }],
  [
    'link aggregation',
    [127, '00120f030300000107'],
    {
      switch_port_link_aggregation_enabled: true,
      switch_port_link_aggregation_support: true,
      switch_port_link_aggregation_id: 263,
    },
  ],
  [
    'MAC and PHY',
    [127, '00120f01036c11001e'],
    {
      switch_port_autonegotiation_enabled: true,
      switch_port_autonegotiation_support: true,
      switch_port_physical_capabilities: [
        '1000BASE-T fdx',
        '10BASE-T fdx',
        '10BASE-T hdx',
        '100BASE-TX fdx',
        '100BASE-TX hdx',
        'Asym and Sym PAUSE fdx',
      ].sort(),
      switch_port_mau_type: '1000BASE-T full duplex',
    },
  ],
  ['MTU', [127, '00120f0405dc'], { switch_port_mtu: 1500 }],
  ['unknown organization', [127, '00aabb0405dc'], {}],
  ['not hexadecimal', [5, 'xyz'], {}],
  ['not a pair', ['5'], {}],
])('decodes a TLV: %s', (_, pair, expected) => {
  expect(facts(pair)).toEqual(expected);
});

it('takes the first of several TLVs, and collects those that may be repeated', () => {
  expect(facts([5, hex('one')], [5, hex('two')], [8, '0501c000020701'], [8, '0501c000020801'])).toEqual({
    switch_system_name: 'one',
    switch_mgmt_addresses: ['192.0.2.7', '192.0.2.8'],
  });
});
