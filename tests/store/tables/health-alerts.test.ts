/** Alerts in the database: their order, their events by statement, and what ends with an instance. */
import { randomUUID } from 'node:crypto';
import type { NewAlert } from '../../../model/rules/health-alerts';
import { useDatabase } from '../../support/database';

const database = useDatabase();
const alerts = () => database.store().healthAlerts;
let one: string;
let other: string;
async function newNode(): Promise<string> {
  const uuid = randomUUID();
  await database.query(`INSERT INTO nodes (uuid, driver, provision_state, created_at) VALUES ($1, 'fake-hardware', 'active', now())`, [
    uuid,
  ]);
  return uuid;
}
beforeEach(async () => {
  await database.query('DELETE FROM events');
  [one, other] = [await newNode(), await newNode()];
});
const alert = (node: string, subject: string, more: Partial<NewAlert> = {}) => ({
  uuid: randomUUID(),
  node_uuid: node,
  source: 'sensor' as const,
  rule: 'r',
  subject,
  severity: 'warning' as const,
  text: `text of ${subject}`,
  until: null,
  reported_by: null,
  ...more,
});
const events = async () =>
  (
    await database.query<{ node_uuid: string; payload: Readonly<Record<string, unknown>> }>(
      `SELECT node_uuid, payload FROM events WHERE kind = 'health' ORDER BY id`,
    )
  ).map(({ node_uuid: node, payload: { change, health, subject } }) => [node === one ? 'one' : 'other', change, subject, health]);
const history = async (node: string): Promise<readonly string[]> =>
  (await database.query<{ event: string }>('SELECT event FROM node_history WHERE node_uuid = $1 ORDER BY id', [node])).map(
    ({ event }) => event,
  );

it('one statement has an event for each alert, with the health that each node has then', async () => {
  await alerts().put([alert(one, 'a'), alert(one, 'b', { severity: 'critical' }), alert(other, 'c')], false);
  expect(await events()).toEqual([
    ['one', 'raised', 'a', 'critical'],
    ['one', 'raised', 'b', 'critical'],
    ['other', 'raised', 'c', 'warning'],
  ]);
  await database.query('DELETE FROM events');
  await alerts().put([alert(one, 'a', { text: 'other' }), alert(one, 'd')], false);
  await alerts().setMask((await alerts().findOpen(alert(one, 'b')))!.uuid, { until: '2199-01-01T00:00:00Z', reason: 'x', by: null });
  await alerts().setMask((await alerts().findOpen(alert(one, 'b')))!.uuid, null);
  await alerts().setCleared([alert(one, 'b'), alert(other, 'c')], false);
  // Nothing changes: no event.
  await alerts().put([alert(one, 'd')], false);
  await alerts().setCleared([alert(other, 'c')], false);
  expect((await events()).map((event) => event.join(' ')).sort()).toEqual(
    [
      'one changed a critical',
      'one cleared b warning',
      'one masked b warning',
      'one raised d critical',
      'one unmasked b critical',
      'other cleared c ok',
    ].sort(),
  );
});
it('says in the history why an alert ended', async () => {
  await alerts().put([alert(one, 'a'), alert(one, 'b')], { user: null });
  await alerts().setCleared([{ ...alert(one, 'a'), reason: 'the part is not there any more' }, alert(one, 'b')], { user: null });
  expect((await history(one)).filter((text) => text.includes('cleared')).sort()).toEqual([
    'Health, cleared: text of a (the part is not there any more)',
    'Health, cleared: text of b',
  ]);
});
it('lists the critical ones first, and the newest of them', async () => {
  await alerts().put(
    [alert(one, 'a'), alert(one, 'b', { severity: 'critical' }), alert(one, 'c'), alert(one, 'd', { severity: 'critical' })],
    false,
  );
  const listed = await alerts().list({ nodeUuid: one, worstFirst: true, limit: 3 });
  expect(listed.map(({ subject }) => subject)).toEqual(['d', 'b', 'c']);
});
it('what a recorder invents without end leaves room for what the BMC says', async () => {
  const many = Array.from({ length: 300 }, (_, index) =>
    alert(one, `disk ${index}`, { source: 'smart', severity: 'critical', of_recorder: true }),
  );
  await alerts().put(many.slice(0, 200), false);
  await alerts().put([...many.slice(200), alert(one, 'fan')], false);
  await alerts().put([alert(one, 'temperature')], false);
  const listed = await alerts().list({ nodeUuid: one, limit: 999 });
  expect(listed.filter(({ source }) => source === 'smart')).toHaveLength(256);
  expect(listed.filter(({ source }) => source === 'sensor').map(({ subject }) => subject)).toEqual(['fan', 'temperature']);
  await database.query('DELETE FROM nodes WHERE uuid = $1', [one]);
});
it('what a recorder found ends with its instance; what others found stays', async () => {
  const hardware = { source: 'hardware', rule: 'drive_lost' } as const;
  await database.store().hardware.putToken(one, 'hash', 'deployment');
  await alerts().put([alert(one, 'disk', { ...hardware, of_recorder: true }), alert(one, 'memory', hardware)], { user: null });
  // An operator gives the recorder another token, or takes it away: it is the same instance.
  await database.store().hardware.putToken(one, 'other', 'operator');
  expect(await alerts().endOfInstances({ user: null })).toBe(0);
  await database.store().hardware.revoke(one);
  expect(await alerts().endOfInstances({ user: null })).toBe(0);
  await database.query(`UPDATE nodes SET provision_state = 'deleting' WHERE uuid = $1`, [one]);
  await database.query(`UPDATE nodes SET provision_state = 'available' WHERE uuid = $1`, [one]);
  // Also if the next instance is there before.
  await database.store().hardware.putToken(one, 'hash', 'deployment');
  expect(await alerts().endOfInstances({ user: null })).toBe(1);
  expect((await alerts().list({ nodeUuid: one, limit: 9 })).map(({ subject }) => subject)).toEqual(['memory']);
  expect(await history(one)).toContain('Health, cleared: text of disk (the instance has ended)');
});

it('keeps what is known of a BMC until its node goes', async () => {
  const { bmcWatches } = database.store();
  await expect(bmcWatches.put(randomUUID(), { subscription: 'x' })).rejects.toMatchObject({ name: 'NodeNotFound' });
  await bmcWatches.put(one, { subscription: '/redfish/v1/x' });
  await bmcWatches.put(one, { origins: ['/redfish/v1/y'], logs: { '/z': { id: '1' } } });
  await bmcWatches.put(other, { subscription: null });
  expect(await bmcWatches.find(one)).toEqual({
    node_uuid: one,
    subscription: '/redfish/v1/x',
    origins: ['/redfish/v1/y'],
    logs: { '/z': { id: '1' } },
  });
  expect(await bmcWatches.subscribed()).toEqual([one]);
  await database.query('DELETE FROM nodes WHERE uuid = $1', [one]);
  expect(await bmcWatches.find(one)).toBeUndefined();
});
