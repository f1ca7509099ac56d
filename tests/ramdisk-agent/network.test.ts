import { hostOf, subnetOf } from '../../ramdisk-agent/network/addresses';
import { setUpNetwork } from '../../ramdisk-agent/network/network';
import { neededMacs, planNetwork } from '../../ramdisk-agent/network/plan';
import { tree } from '../../ramdisk-agent/system/tree';
import { silentLog } from '../../model/log';
import { fakeClock, fileTree } from './support';

const A = '52:54:00:00:00:0a';
const B = '52:54:00:00:00:0b';
const INTERFACES = new Map([
  [A, 'eth0'],
  [B, 'eth1'],
]);
const phy = (id: string, mac: string, more: object = {}) => ({ id, type: 'phy', ethernet_mac_address: mac, ...more });
const BOND = { id: 'bond', type: 'bond', ethernet_mac_address: A, bond_mode: '802.3ad', bond_links: ['a', 'b'] };
const vlan = (id: string, link: string, number: unknown) => ({ id, type: 'vlan', vlan_link: link, vlan_id: number, vlan_mac_address: B });
const v4 = (link: string, more: object = {}) => ({
  id: 'n4',
  network_id: 'x',
  type: 'ipv4',
  link,
  ip_address: '192.0.2.5',
  netmask: '255.255.255.128',
  ...more,
});
const v6 = (link: string, more: object = {}) => ({
  id: 'n6',
  network_id: 'x',
  type: 'ipv6',
  link,
  ip_address: '2001:db8::5',
  netmask: 'ffff:ffff:ffff:ffff::',
  ...more,
});
/** Data that has no list of networks gets one. */
const withNetworks = (data: unknown): unknown =>
  typeof data === 'object' && data !== null && 'links' in data && !('networks' in data) ? { ...data, networks: [v4('a')] } : data;
/** One line for an operation. */
const lines = (data: unknown): readonly string[] =>
  planNetwork(data, INTERFACES).operations.map((operation) => {
    if (operation.kind === 'run') return operation.words.join(' ');
    return operation.kind === 'set' ? `${operation.path}=${operation.value}` : `dhcp ${operation.name}`;
  });
const UP = ['ip link set eth0 up', 'ip link set eth1 up'];

describe('planNetwork', () => {
  it.each<readonly [string, object, readonly string[]]>([
    [
      'one interface with its MTU and its routes',
      {
        links: [phy('a', A.toUpperCase().replaceAll(':', '-'), { mtu: 9000, type: 'ovs' })],
        networks: [
          v4('a', {
            routes: [
              { network: '0.0.0.0', netmask: '0.0.0.0', gateway: '192.0.2.1' },
              { network: '198.51.100.0', netmask: '255.255.255.0', gateway: '192.0.2.2' },
            ],
          }),
        ],
      },
      [
        'ip link set eth0 mtu 9000',
        'ip -4 addr add 192.0.2.5/25 dev eth0',
        ...UP,
        'ip -4 route replace 0.0.0.0/0 via 192.0.2.1 dev eth0',
        'ip -4 route replace 198.51.100.0/24 via 192.0.2.2 dev eth0',
      ],
    ],
    [
      'IPv6 with a link-local gateway',
      { links: [phy('a', A)], networks: [v6('a', { routes: [{ network: '::', netmask: '::', gateway: 'fe80::1%eth9' }] })] },
      [
        'ip -6 addr add 2001:db8::5/64 dev eth0',
        '/proc/sys/net/ipv6/conf/eth0/accept_ra=0',
        ...UP,
        'ip -6 route replace ::/0 via fe80::1 dev eth0',
      ],
    ],
    [
      'a static address beside advertised ones',
      { links: [phy('a', A)], networks: [v6('a', { ip_address: '2001:db8::5/64', netmask: undefined }), v6('a', { type: 'ipv6_slaac' })] },
      ['ip -6 addr add 2001:db8::5/64 dev eth0', ...UP],
    ],
    [
      'DHCP on the interfaces that request it',
      { links: [phy('a', A), phy('b', B)], networks: [v4('a', { type: 'ipv4_dhcp' }), v4('b')] },
      ['ip -4 addr add 192.0.2.5/25 dev eth1', ...UP, 'dhcp eth0'],
    ],
    [
      'a VLAN on a bond, in any order of the links',
      {
        links: [
          vlan('v', 'bond', 5),
          { ...BOND, bond_miimon: '50', bond_xmit_hash_policy: 'layer3+4', mtu: 1400 },
          phy('a', A),
          phy('b', B),
        ],
        networks: [v4('v')],
      },
      [
        'modprobe bonding max_bonds=0',
        'ip link add name bond0 type bond',
        '/sys/class/net/bond0/bonding/mode=802.3ad',
        '/sys/class/net/bond0/bonding/miimon=50',
        '/sys/class/net/bond0/bonding/xmit_hash_policy=layer3+4',
        `ip link set bond0 address ${A}`,
        'ip link set eth0 down',
        'ip link set eth0 master bond0',
        'ip link set eth1 down',
        'ip link set eth1 master bond0',
        'ip link set bond0 mtu 1400',
        'ip link add link bond0 name bond0.5 type vlan id 5',
        `ip link set bond0.5 address ${B}`,
        'ip -4 addr add 192.0.2.5/25 dev bond0.5',
        ...UP,
        'ip link set bond0 up',
        'ip link set bond0.5 up',
      ],
    ],
    [
      'a VLAN in a VLAN',
      { links: [vlan('w', 'v', '200'), vlan('v', 'a', 100), phy('a', A)], networks: [v4('w', { type: 'ipv4_dhcp' })] },
      [
        'ip link add link eth0 name eth0.100 type vlan id 100',
        `ip link set eth0.100 address ${B}`,
        'ip link add link eth0.100 name eth0.100.200 type vlan id 200',
        `ip link set eth0.100.200 address ${B}`,
        ...UP,
        'ip link set eth0.100 up',
        'ip link set eth0.100.200 up',
        'dhcp eth0.100.200',
      ],
    ],
  ])('configures %s', (_name, data, expected) => {
    expect(lines(data)).toEqual(expected);
  });

  it('collects at most three name servers of data, networks and routes', () => {
    const dns = (address: unknown) => ({
      services: [
        { type: 'dns', address },
        { type: 'ntp', address: '192.0.2.99' },
      ],
    });
    const route = { network: '::', netmask: '::', gateway: 'fe80::1', ...dns('2001:db8::2') };
    const networks = [v6('a', { ...dns('2001:db8::1\nsearch evil'), routes: [route] }), v4('a', dns('192.0.2.54'))];
    const data = { links: [phy('a', A)], networks, ...dns('192.0.2.53') };
    expect(planNetwork(data, INTERFACES)).toMatchObject({
      nameServers: ['192.0.2.53', '192.0.2.54', '2001:db8::2'],
      addressed: ['eth0'],
      warnings: [],
    });
  });

  it.each([
    ['ipv6_dhcp', ['dhcpv6']],
    ['ipv6_dhcpv6-stateful', ['dhcpv6']],
    ['ipv6_dhcpv6-stateless', []],
    ['ipv6_slaac', []],
  ])('starts for a network of the type %s the DHCP clients %j', (type, expected) => {
    const { operations, warnings } = planNetwork(withNetworks({ links: [phy('a', A)], networks: [v6('a', { type })] }), INTERFACES);
    expect(operations.flatMap(({ kind }) => (kind.startsWith('dhcp') ? [kind] : []))).toEqual(expected);
    expect(warnings).toEqual([]);
  });

  it.each<readonly [object, RegExp]>([
    [{ links: [phy('a', A), phy('c', '52:54:00:00:00:0c')] }, /^no interface has the MAC address of link "c"$/],
    [{ links: [phy('a', A), { ...BOND, bond_links: ['a', 'gone'] }] }, /^bond "bond" has 1 of its 2 links$/],
    [{ links: [phy('a', A), vlan('v', 'gone', 5), vlan('w', 'v', 6)] }, /^the vlan_link of VLAN "[vw]" is missing$/],
    [{ links: [phy('a', A)], networks: [v4('gone')] }, /^the link of network "n4" is missing$/],
    [{ links: [phy('a', A)], networks: [v4('a', { type: 'ipv5' })] }, /^network "n4" has an unknown type$/],
    [
      { links: [phy('a', A)], networks: [v4('a', { routes: [{ network: '::', netmask: '::', gateway: 'fe80::1' }] })] },
      /^a route through eth0/,
    ],
    [{ links: [phy('a', A)], networks: [v4('a', { routes: [{ network: '10.0.0.0', netmask: '255.0.0.0', gateway: '-6' }] })] }, /^a route/],
  ])('warns about unusable links, networks and routes, and plans the rest, case %#', (data, expected) => {
    const { warnings } = planNetwork(withNetworks(data), INTERFACES);
    for (const warning of warnings) expect(warning).toMatch(expected);
    expect(warnings.length).toBeGreaterThan(0);
  });

  it.each<readonly [unknown, RegExp]>([
    [null, /not an object/],
    [[], /not an object/],
    [{}, /no networks/],
    [{ links: [phy('a', A)], networks: [] }, /no networks/],
    [{ links: [phy('c', '52:54:00:00:00:0c')] }, /none of its links/],
    [{ links: 'eth0' }, /links is not a list/],
    [{ links: [1] }, /links has items that are not objects/],
    [{ links: Array.from({ length: 257 }, (_, index) => phy(String(index), A)) }, /links is not a list of up to 256/],
    [{ links: [{ type: 'phy' }] }, /a link has no id/],
    [{ links: [phy('a', A), phy('a', B)] }, /two links have one id/],
    [{ links: [phy('a', A), { ...BOND, bond_mode: '802.3ad; reboot' }] }, /bond "bond" has an unknown bond_mode/],
    [{ links: [phy('a', A), { ...BOND, bond_links: ['bond'] }] }, /bond "bond" has no interface/],
    [{ links: [phy('a', A), vlan('v', 'a', '5; reboot')] }, /VLAN "v" has no vlan_id/],
    [{ links: [phy('a', A), vlan('v', 'a', 4095)] }, /VLAN "v" has no vlan_id/],
    [{ links: [phy('a', A), vlan('v', 'a', 1000), vlan('w', 'v', 1000), vlan('x', 'w', 1000)] }, /VLAN "x" is in too many others/],
    [{ links: [phy('a', A)], networks: [v4('a', { ip_address: '192.0.2.5 dev lo' })] }, /network "n4" has no address/],
    [{ links: [phy('a', A)], networks: [v4('a', { netmask: '255.0.255.0' })] }, /network "n4" has no address with a mask of IPv4/],
    [{ links: [phy('a', A)], networks: [v4('a', { ip_address: '2001:db8::5', netmask: 'ffff::' })] }, /of IPv4/],
    [{ links: [phy('a', A)], networks: Array.from({ length: 1025 }, () => v4('a')) }, /networks is not a list of up to 1024/],
  ])('throws for invalid data, case %#', (data, expected) => {
    expect(() => planNetwork(withNetworks(data), INTERFACES)).toThrow(expected);
  });

  it('needs the interfaces that neededMacs names', () => {
    expect(neededMacs({ links: [BOND, phy('a', A), phy('b', 'no'), vlan('v', 'a', 5)] })).toEqual([A]);
  });
});

it.each([
  ['192.0.2.5', '255.255.255.0', ['192.0.2.5', 24, 4]],
  ['192.0.2.5/30', undefined, ['192.0.2.5', 30, 4]],
  ['192.0.2.5', 32, ['192.0.2.5', 32, 4]],
  ['0.0.0.0', '0.0.0.0', ['0.0.0.0', 0, 4]],
  ['2001:db8::5', 'ffff:ffff:ffff:ff00::', ['2001:db8::5', 56, 6]],
  ['2001:db8::5', '64', ['2001:db8::5', 64, 6]],
  ['::', '::', ['::', 0, 6]],
  ['::ffff:192.0.2.5', 'ffff:ffff:ffff:ffff:ffff:ffff:255.255.0.0', ['::ffff:192.0.2.5', 112, 6]],
  ['2001:db8::5', 'ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff', ['2001:db8::5', 128, 6]],
  ['192.0.2.5', 33, undefined],
  ['192.0.2.5', undefined, undefined],
  ['192.0.2.5', '0.0.0.255', undefined],
  ['192.0.2.5/24/24', undefined, undefined],
  ['192.0.2.5', 'ffff::', undefined],
  ['fe80::1%eth0', 64, undefined],
  ['-6', 24, undefined],
  [5, 24, undefined],
])('subnetOf(%s, %s)', (address, mask, expected) => {
  const subnet = subnetOf(address, mask);
  expect(subnet && [subnet.address, subnet.prefix, subnet.family]).toEqual(expected);
});
it.each([
  ['192.0.2.1', 4, '192.0.2.1'],
  ['fe80::1%eth0', 6, 'fe80::1'],
  ['192.0.2.1', 6, undefined],
  ['dev', undefined, undefined],
  [null, undefined, undefined],
] as const)('hostOf(%s, IPv%s)', (address, family, expected) => {
  expect(hostOf(address, family)).toBe(expected);
});

describe('setUpNetwork', () => {
  const files = {
    'sys/class/net/eth0/device': '->../../../devices/0',
    'sys/class/net/eth0/address': `${A.toUpperCase()}\n`,
    'sys/class/net/eth0/carrier': '1\n',
    'sys/class/net/lo/address': '00:00:00:00:00:00\n',
    'proc/net/if_inet6': `20010db8000000000000000000000005 02 40 00 40 eth0\n`,
  };
  const bench = () => {
    const done: string[] = [];
    const clock = fakeClock();
    const around = {
      tree: tree(fileTree(files)),
      clock,
      log: silentLog,
      run: async (program: string, words: readonly string[]) => {
        done.push([program, ...words].join(' '));
        if (words.includes('mtu')) throw new Error('ip: RTNETLINK answers: Invalid argument');
        return '';
      },
      write: (path: string, text: string) => void done.push(`${path}: ${text}`),
      start: (words: readonly string[]) => void done.push(`start ${words.join(' ')}`),
    };
    return { done, clock, around };
  };
  it('executes the plan despite failed commands, and waits for interfaces and addresses only until its limits', async () => {
    const { done, clock, around } = bench();
    const links = [phy('a', A, { mtu: 9000 }), phy('c', '52:54:00:00:00:0c')];
    const data = { links, networks: [v4('a'), v4('a', { type: 'ipv4_dhcp' })], services: [{ type: 'dns', address: '192.0.2.53' }] };
    let ended = false;
    const setup = setUpNetwork(JSON.stringify(data), around).then(() => (ended = true));
    await clock.advance(19_000);
    expect(done).toEqual([]);
    await clock.advance(2000);
    expect(done).toEqual([
      'ip link set eth0 mtu 9000',
      'ip -4 addr add 192.0.2.5/25 dev eth0',
      'ip link set eth0 up',
      'start udhcpc -f -R -t 5 -T 2 -A 5 -s /bin/lease -i eth0',
      '/etc/resolv.conf: nameserver 192.0.2.53\n',
    ]);
    // The duplicate address detection of eth0 does not end, so the setup waits for its limit.
    await clock.advance(58_000);
    expect(ended).toBe(false);
    await clock.advance(3000);
    expect(ended).toBe(true);
    await setup;
  });
  it.each(['{', '[]', '{"links": []}'])('rejects %s', async (text) => {
    await expect(setUpNetwork(text, bench().around)).rejects.toThrow();
  });
});
