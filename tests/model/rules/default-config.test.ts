/** Default configs: merging, comparing with the machine, and what is shown. */
import {
  argumentsToBringBack,
  defaultRows,
  differencesText,
  idOf,
  inOrderOfUse,
  maskedDefault,
  mergedDefaults,
  stepsProblem,
  type MachineFacts,
} from '../../../model/rules/default-config';
import type { DefaultConfigRecord, JsonObject, StepRecord } from '../../../model/records';

const config = (
  scope: Partial<DefaultConfigRecord>,
  ...steps: readonly (Partial<StepRecord> & { readonly id: string })[]
): DefaultConfigRecord => ({
  id: 1,
  uuid: 'u',
  revision: 1,
  created_at: '',
  updated_at: null,
  resource_class: null,
  property: null,
  value: null,
  node_uuid: null,
  description: null,
  ...scope,
  steps: steps.map(({ id, args = {}, ...more }) => ({ interface: id.split('.')[0]!, step: id.split('.')[1]!, args, ...more })),
});
const NOTHING: MachineFacts = { bios: [], firmware: [], networkPorts: [], raidConfig: {} };
const BIOS = 'bios.apply_configuration';
const bios = (values: JsonObject): JsonObject => ({ settings: Object.entries(values).map(([name, value]) => ({ name, value })) });
const rowsOf = (facts: MachineFacts, ...configs: readonly DefaultConfigRecord[]) => defaultRows(mergedDefaults(configs), facts);

it('merges by argument and by named item: class, then properties by their names, then node', () => {
  const rows = rowsOf(
    NOTHING,
    config({ node_uuid: 'n' }, { id: 'deploy.erase_devices', args: { b: 3 }, priority: 5 }),
    config({ property: 'row', value: '7' }, { id: BIOS, args: bios({ A: 'row', B: 'row' }) }),
    config({ property: 'rack', value: '12' }, { id: BIOS, args: bios({ B: 'rack', C: 'rack' }) }),
    config(
      { resource_class: 'gold' },
      { id: BIOS, args: bios({ A: 'class', D: 'class' }) },
      { id: 'deploy.erase_devices', args: { a: 1, b: 2 }, priority: 9 },
    ),
  );
  expect(rows.map(({ step, argument, value, origin }) => [`${step} ${argument}`, value, origin])).toEqual([
    [`${BIOS} settings[A]`, { name: 'A', value: 'row' }, 'property row=7'],
    [`${BIOS} settings[D]`, { name: 'D', value: 'class' }, 'resource class gold'],
    [`${BIOS} settings[B]`, { name: 'B', value: 'row' }, 'property row=7'],
    [`${BIOS} settings[C]`, { name: 'C', value: 'rack' }, 'property rack=12'],
    ['deploy.erase_devices priority', 5, 'node'],
    ['deploy.erase_devices a', 1, 'resource class gold'],
    ['deploy.erase_devices b', 3, 'node'],
  ]);
});
it('takes a list without names, and an object, as a whole', () => {
  const [row] = rowsOf(
    NOTHING,
    config({ resource_class: 'gold' }, { id: 'vendor.x', args: { list: [1, 2], object: { a: 1 } } }),
    config({ node_uuid: 'n' }, { id: 'vendor.x', args: { list: [3] } }),
  );
  expect(row).toMatchObject({ argument: 'list', value: [3], origin: 'node', state: 'not compared' });
});

const setting = (name: string, value: string | null, attribute_type: string | null = null) => ({ name, value, attribute_type });
it.each([
  [true, setting('A', 'True', 'Boolean'), 'equal'],
  ['true', setting('A', 'True', 'Boolean'), 'equal'],
  [false, setting('A', 'True'), 'differs'],
  [60, setting('A', '60', 'Integer'), 'equal'],
  ['60', setting('A', '60', 'Integer'), 'equal'],
  ['On', setting('A', 'on', 'Enumeration'), 'differs'],
  ['x', setting('A', null, 'Password'), 'unknown'],
  ['x', setting('B', 'x'), 'unknown'],
] as const)('compares the BIOS setting %j with %j: %s', (value, known, state) => {
  expect(rowsOf({ ...NOTHING, bios: [known] }, config({ node_uuid: 'n' }, { id: BIOS, args: bios({ A: value }) }))).toMatchObject([
    { state },
  ]);
});

const NIC = 'management.configure_network_adapters';
const modes = (values: Readonly<Record<string, string>>): JsonObject => ({
  ports: Object.entries(values).map(([name, mode]) => ({ name, mode })),
});
const networkPorts = [
  { names: ['NIC.1-1-1', 'NIC.1/NIC.1-1-1'], mode: 'FibreChannel', modes: ['Ethernet', 'FibreChannel'] },
  { names: ['B/0'], mode: 'InfiniBand', modes: ['Ethernet', 'InfiniBand'] },
];
it('compares network ports by any of their names, and brings back only those that differ', () => {
  const wanted = [
    config(
      { property: 'rack', value: '12' },
      { id: NIC, args: modes({ 'NIC.1/NIC.1-1-1': 'Ethernet', 'B/0': 'Ethernet', other: 'iSCSI' }) },
    ),
    config({ node_uuid: 'n' }, { id: NIC, args: modes({ 'B/0': 'InfiniBand' }) }),
  ];
  const rows = rowsOf({ ...NOTHING, networkPorts }, ...wanted);
  expect(rows.map(({ argument, origin, now, state }) => [argument, origin, now, state])).toEqual([
    ['ports[NIC.1/NIC.1-1-1]', 'property rack=12', 'FibreChannel', 'differs'],
    ['ports[B/0]', 'node', 'InfiniBand', 'equal'],
    ['ports[other]', 'property rack=12', null, 'unknown'],
  ]);
  expect(differencesText(rows)).toEqual([
    'NIC ports differ from the default of property rack=12 in 1 port: NIC.1/NIC.1-1-1 is FibreChannel, not Ethernet',
  ]);
  const [step] = mergedDefaults(wanted);
  expect(argumentsToBringBack(step!, { ...NOTHING, networkPorts })).toEqual(modes({ 'NIC.1/NIC.1-1-1': 'Ethernet' }));
  expect(argumentsToBringBack(step!, NOTHING)).toBeUndefined();
});
it('brings back firmware, then the BIOS, then network ports, then RAID', () => {
  const ids = ['raid.apply_configuration', NIC, BIOS, 'deploy.erase_devices', 'firmware.update'];
  const steps = mergedDefaults([config({ node_uuid: 'n' }, ...ids.map((id) => ({ id })))]);
  expect(inOrderOfUse(steps).map(idOf).slice(-4)).toEqual(['firmware.update', BIOS, NIC, 'raid.apply_configuration']);
});

const disk = (size: number | 'MAX', level = '1', more: JsonObject = {}): JsonObject => ({ size_gb: size, raid_level: level, ...more });
it.each([
  [[disk(100)], [disk(100)], 'equal'],
  [[disk(100)], [disk(99)], 'equal'],
  [[disk(100)], [disk(90)], 'differs'],
  [[disk('MAX')], [disk(700)], 'equal'],
  [[disk(100)], [disk(100), disk(100)], 'differs'],
  [[disk(100), disk(100)], [disk(100)], 'differs'],
  [[disk(100, '1', { volume_name: 'root' })], [disk(100, '1', { name: 'root' })], 'equal'],
  [[disk(100, '1', { volume_name: 'root' })], [disk(100, '1', { name: 'other' })], 'differs'],
  [[disk(100)], [], 'differs'],
])('compares the volumes %j with %j: %s', (asked, now, state) => {
  const wanted = config({ node_uuid: 'n' }, { id: 'raid.apply_configuration', args: { raid_config: { logical_disks: asked } } });
  expect(rowsOf({ ...NOTHING, raidConfig: { logical_disks: now } }, wanted)).toMatchObject([{ state }]);
});

it('brings back only the firmware that differs, without the version, and says what differs', () => {
  const settings = [
    { component: 'bmc', url: 'http://192.0.2.1/bmc', version: '2' },
    { component: 'bios', url: 'http://192.0.2.1/bios', version: '3', wait: 5 },
  ];
  const wanted = config({ resource_class: 'gold' }, { id: 'firmware.update', args: { settings } });
  const facts = {
    ...NOTHING,
    firmware: [
      { component: 'bmc', current_version: '2' },
      { component: 'bios', current_version: '1' },
    ],
  };
  const [step] = mergedDefaults([wanted]);
  expect(argumentsToBringBack(step!, facts)).toEqual({ settings: [{ component: 'bios', url: 'http://192.0.2.1/bios', wait: 5 }] });
  expect(differencesText(rowsOf(facts, wanted))).toEqual([
    'firmware differs from the default of resource class gold in 1 component: bios is 1, not 3',
  ]);
  expect(argumentsToBringBack(step!, NOTHING)).toBeUndefined();
});
it('names ten differences at most', () => {
  const names = Array.from({ length: 12 }, (_, index) => `S${index}`);
  const wanted = config({ node_uuid: 'n' }, { id: BIOS, args: bios(Object.fromEntries(names.map((name) => [name, 'a']))) });
  const [text] = differencesText(rowsOf({ ...NOTHING, bios: names.map((name) => setting(name, 'b')) }, wanted));
  expect(text).toMatch(/^BIOS differs from the default of the node in 12 settings: S0 is b, not a, .*, and 2 more$/);
});

it('masks secrets by their names', () => {
  const rows = rowsOf(
    { ...NOTHING, bios: [setting('SetupPassword', 'now')] },
    config(
      { node_uuid: 'n' },
      { id: BIOS, args: bios({ SetupPassword: 'x' }) },
      { id: 'vendor.x', args: { password: 'x', other: { token: 'x' } } },
    ),
  ).map(maskedDefault);
  expect(rows.map(({ value }) => value)).toEqual([{ name: 'SetupPassword', value: '******' }, '******', { token: '******' }]);
  expect(rows[0]!.now).toBe('******');
});
it.each([
  [[{ interface: 'bios', step: 'x' }], undefined],
  [[{ interface: 'bios', step: 'x', args: { a: [{ b: '******' }] } }], /^steps\[0\]\.args\.a: /],
  [[{ interface: 'firmware', step: 'update', args: { settings: [{ version: '1' }, {}] } }], /^steps\[0\]\.args\.settings\[1\]\.version: /],
])('finds what is wrong in %j', (steps, problem) => {
  if (problem) expect(stepsProblem(steps)).toMatch(problem);
  else expect(stepsProblem(steps)).toBeUndefined();
});
