/** Nodes out of service: what the conductor leaves alone, what clients of Ironic can change meanwhile, and what the node returns to. */
import { timestamp } from '../../../model/clock';
import type { NodeChanges, NodeRecord, OutageRequest } from '../../../model/records';
import type { Started } from '../../support/conductor';
import { gate } from '../../support/conductor';
import { like } from '../../support/expect';
import { newMachine } from '../../support/machine';
import { settled } from '../../support/settled';
import { until } from '../../support/until';
import { useConductor } from '../../support/use-conductor';

const { clock, start, database, after } = useConductor();
const HOUR = 3_600_000;
const request = (changes: Partial<OutageRequest> = {}): OutageRequest => ({
  reason: 'a fan is replaced',
  ticket: 'https://tickets.example/4711',
  until: timestamp(clock.now() + 6 * HOUR),
  ...changes,
});
const available: NodeChanges = { provision_state: 'available', power_state: 'power off' };
const active: NodeChanges = { provision_state: 'active', power_state: 'power on' };
const instance = '1be26c0b-03f2-4d2e-ae87-c02d7f33c123';
async function outOfService(one: Started, from: NodeChanges, changes: Partial<OutageRequest> = {}): Promise<NodeRecord> {
  const { uuid } = await one.enrol(from);
  await one.conductor.declareOutOfService(uuid, request(changes), 'jo');
  return one.node(uuid);
}
/** Past the next round of power synchronisation (120 s and jitter). */
async function round({ conductor }: Started): Promise<void> {
  await clock.advance(133);
  await settled(conductor);
}
/** Events can be read once all transactions that began before them are over, also those in other databases of the same PostgreSQL. */
const untilEvents = (uuid: string, count: number): Promise<void> =>
  until(`${count} events of the node out of service`, async () => {
    const { events } = await database.store().events.read('0-0', 500);
    return events.filter(({ node_uuid: node, kind }) => node === uuid && kind === 'out_of_service').length === count;
  });

it('shows maintenance, and gives back what was before', async () => {
  const one = await start();
  const { conductor, node, store } = one;
  for (const before of [
    { maintenance: false, maintenance_reason: null },
    { maintenance: true, maintenance_reason: 'a person looks at it' },
  ]) {
    const declared = await outOfService(one, { ...active, ...before, fault: null });
    const { uuid } = declared;
    expect(declared).toMatchObject({
      maintenance: true,
      maintenance_reason: like(/^Out of service until \S+Z: a fan is replaced \(https:\/\/tickets\.example\/4711\), declared by jo$/),
      provision_state: 'active',
      out_of_service: { reason: 'a fan is replaced', declared_by: 'jo', reminded_at: null, before },
    });
    // A second request changes what was said, and not what was before.
    await conductor.declareOutOfService(uuid, request({ reason: 'two fans are replaced', ticket: null }), null);
    expect(await node(uuid)).toMatchObject({ out_of_service: { reason: 'two fans are replaced', ticket: null, before } });
    await conductor.endOutOfService(uuid);
    expect(await node(uuid)).toMatchObject({ ...active, ...before, out_of_service: {} });
    await conductor.endOutOfService(uuid);
    const { history } = store;
    const entries = await history.list({ where: { node_uuid: uuid } });
    expect(entries.map(({ event }) => event)).toEqual([like(/^Out of service until/), like(/two fans/), 'In service again']);
    await untilEvents(uuid, 3);
  }
});

it('does not end because a client clears the maintenance; maintenance that a client sets begins afterwards', async () => {
  const one = await start();
  const { conductor, node } = one;
  const { uuid } = await outOfService(one, active);
  const refusal = { status: 409, message: like(/is out of service/) };
  await expect(conductor.setMaintenance(uuid, false)).rejects.toMatchObject(refusal);
  await expect(conductor.updateNode(uuid, { maintenance: false }, false)).rejects.toMatchObject(refusal);
  await conductor.setMaintenance(uuid, true, 'later');
  expect(await node(uuid)).toMatchObject({ maintenance: true, maintenance_reason: like(/^Out of service/) });
  await conductor.endOutOfService(uuid);
  expect(await node(uuid)).toMatchObject({ maintenance: true, maintenance_reason: 'later' });
  await conductor.setMaintenance(uuid, false);
  expect(await node(uuid)).toMatchObject({ maintenance: false, maintenance_reason: null });
});

it('stays power-synchronised, but the server does not switch a machine at which a person works', async () => {
  const one = await start({ machine: newMachine({ power: 'power on' }) });
  const { uuid } = await outOfService(one, { ...active, instance_uuid: instance });
  one.machine.power = 'power off';
  await round(one);
  expect(await one.node(uuid)).toMatchObject({ power_state: 'power off', maintenance: true, instance_uuid: instance });
  one.machine.power = 'power on';
  await round(one);
  expect(await one.node(uuid)).toMatchObject({ power_state: 'power on', provision_state: 'active' });
  expect(one.machine.orders).toEqual([]);
});

it.each([false, true])('a power failure and its end do not end it; what a BMC that is away does remains after it (%s)', async (ends) => {
  const one = await start({ options: { 'conductor.power_state_sync_max_retries': 1 } });
  const { conductor, node, machine } = one;
  const { uuid } = await outOfService(one, active);
  machine.broken.set('get power', new Error('no route'));
  for (let tried = 0; tried < 3; tried++) await round(one);
  await after(1000, async () => (await node(uuid)).fault !== null && (await node(uuid)).reservation === null);
  expect(await node(uuid)).toMatchObject({ fault: 'power failure', maintenance_reason: like(/^Out of service/) });
  if (ends) {
    await conductor.endOutOfService(uuid);
    expect(await node(uuid)).toMatchObject({ fault: 'power failure', maintenance: true, maintenance_reason: like(/^During sync_power/) });
  }
  machine.broken.clear();
  await after(1000, async () => (await node(uuid)).fault === null && (await node(uuid)).reservation === null);
  await settled(conductor);
  expect(await node(uuid)).toMatchObject({ maintenance: !ends });
  await conductor.endOutOfService(uuid);
  expect(await node(uuid)).toMatchObject({ ...active, power_state: 'power off', maintenance: false, maintenance_reason: null });
});
it('keeps a maintenance of before through a power failure, which it reports once', async () => {
  const one = await start({ options: { 'conductor.power_state_sync_max_retries': 1 } });
  const { uuid } = await outOfService(one, { ...active, maintenance: true, maintenance_reason: 'mine' });
  one.machine.broken.set('get power', new Error('no route'));
  for (let tried = 0; tried < 5; tried++) await round(one);
  const entries = await one.store.history.list({ where: { node_uuid: uuid } });
  expect(entries.filter(({ event_type: type }) => type === 'monitoring')).toHaveLength(1);
  expect(await one.node(uuid)).toMatchObject({ fault: null });
  await one.conductor.endOutOfService(uuid);
  expect(await one.node(uuid)).toMatchObject({ maintenance: true, maintenance_reason: 'mine' });
});

it.each<[verb: string, from: NodeChanges]>([
  ['active', available],
  ['rebuild', active],
  ['rescue', active],
  ['service', active],
  ['provide', { ...available, provision_state: 'manageable' }],
  ['clean', { ...available, provision_state: 'manageable' }],
  ['inspect', { ...available, provision_state: 'manageable' }],
  ['adopt', { ...available, provision_state: 'manageable' }],
])('refuses the verb %s', async (verb, from) => {
  const one = await start();
  const { uuid } = await outOfService(one, from);
  await expect(one.conductor.provision(uuid, verb, {})).rejects.toMatchObject({ status: 400, message: like(/in maintenance mode/) });
  expect(one.machine.orders).toEqual([]);
  expect(await one.node(uuid)).toMatchObject(from);
});
it('is never allocated', async () => {
  const one = await start();
  const { uuid } = await outOfService(one, { ...available, resource_class: 'large' });
  const wanted = {
    uuid: 'a3a5e4c8-36f5-4a8c-9f5e-6f7f4a3a1c11',
    name: null,
    resource_class: 'large',
    candidate_nodes: [],
    traits: [],
    extra: {},
  };
  await one.conductor.createAllocation(wanted);
  await one.conductor.idle();
  expect(await one.store.allocations.find(wanted.uuid)).toMatchObject({ state: 'error', node_uuid: null });
  expect(await one.node(uuid)).toMatchObject({ instance_uuid: null });
});

it('is declared only while no flow works on the node', async () => {
  const one = await start();
  const { conductor, machine, enrol, node } = one;
  const { uuid } = await enrol(available);
  const { passed, open } = gate();
  machine.stuck.set('prepare', passed);
  await conductor.provision(uuid, 'active', {});
  const declaring = conductor.declareOutOfService(uuid, request(), null);
  const refused = expect(declaring).rejects.toMatchObject({ status: 409, message: like(/is locked by host/) });
  await clock.advance(30);
  await refused;
  open();
  await conductor.idle();
  expect(await node(uuid)).toMatchObject({ provision_state: 'wait call-back', maintenance: false });
  // A working state without a reservation: its conductor is gone, and another one takes the node over soon.
  const left = await enrol({ provision_state: 'deploying', target_provision_state: 'active' });
  await expect(Promise.all([conductor.declareOutOfService(left.uuid, request(), null), clock.advance(30)])).rejects.toMatchObject({
    status: 409,
  });
});

it.each([true, false])('a deployment that waits goes on afterwards (allow_provisioning_in_maintenance %s)', async (allowed) => {
  const one = await start({
    options: { 'conductor.deploy_callback_timeout': 600, 'conductor.allow_provisioning_in_maintenance': allowed },
  });
  const { conductor, node, speak, enrol } = one;
  const { uuid } = await enrol(available);
  await conductor.provision(uuid, 'active', {});
  await conductor.idle();
  await conductor.declareOutOfService(uuid, request(), null);
  await clock.advance(1200);
  const token = await speak(uuid);
  await conductor.idle();
  expect(await node(uuid)).toMatchObject({ provision_state: 'wait call-back', last_error: null });
  await conductor.endOutOfService(uuid);
  await clock.advance(120);
  await settled(conductor);
  expect(await node(uuid)).toMatchObject({ provision_state: 'wait call-back' });
  // The first heartbeat begins the step in the agent, the second one ends it.
  for (let beat = 0; beat < 2; beat++) {
    await speak(uuid, token);
    await conductor.idle();
  }
  expect(await node(uuid)).toMatchObject({ provision_state: 'active', maintenance: false });
});

it.each([false, true])(
  'an instance may be removed; the machine is cleaned when it is in service again (restarted: %s)',
  async (restarts) => {
    let one = await start({ machine: newMachine({ power: 'power on', ramdisk: false }) });
    const { uuid } = await outOfService(one, { ...active, instance_uuid: instance });
    await one.conductor.provision(uuid, 'deleted', {});
    await one.conductor.idle();
    expect(await one.node(uuid)).toMatchObject({ provision_state: 'clean wait', instance_uuid: null, last_error: null });
    expect(one.machine.orders).not.toContain('prepareCleaning');
    if (restarts) {
      const { machine } = one;
      await one.conductor.stop();
      one = await start({ machine });
    }
    await clock.advance(4000);
    await settled(one.conductor);
    expect(await one.node(uuid)).toMatchObject({ provision_state: 'clean wait', last_error: null });
    expect(one.machine.orders).not.toContain('prepareCleaning');
    await one.conductor.endOutOfService(uuid);
    await after(200, async () => (await one.node(uuid)).provision_state === 'available');
    expect(one.machine.orders).toContain('prepareCleaning');
    expect((await one.node(uuid)).driver_internal_info).not.toHaveProperty('cleaning_held');
    expect(one.complaints.filter((line) => line.includes('heartbeat of a node'))).toEqual([]);
  },
);

it('reminds once when the time is over, also after a restart', async () => {
  const one = await start();
  const { uuid } = await outOfService(one, available, { until: timestamp(clock.now() + HOUR) });
  const reminders = (value: Started): number => value.complaints.filter((line) => line.includes('should be in service again')).length;
  await clock.advance(3400);
  await settled(one.conductor);
  expect(reminders(one)).toBe(0);
  await after(400, () => reminders(one) > 0);
  expect(await one.node(uuid)).toMatchObject({ maintenance: true, out_of_service: { reminded_at: expect.any(String) as unknown } });
  await untilEvents(uuid, 2);
  const entries = await one.store.history.list({ where: { node_uuid: uuid } });
  expect(entries.at(-1)).toMatchObject({ event: like(/^The time is over\. Out of service until/) });
  await one.conductor.stop();
  const other = await start();
  await clock.advance(600);
  await settled(other.conductor);
  expect([reminders(one), reminders(other)]).toEqual([1, 0]);
});
