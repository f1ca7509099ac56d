/** Filters of trait-based networking. The answers are those of Ironic 39's parser. */
import { parseFilter, type FilteredNetwork } from '../../../model/rules/trait-filter';
import { portgroupRecord, portRecord } from '../../support/task';

type FilteredPortOrPortgroup = Parameters<ReturnType<typeof parseFilter>>[0];
const port: FilteredPortOrPortgroup = {
  kind: 'port',
  record: portRecord({ category: 'fast', vendor: 'b', physical_network: 'physnet1', address: '52:54:00:00:00:01' }),
};
const portgroup: FilteredPortOrPortgroup = {
  kind: 'portgroup',
  record: portgroupRecord({ category: 'bond', physical_network: 'physnet2' }),
};
const network: FilteredNetwork = { name: 'tenant-1', tags: ['red', 'storage-2'] };

it.each<readonly [string, FilteredPortOrPortgroup, boolean]>([
  ["port.category == 'fast'", port, true],
  ["port.category != 'fast'", port, false],
  ["port.category=='fast'", port, true],
  ["  port.category \n==\t'fast'  ", port, true],
  ["port.category == ''", port, false],
  ["port.category == 'bond'", portgroup, true],
  ["port.category =~ 'fa'", port, true],
  ["port.category =~ 'as'", port, false],
  ["port.physical_network >= 'physnet1'", port, true],
  ["port.physical_network > 'physnet1'", port, false],
  ["port.physical_network <= 'physnet1'", port, true],
  ["port.physical_network < 'physnet1'", portgroup, false],
  ["port.address =~ '52'", port, true],
  ['port.is_port', port, true],
  ['port.is_port', portgroup, false],
  ['port.is_portgroup', portgroup, true],
  ["port.is_port == 'a'", port, false],
  ["port.is_port != 'a'", port, true],
  ["network.name == 'tenant-1'", port, true],
  ["network.name =~ 'tenant'", port, true],
  ["network.tags == 'red'", port, true],
  ["network.tags != 'red'", port, false],
  ["network.tags =~ 'storage'", port, true],
  ["network.tags =~ 'age'", port, false],
  // Both operators have the same precedence, from left to right.
  ["port.vendor == 'b' || port.vendor == 'a' && port.vendor == 'c'", port, false],
  ["port.vendor == 'b' || (port.vendor == 'a' && port.vendor == 'c')", port, true],
  ["port.vendor == 'a' && port.vendor == 'c' || port.vendor == 'b'", port, true],
  ["port.vendor == 'a' || (port.vendor == 'b') && port.is_portgroup", port, false],
  ["((port.vendor == 'b'))", port, true],
  // The rest is not evaluated once the answer is known.
  ["port.is_portgroup || port.vendor == 'b'", portgroup, true],
  ["port.is_port && port.vendor == 'b'", portgroup, false],
])('parseFilter("%s") of %j', (text, carrier, expected) => {
  expect(parseFilter(text)(carrier, network)).toBe(expected);
});
it.each([["network.name == 'x'"], ["network.tags == 'x'"]])('parseFilter("%s") is true without a network', (text) => {
  expect(parseFilter(text)(port, null)).toBe(true);
});
it.each([
  ["port.vendor == 'b'", 'Could not retrieve attribute vendor from passed object'],
  ["network.tags >= 'a'", "Comparator '>=' can only be used with variables of type string, not a collection"],
  ["port.is_port =~ 'a'", 'Prefix match can only be used with variables of type string'],
])('parseFilter("%s") throws when it is evaluated', (text, message) => {
  expect(() => parseFilter(text)(portgroup, network)).toThrow(message);
});
it.each([
  ...['', 'a', "port.category == 'a", 'port.category == "a"', "port.category == 'a b'", "port.category == 'a:b'", "port.foo == 'a'"],
  ...['port.category', 'port.is_port()', 'network.is_port', 'port.is_portgroupx', "port.category = 'a'", "port.category == 'a' &&"],
  ...["&& port.category == 'a'", 'port.is_port & port.is_port', '(port.is_port', 'port.is_port)', 'port.is_port port.is_port'],
  ...["port . vendor == 'a'", "'a' == port.vendor", '('.repeat(10_000)],
])('parseFilter("%s") throws', (text) => {
  expect(() => parseFilter(text)).toThrow(Error);
});
