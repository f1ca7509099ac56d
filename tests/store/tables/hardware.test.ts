/** What recorders push, when several processes write at once. */
import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import type { HardwareChange } from '../../../model/hardware-records';
import type { ProvisionState } from '../../../model/states';
import { useDatabase } from '../../support/database';

const database = useDatabase();
const store = () => database.store();
const AT = '2030-01-01T00:00:00.000000+00:00';
const record = (digest: string) => ({ digest, record: Buffer.from('x'), bootId: 'first' });
const change = (key: string): HardwareChange => ({ kind: 'appeared', component: 'disk', key, before: null, after: {} });
async function recorded(): Promise<string> {
  const { uuid } = await store().nodes.create({ uuid: randomUUID(), driver: 'fake-hardware' });
  await store().hardware.putToken(uuid, 'hash', 'operator');
  await store().hardware.put(uuid, record('d'), true);
  return uuid;
}
/** A transaction that stays open until the test ends it. */
function held(work: (inside: ReturnType<typeof store>) => Promise<unknown>) {
  let end = (): void => {};
  const released = new Promise<void>((resolve) => (end = resolve));
  let begun = (): void => {};
  const isBegun = new Promise<void>((resolve) => (begun = resolve));
  const over = store().transaction(async (inside) => {
    await work(inside as ReturnType<typeof store>);
    begun();
    await released;
  });
  return { isBegun, end: async () => (end(), over) };
}
/** Waits until so many sessions of this database wait for a lock. */
async function untilWaiting(count: number): Promise<void> {
  for (;;) {
    const [row] = await database.query<{ count: number }>(
      `SELECT count(*)::int AS count FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`,
    );
    if (row!.count >= count) return;
    await delay(10);
  }
}
beforeEach(() => database.clear());

it('changes are not listed while an earlier transaction is open, so that no number is skipped', async () => {
  const [one, other] = [await recorded(), await recorded()];
  const first = held((inside) => inside.hardware.addChanges(one, [change('A')], 10));
  await first.isBegun;
  const second = store().transaction((inside) => inside.hardware.addChanges(other, [change('B')], 10));
  await untilWaiting(1);
  expect(await store().hardware.changes({ limit: 10 })).toEqual([]);
  await first.end();
  await second;
  expect((await store().hardware.changes({ limit: 10 })).map(({ key }) => key)).toEqual(['A', 'B']);
});

it('no recorder registers for a node whose instance ends meanwhile', async () => {
  const { uuid } = await store().nodes.create({ uuid: randomUUID(), driver: 'fake-hardware' });
  const become = (state: ProvisionState, inside = store()): Promise<unknown> => inside.nodes.update(uuid, { provision_state: state });
  await become('deleting');
  await become('active');
  const ending = held(async (inside) => {
    await become('deleting', inside);
    await become('available', inside);
  });
  await ending.isBegun;
  const claim = store().hardware.claimToken(uuid, 'hash');
  await untilWaiting(1);
  await ending.end();
  expect(await claim).toBe(false);
  expect(await store().hardware.findToken(uuid)).toBeUndefined();
});

it('a node can be removed while its recorder pushes, without a deadlock', async () => {
  const uuid = await recorded();
  let removal: Promise<unknown> | undefined;
  await store().transaction(async (inside) => {
    await inside.hardware.lock(uuid);
    removal = store().nodes.remove(uuid);
    await untilWaiting(1);
    await inside.hardware.addChanges(uuid, [change('A')], 10);
  });
  await removal;
  expect(await store().hardware.changes({ limit: 10 })).toEqual([]);
  expect(await store().transaction((inside) => inside.hardware.lock(uuid))).toBeUndefined();
});

it('recordUnchanged does not overwrite a later push with an earlier one', async () => {
  const uuid = await recorded();
  const sign = { nodeUuid: uuid, digest: 'd', bootId: 'third', at: AT };
  await store().hardware.recordUnchanged([sign], true);
  await store().hardware.recordUnchanged([{ ...sign, bootId: 'second', at: '2029-12-31T00:00:00.000000+00:00' }], true);
  const row = await store().hardware.find(uuid);
  expect(row?.boot_id).toBe('third');
  expect(new Date(row!.received_at!)).toEqual(new Date(AT));
});

it('markStale skips a recorder whose push is in progress, without waiting', async () => {
  const [silent, heard] = [await recorded(), await recorded()];
  const push = held((inside) => inside.hardware.lock(heard));
  await push.isBegun;
  expect(await store().hardware.markStale(AT, true)).toBe(1);
  await push.end();
  expect((await store().hardware.find(silent))?.stale).toBe(true);
  expect((await store().hardware.find(heard))?.stale).toBe(false);
});

it.each([
  [true, ['The recorder of the running host stopped pushing.', 'The recorder of the running host pushes again.']],
  [false, []],
])('each change of stale adds one event; with history %s, also one entry in the node history', async (inHistory, entries) => {
  const nodes = [await recorded(), await recorded(), await recorded()];
  expect(await store().hardware.markStale(AT, inHistory)).toBe(3);
  expect(await store().hardware.markStale(AT, inHistory)).toBe(0);
  const signs = nodes.slice(1).map((nodeUuid) => ({ nodeUuid, digest: 'd', bootId: null, at: AT }));
  // Two processes get the pushes of both recorders.
  const heard = await Promise.all([signs, [...signs].reverse()].map((some) => store().hardware.recordUnchanged(some, inHistory)));
  expect(heard[0]! + heard[1]!).toBe(2);
  await store().hardware.put(nodes[0]!, record('e'), inHistory);
  await store().hardware.put(nodes[0]!, record('f'), inHistory);
  for (const uuid of nodes) {
    const told = await database.query<{ payload: { stale: boolean } }>(
      `SELECT payload FROM events WHERE kind = 'recorder' AND node_uuid = $1 ORDER BY id`,
      [uuid],
    );
    expect(told.map(({ payload }) => payload.stale)).toEqual([true, false]);
    const history = await database.query<{ event: string }>('SELECT event FROM node_history WHERE node_uuid = $1 ORDER BY id', [uuid]);
    expect(history.map(({ event }) => event)).toEqual(entries);
  }
});
