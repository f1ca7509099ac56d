import { randomUUID } from 'node:crypto';
import { EMPTY_WRITE } from '../../../model/node-write';
import type { NodeChanges } from '../../../model/records';
import { useDatabase } from '../../support/database';
import { foreign } from '../../support/task';

const now = Date.UTC(2026, 0, 2, 3, 4, 5, 678);
const database = useDatabase({ clock: { now: () => now, sleep: async () => {} } });
const store = () => database.store();
const nodes = () => store().nodes;
async function held() {
  const { uuid } = await nodes().create({ uuid: randomUUID(), driver: 'fake-hardware', traits: ['CUSTOM_A'], extra: { b: 1, a: 2 } });
  return nodes().reserve(uuid, 'here');
}
/** As reservations and their writes return it. */
const stored = async (uuid: string) => ({ ...(await nodes().find(uuid)), has_default_configs: false });
const entry = (nodeUuid: string, event: string) => ({ uuid: randomUUID(), node_uuid: nodeUuid, event, duration_seconds: 3 });
const eventsOf = async (uuid: string) => (await store().history.list({ where: { node_uuid: uuid } })).map(({ event }) => event);

describe('writeLocked', () => {
  it('returns the node as stored, without reading it', async () => {
    const node = await held();
    const changes: NodeChanges = {
      provision_state: 'cleaning',
      provision_updated_at: '2026-01-02T03:04:05.678000+00:00',
      clean_step: { step: 'erase', args: { passes: 3, none: undefined } },
      instance_info: {},
      traits: ['CUSTOM_B'],
      last_error: null,
      maintenance: true,
      power_state: undefined as unknown as null,
    };
    const first = await nodes().writeLocked(node, node.lock_fence, {
      changes,
      internal: foreign({ a: [1, { b: null }], gone: 2 }),
      history: [],
    });
    expect(first).toEqual(await stored(node.uuid));
    const second = await nodes().writeLocked(first, node.lock_fence, { ...EMPTY_WRITE, internal: foreign({ gone: undefined, c: 'd' }) });
    expect(second).toEqual(await stored(node.uuid));
    expect(second).toMatchObject({ driver_internal_info: { a: [1, { b: null }], c: 'd' }, revision: node.revision + 2 });
    expect('gone' in second.driver_internal_info).toBe(false);
  });

  it('adds history entries in order', async () => {
    const node = await held();
    await nodes().writeLocked(node, node.lock_fence, { ...EMPTY_WRITE, history: [entry(node.uuid, 'one'), entry(node.uuid, 'two')] });
    expect(await eventsOf(node.uuid)).toEqual(['one', 'two']);
    expect(await store().history.list({ where: { node_uuid: node.uuid }, limit: 1 })).toMatchObject([
      { severity: null, duration_seconds: 3, created_at: '2026-01-02T03:04:05.678000+00:00' },
    ]);
  });

  it('returns changes that others wrote meanwhile', async () => {
    const node = await held();
    await nodes().mergeInternal(node.uuid, { agent_url: 'http://192.0.2.1' });
    const after = await nodes().writeLocked(node, node.lock_fence, { ...EMPTY_WRITE, changes: { last_error: 'x' } });
    expect(after).toEqual(await nodes().find(node.uuid));
    expect(after.driver_internal_info).toEqual({ agent_url: 'http://192.0.2.1' });
  });

  it('ends the reservation if requested', async () => {
    const node = await held();
    await nodes().writeLocked(node, node.lock_fence, { ...EMPTY_WRITE, changes: { last_error: 'x' } }, true);
    expect(await nodes().find(node.uuid)).toMatchObject({ reservation: null, last_error: 'x', lock_fence: node.lock_fence });
  });

  it.each([true, false])('writes nothing if the reservation was taken over (releasing: %s)', async (release) => {
    const node = await held();
    await nodes().releaseAll('here');
    const successor = await nodes().reserve(node.uuid, 'there');
    const late = { changes: { last_error: 'late' }, internal: { agent_url: 'late' }, history: [entry(node.uuid, 'late')] };
    await expect(nodes().writeLocked(node, node.lock_fence, late, release)).rejects.toMatchObject({ name: 'NodeLocked' });
    expect(await stored(node.uuid)).toEqual(successor);
    expect(await eventsOf(node.uuid)).toEqual([]);
  });

  it('returns the node if it is repeated after a lost response, with the end of the reservation', async () => {
    const node = await held();
    const changes = { provision_state: 'manageable', provision_updated_at: '2026-01-02T03:04:05.678000+00:00' } as const;
    const write = { changes, internal: {}, history: [entry(node.uuid, 'done')] };
    const first = await nodes().writeLocked(node, node.lock_fence, write, true);
    expect(first).toMatchObject(await nodes().writeLocked(node, node.lock_fence, write, true));
    expect(first).toEqual(await stored(node.uuid));
    expect(await eventsOf(node.uuid)).toEqual(['done']);
    // Another process has ended the reservation.
    const other = { ...write, changes: { ...changes, provision_state: 'available' as const } };
    await expect(nodes().writeLocked(node, node.lock_fence, other, true)).rejects.toMatchObject({ name: 'NodeLocked' });
  });

  it('fails with the conflict', async () => {
    const [node, other] = [await held(), await held()];
    const instance = randomUUID();
    await nodes().update(other.uuid, { instance_uuid: instance });
    const write = nodes().writeLocked(node, node.lock_fence, { ...EMPTY_WRITE, changes: { instance_uuid: instance } });
    await expect(write).rejects.toMatchObject({ name: 'InstanceAssociated', details: { instance_uuid: instance, node: node.uuid } });
  });
});

describe('reserveUnchanged', () => {
  const write = (uuid: string) => ({
    changes: { last_error: 'x' },
    internal: { agent_url: 'x' },
    history: [entry(uuid, 'one')],
  });
  const free = async () => nodes().create({ uuid: randomUUID(), driver: 'fake-hardware' });

  it('reserves and writes a free node in one statement', async () => {
    const node = await free();
    const now = await nodes().reserveUnchanged(node, 'here', write(node.uuid));
    expect(now).toEqual(await stored(node.uuid));
    expect(now).toMatchObject({ reservation: 'here', lock_fence: node.lock_fence + 1, revision: node.revision + 1, last_error: 'x' });
    expect(await eventsOf(node.uuid)).toEqual(['one']);
    await nodes().writeLocked(now!, now!.lock_fence, { ...EMPTY_WRITE, changes: { last_error: 'y' } });
    expect(await nodes().find(node.uuid)).toMatchObject({ reservation: 'here', last_error: 'y' });
  });

  it('leaves the node free if requested', async () => {
    const node = await free();
    const now = await nodes().reserveUnchanged(node, 'here', write(node.uuid), true);
    expect(now).toEqual(await nodes().find(node.uuid));
    expect(now).toMatchObject({ reservation: null, lock_fence: node.lock_fence + 1, last_error: 'x' });
  });

  it.each([
    ['reserved', (uuid: string) => nodes().reserve(uuid, 'there')],
    ['changed', (uuid: string) => nodes().update(uuid, { extra: { a: 1 } })],
    ['deleted', (uuid: string) => nodes().remove(uuid)],
  ])('writes nothing to a node that was %s meanwhile', async (_, meanwhile) => {
    const node = await free();
    await meanwhile(node.uuid);
    const before = await nodes().list({ where: { uuid: node.uuid } });
    expect(await nodes().reserveUnchanged(node, 'here', write(node.uuid))).toBeUndefined();
    expect(await nodes().list({ where: { uuid: node.uuid } })).toEqual(before);
    expect(await eventsOf(node.uuid)).toEqual([]);
  });
});

it('reserve writes keys of driver_internal_info in the same statement', async () => {
  const { uuid, revision } = await nodes().create({
    uuid: randomUUID(),
    driver: 'fake-hardware',
    driver_internal_info: { agent_url: 'a', agent_version: '1' },
  });
  const node = await nodes().reserve(uuid, 'here', { agent_version: '2', agent_status_message: '\0' });
  expect(node).toMatchObject({
    reservation: 'here',
    revision: revision + 1,
    driver_internal_info: { agent_url: 'a', agent_version: '2', agent_status_message: '\uFFFD' },
  });
  expect(node).toEqual(await stored(uuid));
});

it('recordHeartbeats updates only nodes whose agent URL is unchanged', async () => {
  const spoke = async (url: string) => {
    const { uuid } = await held();
    await nodes().mergeInternal(uuid, { agent_url: url, agent_last_heartbeat: 'before' });
    return uuid;
  };
  const [same, other] = [await spoke('http://a'), await spoke('http://b')];
  await nodes().recordHeartbeats([same, other, randomUUID()].map((nodeUuid) => ({ nodeUuid, agentUrl: 'http://a', at: 'now' })));
  expect((await nodes().find(same)).driver_internal_info).toEqual({ agent_url: 'http://a', agent_last_heartbeat: 'now' });
  expect((await nodes().find(other)).driver_internal_info).toEqual({ agent_url: 'http://b', agent_last_heartbeat: 'before' });
});

it('reserve succeeds if the holder releases the node between the statements', async () => {
  const { uuid } = await held();
  // Releases the reservation right after the statement that found no free row.
  await database.query(
    `CREATE FUNCTION let_go() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
       IF pg_trigger_depth() = 1 THEN UPDATE nodes SET reservation = NULL WHERE reservation = 'here'; END IF;
       RETURN NULL;
     END $$`,
  );
  await database.query('CREATE TRIGGER let_go AFTER UPDATE ON nodes FOR EACH STATEMENT EXECUTE FUNCTION let_go()');
  try {
    expect(await nodes().reserve(uuid, 'there')).toMatchObject({ uuid, reservation: 'there' });
  } finally {
    await database.query('DROP FUNCTION let_go CASCADE');
  }
});

it('reservations tell whether there are default configs', async () => {
  const node = await held();
  expect(node).toMatchObject({ has_default_configs: false });
  const { uuid } = await store().defaultConfigs.create({
    uuid: randomUUID(),
    resource_class: 'another',
    steps: [],
  });
  expect(await held()).toMatchObject({ has_default_configs: true });
  await store().defaultConfigs.remove(uuid);
});
