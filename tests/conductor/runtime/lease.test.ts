import { randomBytes } from 'node:crypto';
import { fenced, fencedConnections } from '../../../conductor/hardware/fenced';
import { createLease } from '../../../conductor/runtime/lease';
import { UNFENCED, type Connections } from '../../../drivers/interfaces';
import { silentLog } from '../../../model/log';
import { testClock } from '../../support/clock';
import { useDatabase } from '../../support/database';

/** The database's clock. */
const clock = testClock();
const database = useDatabase({ clock });
const conductor = { hostname: 'a', conductor_group: '', drivers: {}, address: null };
const leaseOf = (own = clock, returned = async () => {}) =>
  createLease({ store: database.store(), clock: own, log: silentLog, random: randomBytes, timeout: 60, conductor, returned });
beforeEach(() => database.clear());

const declareDead = () => database.store().transaction(({ conductors }) => conductors.declareDead('a', 60));

it('holds without a query while the last renewal is recent, and afterwards asks the database', async () => {
  const lease = leaseOf();
  expect(await lease.register()).toEqual([]);
  expect(lease.holds(1)).toBe(true);
  await clock.advance(44);
  expect(lease.holds(1)).toBe(true);
  await clock.advance(2);
  expect(await lease.holds(1)).toBe(true);
  expect(lease.holds(1)).toBe(true);
  await clock.advance(500);
  expect(await lease.holds(1)).toBe(true);
});

it('measures the age of the last renewal by the monotonic clock', async () => {
  let monotonic = 0;
  const lease = leaseOf({ ...clock, now: () => clock.now(), monotonic: () => monotonic });
  await lease.register();
  monotonic = 46_000;
  expect(lease.holds(1)).not.toBe(true);
});

it('begins a new term after the conductor was declared dead, and does not hold the old one', async () => {
  let returns = 0;
  const lease = leaseOf(clock, async () => {
    returns++;
  });
  await lease.register();
  expect(await declareDead()).toBe(false);
  await clock.advance(61);
  expect(await declareDead()).toBe(true);
  expect(await lease.holds(1)).toBe(false);
  expect([lease.term > 1, returns]).toEqual([true, 1]);
  expect(await lease.holds(1)).toBe(false);
  expect(lease.holds(lease.term)).toBe(true);
});

it('does not take a hostname that another instance has, unless that one is known to be gone', async () => {
  const [one, other] = [leaseOf(), leaseOf()];
  await one.register();
  expect(await other.register()).toBeUndefined();
  expect(await other.register(async () => true)).toEqual([]);
  expect(one.holds(1)).toBe(true);
  // The first conductor notices the loss, and does not take the lease back.
  await one.renew();
  expect(await one.holds(one.term)).toBe(false);
  await other.end();
  expect(await other.holds(1)).toBe(false);
  await one.renew();
  expect(one.holds(one.term)).toBe(true);
});

it('holds its reservations while the conductor leaves, and none after its end', async () => {
  const lease = leaseOf();
  await lease.register();
  await lease.leave();
  await clock.advance(50);
  expect(await lease.holds(1)).toBe(true);
  expect(await declareDead()).toBe(false);
  await lease.end();
  expect(await lease.holds(lease.term)).toBe(false);
  expect(await declareDead()).toBe(true);
});

it('fenced() runs no function of a driver once the node is not held', async () => {
  const told: string[] = [];
  let held: true | Promise<void> = true;
  const made = {
    tables: { step: 'x' },
    steps: [{ run: async (_task: object, what: string) => void told.push(what) }],
    bootMode: { set: async (_task: object, mode: string) => void told.push(mode) },
    get later() {
      return [{ run: async (task: object) => void told.push(`later ${typeof task}`) }];
    },
    name: 'me',
    async own(task: object) {
      told.push(`${this.name} ${typeof task}`);
    },
    look: (port: object) => Object.keys(port),
  };
  const guarded = fenced(made);
  const task = { stillHeld: () => held };
  await guarded.steps[0]!.run(task, 'step');
  await guarded.bootMode.set(task, 'uefi');
  await guarded.later[0]!.run(task);
  await guarded.own({});
  expect(guarded.look({ a: 1 })).toEqual(['a']);
  expect(told).toEqual(['step', 'uefi', 'later object', 'me object']);
  const lost = Promise.reject(new Error('lost'));
  lost.catch(() => {});
  held = lost;
  for (const order of [
    guarded.steps[0]!.run(task, 'again'),
    guarded.bootMode.set(task, 'bios'),
    guarded.later[0]!.run(task),
    guarded.own(task),
  ])
    await expect(order).rejects.toThrow('lost');
  expect(told).toHaveLength(4);
  expect(guarded.tables).toEqual({ step: 'x' });
});

it('fencedConnections() checks before each function of each client, of new ones too, except those of UNFENCED', async () => {
  const told: string[] = [];
  let held: true | Promise<void> = true;
  const client = (name: string) => ({
    request: async () => void told.push(`${name} request`),
    other: async () => void told.push(`${name} other`),
  });
  const names = ['ipmi', 'redfish', 'protocol of the future', ...UNFENCED];
  const given = Object.fromEntries(names.map((name) => [name, name === 'apiUrl' ? () => told.push(name) : client(name)]));
  const made = fencedConnections(given as unknown as Connections, { stillHeld: () => held }) as unknown as Record<
    string,
    ReturnType<typeof client>
  >;
  await made['ipmi']!.request();
  expect(told).toEqual(['ipmi request']);
  const lost = Promise.reject(new Error('lost'));
  lost.catch(() => {});
  held = lost;
  for (const name of names.slice(0, 3))
    for (const work of [made[name]!.request(), made[name]!.other()]) await expect(work).rejects.toThrow('lost');
  expect(told).toHaveLength(1);
  for (const name of UNFENCED) expect(made[name]).toBe(given[name]);
});
