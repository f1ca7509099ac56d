/** How many statements the work of a conductor sends to the database, BEGIN and COMMIT included. */
import { randomUUID } from 'node:crypto';
import { Connection } from 'pg';
import { AlreadyRead } from '../../../conductor/conductor';
import type { RunningConductor } from '../../../conductor/index';
import { INTERFACES } from '../../../drivers/index';
import { testClock } from '../../support/clock';
import { useDatabase } from '../../support/database';
import { FAKE, startFake } from '../../support/fakes/fake-hardware';
import { until } from '../../support/until';

const clock = testClock();
const database = useDatabase({ clock });
let conductor: RunningConductor | undefined;
afterEach(async () => {
  jest.restoreAllMocks();
  await conductor?.stop();
  await database.clear();
});
/** How many statements `work` takes. Counted where they are sent: a statement with values ends with a Sync message. */
async function statements(work: () => Promise<unknown>): Promise<number> {
  const [simple, extended] = [jest.spyOn(Connection.prototype, 'query'), jest.spyOn(Connection.prototype, 'sync')];
  await work();
  const count = simple.mock.calls.length + extended.mock.calls.length;
  simple.mockRestore();
  extended.mockRestore();
  return count;
}

it('a node goes from enroll to active in few SQL statements', async () => {
  const fake = (conductor = await startFake(database.store(), clock, FAKE));
  const lifecycle = async (): Promise<void> => {
    const { uuid } = await fake.createNode({ uuid: randomUUID(), driver: 'fake-hardware' });
    for (const verb of ['manage', 'provide', 'active']) {
      await fake.provision(uuid, verb, {});
      await fake.idle();
    }
    expect(await database.store().nodes.find(uuid)).toMatchObject({ provision_state: 'active', reservation: null });
  };
  await lifecycle();
  // Two of them create the node, and read it at the end. One reads the default config when cleaning makes its list.
  expect(await statements(lifecycle)).toBeLessThanOrEqual(22);
});

it('a change, a verb and a heartbeat do not read again what the request has read', async () => {
  const store = database.store();
  const fake = (conductor = await startFake(store, clock, FAKE));
  const { uuid } = await fake.createNode({ uuid: randomUUID(), driver: 'fake-hardware' });
  const before = new AlreadyRead(await store.nodes.find(uuid));
  const change = { extra: { rack: 1 } };
  expect(await statements(() => fake.updateNode(uuid, change, false, before))).toBe(1);
  // A node that has changed since is read, and changed.
  expect(await statements(() => fake.updateNode(uuid, { ...change, description: 'later' }, false, before))).toBe(3);
  expect(await store.nodes.find(uuid)).toMatchObject({ ...change, description: 'later' });
  expect(await statements(() => fake.createPort({ uuid: randomUUID(), node_uuid: uuid, address: '52:54:00:00:00:01' }))).toBe(1);

  const read = new AlreadyRead(await store.nodes.find(uuid));
  // The ports, the event with the reservation, and the end of the flow with the end of the reservation.
  const manage = async (): Promise<void> => {
    await fake.provision(uuid, 'manage', {}, read);
    await fake.idle();
  };
  expect(await statements(manage)).toBe(3);
  expect(await store.nodes.find(uuid)).toMatchObject({ provision_state: 'manageable', reservation: null });

  const step = { interface: 'deploy', step: 'erase', priority: 1 };
  await store.nodes.update(uuid, { provision_state: 'clean wait', clean_step: step });
  await store.nodes.mergeInternal(uuid, { agent_secret_token: 'secret', clean_steps: [step], clean_step_index: 0 });
  const beat = { callbackUrl: 'https://192.0.2.1:9999', agentToken: 'secret', agentVersion: '11.0' };
  const agent = new AlreadyRead(await store.nodes.findAgent(uuid));
  const first = async (): Promise<void> => {
    await fake.heartbeat(uuid, beat, agent);
    await fake.idle();
  };
  // The news with the reservation, the ports, the event after the step, and the end of the flow with that of the reservation.
  expect(await statements(first)).toBe(4);
  expect(await store.nodes.find(uuid)).toMatchObject({ provision_state: 'available', reservation: null });
});

describe('a verb for a node that changed after the request had read it', () => {
  const begun = async () => {
    const store = database.store();
    const fake = (conductor = await startFake(store, clock, { ...FAKE, 'conductor.node_locked_retry_attempts': 1 }));
    const { uuid } = await fake.createNode({ uuid: randomUUID(), driver: 'fake-hardware' });
    return { store, fake, uuid, read: new AlreadyRead(await store.nodes.find(uuid)) };
  };
  it('continues with the node as it is now', async () => {
    const { store, fake, uuid, read } = await begun();
    await store.nodes.update(uuid, { extra: { later: true } });
    await fake.provision(uuid, 'manage', {}, read);
    await fake.idle();
    expect(await store.nodes.find(uuid)).toMatchObject({ provision_state: 'manageable', reservation: null, extra: { later: true } });
  });
  it('is refused in the state that the node has now', async () => {
    const { store, fake, uuid, read } = await begun();
    await store.nodes.update(uuid, { provision_state: 'active' });
    const refusal = { name: 'InvalidStateRequested', message: expect.stringContaining('active') as string };
    await expect(fake.provision(uuid, 'manage', {}, read)).rejects.toMatchObject(refusal);
    expect(await store.nodes.find(uuid)).toMatchObject({ provision_state: 'active', reservation: null });
  });
  it('is accepted if only the state that was read refuses it', async () => {
    const { store, fake, uuid, read } = await begun();
    await store.nodes.update(uuid, { provision_state: 'manageable' });
    await fake.provision(uuid, 'provide', {}, read);
    await fake.idle();
    expect(await store.nodes.find(uuid)).toMatchObject({ provision_state: 'available', reservation: null });
  });
  it('is refused while another conductor holds the node', async () => {
    const { store, fake, uuid, read } = await begun();
    const { lock_fence: fence } = await store.nodes.reserve(uuid, 'there');
    const refusal = { name: 'NodeLocked', message: expect.stringContaining('there') as string };
    await expect(fake.provision(uuid, 'manage', {}, read)).rejects.toMatchObject(refusal);
    expect(await store.nodes.find(uuid)).toMatchObject({ provision_state: 'enroll', reservation: 'there', lock_fence: fence });
  });
});

it('the power synchronisation of a thousand nodes takes few SQL statements', async () => {
  const asked = jest.spyOn(INTERFACES.power.fake!, 'get');
  conductor = await startFake(database.store(), clock, FAKE);
  await database.query(
    `INSERT INTO nodes (uuid, driver, provision_state, power_state, network_interface, created_at)
     SELECT gen_random_uuid()::text, 'fake-hardware', 'active', 'power on', 'noop', now() FROM generate_series(1, 1000)`,
  );
  const count = await statements(async () => {
    const isOver = (): boolean => asked.mock.calls.length >= 1000;
    for (let seconds = 0; !isOver() && seconds < 135; seconds++) await clock.advance(1);
    // The current round continues while the clock stands still, so that no other periodic work begins.
    await until('every machine was asked', isOver);
  });
  expect(asked).toHaveBeenCalledTimes(1000);
  // Pages of a hundred nodes, and two minutes of other periodic work. A node with the expected power state needs no statement of its own.
  expect(count).toBeLessThan(200);
});
