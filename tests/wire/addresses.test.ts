import { urlHost, withHost } from '../../wire/addresses';
import { formatIpv6, ipv6At, ipv6Bytes, macOfAddress, parseIpv6 } from '../../wire/ipv6';

it('urlHost puts IPv6 addresses in brackets', () => {
  expect(['10.0.0.1', 'fd00::1', 'name'].map(urlHost)).toEqual(['10.0.0.1', '[fd00::1]', 'name']);
});
it.each([
  ['http://10.0.0.1:8080/a', '10.0.0.1', 'fd00::1', 'http://[fd00::1]:8080/a'],
  ['chain http://10.0.0.1 a=https://10.0.0.1/b', '10.0.0.1', '10.2.0.1', 'chain http://10.2.0.1 a=https://10.2.0.1/b'],
  ['http://[FD00:0::1]:80/ x', 'fd00::0001', '10.0.0.1', 'http://10.0.0.1:80/ x'],
  ['http://[::ffff:10.0.0.1]:80/', '10.0.0.1', 'fd00::1', 'http://[fd00::1]:80/'],
  ['http://[fd00::1]:80/', 'fd00::1', '10.0.0.1', 'http://10.0.0.1:80/'],
  [
    'http://10.0.0.10/ http://x10.0.0.1/ 10.0.0.1 http://u@10.0.0.1/',
    '10.0.0.1',
    '1.1.1.1',
    'http://10.0.0.10/ http://x10.0.0.1/ 10.0.0.1 http://u@10.0.0.1/',
  ],
])('withHost replaces the host of URLs in %s', (text, from, to, expected) => {
  expect(withHost(text, from, to)).toBe(expected);
});

// RFC 5952 §4 and RFC 4291 §2.2.
it.each([
  ['2001:db8:0:0:1:0:0:1', '2001:db8::1:0:0:1'],
  ['2001:0DB8::0001', '2001:db8::1'],
  ['2001:db8:0:1:1:1:1:1', '2001:db8:0:1:1:1:1:1'],
  ['2001:0:0:1:0:0:0:1', '2001:0:0:1::1'],
  ['::', '::'],
  ['::1', '::1'],
  ['fe80::', 'fe80::'],
  ['::ffff:129.144.52.38', '::ffff:8190:3426'],
  ['1:2:3:4:5:6:77.77.88.88', '1:2:3:4:5:6:4d4d:5858'],
])('formatIpv6 writes %s as %s', (text, canonical) => {
  expect(formatIpv6(parseIpv6(text)!)).toBe(canonical);
  expect(ipv6At(ipv6Bytes(text))).toBe(canonical);
});
it.each(['10.0.0.1', 'fe80::1%eth0', ':::', '1:2:3', ''])('parseIpv6 rejects %s', (text) => {
  expect(parseIpv6(text)).toBeUndefined();
});
it.each([
  ['fe80::5054:ff:feaa:1', '52:54:00:aa:00:01'],
  ['fe80::216:c2ff:fe25:d596', '00:16:c2:25:d5:96'],
  ['fe80::1', undefined],
  ['not', undefined],
])('macOfAddress(%s) is %s', (address, mac) => {
  expect(macOfAddress(address)).toBe(mac);
});
