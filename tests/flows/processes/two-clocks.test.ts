/** Conductors whose clocks differ by hours, and a conductor that writes after its node was taken over: the database's clock decides. */
import { setTimeout as delay } from 'node:timers/promises';
import { systemClock, type Clock } from '../../../model/clock';
import type { Store } from '../../../store/store';
import { gate, started, type Started } from '../../support/conductor';
import { newMachine, type Machine } from '../../support/machine';
import { useDatabase } from '../../support/database';
import { until } from '../../support/until';

const database = useDatabase();
const running: Started[] = [];
afterEach(async () => {
  await Promise.all(running.splice(0).map(({ conductor }) => conductor.stop()));
  await database.clear();
});
/** Seconds without a sign of life after which a conductor counts as dead. */
let patience = 20;
async function start(host: string, hours: number, store: Store = database.store()): Promise<Started & { machine: Machine }> {
  const clock: Clock = { ...systemClock, now: () => systemClock.now() + hours * 3_600_000 };
  const one = await started(store, clock, {
    machine: newMachine({ ramdisk: false }),
    options: { 'conductor.heartbeat_interval': 0.2, 'conductor.heartbeat_timeout': patience, 'DEFAULT.host': host },
  });
  running.push(one);
  return one;
}

it('conductors whose clocks are hours apart do not take reserved nodes from each other', async () => {
  patience = 20;
  const ahead = await start('ahead', 5);
  const behind = await start('behind', -5);
  const held = await Promise.all(
    [ahead, behind].map(async (item) => {
      const { uuid } = await item.enrol({ provision_state: 'active' });
      const stuck = gate();
      item.machine.stuck.set('rescue', stuck.passed);
      await item.conductor.provision(uuid, 'rescue', { rescue_password: 'secret' });
      await until('a rescue', () => item.machine.orders.includes('rescue'));
      return { uuid, item, open: stuck.open };
    }),
  );
  await delay(1000);
  for (const { uuid, item, open } of held) {
    expect((await item.node(uuid)).reservation).toBe(item.conductor.host);
    open();
    await until('its state', async () => (await item.node(uuid)).provision_state === 'rescue');
    expect(item.machine.orders.filter((what) => what === 'rescue')).toHaveLength(1);
  }
  expect([...ahead.complaints, ...behind.complaints].filter((line) => /is gone|declared conductor/.test(line))).toEqual([]);
});

it("a conductor's write after its node was taken over changes nothing", async () => {
  patience = 1.5;
  const late = gate();
  let isSlow = false;
  const store = database.store();
  const slowly: Store = {
    ...store,
    nodes: {
      ...store.nodes,
      writeLocked: async (...given) => (isSlow ? late.passed : Promise.resolve()).then(() => store.nodes.writeLocked(...given)),
    },
    conductors: {
      ...store.conductors,
      touch: async (...given) => (isSlow ? late.passed : Promise.resolve()).then(() => store.conductors.touch(...given)),
    },
  };
  const slow = await start('slow', 0, slowly);
  const { uuid } = await slow.enrol({ provision_state: 'active' });
  const stuck = gate();
  slow.machine.stuck.set('rescue', stuck.passed);
  await slow.conductor.provision(uuid, 'rescue', { rescue_password: 'secret' });
  await until('a rescue', () => slow.machine.orders.includes('rescue'));
  isSlow = true;
  // The rescue has ended, and its conductor is about to write its result.
  stuck.open();
  const successor = await start('successor', 0);
  await until('its state', async () => (await successor.node(uuid)).provision_state === 'rescue');
  await successor.conductor.provision(uuid, 'unrescue', {});
  await until(
    'its state',
    async () => (await successor.node(uuid)).provision_state === 'active' && (await successor.node(uuid)).reservation === null,
  );
  const left = await successor.node(uuid);
  isSlow = false;
  late.open();
  await slow.conductor.idle();
  expect(await successor.node(uuid)).toEqual(left);
});
