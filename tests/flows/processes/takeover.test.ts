/**
 * Two conductors on one database: which nodes each has, what becomes of the nodes of one that ends, and that never both give orders to a
 * machine.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { chooseByHash } from '../../../model/ring';
import type { NodeRecord } from '../../../model/records';
import { testClock, type TestClock } from '../../support/clock';
import { gate, started, type Started } from '../../support/conductor';
import { newMachine, type Machine } from '../../support/machine';
import { useDatabase } from '../../support/database';
import { until } from '../../support/until';

const clock = testClock();
const database = useDatabase({ clock });
const running: Started[] = [];
/** `own`: a conductor whose clock stands still behaves like a process that a signal has stopped. */
async function start(host: string, machine: Machine = newMachine({ ramdisk: false }), own: TestClock = clock): Promise<Started> {
  const one = await started(database.store(), own, { machine, options: { 'DEFAULT.host': host } });
  running.push(one);
  return one;
}
afterEach(async () => {
  await Promise.all(running.splice(0).map(({ conductor }) => conductor.stop()));
  await database.clear();
});

/** The conductor that gets the node, of those that are alive. */
const keeper = async (uuid: string): Promise<string | undefined> =>
  chooseByHash((await database.store().conductors.alive(60)).conductors, uuid)?.hostname;
async function enrolFor(value: Started, changes: Parameters<Started['enrol']>[0] = {}): Promise<NodeRecord> {
  for (;;) {
    const node = await value.enrol();
    if ((await keeper(node.uuid)) === value.conductor.host) return database.store().nodes.update(node.uuid, changes);
    await database.store().nodes.remove(node.uuid);
  }
}
/** Advances clocks in small steps, so that work that waits for the database keeps up. */
async function pass(seconds: number, ...clocks: readonly TestClock[]): Promise<void> {
  for (let gone = 0; gone < seconds; gone += 5) {
    for (const item of clocks.length > 0 ? clocks : [clock]) await item.advance(5);
    await delay(20);
  }
}

const now = (uuid: string): Promise<NodeRecord> => database.store().nodes.find(uuid);
const available = { provision_state: 'manageable', power_state: 'power off' } as const;

it('a paused conductor that resumes after a takeover gives no more orders, and gets its share back', async () => {
  const frozen = testClock(clock.now());
  const [a, b] = [await start('a', newMachine({ ramdisk: true }), frozen), await start('b')];
  const node = await enrolFor(a, available);
  const { passed, open } = gate();
  a.machine.stuck.set('prepareCleaning', passed);
  await a.conductor.provision(node.uuid, 'provide', {});
  await until('a begins', () => a.machine.orders.includes('prepareCleaning'));
  const count = a.machine.orders.length;

  // Only the other conductor's clock advances.
  await pass(90);
  await until('b takes over', async () => (await now(node.uuid)).provision_state === 'available');
  expect(b.machine.orders).toContain('prepareCleaning');
  expect((await database.store().conductors.list(60)).find(({ hostname }) => hostname === 'a')).toMatchObject({
    alive: false,
    instance: null,
  });

  // The stopped conductor resumes: its clock jumps, and its driver is about to give the machine an order.
  const jump = frozen.advance(90);
  open();
  await jump;
  await a.conductor.idle();
  expect(a.machine.orders.slice(count)).toEqual([]);
  expect(a.complaints.join('\n')).toMatch(/another conductor declared conductor a dead/);
  expect(await now(node.uuid)).toMatchObject({ provision_state: 'available', reservation: null, last_error: null });
  await until('a is back', async () => (await database.store().conductors.alive(60)).conductors.length === 2);
  await a.conductor.provision(node.uuid, 'manage', {});
  expect(await now(node.uuid)).toMatchObject({ provision_state: 'manageable' });
});

it('a slow conductor continues work that no other conductor took over', async () => {
  const own = testClock(clock.now());
  const a = await start('a', newMachine({ ramdisk: false }), own);
  const node = await enrolFor(a, available);
  const { passed, open } = gate();
  a.machine.stuck.set('prepareCleaning', passed);
  await a.conductor.provision(node.uuid, 'provide', {});
  await until('a begins', () => a.machine.orders.includes('prepareCleaning'));
  await own.advance(500);
  open();
  await a.conductor.idle();
  expect(await now(node.uuid)).toMatchObject({ provision_state: 'available', last_error: null });
});

it('a takeover fails an interrupted step, leaves a waiting node waiting, and continues to poll a polled step', async () => {
  const frozen = testClock(clock.now());
  const a = await start('a', newMachine({ ramdisk: false }), frozen);
  const b = await start('b');
  const nodes = {
    waits: await enrolFor(a, { provision_state: 'clean wait', target_provision_state: 'available' }),
    polled: await enrolFor(a, {
      provision_state: 'clean wait',
      target_provision_state: 'available',
      clean_step: { interface: 'power', step: 'wait', args: { seconds: 30 }, priority: 0 },
      driver_internal_info: {
        clean_steps: [{ interface: 'power', step: 'wait', args: { seconds: 30 }, priority: 0 }],
        clean_step_index: 0,
        step_poll_every: 30,
      },
    }),
    cut: await enrolFor(a, {
      provision_state: 'cleaning',
      target_provision_state: 'manageable',
      clean_step: { interface: 'vendor', step: 'flash', priority: 0 },
      driver_internal_info: { clean_steps: [{ interface: 'vendor', step: 'flash', priority: 0 }], clean_step_index: 0 },
    }),
  };
  b.machine.steps = [{ step: 'flash', priority: { clean: 0 }, run: async () => ({ kind: 'done' }) }];
  await database.store().nodes.reserve(nodes.cut.uuid, 'a');
  await pass(120);
  await until('the polled one is over', async () => (await now(nodes.polled.uuid)).provision_state === 'available');
  expect(await now(nodes.waits.uuid)).toMatchObject({ provision_state: 'clean wait', reservation: null });
  expect(await now(nodes.cut.uuid)).toMatchObject({
    provision_state: 'clean failed',
    last_error: expect.stringMatching(/can't be resumed by conductor b/) as string,
  });
});

it('a stopping conductor hands idle nodes over at once, but keeps the node on which it still works', async () => {
  const [a, b] = [await start('a'), await start('b')];
  const [held, idle] = [await enrolFor(a, available), await enrolFor(a, available)];
  const { passed, open } = gate();
  a.machine.stuck.set('prepareCleaning', passed);
  await a.conductor.provision(held.uuid, 'provide', {});
  await until('a begins', () => a.machine.orders.includes('prepareCleaning'));
  const stopped = a.conductor.stop({ drain: true });
  await until('a is offline', async () => (await keeper(idle.uuid)) === 'b');
  await expect(a.conductor.provision(idle.uuid, 'provide', {})).rejects.toMatchObject({ status: 503 });
  await pass(200);
  expect(b.machine.orders).toEqual([]);
  expect(await now(held.uuid)).toMatchObject({ reservation: 'a', provision_state: 'cleaning' });
  open();
  await stopped;
  expect(await now(held.uuid)).toMatchObject({ reservation: null, provision_state: 'available', last_error: null });
  expect(a.machine.orders).toContain('tearDownCleaning');
});

it('consoles are started again by the conductor that takes over their nodes', async () => {
  const frozen = testClock(clock.now());
  const [a, b] = [await start('a', newMachine(), frozen), await start('b')];
  const opens = await enrolFor(a, { console_enabled: true, provision_state: 'active' });
  await pass(90);
  await until('b opens it', () => b.machine.orders.includes('start console'));
  expect(await now(opens.uuid)).toMatchObject({ console_enabled: true, last_error: null });
  // A console that cannot be opened any more is disabled.
  b.machine.broken.set('start console', new Error('no terminal'));
  await frozen.advance(90);
  await until('a is back', async () => (await keeper(opens.uuid)) === 'a');
  await pass(180);
  await until('b tries again', async () => !(await now(opens.uuid)).console_enabled);
  const [entry] = await database.store().history.list({ where: { node_uuid: opens.uuid } });
  expect(entry).toMatchObject({
    conductor: 'b',
    event: `Failed to start console while taking over the node ${opens.uuid}: no terminal`,
  });
});

it("a conductor waits for a hostname until the other instance's lease is over, or fails if that instance answers", async () => {
  const { store, machine } = await start('b');
  await store.conductors.register(
    { hostname: 'c', conductor_group: '', drivers: {}, address: 'http://192.0.2.7:1', instance: 'other' },
    null,
  );
  const before = clock.now();
  const one = await started(store, clock, {
    machine,
    options: { 'DEFAULT.host': 'c' },
    rooms: { probe: async () => 'silent' },
  });
  running.push(one);
  expect(clock.now() - before).toBeGreaterThan(60_000);
  await store.conductors.register(
    { hostname: 'd', conductor_group: '', drivers: {}, address: 'http://192.0.2.7:1', instance: 'other' },
    null,
  );
  await expect(started(store, clock, { options: { 'DEFAULT.host': 'd' }, rooms: { probe: async () => 'answers' } })).rejects.toThrow(
    'a conductor named d runs already and answers at http://192.0.2.7:1: give this one another [DEFAULT]host',
  );
});
