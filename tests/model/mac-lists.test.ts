import { macLists } from '../../model/mac-lists';

const lists = (allow: readonly string[], deny: readonly string[] = []) =>
  macLists({ 'pxe_filter.allow_macs': allow, 'pxe_filter.deny_macs': deny });
const MAC = '52:54:00:aa:bb:cc';

it.each<[string, readonly string[], boolean]>([
  ['none', [], true],
  ['the address', ['52:54:00:aa:bb:cc'], true],
  ['the address with dashes and capitals', ['52-54-00-AA-BB-CC'], true],
  ['its vendor', ['00:11:22', '52:54:00'], true],
  ['another vendor', ['00:11:22'], false],
  ['a vendor of two bytes', ['52:54'], true],
  ['any byte', ['*:*:*:*:bb:cc'], true],
  ['other last bytes', ['*:*:*:*:bb:cd'], false],
  ['all', ['*'], true],
])('allowed by %s', (_, allow, expected) => {
  expect(lists(allow).isAllowed(MAC)).toBe(expected);
  // The same entries match in a list of denied addresses, but an empty list denies none.
  expect(lists([], allow).isDenied(MAC)).toBe(allow.length > 0 && expected);
});

it.each(['', '52:54:00:', '52:5', 'g0:00:00', '52:54:00:aa:bb:cc:dd', 'all', '52.54.00', '**'])('%j is refused', (text) => {
  expect(() => lists([], [text])).toThrow('[pxe_filter]deny_macs');
});
