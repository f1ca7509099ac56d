import { DhcpSetupError, planDhcp, type DhcpOptions } from '../../boot/dhcp-setup';
import { addressToNumber } from '../../wire/dhcp/dhcp';
import { emptyRouterAdvertisement, isRouterSolicitation } from '../../wire/dhcp/router-advertisement';

const OPTIONS: DhcpOptions = {
  'DEFAULT.my_ip': '10.0.0.1',
  'deploy.http_url': 'http://10.0.0.1:8080',
  'pxe.tftp_server': '10.0.0.1',
  'pxe.pxe_bootfile_name': 'pxelinux.0',
  'pxe.uefi_pxe_bootfile_name': 'bootx64.efi',
  'pxe.pxe_bootfile_name_by_arch': {},
  'pxe.ipxe_bootfile_name': 'undionly.kpxe',
  'pxe.uefi_ipxe_bootfile_name': 'snponly.efi',
  'pxe.ipxe_bootfile_name_by_arch': {},
  'boot.interface': 'eth1',
  'boot.dhcp_range': '10.0.0.100-10.0.0.200',
  'boot.dhcp_netmask': null,
  'boot.dhcp_gateway': null,
  'boot.dhcp_dns': [],
  'boot.dhcp_lease_time': 3600,
  'boot.dhcp_max_unknown': null,
  'boot.router_advertisements': true,
};
const HOME = { address: '10.0.0.1', netmask: '255.255.255.0' };
const OTHER = { address: '192.168.7.1', netmask: '255.255.255.128' };

it.each<[string, Partial<DhcpOptions>, Parameters<typeof planDhcp>[1], string]>([
  ['no interface', { 'boot.interface': null }, undefined, '[boot]interface is not set: DHCP answers on one interface only'],
  ['an interface that is not there', {}, undefined, '[boot]interface = eth1: there is no such interface'],
  ['an interface without an address', {}, [], '[boot]interface = eth1: it has no IPv4 address'],
  ['no range', { 'boot.dhcp_range': null }, [HOME], '[boot]dhcp_range =  is not FIRST-LAST of two IPv4 addresses'],
  ['half a range', { 'boot.dhcp_range': '10.0.0.1-' }, [HOME], '[boot]dhcp_range = 10.0.0.1- is not FIRST-LAST of two IPv4 addresses'],
  ['a range backwards', { 'boot.dhcp_range': '10.0.0.9-10.0.0.8' }, [HOME], '[boot]dhcp_range = 10.0.0.9-10.0.0.8 ends before it begins'],
  [
    'a range of millions',
    { 'boot.dhcp_range': '10.0.0.0-10.9.0.0' },
    [HOME],
    '[boot]dhcp_range = 10.0.0.0-10.9.0.0 has more than 65536 addresses',
  ],
  [
    'a range elsewhere',
    { 'boot.dhcp_range': '10.0.1.1-10.0.1.9' },
    [HOME, OTHER],
    '[boot]dhcp_range = 10.0.1.1-10.0.1.9 is in no subnet of interface eth1',
  ],
  [
    'a range over the end',
    { 'boot.dhcp_range': '10.0.0.9-10.0.1.9' },
    [HOME],
    '[boot]dhcp_range = 10.0.0.9-10.0.1.9 is not within one subnet (netmask 255.255.255.0)',
  ],
  ['a netmask with a hole', { 'boot.dhcp_netmask': '255.0.255.0' }, [HOME], '[boot]dhcp_netmask = 255.0.255.0 is not a netmask'],
  [
    'a gateway elsewhere',
    { 'boot.dhcp_gateway': '10.0.1.1' },
    [HOME],
    '[boot]dhcp_gateway = 10.0.1.1 is not in the subnet of [boot]dhcp_range',
  ],
  ['a name for a name server', { 'boot.dhcp_dns': ['dns'] }, [HOME], '[boot]dhcp_dns = dns is not an IPv4 address'],
  ['a name for the TFTP server', { 'pxe.tftp_server': 'tftp' }, [HOME], '[pxe]tftp_server = tftp is not an IPv4 address'],
])('refuses %s', (_, options, addresses, message) => {
  expect(() => planDhcp({ ...OPTIONS, ...options }, addresses)).toThrow(new DhcpSetupError(message));
});

it.each<[string, Partial<DhcpOptions>, Parameters<typeof planDhcp>[1], object]>([
  [
    'the netmask of the interface',
    {},
    [OTHER, HOME],
    { server: '10.0.0.1', netmask: '255.255.255.0', network: addressToNumber('10.0.0.0') },
  ],
  ['the netmask given', { 'boot.dhcp_netmask': '255.255.0.0' }, [HOME], { netmask: '255.255.0.0', network: addressToNumber('10.0.0.0') }],
  [
    'my_ip where the interface has several in the subnet',
    { 'DEFAULT.my_ip': '10.0.0.2' },
    [HOME, { ...HOME, address: '10.0.0.2' }],
    { server: '10.0.0.2' },
  ],
  ['the address of the subnet where my_ip is another', { 'DEFAULT.my_ip': '192.168.7.1' }, [OTHER, HOME], { server: '10.0.0.1' }],
  ['the first address where only relays bring machines', { 'boot.dhcp_netmask': '255.255.255.0' }, [OTHER], { server: '192.168.7.1' }],
])('takes %s', (_, options, addresses, policy) => {
  expect(planDhcp({ ...OPTIONS, ...options }, addresses).policy).toMatchObject(policy);
});
it('keeps network, broadcast, own addresses and gateway out of the pool', () => {
  const { range } = planDhcp({ ...OPTIONS, 'boot.dhcp_range': '10.0.0.0-10.0.0.255', 'boot.dhcp_gateway': '10.0.0.254' }, [HOME]);
  expect(range.excluded).toEqual(['10.0.0.0', '10.0.0.255', '10.0.0.1', '10.0.0.254'].map(addressToNumber));
});
it('knows when only relays can bring machines', () => {
  expect(planDhcp(OPTIONS, [HOME]).direct).toBe(true);
  expect(planDhcp({ ...OPTIONS, 'boot.dhcp_netmask': '255.255.255.0' }, [OTHER]).direct).toBe(false);
});

it('a router advertisement that says nothing is 16 bytes, type 134', () => {
  expect(emptyRouterAdvertisement().toString('hex')).toBe('86'.padEnd(32, '0'));
});
it.each([
  ['of iPXE', '8500d8aa00000000010116c225d596aa', true],
  ['without options', '8500000000000000', true],
  ['cut off', '85000000000000', false],
  ['with another code', '8501000000000000', false],
  ['of another type', '8600000000000000', false],
  ['with an option of no length', '85000000000000000100000000000000', false],
  ['with an option over the end', '85000000000000000102000000000000', false],
])('a router solicitation %s: %s is %s', (_, hex, expected) => {
  expect(isRouterSolicitation(Buffer.from(hex, 'hex'))).toBe(expected);
});

it.each([
  [null, 51],
  [7, 7],
])('unknown machines get addresses up to the option (%p), else half of them', (max, expected) => {
  const range = { 'boot.dhcp_range': '10.0.0.100-10.0.0.200', 'boot.dhcp_max_unknown': max };
  expect(planDhcp({ ...OPTIONS, ...range }, [{ address: '10.0.0.1', netmask: '255.255.255.0' }]).maxUnknown).toBe(expected);
});
