/** Trait-based networking: its file, and which ports it chooses. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Options } from '../../../config/options';
import { openNetworkTraits, parseTraits } from '../../../drivers/network/network-traits';
import { planAttachment } from '../../../drivers/network/trait-plan';
import type { PortgroupRecord, PortRecord, Vif } from '../../../model/records';
import { silentLog } from '../../../model/log';
import { portgroupRecord, portRecord, testTask } from '../../support/task';

const FILE = `
CUSTOM_FAST:
  order: 2
  actions:
    - { action: attach_port, filter: "port.category == 'fast'" }
CUSTOM_RED:
  order: 1
  actions:
    - { action: attach_port, filter: "port.category == 'fast' && network.tags == 'red'" }
CUSTOM_TWO:
  actions:
    - { action: attach_port, filter: "port.is_port", min_count: 1, max_count: 2 }
CUSTOM_GROUP:
  actions:
    - { action: attach_portgroup, filter: "port.is_portgroup" }
CUSTOM_BOND:
  actions:
    - { action: group_and_attach_ports, filter: "port.vendor == 'green' && network.name == 'storage'", min_count: 2, max_count: 3 }
CUSTOM_OLD:
  actions:
    - { action: bond_ports, filter: "port.is_port" }
`;
const traits = parseTraits(FILE);
const port = (id: number, changes: Partial<PortRecord> = {}): PortRecord =>
  portRecord({ id, uuid: `p${id}`, category: 'slow', vendor: 'x', ...changes });
const group = (id: number, changes: Partial<PortgroupRecord> = {}): PortgroupRecord => portgroupRecord({ id, uuid: `g${id}`, ...changes });
const taken = { internal_info: { tenant_vif_port_id: 'other' } };

interface Given {
  readonly traits?: readonly string[];
  readonly ports: readonly PortRecord[];
  readonly portgroups?: readonly PortgroupRecord[];
  readonly vif?: Partial<Vif>;
  readonly options?: Partial<Options>;
}
async function planned({ traits: own, ports, portgroups = [], vif = {}, options = {} }: Given): Promise<readonly string[]> {
  const { task } = testTask({ ports, portgroups, options, node: { instance_info: own ? { traits: own } : {} } });
  const found = await planAttachment(task, { id: 'vif', ...vif }, traits);
  return found.map((item) => (item.kind === 'group' ? item.ports.map(({ uuid }) => uuid).join('+') : item.uuid));
}
const green = { vendor: 'green' };
it.each<readonly [string, Given, readonly string[]]>([
  [
    'the newest port that matches',
    { traits: ['CUSTOM_FAST'], ports: [port(1, { category: 'fast' }), port(3, { category: 'fast' }), port(2)] },
    ['p3'],
  ],
  [
    'a port without a VIF',
    { traits: ['CUSTOM_FAST'], ports: [port(1, { category: 'fast' }), port(3, { category: 'fast', ...taken })] },
    ['p1'],
  ],
  [
    'a port by the matching trait with the lowest order',
    { traits: ['CUSTOM_FAST', 'CUSTOM_RED'], ports: [port(1, { category: 'fast' })], vif: { tags: ['red'] } },
    ['p1'],
  ],
  [
    'a port by the next trait when the first does not match',
    { traits: ['CUSTOM_FAST', 'CUSTOM_RED'], ports: [port(1, { category: 'fast' })] },
    ['p1'],
  ],
  ['as many ports as max_count', { traits: ['CUSTOM_TWO'], ports: [port(1), port(2), port(3)] }, ['p3', 'p2']],
  ['a portgroup', { traits: ['CUSTOM_GROUP'], ports: [port(1)], portgroups: [group(1), group(2)] }, ['g2']],
  [
    'the ports of one physical network as a group',
    {
      traits: ['CUSTOM_BOND'],
      ports: [port(1, green), port(2, { ...green, physical_network: 'b' }), port(3, green), port(4)],
      vif: { name: 'storage' },
    },
    ['p3+p1'],
  ],
  ['a port by the default trait, for an instance without traits', { ports: [port(1), port(2)] }, ['p2']],
  ['a port by the default trait, for traits that the file does not contain', { traits: ['CUSTOM_X'], ports: [port(1)] }, ['p1']],
  [
    'no port, with raise_when_no_match = false',
    { traits: ['CUSTOM_FAST'], ports: [port(1)], options: { 'conductor.trait_based_networking_raise_when_no_match': false } },
    [],
  ],
])('planAttachment selects %s', async (_name, given, expected) => {
  expect(await planned(given)).toEqual(expected);
});
it.each<readonly [Given, string]>([
  [{ traits: ['CUSTOM_FAST'], ports: [port(1)] }, 'TBNNoPortMatchesFound'],
  [{ ports: [port(1)], options: { 'conductor.trait_based_networking_enable_default_trait': false } }, 'TBNNoTraitsApplicableToNode'],
  [
    {
      traits: ['CUSTOM_BOND'],
      ports: [port(1, green), port(2, { ...green, available_for_dynamic_portgroup: false })],
      vif: { name: 'storage' },
    },
    'TBNNoPortMatchesFound',
  ],
  [{ traits: ['CUSTOM_BOND'], ports: [port(1, green), port(2, green)], vif: { name: 'other' } }, 'TBNNoPortMatchesFound'],
  [{ traits: ['CUSTOM_OLD'], ports: [port(1)] }, 'TraitBasedNetworkingException'],
  [{ ports: [port(1), port(2, { internal_info: { tenant_vif_port_id: 'vif' } })] }, 'VifAlreadyAttached'],
])('planAttachment of %j throws %s', async (given, name) => {
  await expect(planned(given)).rejects.toMatchObject({ name });
});

it.each([
  ['', 'it must contain a mapping of traits'],
  ['CUSTOM_A: {}', "'CUSTOM_A' has no list of actions"],
  ['CUSTOM_A: { actions: [{ filter: port.is_port }] }', "'CUSTOM_A': missing 'action' key"],
  ['CUSTOM_A: { actions: [{ action: attach_port }] }', "missing 'filter' key"],
  ['CUSTOM_A: { actions: [{ action: attach, filter: port.is_port }] }', "unrecognized action 'attach'"],
  ['CUSTOM_A: { actions: [{ action: attach_port, filter: port.is_port, more: 1 }] }', "unrecognized key 'more'"],
  ['CUSTOM_A: { actions: [{ action: attach_port, filter: port.is }] }', "malformed filter expression: 'port.is'"],
  ['CUSTOM_A: { actions: [{ action: group_and_attach_ports, filter: port.is_port }] }', 'must have a min_count of 2 or greater'],
  [
    'CUSTOM_A: { actions: [{ action: group_and_attach_ports, filter: port.is_port, min_count: 3, max_count: 2 }] }',
    'must have a max_count',
  ],
  ['CUSTOM_A: { actions: [{ action: attach_port, filter: port.is_port, min_count: x }] }', 'min_count must be a whole number'],
])('parseTraits rejects the file %j', (text, reason) => {
  expect(() => parseTraits(text)).toThrow(reason);
});

it('openNetworkTraits reads a changed file again, and keeps the last valid content', () => {
  const folder = mkdtempSync(join(tmpdir(), 'network-traits-'));
  const file = join(folder, 'traits.yaml');
  const names = (): readonly string[] => opened.current(silentLog).map(({ name }) => name);
  writeFileSync(file, FILE);
  const opened = openNetworkTraits(file);
  expect(names()).toHaveLength(6);
  writeFileSync(file, 'CUSTOM_ONE: { actions: [] }');
  expect(names()).toEqual(['CUSTOM_ONE']);
  writeFileSync(file, 'CUSTOM_TWO: nothing of use');
  expect(names()).toEqual(['CUSTOM_ONE']);
  rmSync(folder, { recursive: true });
  expect(names()).toEqual(['CUSTOM_ONE']);
  expect(() => openNetworkTraits(file)).toThrow('ENOENT');
});
