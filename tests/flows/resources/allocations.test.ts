/** Allocations: which node one gets, why one gets none, and how it ends. */
import { randomUUID } from 'node:crypto';
import type { NewAllocation } from '../../../conductor/core/call-types';
import type { AllocationRecord, NodeChanges, NodeRecord } from '../../../model/records';
import { type Started } from '../../support/conductor';
import { useConductor } from '../../support/use-conductor';

const { start: startWith } = useConductor();
let one: Started;
const start = () => startWith({ options: { 'conductor.node_locked_retry_attempts': 1 } });
beforeEach(async () => {
  one = await start();
});

const FREE: NodeChanges = { provision_state: 'available', power_state: 'power off', resource_class: 'gold' };
const node = (changes: NodeChanges = {}): Promise<NodeRecord> =>
  one.store.nodes.create({ uuid: randomUUID(), driver: 'test-hardware', driver_info: { bmc: '192.0.2.9' }, ...FREE, ...changes });
async function allocate(wanted: Partial<NewAllocation> = {}): Promise<AllocationRecord> {
  const uuid = randomUUID();
  expect(await one.conductor.createAllocation({ uuid, resource_class: 'gold', ...wanted })).toMatchObject({ state: 'allocating' });
  await one.conductor.idle();
  return one.store.allocations.find(uuid);
}

it('an allocation sets the instance, the allocation and the requested traits of its node', async () => {
  const { uuid } = await node({ traits: ['CUSTOM_A', 'CUSTOM_B'], instance_info: { a: 1 } });
  const allocation = await allocate({ traits: ['CUSTOM_B'] });
  expect(allocation).toMatchObject({ state: 'active', node_uuid: uuid, last_error: null });
  expect(await one.store.nodes.find(uuid)).toMatchObject({
    instance_uuid: allocation.uuid,
    allocation_uuid: allocation.uuid,
    instance_info: { a: 1, traits: ['CUSTOM_B'] },
    reservation: null,
  });
});

it('an allocation tries the node with the same name first', async () => {
  for (let index = 0; index < 8; index++) await node({ name: `n${index}` });
  expect((await allocate({ name: 'n5' })).node_uuid).toBe((await one.store.nodes.find('n5')).uuid);
});

it.each<[string, NodeChanges, Partial<NewAllocation>, string]>([
  ['the resource class', { resource_class: 'silver' }, {}, 'no available nodes match the resource class gold'],
  ['the provision state', { provision_state: 'manageable' }, {}, 'no available nodes match the resource class gold'],
  ['the power state', { power_state: null }, {}, 'no available nodes match the resource class gold'],
  ['maintenance', { maintenance: true }, {}, 'no available nodes match the resource class gold'],
  ['another instance', { instance_uuid: randomUUID() }, {}, 'no available nodes match the resource class gold'],
  ['another owner', { owner: 'bob' }, { owner: 'alice' }, 'no available nodes match the resource class gold'],
  [
    'missing traits',
    { traits: ['CUSTOM_A'] },
    { traits: ['CUSTOM_A', 'CUSTOM_B'] },
    'no suitable nodes have the requested traits CUSTOM_A, CUSTOM_B',
  ],
  [
    'other candidate nodes',
    {},
    { candidate_nodes: [randomUUID()] },
    'none of the requested nodes are available and match the resource class gold',
  ],
  ['a reservation', { reservation: 'elsewhere' } as NodeChanges, {}, 'could not reserve any of 1 suitable nodes'],
])('an allocation fails because of %s, and records the reason', async (_, changes, wanted, reason) => {
  await node(changes);
  const { uuid, ...allocation } = await allocate(wanted);
  expect(allocation).toMatchObject({ state: 'error', node_uuid: null, last_error: `Failed to process allocation ${uuid}: ${reason}.` });
});

it.each([{ owner: 'alice' }, { lessee: 'alice' }])(
  'an allocation of an owner gets only a node that the owner owns or leases: %j',
  async (changes) => {
    await node();
    const { uuid } = await node(changes);
    expect((await allocate({ owner: 'alice' })).node_uuid).toBe(uuid);
  },
);

it('concurrent allocations get different nodes', async () => {
  await Promise.all(Array.from({ length: 6 }, () => node()));
  const wanted = Array.from({ length: 6 }, () => randomUUID());
  await Promise.all(wanted.map((uuid) => one.conductor.createAllocation({ uuid, resource_class: 'gold' })));
  await one.conductor.idle();
  const made = await one.store.allocations.list({ where: { state: 'active' } });
  const taken = (await one.store.nodes.list({ associated: true })).map(({ allocation_uuid: uuid }) => uuid);
  expect(taken.sort()).toEqual(made.map(({ uuid }) => uuid).sort());
  expect(new Set(made.map(({ node_uuid: of }) => of)).size).toBe(made.length);
});

it('an unfinished allocation continues after a restart', async () => {
  const { uuid: of } = await node();
  await one.conductor.stop();
  const uuid = randomUUID();
  await one.store.allocations.create({ uuid, state: 'allocating', resource_class: 'gold' });
  one = await start();
  await one.conductor.idle();
  expect(await one.store.allocations.find(uuid)).toMatchObject({ state: 'active', node_uuid: of });
});

describe('a backfilled allocation', () => {
  const backfill = async (changes: NodeChanges, wanted: Partial<NewAllocation> = {}) => {
    const { uuid: of } = await node({ provision_state: 'active', ...changes });
    const uuid = randomUUID();
    return { of, uuid, made: one.conductor.createAllocation({ uuid, ...wanted }, of) };
  };
  it('is active at once', async () => {
    const { of, uuid, made } = await backfill({}, { resource_class: 'gold' });
    expect(await made).toMatchObject({ uuid, state: 'active', node_uuid: of });
    expect(await one.store.nodes.find(of)).toMatchObject({ instance_uuid: uuid, allocation_uuid: uuid, instance_info: { traits: [] } });
  });
  it.each<[NodeChanges, Partial<NewAllocation>, string]>([
    [{ provision_state: 'available' }, {}, 'Node must be in the "active" state, but the current state is "available"'],
    [
      {},
      { resource_class: 'silver', traits: ['CUSTOM_A'] },
      "Resource class gold does not match the requested resource class silver; List of traits [] does not match the requested traits ['CUSTOM_A']",
    ],
    [{}, { candidate_nodes: ['x'] }, "Candidate nodes must be empty or contain the target node, but got ['x']"],
  ])('is refused for a node with %j and a request with %j, and nothing is stored', async (changes, wanted, errors) => {
    const { of, uuid, made } = await backfill(changes, wanted);
    await expect(made).rejects.toMatchObject({
      status: 409,
      message: `Failed to process allocation ${uuid}: Cannot backfill an allocation for node ${of}: ${errors}.`,
    });
    expect(await one.store.allocations.list({})).toEqual([]);
  });
  it('is refused when the node has another instance', async () => {
    const instance = randomUUID();
    const { of, made } = await backfill({ instance_uuid: instance });
    await expect(made).rejects.toMatchObject({ status: 409, message: `Node ${of} is associated with instance ${instance}.` });
  });
});

describe('an allocation ends', () => {
  const freed = { instance_uuid: null, allocation_uuid: null };
  it('when it is deleted, and frees the node', async () => {
    const { uuid: of } = await node();
    const { uuid } = await allocate();
    await one.conductor.deleteAllocation(uuid);
    expect(await one.store.nodes.find(of)).toMatchObject(freed);
    await expect(one.store.allocations.find(uuid)).rejects.toMatchObject({ name: 'AllocationNotFound' });
  });
  it.each<[NodeChanges, string]>([
    [{ provision_state: 'active' }, 'because the node is active (and maintenance mode is off)'],
    [
      { provision_state: 'deploying', target_provision_state: 'active' },
      'because the node is in state deploying where updates are not allowed (and maintenance mode is off)',
    ],
  ])('not while the node is %j', async (changes, because) => {
    const { uuid: of } = await node();
    const { uuid } = await allocate();
    await one.store.nodes.update(of, changes);
    await expect(one.conductor.deleteAllocation(uuid)).rejects.toMatchObject({
      status: 409,
      message: `Cannot remove allocation ${uuid} for node ${of}, ${because}`,
    });
    await one.store.nodes.update(of, { maintenance: true });
    await one.conductor.deleteAllocation(uuid);
  });
  it('when the instance is removed from the node', async () => {
    const { uuid: of } = await node();
    await allocate();
    await one.store.nodes.update(of, { provision_state: 'active' });
    await expect(one.conductor.updateNode(of, { instance_uuid: null }, false)).rejects.toMatchObject({ status: 409 });
    await one.store.nodes.update(of, { provision_state: 'manageable' });
    expect(await one.conductor.updateNode(of, { instance_uuid: null }, false)).toMatchObject(freed);
    expect(await one.store.allocations.list({})).toEqual([]);
  });
  it('when the node is torn down, and when it is deleted', async () => {
    const { uuid: of } = await node({ automated_clean: false });
    await allocate();
    await one.store.nodes.update(of, { provision_state: 'active' });
    await one.conductor.provision(of, 'deleted', {});
    await one.conductor.idle();
    expect(await one.store.nodes.find(of)).toMatchObject({ provision_state: 'available', ...freed });
    expect(await one.store.allocations.list({})).toEqual([]);
    await allocate();
    await one.store.nodes.update(of, { maintenance: true });
    await one.conductor.deleteNode(of);
    expect(await one.store.allocations.list({})).toEqual([]);
  });
});
