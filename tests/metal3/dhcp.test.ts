/** dnsmasq's notation of DHCP_* variables. */
import { parseSubnet } from '../../boot/dhcp/subnets';
import { dhcpOptions, dhcpPlan } from '../../metal3/dhcp';
import { contextOf, type Environment, type ContainerContext } from '../../metal3/container-context';

const contextWith = (environment: Environment, files: readonly string[] = [], ip = '172.22.0.2'): ContainerContext =>
  contextOf(environment, { ip, interface: 'eno2', hasIpv6: false, exists: (path) => files.includes(path) });
const subnets = (environment: Environment, ip?: string): readonly string[] => dhcpPlan(contextWith(environment, [], ip)).subnets;
const RANGE = '172.22.0.10,172.22.0.100,255.255.255.0';
const RELAYED = 'set:range_1,172.23.0.10,172.23.0.100,255.255.254.0';

it.each<[string, Environment, readonly string[]]>([
  ['no range', {}, []],
  ['one range', { DHCP_RANGE: RANGE }, ['172.22.0.0/24 range=172.22.0.10-172.22.0.100 interface=eno2']],
  [
    'a router and DNS',
    { DHCP_RANGE: RANGE, GATEWAY_IP: '172.22.0.1', DNS_IP: 'provisioning' },
    ['172.22.0.0/24 range=172.22.0.10-172.22.0.100 interface=eno2 gateway=172.22.0.1 dns=172.22.0.2'],
  ],
  [
    'a range behind a relay, with a router of its own',
    { DHCP_RANGE: `${RANGE};${RELAYED},1h`, DNS_IP: '172.22.0.3', DHCP_OPTIONS: 'tag:range_1,option:router,172.23.0.1' },
    [
      '172.22.0.0/24 range=172.22.0.10-172.22.0.100 interface=eno2 dns=172.22.0.3',
      '172.23.0.0/23 range=172.23.0.10-172.23.0.100 lease=3600 gateway=172.23.0.1 dns=172.22.0.3',
    ],
  ],
  [
    'no router for one range',
    { DHCP_RANGE: `${RANGE};${RELAYED}`, GATEWAY_IP: '172.22.0.1', DHCP_OPTIONS: 'tag:range_1,option:router' },
    ['172.22.0.0/24 range=172.22.0.10-172.22.0.100 interface=eno2 gateway=172.22.0.1', '172.23.0.0/23 range=172.23.0.10-172.23.0.100'],
  ],
  [
    'options by number',
    { DHCP_RANGE: RANGE, DHCP_OPTIONS: '26,9000;15,example.org' },
    ['172.22.0.0/24 range=172.22.0.10-172.22.0.100 interface=eno2 mtu=9000 domain=example.org'],
  ],
])('translates DHCP_RANGE with %s', (_, environment, expected) => {
  expect(subnets(environment)).toEqual(expected);
  for (const line of expected) expect(() => parseSubnet(line)).not.toThrow();
});

it('translates a range of IPv6', () => {
  const environment = { DHCP_RANGE: 'fd00:77::1:10,fd00:77::1:ff,64', DNS_IP: 'provisioning', GATEWAY_IP: '172.22.0.1' };
  const [line] = subnets(environment, 'fd00:77::2');
  expect(line).toBe('fd00:77::/64 range=fd00:77::1:10-fd00:77::1:ff interface=eno2 dns=fd00:77::2');
  expect(() => parseSubnet(line!)).not.toThrow();
});

it.each<[string, Environment, string]>([
  ['a range without a netmask', { DHCP_RANGE: '172.22.0.10,172.22.0.100' }, 'it needs a netmask'],
  ['a broken netmask', { DHCP_RANGE: '172.22.0.10,172.22.0.100,255.0.255.0' }, 'it needs a netmask'],
  ['a prefix that is too long', { DHCP_RANGE: 'fd00:77::1:10,fd00:77::1:ff,129' }, 'it needs a netmask'],
  ['a text that is no range', { DHCP_RANGE: 'eno1' }, 'it is not FIRST,LAST,MASK'],
  ['an invalid lease time', { DHCP_RANGE: `${RANGE},soon` }, 'soon is not a lease time'],
  ['an option that cannot be sent', { DHCP_RANGE: RANGE, DHCP_OPTIONS: 'option:tzdb-timezone,UTC' }, 'cannot be sent'],
  ['a host without a MAC address', { DHCP_RANGE: RANGE, DHCP_HOSTS: 'id:01:02,172.22.0.5' }, 'MAC address'],
  ['a host outside the subnets', { DHCP_RANGE: RANGE, DHCP_HOSTS: '52:54:00:00:00:01,10.0.0.1' }, '10.0.0.1 is in no subnet'],
  ['another tag to ignore', { DHCP_RANGE: RANGE, DHCP_IGNORE: 'tag:red' }, 'tag:red'],
])('refuses %s', (_, environment, message) => {
  expect(() => dhcpPlan(contextWith(environment))).toThrow(message);
});

it('reads DHCP_HOSTS, and from DHCP_IGNORE whether only these hosts are answered', () => {
  const environment = {
    DHCP_RANGE: RANGE,
    DHCP_HOSTS: '52:54:00:AA:00:01,172.22.0.20;52:54:00:aa:00:02,ignore',
    DHCP_IGNORE: 'tag:!known',
  };
  expect(dhcpPlan(contextWith(environment))).toMatchObject({
    hosts: [
      { mac: '52:54:00:aa:00:01', address: '172.22.0.20', ignored: false },
      { mac: '52:54:00:aa:00:02', ignored: true },
    ],
    onlyHosts: true,
  });
});

it("serves boot files under metal3's names, and prefers those of IPXE_CUSTOM_FIRMWARE_DIR", () => {
  const files = ['/usr/lib/ipxe/undionly.kpxe', '/usr/lib/ipxe/snponly.efi', '/own/snponly-arm64.efi', '/own/undionly.kpxe'];
  const context = contextWith({ IPXE_CUSTOM_FIRMWARE_DIR: '/own' }, files);
  const options = dhcpOptions(context, dhcpPlan(context), 'http://172.22.0.2:6180');
  expect(options['pxe.loader_file_paths']).toEqual({
    'undionly.kpxe': '/own/undionly.kpxe',
    'snponly-x86_64.efi': '/usr/lib/ipxe/snponly.efi',
    'snponly-arm64.efi': '/own/snponly-arm64.efi',
  });
  expect(options).toMatchObject({
    'dhcp.dhcp_provider': 'none',
    'pxe.uefi_ipxe_bootfile_name': 'snponly-x86_64.efi',
    'pxe.ipxe_bootfile_name_by_arch': { aarch64: 'snponly-arm64.efi' },
  });
});
