import { canonicalAddress, isDatapath, isHostName, isLogicalName, isMac, isUuid, newUuid } from '../../model/idents';

it.each([
  ['aaaaaaaa-0000-4000-8000-000000000001', true],
  ['AAAAAAAA000040008000000000000001', true],
  ['{aaaaaaaa-0000-4000-8000-000000000001}', true],
  ['urn:uuid:aaaaaaaa-0000-4000-8000-000000000001', true],
  ['aaaaaaaa-0000-4000-8000-00000000000', false],
  ['one', false],
  [5, false],
  [null, false],
])('UUID %p: %p', (value, expected) => expect(isUuid(value)).toBe(expected));

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
  [5, false, false],
])('name %p', (value, now, before) => expect([isLogicalName(value), isHostName(value)]).toEqual([now, before]));

it.each([
  ['52:54:00:Aa:00:01', true],
  ['52-54-00-aa-00-01', false],
  ['52:54:00:aa:00', false],
  ['52:54:00:aa:00:01:02', false],
])('MAC address %p: %p', (value, expected) => expect(isMac(value)).toBe(expected));

it('knows datapaths', () => expect(['00000A1b2C3d4E5f', '00:00:00:00:00:00:00:01', 'zz'].map(isDatapath)).toEqual([true, false, false]));

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
  ['', undefined],
])('address %p: %p', (text, expected) => expect(canonicalAddress(text)).toBe(expected));

it('makes UUIDs of version 4', () => {
  expect(newUuid((bytes) => Buffer.alloc(bytes, 0xff))).toBe('ffffffff-ffff-4fff-bfff-ffffffffffff');
});
