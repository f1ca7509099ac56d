/** Inspection without a ramdisk: the node gets everything that the BMC reports, or nothing. */
import type { InspectionFindings } from '../../../drivers/interfaces';
import type { JsonObject, NodeChanges } from '../../../model/records';
import type { Started } from '../../support/conductor';
import { newMachine } from '../../support/machine';
import { useConductor } from '../../support/use-conductor';

const { database, start } = useConductor();

const MAC = '52:54:00:00:00:01';
const found = (changes: Partial<InspectionFindings> = {}): InspectionFindings => ({
  kind: 'found',
  inventory: { interfaces: [{ name: '1', mac_address: MAC }], cpu: { architecture: 'x86_64', count: 4 } },
  pluginData: { parsed_lldp: { 1: { switch_port_id: 'p' } } },
  properties: { memory_mb: 2048, local_gb: 9 },
  capabilities: { boot_mode: 'uefi' },
  essential: ['memory_mb', 'local_gb', 'cpu_arch'],
  hooks: ['validate-interfaces', 'ports', 'architecture'],
  ...changes,
});
async function inspected(findings: InspectionFindings, properties: JsonObject = {}): Promise<Started & { readonly uuid: string }> {
  const now = await start({ machine: newMachine({ findings }) });
  const { conductor, enrol } = now;
  const { uuid } = await enrol({ provision_state: 'manageable', properties } satisfies NodeChanges);
  await conductor.provision(uuid, 'inspect', {});
  await conductor.idle();
  return { ...now, uuid };
}

it('writes properties, ports and the inventory without booting the machine', async () => {
  const { uuid, node, store, machine } = await inspected(found());
  expect(await node(uuid)).toMatchObject({
    provision_state: 'manageable',
    last_error: null,
    properties: { memory_mb: 2048, local_gb: 9, cpu_arch: 'x86_64', capabilities: 'boot_mode:uefi' },
  });
  expect(await store.ports.ofNode(uuid)).toMatchObject([{ address: MAC, pxe_enabled: false }]);
  const kept = await store.inventories.find(uuid);
  expect(kept!.inventory).toEqual(found().inventory);
  expect(Object.keys(kept!.plugin_data).sort()).toEqual(['all_interfaces', 'macs', 'parsed_lldp', 'valid_interfaces']);
  expect(machine.orders).toEqual(['inspect']);
});

it.each<[string, JsonObject, JsonObject]>([
  ['a boot mode that the node names', { capabilities: 'boot_mode:bios' }, { capabilities: 'boot_mode:bios' }],
  ['other capabilities', { capabilities: 'a:1' }, { capabilities: 'a:1,boot_mode:uefi' }],
  ['other properties', { vendor: 'x', memory_mb: 1 }, { vendor: 'x', memory_mb: 2048 }],
])('keeps %s', async (_, before, after) => {
  const { uuid, node } = await inspected(found(), before);
  expect((await node(uuid)).properties).toMatchObject(after);
});

it.each<[string, Partial<InspectionFindings>, JsonObject, string | null]>([
  ['memory is missing', { properties: { local_gb: 1 } }, {}, 'memory_mb'],
  ['memory is set by the operator', { properties: { local_gb: 1 } }, { memory_mb: 7 }, null],
  ['several are missing', { properties: {}, hooks: [] }, {}, 'memory_mb, local_gb, cpu_arch'],
  ['the architecture is empty', { inventory: { ...found().inventory, cpu: { architecture: '' } } }, {}, 'cpu_arch'],
])('requires the essential properties: %s', async (_, changes, before, missing) => {
  const { uuid, node, store } = await inspected(found(changes), before);
  const reason = `Failed to inspect hardware. Reason: Failed to discover the following properties: ${missing} on node ${uuid}`;
  expect(await node(uuid)).toMatchObject(
    missing === null ? { provision_state: 'manageable' } : { provision_state: 'inspect failed', last_error: reason, properties: before },
  );
  expect((await store.ports.ofNode(uuid)).length).toBe(missing === null ? 1 : 0);
  expect((await store.inventories.find(uuid)) === undefined).toBe(missing !== null);
});

it('fails and stores nothing if the findings exceed [inventory]max_size', async () => {
  const { uuid, node, store } = await inspected(found({ pluginData: { dump: 'x'.repeat(9 << 20) } }));
  expect(await node(uuid)).toMatchObject({
    provision_state: 'inspect failed',
    properties: {},
    last_error: expect.stringMatching(
      /^Failed to inspect hardware\. Reason: 92\d\d KiB were found, and \[inventory\]max_size is 8192$/,
    ) as string,
  });
  expect(await store.inventories.find(uuid)).toBeUndefined();
  expect(await store.ports.ofNode(uuid)).toEqual([]);
});

it('records hardware changes since the last inspection', async () => {
  const inventory = { ...found().inventory, memory: { physical_mb: 2048 } };
  const { conductor, enrol, store } = await start({ machine: newMachine({ findings: found({ inventory }) }) });
  const { uuid } = await enrol({ provision_state: 'manageable' } satisfies NodeChanges);
  const inspect = async (): Promise<void> => {
    await conductor.provision(uuid, 'inspect', {});
    await conductor.idle();
  };
  const changes = () => store.hardware.changes({ nodeUuid: uuid, limit: 10 });
  await inspect();
  expect(await changes()).toEqual([]);
  await store.inventories.put(uuid, {
    inventory: { ...inventory, cpu: { architecture: 'x86_64', count: 2 }, disks: [{ name: '/dev/sda', serial: 'S1', size: 10 }] },
    plugin_data: {},
  });
  await inspect();
  expect(await changes()).toMatchObject([
    { source: 'inspection', kind: 'changed', component: 'cpu', before: { count: 2 }, after: { count: 4 } },
  ]);
  const told = await database.query<{ readonly payload: object }>(
    `SELECT payload FROM events WHERE kind = 'hardware' AND node_uuid = '${uuid}'`,
  );
  expect(told).toEqual([{ payload: { source: 'inspection', count: 1, changes: [{ kind: 'changed', component: 'cpu', key: 'cpu' }] } }]);
  const history = await database.query<{ readonly event: string }>(`SELECT event FROM node_history WHERE event_type = 'hardware'`);
  expect(history).toEqual([{ event: 'Hardware since the last inspection: cpu changed: count 2 → 4' }]);
  await inspect();
  expect(await changes()).toHaveLength(1);
});

it('what the disks say of themselves is an alert until the next inspection finds them well', async () => {
  const machine = newMachine({});
  const { conductor, enrol, store } = await start({ machine });
  const { uuid } = await enrol({ provision_state: 'manageable' } satisfies NodeChanges);
  const inspect = async (smart: unknown): Promise<readonly string[]> => {
    machine.findings = found({ pluginData: { smart } });
    await conductor.provision(uuid, 'inspect', {});
    await conductor.idle();
    const open = await store.healthAlerts.list({ nodeUuid: uuid, limit: 10 });
    return open.map(({ source, rule, subject }) => `${source} ${rule} ${subject}`);
  };
  const disk = { name: '/dev/sda', serial: 'S1', passed: true };
  expect(await inspect([disk])).toEqual([]);
  expect(await inspect('nothing')).toEqual([]);
  expect(await inspect([{ ...disk, passed: false }])).toEqual(['smart drive_failing disk S1']);
  expect(await inspect([{ ...disk, passed: null, unread: 'silent' }])).toEqual(['smart drive_failing disk S1']);
  expect(await inspect([disk])).toEqual(['smart drive_failing disk S1']);
  expect(await inspect([disk])).toEqual([]);
});

describe('inspection rules', () => {
  const RULE = 'aaaaaaaa-0000-4000-8000-00000000aaaa';
  const withRule = async (actions: readonly JsonObject[]) => {
    await database.store().inspectionRules.create({ uuid: RULE, phase: 'main', conditions: [], actions });
    const one = await inspected(found(), { vendor: 'x' });
    return { ...one, kept: await one.store.inventories.find(one.uuid) };
  };
  it('change the node, its traits and the plugin data together with what the hooks found', async () => {
    const { uuid, node, kept } = await withRule([
      { op: 'set-attribute', args: { path: 'extra/cpus', value: '{inventory[cpu][count]} of {node.properties[cpu_arch]}' } },
      { op: 'set-capability', args: { name: 'seen', value: 'yes' } },
      { op: 'add-trait', args: { name: 'CUSTOM_SEEN' } },
      { op: 'set-plugin-data', args: { path: 'rule', value: 1, plugin_data: {} } },
    ]);
    expect(await node(uuid)).toMatchObject({
      provision_state: 'manageable',
      extra: { cpus: '4 of x86_64' },
      traits: ['CUSTOM_SEEN'],
      properties: { vendor: 'x', memory_mb: 2048, capabilities: 'boot_mode:uefi,seen:yes' },
    });
    expect(kept!.plugin_data).toMatchObject({ rule: 1 });
  });
  it.each([
    [{ op: 'fail', args: { msg: 'not mine' } }, /Reason: not mine \(inspection rule aaaaaaaa-0000-4000-8000-00000000aaaa\)$/],
    [{ op: 'set-attribute', args: { path: 'driver', value: 'nosuch' } }, /nosuch/],
  ])('change nothing when one fails: %j', async (action, text) => {
    const { uuid, node, store, kept } = await withRule([{ op: 'add-trait', args: { name: 'CUSTOM_SEEN' } }, action]);
    expect(await node(uuid)).toMatchObject({
      provision_state: 'inspect failed',
      properties: { vendor: 'x' },
      traits: [],
      last_error: expect.stringMatching(text) as string,
    });
    expect(kept).toBeUndefined();
    expect(await store.ports.ofNode(uuid)).toEqual([]);
  });
});
