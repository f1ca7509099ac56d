import { randomUUID } from 'node:crypto';
import { systemClock } from '../../model/clock';
import { MAX_ERROR } from '../../model/text';
import { silentLog } from '../../model/log';
import { openStore, type OpenStore } from '../../store/postgres';
import { useDatabase } from '../support/database';

const database = useDatabase();
const KIB = 1024;
const LIMITS = { field: 200 * KIB, record: 300 * KIB, configdrive: 400 * KIB };
let store: OpenStore;
beforeAll(async () => {
  store = await openStore({ connection: database.connection(), poolSize: 2, clock: systemClock, log: silentLog, sizes: LIMITS });
});
afterAll(() => store.close());

const text = (kib: number): string => 'x'.repeat(kib * KIB);
const node = (more: object = {}) => store.nodes.create({ uuid: randomUUID(), driver: 'fake-hardware', ...more });
const tooLarge = (what: string) => ({ name: 'TooLarge', status: 413, message: expect.stringContaining(what) as string });
const nested = (levels: number): object => JSON.parse(`${'{"a":'.repeat(levels)}1${'}'.repeat(levels)}`) as object;

it.each<[string, object, string]>([
  ['a large field', { extra: { a: text(201) } }, 'extra is too large: it would have 205832 bytes. [database]max_field_size allows 204800.'],
  ['a field of wide characters', { extra: { a: 'é'.repeat(110 * KIB) } }, 'extra is too large'],
  ['a large text', { description: text(201) }, 'description is too large'],
  ['many values', { extra: { a: Array.from({ length: 50_001 }, () => 1) } }, 'extra has too many values: 50000 are allowed.'],
  ['much nesting', { extra: nested(129) }, 'extra is nested too deeply: 128 levels are allowed.'],
  ['large fields together', { extra: { a: text(160) }, properties: { a: text(160) } }, '[database]max_record_size allows 307200.'],
  ['a large config drive', { instance_info: { configdrive: text(401) } }, 'instance_info.configdrive is too large'],
  ['many traits', { traits: Array.from({ length: 8000 }, () => 'x'.repeat(30)) }, 'traits is too large'],
])('refuses a node with %s', async (_, record, message) => {
  await expect(node(record)).rejects.toMatchObject(tooLarge(message));
});
it('does not count a config drive as a part of its field or record', async () => {
  const { uuid } = await node({ extra: { a: text(150) }, instance_info: { configdrive: text(390) } });
  await expect(store.nodes.update(uuid, { properties: { a: text(100) } })).resolves.toMatchObject({ uuid });
});

it('refuses changes that would make a record too large, with the columns that stay', async () => {
  const { uuid, revision } = await node({ extra: { a: text(150) }, properties: { a: text(100) } });
  const changes = { driver_info: { a: text(90) } };
  const refusal = tooLarge('The record is too large');
  await expect(store.nodes.update(uuid, changes)).rejects.toMatchObject(refusal);
  await expect(store.nodes.updateUnlocked(uuid, changes, revision)).rejects.toMatchObject(refusal);
  await expect(store.nodes.mergeInternal(uuid, { agent_url: text(90) })).rejects.toMatchObject(refusal);
  const held = await store.nodes.reserve(uuid, 'host');
  await expect(store.nodes.writeLocked(held, held.lock_fence, { changes, internal: {}, history: [] })).rejects.toMatchObject(refusal);
  // A column that is replaced does not count twice.
  await expect(store.nodes.update(uuid, { extra: { a: text(190) } })).resolves.toMatchObject({ uuid });
  await store.nodes.mergeInternal(uuid, { agent_version: text(1) });
});
it('counts a key of driver_internal_info once when it is replaced', async () => {
  const { uuid } = await node();
  for (let turn = 0; turn < 3; turn++) await store.nodes.mergeInternal(uuid, { agent_version: text(180) });
  await expect(store.nodes.mergeInternal(uuid, { agent_status: text(180) })).rejects.toMatchObject(tooLarge('The record'));
  await expect(store.nodes.mergeInternal(uuid, { agent_status: text(201) })).rejects.toMatchObject(tooLarge('driver_internal_info'));
});

it('bounds the records of other tables', async () => {
  const { uuid } = await node();
  const port = { uuid: randomUUID(), node_uuid: uuid, address: '52:54:00:00:00:01' };
  await expect(store.ports.create({ ...port, extra: { a: text(201) } })).rejects.toMatchObject(tooLarge('extra'));
  await store.ports.create({ ...port, extra: { a: text(150) } });
  await expect(store.ports.update(port.uuid, { internal_info: { a: text(160) } })).rejects.toMatchObject(tooLarge('The record'));
  const allocation = { uuid: randomUUID(), state: 'allocating' } as const;
  await expect(store.allocations.create({ ...allocation, extra: { a: text(201) } })).rejects.toMatchObject(tooLarge('extra'));
  await store.allocations.create(allocation);
  await expect(store.allocations.update(allocation.uuid, { extra: { a: text(201) } })).rejects.toMatchObject(tooLarge('extra'));
  const steps = [{ interface: 'deploy', step: 'x', args: { a: text(201) }, priority: 1 }];
  await expect(store.deployTemplates.create({ uuid: randomUUID(), name: 'CUSTOM_X', steps })).rejects.toMatchObject(tooLarge('steps'));
});

it('cuts errors of others that the program quotes', async () => {
  const { uuid } = await node({ last_error: text(190) });
  const { last_error: error } = await store.nodes.find(uuid);
  expect([error!.length, error!.includes(' […] ')]).toEqual([MAX_ERROR, true]);
  const held = await store.nodes.reserve(uuid, 'host');
  const entry = { uuid: randomUUID(), node_uuid: uuid, event: text(300) };
  await store.nodes.writeLocked(held, held.lock_fence, { changes: {}, internal: {}, history: [entry] });
  expect((await store.history.find(entry.uuid)).event).toHaveLength(MAX_ERROR);
});

it('gives the sizes of the rows of a list, and the records by UUIDs', async () => {
  const uuids = [randomUUID(), randomUUID(), randomUUID()];
  for (const [at, uuid] of uuids.entries()) await store.chassis.create({ uuid, description: 'sized', extra: { a: text(at) } });
  const sizes = await store.chassis.sizes({ where: { description: 'sized' }, sortDir: 'desc' });
  expect(sizes.map(({ uuid }) => uuid)).toEqual([...uuids].reverse());
  const [large, , small] = sizes.map(({ bytes }) => bytes);
  expect(large! - small!).toBe(2 * KIB);
  const wanted = [uuids[2]!, randomUUID(), uuids[0]!];
  expect((await store.chassis.byUuids(wanted)).map(({ uuid }) => uuid)).toEqual([uuids[2], uuids[0]]);
});
it('reads the members that requests of agents need, and masks a large config drive', async () => {
  const { uuid } = await node({
    driver_info: { fast_track: true, secret: text(1) },
    driver_internal_info: { agent_url: 'https://[::1]', agent_secret_token: 'secret', agent_version: null, steps: text(100) },
    instance_info: { configdrive: text(200), other: 1 },
  });
  const { driver_info: info, driver_internal_info: internal } = await store.nodes.findAgent(uuid);
  expect([info, internal]).toEqual([{ fast_track: true }, { agent_url: 'https://[::1]', agent_secret_token: 'secret' }]);
  const { driver_info: known, driver_internal_info: token } = await store.nodes.findLookup(uuid);
  expect([known, token]).toEqual([{ fast_track: true }, { agent_secret_token: 'secret', agent_url: 'https://[::1]' }]);
  expect((await store.nodes.answered(uuid))?.instance_info).toEqual({ configdrive: '******', other: 1 });
});
