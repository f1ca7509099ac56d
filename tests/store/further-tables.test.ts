import { randomUUID } from 'node:crypto';
import type { NodeRecord } from '../../model/records';
import type { Store } from '../../store/store';
import { useDatabase } from '../support/database';

const database = useDatabase();
const store = () => database.store();
let node: NodeRecord;
beforeEach(async () => {
  await database.clear();
  node = await store().nodes.create({ uuid: randomUUID(), driver: 'ipmi', name: 'one' });
});
const step = { interface: 'bios', step: 'apply', args: { z: 1, a: 2 } };

/** Table: the required fields of a record, a change of it, and the message for a missing one. */
const TABLES: readonly (readonly [Exclude<keyof Store, 'transaction'>, () => object, object, string])[] = [
  ['chassis', () => ({}), { description: 'row 3' }, 'Chassis {} could not be found.'],
  ['portgroups', () => ({ node_uuid: node.uuid }), { mode: '802.3ad', properties: { b: 1 } }, 'Portgroup {} could not be found.'],
  [
    'volumeConnectors',
    () => ({ node_uuid: node.uuid, type: 'iqn', connector_id: 'x' }),
    { connector_id: 'y' },
    'Volume connector {} could not be found.',
  ],
  [
    'volumeTargets',
    () => ({ node_uuid: node.uuid, volume_type: 'iscsi', volume_id: 'v', boot_index: 0 }),
    { boot_index: 1 },
    'Volume target {} could not be found.',
  ],
  [
    'allocations',
    () => ({ state: 'allocating', traits: ['CUSTOM_A'] }),
    { state: 'active', last_error: null },
    'Allocation {} could not be found.',
  ],
  [
    'deployTemplates',
    () => ({ name: 'CUSTOM_T', steps: [{ ...step, priority: 1 }] }),
    { steps: [] },
    'Deploy template {} could not be found.',
  ],
  [
    'runbooks',
    () => ({ name: 'CUSTOM_R', steps: [{ ...step, order: 1 }] }),
    { traits: ['CUSTOM_B'], public: true },
    'Runbook {} could not be found.',
  ],
  ['inspectionRules', () => ({ actions: [{ op: 'fail' }] }), { priority: 3, conditions: [{ op: 'eq' }] }, 'Rule {} could not be found.'],
  ['history', () => ({ node_uuid: node.uuid, event: 'e' }), { event: 'f' }, 'Node history record {} could not be found.'],
];

describe.each(TABLES)('%s', (name, needed, change, sentence) => {
  const table = () => store()[name] as Store['chassis'];
  it('creates, finds, lists, updates and removes records', async () => {
    const uuid = randomUUID();
    const made = await table().create({ uuid, ...needed() });
    expect(made).toMatchObject({ uuid, ...needed(), updated_at: null, revision: 1 });
    expect(await table().find(uuid)).toEqual(made);
    expect(await table().list({ limit: 5 })).toEqual([made]);
    const changed = await table().update(uuid, change);
    expect(changed).toEqual({ ...made, ...change, updated_at: expect.any(String) as unknown, revision: 2 });
    await table().remove(uuid);
    const none = { message: sentence.replace('{}', uuid), status: 404 };
    await expect(table().find(uuid)).rejects.toMatchObject(none);
    await expect(table().update(uuid, change)).rejects.toMatchObject(none);
    await expect(table().remove(uuid)).rejects.toMatchObject(none);
    await expect(table().list({ marker: uuid })).rejects.toMatchObject(none);
  });
});

it('tables name the conflict when a record is in use or already exists', async () => {
  const chassis = await store().chassis.create({ uuid: randomUUID() });
  await store().nodes.update(node.uuid, { chassis_uuid: chassis.uuid });
  await expect(store().chassis.remove(chassis.uuid)).rejects.toMatchObject({
    message: `Cannot complete the requested action because chassis ${chassis.uuid} contains nodes.`,
  });
  await expect(store().chassis.create({ uuid: chassis.uuid })).rejects.toMatchObject({ name: 'ChassisAlreadyExists' });
  const group = await store().portgroups.create({ uuid: randomUUID(), node_uuid: node.uuid, address: '52:54:00:AA:00:01', name: 'bond' });
  expect(group.address).toBe('52:54:00:aa:00:01');
  await store().ports.create({ uuid: randomUUID(), node_uuid: node.uuid, address: '52:54:00:aa:00:02', portgroup_uuid: group.uuid });
  await expect(store().portgroups.remove(group.uuid)).rejects.toMatchObject({ name: 'PortgroupNotEmpty' });
  expect(await store().portgroups.find('bond')).toEqual(group);
  await store().nodes.remove(node.uuid);
  expect(await store().portgroups.list({})).toEqual([]);
});

it('biosSettings and firmwareComponents update rows by name', async () => {
  const { biosSettings, firmwareComponents } = store();
  await biosSettings.put(node.uuid, [
    { name: 'b', value: '1', allowable_values: ['1', '2'] },
    { name: 'a', value: 'x' },
  ]);
  await biosSettings.put(node.uuid, [{ name: 'b', value: '2', allowable_values: ['1', '2'] }]);
  expect(await biosSettings.ofNode(node.uuid)).toMatchObject([
    { name: 'a', value: 'x', updated_at: null },
    { name: 'b', value: '2', allowable_values: ['1', '2'], updated_at: expect.any(String) as unknown },
  ]);
  await biosSettings.remove(node.uuid, ['a', 'c']);
  expect((await biosSettings.ofNode(node.uuid)).map(({ name }) => name)).toEqual(['b']);
  await firmwareComponents.put(node.uuid, [{ component: 'bmc', initial_version: '1' }]);
  await firmwareComponents.put(node.uuid, [{ component: 'bmc', initial_version: '1', current_version: '2' }]);
  expect(await firmwareComponents.ofNode(node.uuid)).toMatchObject([{ component: 'bmc', initial_version: '1', current_version: '2' }]);
});
