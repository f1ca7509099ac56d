/** Filters of trait-based networking. The answers are those of Ironic 39's parser. */
import { Fault } from '../../../model/errors';
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
  ["port.physical_network < 'physnet2'", port, true],
  ["port.physical_network < 'physnet1'", port, false],
  ["port.physical_network > 'physnet0'", port, true],
  ["port.physical_network >= 'physnet2'", port, false],
  ["port.physical_network <= 'physnet0'", port, false],
  ["port.category != 'bond'", port, true],
  ["port.category == 'fa'", port, false],
  ["port.category == 'a-b_C.9'", { kind: 'port', record: portRecord({ category: 'a-b_C.9' }) }, true],
  ["port.category == ''", { kind: 'port', record: portRecord({ category: '' }) }, true],
  ["port.address =~ '52'", port, true],
  ["port.address == '52'", port, false],
  ["port.vendor == 'b'", port, true],
  ['port.is_port', port, true],
  ['port.is_port', portgroup, false],
  ['port.is_portgroup', portgroup, true],
  ["port.is_port == 'a'", port, false],
  ["port.is_port != 'a'", port, true],
  ["port.is_portgroup != 'a'", port, true],
  ['port.is_portgroup', port, false],
  ['port.is_port && port.is_port', port, true],
  ['port.is_port && port.is_portgroup', port, false],
  ['port.is_portgroup && port.is_port', port, false],
  ['port.is_port || port.is_portgroup', port, true],
  ['port.is_portgroup || port.is_port', port, true],
  ['port.is_portgroup || port.is_portgroup', port, false],
  ["network.name == 'tenant-1'", port, true],
  ["network.name == 'tenant'", port, false],
  ["network.name =~ 'tenant'", port, true],
  ["network.tags == 'red'", port, true],
  ["network.tags == 're'", port, false],
  ["network.tags != 'red'", port, false],
  ["network.tags != 'green'", port, true],
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
it.each([
  ["network.name == 'x'", true],
  ["network.tags == 'x'", true],
  ["network.tags >= 'x'", true],
  ["port.vendor == 'x'", false],
  ['port.is_portgroup', false],
])('parseFilter("%s") is %s without a network', (text, expected) => {
  expect(parseFilter(text)(port, null)).toBe(expected);
});
const PREFIX = 'Prefix match can only be used with variables of type string';
it.each<readonly [string, FilteredNetwork, string, string]>([
  ["port.vendor == 'b'", network, 'TBNAttributeRetrievalException', 'Could not retrieve attribute vendor from passed object'],
  [
    "port.physical_network != 'b'",
    network,
    'TBNAttributeRetrievalException',
    'Could not retrieve attribute physical_network from passed object',
  ],
  [
    "network.name == 'b'",
    { name: null, tags: [] },
    'TBNAttributeRetrievalException',
    'Could not retrieve attribute name from passed object',
  ],
  ["port.is_port =~ 'a'", network, 'TraitBasedNetworkingException', PREFIX],
  ["port.is_port < 'a'", network, 'TraitBasedNetworkingException', PREFIX],
  ...['>=', '>', '<=', '<'].map(
    (sign) =>
      [
        `network.tags ${sign} 'a'`,
        network,
        'TraitBasedNetworkingException',
        `Comparator '${sign}' can only be used with variables of type string, not a collection`,
      ] as const,
  ),
])('parseFilter("%s") throws when it is evaluated with %j', (text, of, name, message) => {
  const evaluate = (): boolean => parseFilter(text)({ kind: 'portgroup', record: portgroupRecord({ physical_network: null }) }, of);
  expect(evaluate).toThrow(Fault);
  expect(evaluate).toThrow(expect.objectContaining({ name, message }) as Error);
});
const VARIABLE = 'a variable is missing';
const NOTHING = 'is compared with nothing';
it.each<readonly [string, string]>([
  ['', VARIABLE],
  ['()', VARIABLE],
  ["&& port.category == 'a'", VARIABLE],
  ["port.category == 'a' &&", VARIABLE],
  ["'a' == port.vendor", VARIABLE],
  ['port.is_port || && port.is_port', VARIABLE],
  ["port.foo == 'a'", 'there is no variable port.foo'],
  ['network.is_port', 'there is no variable network.is_port'],
  ['port.is_portgroupx', 'there is no variable port.is_portgroupx'],
  ['port.category', `port.category ${NOTHING}`],
  ['network.tags && port.is_port', `network.tags ${NOTHING}`],
  ['port.category ==', `port.category ${NOTHING}`],
  ['port.category == port.vendor', `port.category ${NOTHING}`],
  ['port.is_port ==', `port.is_port ${NOTHING}`],
  ['a', 'what begins at character 1 is not understood'],
  ["port.category == 'a", 'what begins at character 17 is not understood'],
  ['port.category == "a"', 'what begins at character 17 is not understood'],
  ["port.category == 'a b'", 'what begins at character 17 is not understood'],
  ["port.category == 'a:b'", 'what begins at character 17 is not understood'],
  ["port.category = 'a'", 'what begins at character 14 is not understood'],
  ['port.is_port & port.is_port', 'what begins at character 13 is not understood'],
  ["port . vendor == 'a'", 'what begins at character 1 is not understood'],
  ["port. vendor == 'a'", 'what begins at character 1 is not understood'],
  ["Port.vendor == 'a'", 'what begins at character 1 is not understood'],
  ["port.\vvendor == 'a'", 'what begins at character 1 is not understood'],
  ['port.is_port()', 'what begins at word 2 is not understood'],
  ['port.is_port)', 'what begins at word 2 is not understood'],
  ['port.is_port port.is_port', 'what begins at word 2 is not understood'],
  ["port.vendor == 'a' 'b'", 'what begins at word 4 is not understood'],
  ['(port.is_port', 'a parenthesis is not closed'],
  ['(port.is_port port.is_port', 'a parenthesis is not closed'],
  [`${'('.repeat(101)}port.is_port${')'.repeat(101)}`, 'there are too many parentheses'],
])('parseFilter refuses "%s": %s', (text, message) => {
  expect(() => parseFilter(text)).toThrow(new Error(message));
});
it('parseFilter refuses thousands of nested parentheses without a deep recursion', () => {
  expect(() => parseFilter('('.repeat(10_000))).toThrow('there are too many parentheses');
});
it('parseFilter accepts 100 nested parentheses, and any number of others', () => {
  expect(parseFilter(`${'('.repeat(100)}port.is_port${')'.repeat(100)}`)(port, network)).toBe(true);
  expect(parseFilter(Array.from({ length: 200 }, () => '(port.is_portgroup)').join('||'))(port, network)).toBe(false);
});
