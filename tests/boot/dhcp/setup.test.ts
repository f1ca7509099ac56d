import { planDhcp, planSubnets, type DhcpOptions } from '../../../boot/dhcp/setup';
import { DhcpSetupError } from '../../../boot/dhcp/subnets';
import { addressToNumber } from '../../../wire/dhcp/dhcp';
import { isRouterSolicitation, routerAdvertisement } from '../../../wire/dhcp/router-advertisement';
import { DHCP_OPTIONS as OPTIONS } from './options';

const HOME = { address: '10.0.0.1', netmask: '255.255.255.0' };
const OTHER = { address: '192.168.7.1', netmask: '255.255.255.128' };

it.each<[string, Partial<DhcpOptions>, Parameters<typeof planDhcp>[1], string]>([
  ['no interface', { 'boot.interface': null }, undefined, '[boot]interface is not set: the DHCP service needs an interface'],
  ['an interface that is not there', {}, undefined, '[boot]interface = eth1: there is no such interface'],
  ['an interface without an address', {}, [], '[boot]interface = eth1: it has no IPv4 address'],
  ['no range', { 'boot.dhcp_range': null }, [HOME], '[boot]dhcp_range = : it must be FIRST-LAST, two IPv4 addresses'],
  [
    'a range without an end',
    { 'boot.dhcp_range': '10.0.0.1-' },
    [HOME],
    '[boot]dhcp_range = 10.0.0.1-: it must be FIRST-LAST, two IPv4 addresses',
  ],
  ['a reversed range', { 'boot.dhcp_range': '10.0.0.9-10.0.0.8' }, [HOME], '[boot]dhcp_range = 10.0.0.9-10.0.0.8 ends before it begins'],
  [
    'a range of more than 65536 addresses',
    { 'boot.dhcp_range': '10.0.0.0-10.9.0.0' },
    [HOME],
    '[boot]dhcp_range = 10.0.0.0-10.9.0.0 has more than 65536 addresses',
  ],
  [
    'a range outside the subnets of the interface',
    { 'boot.dhcp_range': '10.0.1.1-10.0.1.9' },
    [HOME, OTHER],
    '[boot]dhcp_range = 10.0.1.1-10.0.1.9 is in no subnet of interface eth1',
  ],
  [
    'a range that exceeds its subnet',
    { 'boot.dhcp_range': '10.0.0.9-10.0.1.9' },
    [HOME],
    '[boot]dhcp_range = 10.0.0.9-10.0.1.9 is not within one subnet (netmask 255.255.255.0)',
  ],
  ['a netmask with a hole', { 'boot.dhcp_netmask': '255.0.255.0' }, [HOME], '[boot]dhcp_netmask = 255.0.255.0 is not a netmask'],
  [
    'a gateway outside the subnet',
    { 'boot.dhcp_gateway': '10.0.1.1' },
    [HOME],
    '[boot]dhcp_gateway = 10.0.1.1 is not in the subnet of [boot]dhcp_range',
  ],
  ['a name for a name server', { 'boot.dhcp_dns': ['dns'] }, [HOME], '[boot]dhcp_dns = dns is not an IPv4 address'],
  ['a name for the TFTP server', { 'pxe.tftp_server': 'tftp' }, [HOME], '[pxe]tftp_server = tftp is not an IPv4 address'],
])('planDhcp rejects %s', (_, options, addresses, message) => {
  expect(() => planDhcp({ ...OPTIONS, ...options }, addresses)).toThrow(new DhcpSetupError(message));
});

it.each<[string, Partial<DhcpOptions>, Parameters<typeof planDhcp>[1], object]>([
  [
    'the netmask of the interface',
    {},
    [OTHER, HOME],
    { server: '10.0.0.1', netmask: '255.255.255.0', network: addressToNumber('10.0.0.0') },
  ],
  [
    'the configured netmask',
    { 'boot.dhcp_netmask': '255.255.0.0' },
    [HOME],
    { netmask: '255.255.0.0', network: addressToNumber('10.0.0.0') },
  ],
  [
    'my_ip if the interface has several addresses in the subnet',
    { 'DEFAULT.my_ip': '10.0.0.2' },
    [HOME, { ...HOME, address: '10.0.0.2' }],
    { server: '10.0.0.2' },
  ],
  ['the address in the subnet if my_ip is in another', { 'DEFAULT.my_ip': '192.168.7.1' }, [OTHER, HOME], { server: '10.0.0.1' }],
  [
    'the first address of the interface if machines come only through relays',
    { 'boot.dhcp_netmask': '255.255.255.0' },
    [OTHER],
    { server: '192.168.7.1' },
  ],
])('planDhcp uses %s', (_, options, addresses, policy) => {
  expect(planDhcp({ ...OPTIONS, ...options }, addresses).policy).toMatchObject(policy);
});
it('planDhcp excludes network, broadcast, own addresses and gateway from the pool', () => {
  const { range } = planDhcp({ ...OPTIONS, 'boot.dhcp_range': '10.0.0.0-10.0.0.255', 'boot.dhcp_gateway': '10.0.0.254' }, [HOME]);
  expect(range.excluded).toEqual(['10.0.0.0', '10.0.0.255', '10.0.0.1', '10.0.0.254'].map(addressToNumber));
});
it('planDhcp detects a subnet that only relays can reach', () => {
  expect(planDhcp(OPTIONS, [HOME]).direct).toBe(true);
  expect(planDhcp({ ...OPTIONS, 'boot.dhcp_netmask': '255.255.255.0' }, [OTHER]).direct).toBe(false);
});

it('an empty router advertisement has 16 bytes and type 134', () => {
  const empty = { dhcp: false, routerSeconds: 0, prefixes: [], mtu: null, dns: [] };
  expect(routerAdvertisement(empty).toString('hex')).toBe('86'.padEnd(32, '0'));
});
it.each([
  ['of iPXE', '8500d8aa00000000010116c225d596aa', true],
  ['without options', '8500000000000000', true],
  ['that is truncated', '85000000000000', false],
  ['with another code', '8501000000000000', false],
  ['of another type', '8600000000000000', false],
  ['with an option of no length', '85000000000000000100000000000000', false],
  ['with an option over the end', '85000000000000000102000000000000', false],
])('isRouterSolicitation of a packet %s: %s is %s', (_, hex, expected) => {
  expect(isRouterSolicitation(Buffer.from(hex, 'hex'))).toBe(expected);
});

it.each([
  [null, 51],
  [7, 7],
])('planDhcp limits unknown machines to dhcp_max_unknown = %p, by default to half of the addresses: %i', (max, expected) => {
  const range = { 'boot.dhcp_range': '10.0.0.100-10.0.0.200', 'boot.dhcp_max_unknown': max };
  expect(planDhcp({ ...OPTIONS, ...range }, [{ address: '10.0.0.1', netmask: '255.255.255.0' }]).maxUnknown).toBe(expected);
});

describe('planSubnets', () => {
  const LINKS: Readonly<Record<string, readonly { address: string; netmask: string }[]>> = {
    eth1: [HOME],
    eth2: [{ address: '10.2.0.1', netmask: '255.255.255.0' }],
  };
  const plan = (...lines: readonly string[]) => planSubnets({ ...OPTIONS, 'boot.dhcp_subnet': lines }, (name) => LINKS[name]);

  it('plans the subnets of dhcp_subnet on their interface or through relays', () => {
    const plans = plan(
      '10.2.0.0/24 range=10.2.0.100-10.2.0.109 interface=eth2 gateway=10.2.0.254 dns=10.2.0.2 dns=10.2.0.3 domain=lab.example mtu=9000 lease=600 route=10.9.0.0/16:10.2.0.253',
      '10.3.0.0/16 range=10.3.1.0-10.3.1.255',
    );
    expect(plans.map(({ interface: name, direct, written }) => [name, direct, written])).toEqual([
      ['eth1', true, '10.0.0.100-10.0.0.200'],
      ['eth2', true, '10.2.0.100-10.2.0.109'],
      ['eth1', false, '10.3.1.0-10.3.1.255'],
    ]);
    expect(plans[1]!.policy).toMatchObject({
      server: '10.2.0.1',
      netmask: '255.255.255.0',
      gateway: '10.2.0.254',
      dns: ['10.2.0.2', '10.2.0.3'],
      domain: 'lab.example',
      mtu: 9000,
      leaseSeconds: 600,
      routes: [{ destination: '10.9.0.0', width: 16, router: '10.2.0.253' }],
      // The machines reach this host by its address in their network.
      tftpServer: '10.2.0.1',
      httpUrl: 'http://10.2.0.1:8080',
    });
    expect(plans[2]!.policy).toMatchObject({
      server: '10.0.0.1',
      netmask: '255.255.0.0',
      tftpServer: '10.0.0.1',
      httpUrl: 'http://10.0.0.1:8080',
    });
  });
  it('works without dhcp_range', () => {
    const options = { ...OPTIONS, 'boot.interface': null, 'boot.dhcp_range': null };
    const lines = ['10.2.0.0/24 range=10.2.0.100-10.2.0.109 interface=eth2'];
    expect(planSubnets({ ...options, 'boot.dhcp_subnet': lines }, (name) => LINKS[name])).toHaveLength(1);
  });
  it.each([
    ['10.2.0.0', 'it must begin with NETWORK/WIDTH'],
    ['10.2.0.0/31 range=a', 'it must begin with NETWORK/WIDTH'],
    ['fd00::%eth0/64 range=a', 'it must begin with NETWORK/WIDTH'],
    ['10.2.0.0/24', 'range=FIRST-LAST is missing; proxy=true in its place if another server gives the addresses'],
    ['10.2.0.0/24 range', 'range is not KEY=VALUE'],
    ['10.2.0.0/24 pool=1', 'pool is not a key of IPv4 subnets: range, proxy, interface, gateway, dns, domain, mtu, lease, route'],
    ['fd00::/64 gateway=fd00::1', 'gateway is not a key of IPv6 subnets: range, interface, dns, domain, mtu, lease, slaac, router'],
    [
      '10.2.0.0/24 constructor=1',
      'constructor is not a key of IPv4 subnets: range, proxy, interface, gateway, dns, domain, mtu, lease, route',
    ],
    ['10.2.0.0/24 mtu=10', 'mtu must be a number from 576 to 65535'],
    ['10.2.0.0/24 mtu=1500 mtu=1501', 'mtu occurs twice'],
    ['10.2.0.0/24 dns=fd00::1', 'dns must be an address'],
    ['10.2.0.0/24 route=10.0.0.0/33:10.2.0.1', 'route must be NETWORK/WIDTH:ROUTER'],
    ['fd00::/64 slaac=yes', 'slaac must be true or false'],
    ['10.2.0.0/24 range=10.2.0.1-10.2.1.1', '[boot]dhcp_range = 10.2.0.1-10.2.1.1 is not within one subnet (netmask 255.255.255.0)'],
    ['10.2.0.0/24 range=10.4.0.1-10.4.0.9', 'the range is not in 10.2.0.0/24'],
    ['10.2.0.0/24 range=10.2.0.1-10.2.0.9 interface=eth9', '[boot]interface = eth9: there is no such interface'],
  ])('rejects %s', (line, why) => {
    expect(() => plan(line)).toThrow(expect.objectContaining({ name: 'Error', message: `[boot]dhcp_subnet = ${line}: ${why}` }) as Error);
  });
  it('rejects overlapping ranges', () => {
    expect(() => plan('10.0.0.0/24 range=10.0.0.200-10.0.0.210')).toThrow(
      new DhcpSetupError('[boot]dhcp_subnet: the ranges 10.0.0.100-10.0.0.200 and 10.0.0.200-10.0.0.210 overlap'),
    );
  });
});
