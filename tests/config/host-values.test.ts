import { routeAddress } from '../../config/host-values';

const HEADER = 'Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT';
const route = (name: string, destination: string, gateway: string, metric: number, mask = '00000000', flags = '0003'): string =>
  `${name}\t${destination}\t${gateway}\t${flags}\t0\t0\t${metric}\t${mask}\t0\t0\t0`;
const address = (text: string, family: 'IPv4' | 'IPv6' = 'IPv4') => ({ address: text, family, netmask: '255.255.255.0' });
const INTERFACES = {
  eth0: [address('fe80::1', 'IPv6'), address('192.0.2.5'), address('198.51.100.5')],
  eth1: [address('203.0.113.9')],
  eth2: [],
};
const LOCAL = route('eth0', '000200C0', '00000000', 0, '00FFFFFF', '0001');

it.each<readonly [text: string, routes: readonly string[], expected: string | undefined]>([
  ['the interface of the default route', [route('eth1', '00000000', '017100CB', 0)], '203.0.113.9'],
  ['the address in the network of the gateway', [LOCAL, route('eth0', '00000000', '016433C6', 0)], '198.51.100.5'],
  ['the first address, if the gateway is in no network of the interface', [route('eth0', '00000000', '0101010A', 0)], '192.0.2.5'],
  [
    'the route with the lowest metric',
    [route('eth0', '00000000', '010200C0', 600), route('eth1', '00000000', '017100CB', 100)],
    '203.0.113.9',
  ],
  [
    'a route that is up',
    [route('eth1', '00000000', '017100CB', 0, '00000000', '0002'), route('eth0', '00000000', '010200C0', 9)],
    '192.0.2.5',
  ],
  ['an interface with an address', [route('eth2', '00000000', '017100CB', 0), route('eth1', '00000000', '017100CB', 5)], '203.0.113.9'],
  ['nothing without a default route', [LOCAL], undefined],
  ['nothing for half of all addresses', [route('eth1', '00000000', '017100CB', 0, '00000080')], undefined],
  ['nothing in an empty table', [], undefined],
])('my_ip is that of %s', (_, routes, expected) => {
  expect(routeAddress([HEADER, ...routes, ''].join('\n'), INTERFACES)).toBe(expected);
});
