import { macLists } from '../../wire/mac-lists';

const lists = (allow: readonly string[], deny: readonly string[] = []) =>
  macLists({ 'pxe_filter.allow_macs': allow, 'pxe_filter.deny_macs': deny });
const MAC = '52:54:00:aa:bb:cc';

it.each<[string, readonly string[], boolean]>([
  ['no entries', [], true],
  ['the address', ['52:54:00:aa:bb:cc'], true],
  ['the address with dashes and capitals', ['52-54-00-AA-BB-CC'], true],
  ['its OUI', ['00:11:22', '52:54:00'], true],
  ['another OUI', ['00:11:22'], false],
  ['a prefix of two bytes', ['52:54'], true],
  ['wildcards and its last bytes', ['*:*:*:*:bb:cc'], true],
  ['wildcards and other last bytes', ['*:*:*:*:bb:cd'], false],
  ['"*"', ['*'], true],
])('isAllowed and isDenied with a list of %s', (_, allow, expected) => {
  expect(lists(allow).isAllowed(MAC)).toBe(expected);
  // The same entries match in a list of denied addresses, but an empty list denies none.
  expect(lists([], allow).isDenied(MAC)).toBe(allow.length > 0 && expected);
});

it.each(['', '52:54:00:', '52:5', 'g0:00:00', '52:54:00:aa:bb:cc:dd', 'all', '52.54.00', '**'])('macLists rejects %j', (text) => {
  expect(() => lists([], [text])).toThrow('[pxe_filter]deny_macs');
});
