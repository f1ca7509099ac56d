import type { NetworkInterfaceInfo } from 'node:os';
import { bootHosts } from '../../boot/listen-hosts';
import { listenError } from '../../wire/sockets/listen-errors';

const info = (address: string): NetworkInterfaceInfo =>
  ({ address, family: address.includes(':') ? 'IPv6' : 'IPv4' }) as NetworkInterfaceInfo;
const interfaces = () => ({
  eno1: [info('192.0.2.1')],
  eno2: [info('10.0.0.1'), info('10.0.0.2'), info('2001:db8::1'), info('fe80::1')],
  bare: [info('fe80::2')],
});
const hosts = (configured: string | null, interfaceName: string | null, myIp = '10.0.0.1'): readonly string[] =>
  bootHosts('[boot]http_host', { configured, interfaceName, myIp }, interfaces);

it.each<[string, readonly string[], readonly string[]]>([
  ['the configured address', hosts('10.9.9.9', 'eno2'), ['10.9.9.9']],
  ['0.0.0.0 without an interface', hosts(null, null), ['0.0.0.0']],
  [':: if my_ip is an IPv6 address', hosts(null, null, '2001:db8::1'), ['::']],
  [
    ':: if my_ipv6 is set',
    bootHosts('', { configured: null, interfaceName: null, myIp: '10.0.0.1', myIpv6: 'fd00::1' }, interfaces),
    ['::'],
  ],
  [
    'the addresses of further interfaces',
    bootHosts('', { configured: null, interfaceName: 'eno1', further: ['eno2'], myIp: '' }, interfaces),
    ['192.0.2.1', '10.0.0.1', '10.0.0.2', '2001:db8::1'],
  ],
  ['the addresses of the interface except link-local ones', hosts(null, 'eno2'), ['10.0.0.1', '10.0.0.2', '2001:db8::1']],
  [
    'the addresses of the interface and my_ip, if this host has it',
    hosts(null, 'eno2', '192.0.2.1'),
    ['10.0.0.1', '10.0.0.2', '2001:db8::1', '192.0.2.1'],
  ],
  [
    'the addresses of the interface without my_ip, if this host does not have it',
    hosts(null, 'eno2', '198.51.100.1'),
    ['10.0.0.1', '10.0.0.2', '2001:db8::1'],
  ],
])('bootHosts returns %s', (_, found, expected) => {
  expect(found).toEqual(expected);
});

it.each(['eno9', 'bare'])('bootHosts rejects the interface %s without an address', (name) => {
  expect(() => hosts(null, name)).toThrow(
    `[boot]interface = ${name}: there is no such interface, or it has no address; set [boot]http_host`,
  );
});

it('listenError names the privilege that a low port needs', () => {
  const { message } = listenError(Object.assign(new Error('bind EACCES'), { code: 'EACCES' }), '0.0.0.0 port 69', 'TFTP, [boot]tftp_port');
  expect(message).toMatch(
    /^cannot listen on 0\.0\.0\.0 port 69 \(TFTP, \[boot\]tftp_port\): ports below 1024 need root or .* CAP_NET_BIND_SERVICE/,
  );
});
