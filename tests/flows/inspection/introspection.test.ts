/** The introspection service on a conductor: who may report, what a report changes, and that of two reports only one counts. */
import { INTROSPECTION_STATES } from '../../../model/introspection';
import type { JsonObject, NodeChanges } from '../../../model/records';
import { conductorOptions, gate, type Started } from '../../support/conductor';
import { newMachine, type Machine } from '../../support/machine';
import { settled } from '../../support/settled';
import { useConductor } from '../../support/use-conductor';

const { clock, start } = useConductor();

const MAC = '52:54:00:00:00:01';
const report = (more: object = {}, inventory: object = {}): JsonObject => ({
  inventory: {
    interfaces: [{ name: 'eth0', mac_address: MAC, ipv4_address: '10.0.0.1' }],
    cpu: { architecture: 'x86_64', count: 4 },
    memory: { physical_mb: 2048 },
    ...inventory,
  },
  logs: 'AAAA',
  ...more,
});
interface Begun extends Started {
  readonly uuid: string;
  readonly status: () => Promise<JsonObject>;
}
async function enrolled(
  machine: Machine = newMachine(),
  changes: NodeChanges = {},
  options: Parameters<typeof conductorOptions>[0] = {},
): Promise<Begun> {
  const now = await start({ machine, options });
  const { uuid } = await now.enrol({ provision_state: 'manageable', ...changes });
  await now.conductor.createPort({ uuid: '00000000-0000-4000-8000-00000000000a', node_uuid: uuid, address: MAC });
  const { store } = now;
  return { ...now, uuid, status: async () => (await store.introspections.find(uuid)) as unknown as JsonObject };
}
async function waiting(machine?: Machine, changes?: NodeChanges): Promise<Begun> {
  const begun = await enrolled(machine, changes);
  await begun.conductor.startIntrospection(begun.uuid, true);
  await begun.conductor.idle();
  expect(await begun.status()).toMatchObject({ state: 'waiting', finished_at: null });
  return begun;
}

it('boots the machine, accepts its report, and powers it off', async () => {
  const { conductor, machine, uuid, status, store, node } = await waiting();
  expect(machine.orders).toEqual(['boot device pxe once', 'power on']);
  expect(await conductor.continueIntrospection(report())).toEqual({ uuid });
  await conductor.idle();
  expect(await status()).toMatchObject({ state: 'finished', error: null, macs: [], bmc_addresses: [] });
  expect(machine.power).toBe('power off');
  expect((await node(uuid)).properties).toMatchObject({ cpu_arch: 'x86_64', cpus: 4, memory_mb: 2048 });
  expect(await store.introspections.data(uuid, 'processed')).toMatchObject({ macs: [MAC], cpus: 4 });
  expect(await store.introspections.data(uuid, 'unprocessed')).not.toHaveProperty('logs');
});

it('refuses a report of a machine without a waiting introspection, and stores nothing', async () => {
  const { conductor, uuid, store, status } = await enrolled();
  await expect(conductor.continueIntrospection(report())).rejects.toMatchObject({ status: 404 });
  expect(await status()).toBeUndefined();
  expect(await store.inventories.find(uuid)).toBeUndefined();
  await conductor.startIntrospection(uuid, false);
  await conductor.continueIntrospection(report());
  await conductor.idle();
  const before = await status();
  await expect(conductor.continueIntrospection(report({}, { cpu: { architecture: 'x86_64', count: 99 } }))).rejects.toMatchObject({
    status: 404,
  });
  expect(await status()).toEqual(before);
});

it.each([
  [false, 9],
  [true, 4],
])('treats existing properties as [processing]overwrite_existing = %s says', async (overwrites, cpus) => {
  const { conductor, uuid, node } = await enrolled(undefined, { properties: { cpus: 9 } }, { 'processing.overwrite_existing': overwrites });
  await conductor.startIntrospection(uuid, false);
  await conductor.continueIntrospection(report());
  await conductor.idle();
  expect((await node(uuid)).properties).toMatchObject({ cpus, memory_mb: 2048 });
});

it('accepts exactly one of two concurrent reports, as a whole', async () => {
  const { conductor, uuid, store, node } = await waiting();
  const answers = await Promise.allSettled(
    [1, 2].map((count) => conductor.continueIntrospection(report({ count }, { cpu: { architecture: 'x86_64', count } }))),
  );
  await conductor.idle();
  expect(answers.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected']);
  const { cpus } = (await node(uuid)).properties;
  expect(await store.introspections.data(uuid, 'processed')).toMatchObject({ count: cpus, cpus });
  expect(await store.introspections.data(uuid, 'unprocessed')).toMatchObject({ count: cpus });
});

it.each<[string, JsonObject, RegExp]>([
  ['an error of the ramdisk', report({ error: 'boom' }), /^Preprocessing hook ramdisk_error: Ramdisk reported error: boom$/],
  ['hooks that refuse', report({}, { disks: [{ name: '/dev/sda', size: 1 }] }), /^No disks|^Failed to inspect hardware/],
])('fails and changes nothing because of %s', async (_, given, error) => {
  const { conductor, uuid, status, node, store } = await waiting(undefined, { properties: { root_device: { name: '/dev/none' } } });
  await expect(conductor.continueIntrospection(given)).rejects.toMatchObject({ status: 400 });
  expect(await status()).toMatchObject({ state: 'error', error: expect.stringMatching(error) as string });
  expect((await node(uuid)).properties).toEqual({ root_device: { name: '/dev/none' } });
  expect(await store.inventories.find(uuid)).toBeUndefined();
});

it('names the rule that failed an introspection, and its reason', async () => {
  const { conductor, uuid, status, store, node } = await waiting();
  await store.introspectionRules.create({
    uuid: '00000000-0000-4000-8000-0000000000ff',
    conditions: [{ op: 'lt', field: 'memory_mb', value: 4096, multiple: 'any', invert: false }],
    actions: [
      { action: 'set-attribute', path: '/extra/a', value: 1 },
      { action: 'fail', message: 'too little memory' },
    ],
  });
  await expect(conductor.continueIntrospection(report())).rejects.toThrow(/too little memory/);
  expect(await status()).toMatchObject({
    state: 'error',
    error: 'too little memory (introspection rule 00000000-0000-4000-8000-0000000000ff)',
  });
  expect(await node(uuid)).toMatchObject({ extra: {}, properties: {} });
});

it.each<[string, Parameters<Machine['broken']['set']>[0], string]>([
  ['the boot device', 'boot device pxe once', 'Failed to set boot device to PXE: no'],
  ['the power', 'power on', 'Failed to power on the node, check its power management configuration: no'],
])('fails when %s cannot be set', async (_, broken, error) => {
  const { conductor, uuid, status } = await enrolled(newMachine({ broken: new Map([[broken, new Error('no')]]) }));
  await conductor.startIntrospection(uuid, true);
  await conductor.idle();
  expect(await status()).toMatchObject({ state: 'error', error });
});

it('is aborted, and can be started again', async () => {
  const { conductor, uuid, status, machine } = await waiting();
  await conductor.abortIntrospection(uuid);
  await conductor.idle();
  expect(await status()).toMatchObject({ state: 'error', error: 'Canceled by operator' });
  expect(machine.power).toBe('power off');
  await conductor.startIntrospection(uuid, true);
  await conductor.idle();
  expect(await status()).toMatchObject({ state: 'waiting', error: null });
});

it('is aborted while the node is reserved, and powers the machine off once the node is free', async () => {
  const { conductor, uuid, status, machine, store } = await waiting();
  const { lock_fence: fence } = await store.nodes.reserve(uuid, 'elsewhere');
  await conductor.abortIntrospection(uuid);
  await expect(conductor.continueIntrospection(report())).rejects.toThrow();
  expect(await status()).toMatchObject({ state: 'aborting', finished_at: null });
  expect(machine.power).toBe('power on');
  await store.nodes.release(uuid, fence);
  await clock.advance(30);
  await settled(conductor);
  expect(await status()).toMatchObject({ state: 'error', error: 'Canceled by operator' });
  expect(machine.power).toBe('power off');
});
it('does not power the machine off at an abort if the node is already in another flow', async () => {
  const { conductor, uuid, status, machine, store } = await waiting();
  const { lock_fence: fence } = await store.nodes.reserve(uuid, 'elsewhere');
  await conductor.abortIntrospection(uuid);
  await store.nodes.update(uuid, { provision_state: 'clean wait' });
  await store.nodes.release(uuid, fence);
  await clock.advance(30);
  await settled(conductor);
  expect(await status()).toMatchObject({ state: 'error', error: 'Canceled by operator' });
  expect(machine.power).toBe('power on');
});

/** Starts another conductor, after the first one died and left the introspection with these values. */
async function takenOver(from: Begun, changes: Parameters<Started['store']['introspections']['change']>[2]): Promise<Started> {
  await from.conductor.stop();
  await from.store.introspections.change(from.uuid, INTROSPECTION_STATES, changes);
  const now = await start({ machine: newMachine({ power: 'power on' }), options: { 'DEFAULT.host': 'another' } });
  await settled(now.conductor);
  return now;
}
it('is started again, or its abort is finished, by another conductor after one died', async () => {
  const begun = await waiting();
  const again = await takenOver(begun, { state: 'starting' });
  expect(await again.store.introspections.find(begun.uuid)).toMatchObject({ state: 'waiting', error: null });
  expect(again.machine.orders).toEqual(['boot device pxe once', 'rebooting']);
  const ended = await takenOver({ ...begun, ...again }, { state: 'aborting' });
  expect(await ended.store.introspections.find(begun.uuid)).toMatchObject({ state: 'error', error: 'Canceled by operator' });
  expect(ended.machine.power).toBe('power off');
});
describe('a report whose conductor dies', () => {
  it('is awaited again if it was not stored, since its sender got no answer', async () => {
    const begun = await waiting();
    const { conductor, store } = await takenOver(begun, { state: 'processing' });
    expect(await store.introspections.find(begun.uuid)).toMatchObject({ state: 'waiting', finished_at: null });
    expect(await conductor.continueIntrospection(report())).toEqual({ uuid: begun.uuid });
    await conductor.idle();
    expect(await store.introspections.find(begun.uuid)).toMatchObject({ state: 'finished', error: null });
  });
  it('is processed by the next conductor if it was stored', async () => {
    const begun = await waiting();
    await begun.store.introspections.putData(begun.uuid, 'unprocessed', report());
    const { store, node, machine } = await takenOver(begun, { state: 'processing' });
    expect(await store.introspections.find(begun.uuid)).toMatchObject({ state: 'finished', error: null, macs: [] });
    expect((await node(begun.uuid)).properties).toMatchObject({ cpus: 4 });
    expect(await store.introspections.data(begun.uuid, 'processed')).toMatchObject({ cpus: 4 });
    expect(machine.power).toBe('power off');
  });
  it('is not processed twice: the next conductor only powers the machine off', async () => {
    const begun = await waiting();
    await begun.store.introspections.putData(begun.uuid, 'unprocessed', report());
    const { store, node, machine } = await takenOver(begun, { state: 'processing', macs: [], bmc_addresses: [] });
    expect(await store.introspections.find(begun.uuid)).toMatchObject({ state: 'finished', error: null });
    expect((await node(begun.uuid)).properties).toEqual({});
    expect(machine.power).toBe('power off');
  });
  it('fails its introspection when the hooks refuse it', async () => {
    const begun = await waiting(undefined, { properties: { root_device: { name: '/dev/none' } } });
    await begun.store.introspections.putData(begun.uuid, 'unprocessed', report({}, { disks: [{ name: '/dev/sda', size: 1 }] }));
    const { store } = await takenOver(begun, { state: 'processing' });
    expect(await store.introspections.find(begun.uuid)).toMatchObject({ state: 'error', finished_at: expect.anything() as unknown });
  });
  it('is marked as processed before the machine is powered off', async () => {
    const { conductor, store, uuid, machine } = await waiting();
    const { passed, open } = gate();
    machine.stuck.set('power off', passed);
    await conductor.continueIntrospection(report());
    expect(await store.introspections.find(uuid)).toMatchObject({ state: 'processing', finished_at: null, macs: [], bmc_addresses: [] });
    open();
    await conductor.idle();
  });
});
it.each<[string, boolean, JsonObject]>([
  ['continues with the stored data', true, { state: 'finished', error: null }],
  [
    'fails without stored data',
    false,
    { state: 'error', error: 'The conductor that reapplied the introspection data is gone, and the data are not kept' },
  ],
])('a reapplication whose conductor dies %s', async (_, keeps, then) => {
  const begun = await waiting();
  await begun.conductor.continueIntrospection(report());
  await begun.conductor.idle();
  if (!keeps)
    await begun.store.introspections.start(
      { node_uuid: begun.uuid, started_at: '2026-01-01T00:00:00Z', manage_boot: false, macs: [], bmc_addresses: [] },
      ['finished'],
    );
  const { store } = await takenOver(begun, { state: 'reapplying' });
  expect(await store.introspections.find(begun.uuid)).toMatchObject(then);
});

it('reapplies stored data, and data of the client', async () => {
  const { conductor, uuid, status, store } = await waiting();
  await conductor.continueIntrospection(report());
  await conductor.idle();
  await conductor.reapplyIntrospection(uuid, null);
  await conductor.idle();
  expect(await status()).toMatchObject({ state: 'finished', error: null });
  await conductor.reapplyIntrospection(uuid, report({ mine: 1 }));
  await conductor.idle();
  expect(await store.introspections.data(uuid, 'processed')).toMatchObject({ mine: 1 });
});

it('fails after its timeout', async () => {
  const { conductor, status } = await waiting();
  for (const seconds of [3_650, 120]) {
    await clock.advance(seconds);
    await settled(conductor);
  }
  expect(await status()).toMatchObject({ state: 'error', error: 'Introspection timeout' });
});

it.each(INTROSPECTION_STATES.filter((state) => !['error', 'finished', 'waiting'].includes(state)))(
  'is not started again while it is %s',
  async (state) => {
    const { conductor, uuid, store } = await waiting();
    await store.introspections.change(uuid, ['waiting'], { state });
    await expect(conductor.startIntrospection(uuid, true)).rejects.toThrow(
      `Can not transition from state '${state}' on event 'start' (no defined transition)`,
    );
  },
);
