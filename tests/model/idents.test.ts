import {
  canonicalAddress,
  canonicalHost,
  isDatapath,
  isHostName,
  isLogicalName,
  isLoopback,
  isMac,
  isUuid,
  networksOf,
  newUuid,
  parseNetwork,
} from '../../model/idents';

it.each([
  ['aaaaaaaa-0000-4000-8000-000000000001', true],
  ['AAAAAAAA000040008000000000000001', true],
  ['{aaaaaaaa-0000-4000-8000-000000000001}', true],
  ['urn:uuid:aaaaaaaa-0000-4000-8000-000000000001', true],
  ['{{aaaaaaaa-0000-4000-8000-000000000001}}', true],
  ['aaaaaaaa-0000-4000-8000-00000000000', false],
  ['aaaaaaaa-0000-4000-8000-0000000000012', false],
  ['1aaaaaaaa-0000-4000-8000-000000000001', false],
  ['aaaaaaaa-urn:0000-4000-8000-000000000001', false],
  ['aaaaaaaa-uuid:0000-4000-8000-000000000001', false],
  ['aaaaaaaa-{0000-4000-8000-000000000001', false],
  ['aaaaaaaa-0000}-4000-8000-000000000001', false],
  ['one', false],
  [5, false],
  [null, false],
])('isUuid(%p) is %p', (value, expected) => expect(isUuid(value)).toBe(expected));

it.each([
  // name, since 1.10, before
  ['node-1', true, true],
  ['node_1', true, false],
  ['a.b~c', true, false],
  ['Upper', true, false],
  ['a b', false, false],
  ['', false, false],
  ['x'.repeat(255), true, false],
  ['x'.repeat(256), false, false],
  ['-a', true, false],
  ['a', true, true],
  ['rack-1.example_one.org.', true, true],
  ['rack-1.exampl-.org', true, false],
  [`${'a.'.repeat(127)}a`, true, true],
  [`${'a.'.repeat(128)}a`, false, false],
  [5, false, false],
  [['node-1'], false, false],
])('isLogicalName and isHostName of %p', (value, now, before) => expect([isLogicalName(value), isHostName(value)]).toEqual([now, before]));

it.each([
  ['52:54:00:Aa:00:01', true],
  ['52-54-00-aa-00-01', false],
  ['52:54:00:aa:00', false],
  ['52:54:00:aa:00:01:02', false],
  ['00:52:54:00:aa:00:01', false],
  [['52:54:00:aa:00:01'], false],
])('isMac(%p) is %p', (value, expected) => expect(isMac(value)).toBe(expected));

it.each([
  ['00000A1b2C3d4E5f', true],
  ['00:00:00:00:00:00:00:01', false],
  ['zz', false],
  ['00000A1b2C3d4E5f0', false],
  ['x00000A1b2C3d4E5f', false],
  [['00000A1b2C3d4E5f'], false],
])('isDatapath(%p) is %p', (value, expected) => expect(isDatapath(value)).toBe(expected));

it.each([
  ['10.0.0.2', '10.0.0.2'],
  ['::ffff:10.0.0.2', '10.0.0.2'],
  ['[::FFFF:0a00:0002]', '10.0.0.2'],
  ['2001:DB8:0:0::1', '2001:db8::1'],
  ['[2001:db8::1]', '2001:db8::1'],
  ['fe80::1%eth0', 'fe80::1'],
  ['10.0.0', undefined],
  ['host', undefined],
  ['[host]', undefined],
  ['[10.0.0.2]:80', undefined],
  ['x[10.0.0.2]', undefined],
  ['::ffff:1:2:3', '::ffff:1:2:3'],
  ['1::ffff:a00:2', '1::ffff:a00:2'],
  ['', undefined],
])('canonicalAddress(%p) is %p', (text, expected) => expect(canonicalAddress(text)).toBe(expected));

it.each([
  [['192.0.2.0/24'], '192.0.2.255', true],
  [['192.0.2.0/24'], '192.0.3.0', false],
  [['192.0.2.1'], '192.0.2.1', true],
  [['10.0.0.0/255.255.0.0', '2001:db8::/64'], '10.0.9.9', true],
  [['10.0.0.0/255.255.0.0', '2001:db8::/64'], '2001:db8::9', true],
  [['10.0.0.0/0.0.255.255'], '10.1.0.0', false],
  [['10.0.0.0/8'], '::ffff:10.0.0.1', true],
  [['fe80::/10'], 'fe80::1%eth0', true],
  [['0.0.0.0/0'], '::1', false],
  [['0.0.0.0/0'], 'host', false],
  [[], '192.0.2.1', false],
  [['::ffff:10.0.0.0/104'], '::ffff:10.0.0.1', true],
  [['::FFFF:10.0.0.0/104'], '10.0.0.1', true],
  [['::ffff:10.0.0.0/104'], '11.0.0.1', false],
  [['::ffff:10.0.0.1'], '10.0.0.1', true],
])('the networks %j contain %s: %s', (networks, address, expected) => expect(networksOf(networks).contains(address)).toBe(expected));

it('networksOf refuses a text that is not a network', () =>
  expect(() => networksOf(['::1', '192.0.2.0/33'])).toThrow(new TypeError('192.0.2.0/33 is not a network')));

it('a single network does not contain IPv6 addresses that contain its IPv4 addresses', () => {
  expect(parseNetwork('10.0.0.0/8')?.contains('::ffff:10.0.0.1')).toBe(false);
  expect(parseNetwork('::ffff:10.0.0.0/104')?.contains('::ffff:10.0.0.1')).toBe(true);
});

it('newUuid returns a UUID of version 4', () => {
  expect(newUuid((bytes) => Buffer.alloc(bytes, 0xff))).toBe('ffffffff-ffff-4fff-bfff-ffffffffffff');
});

it.each([
  ['127.0.0.1', true],
  ['127.1.2.3', true],
  ['::1', true],
  ['::2', false],
  ['10.127.0.1', false],
  // Other spellings of addresses and names.
  ['127.1', true],
  ['127.1:6390', true],
  ['2130706433', true],
  ['0x7f.0.0.1', true],
  ['0177.0.0.1', true],
  ['127.0.0.1.', true],
  ['[::1]:6390', true],
  ['::1%lo', true],
  ['0:0:0:0:0:0:0:1', true],
  ['::ffff:127.0.0.1', true],
  ['[::ffff:7f00:1]', true],
  ['LOCALHOST', true],
  ['localhost.', true],
  ['localhost:6390', true],
  // Texts that only look so.
  ['localhost.evil.example', false],
  ['localhost.localdomain', false],
  ['evil.localhost', false],
  ['127.evil.example', false],
  ['127.0.0.1.evil.example', false],
  ['127.', false],
  ['127.0.0.256', false],
  ['[::1].evil.example', false],
  ['localhost@evil.example', false],
  ['evil.example#localhost', false],
  ['evil.example\\@localhost', false],
  ['localhost/x', false],
  ['localhost evil', false],
  ['::ffff:10.0.0.1', false],
  ['0.0.0.0', false],
  ['', false],
])('isLoopback(%p) is %p', (address, expected) => expect(isLoopback(address)).toBe(expected));

it.each([
  ['EXAMPLE.org.:80', 'example.org'],
  ['[2001:DB8:0::1]:80', '2001:db8::1'],
  ['0xA9FEA9FE', '169.254.169.254'],
  ['fe80::1%eth0', 'fe80::1'],
  ['user@example.org', undefined],
  ['example.org/path', undefined],
  ['example.org:port', undefined],
])('canonicalHost(%p) is %p', (text, expected) => expect(canonicalHost(text)).toBe(expected));
