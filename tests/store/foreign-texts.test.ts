/** Texts from outside: no table can fail because of them. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { randomUUID } from 'node:crypto';
import fc from 'fast-check';
import { EMPTY_WRITE } from '../../model/node-write';
import { isStorable } from '../../model/text';
import { connect } from '../../store/sql/connection';
import { preparedOn } from '../../store/sql/prepared';
import { silentLog } from '../../model/log';
import { anyText, incompressible } from '../support/any-text';
import { useDatabase } from '../support/database';

const database = useDatabase();
beforeEach(() => database.clear());

/** Every text of a value. */
const textsOf = (value: unknown): readonly string[] =>
  typeof value === 'string'
    ? [value]
    : typeof value === 'object' && value !== null
      ? Object.entries(value).flatMap(([name, entry]) => [name, ...textsOf(entry)])
      : [];

it('every value of every statement is cleaned, also in arrays and in transactions', async () => {
  const { db } = await connect({ connection: database.connection(), poolSize: 2, log: silentLog });
  try {
    await fc.assert(
      fc.asyncProperty(anyText, anyText, async (item, two) => {
        const ask = async (on: typeof db) =>
          (await on.raw<{ rows: unknown[] }>('SELECT ?::text AS one, ?::text[] AS more', [item, [item, two]])).rows;
        const [outside] = await ask(db);
        const [inside] = await db.transaction(async (transaction) => ask(transaction as never));
        expect(inside).toEqual(outside);
        expect(await preparedOn(db)('cleaned', 'SELECT $1::text AS one, $2::text[] AS more', [item, [item, two]])).toEqual([outside]);
        for (const text of textsOf(outside)) expect(isStorable(text)).toBe(true);
        if (isStorable(item) && isStorable(two)) expect(outside).toEqual({ one: item, more: [item, two] });
      }),
      { numRuns: 50 },
    );
  } finally {
    await db.destroy();
  }
});

it('errors of statements that can never succeed do not count as an unreachable database', async () => {
  const store = database.store();
  const { uuid } = await store.nodes.create({ uuid: randomUUID(), driver: 'fake-hardware' });
  // An index holds 2704 bytes.
  await expect(store.nodes.update(uuid, { owner: incompressible(5000) })).rejects.toMatchObject({ name: 'Invalid', status: 400 });
  // A statement has 65,535 values.
  const settings = Array.from({ length: 10_000 }, (_, at) => ({
    name: String(at),
    value: 'x',
    attribute_type: null,
    lower_bound: 1,
    upper_bound: 2,
  }));
  await expect(store.biosSettings.put(uuid, settings)).rejects.toThrow(RangeError);
  const big = { name: 'x', lower_bound: 2 ** 70 };
  await expect(store.biosSettings.put(uuid, [big])).rejects.toMatchObject({ name: 'Invalid' });
  for (const bound of [NaN, Infinity, 1.5])
    await expect(store.biosSettings.put(uuid, [{ name: 'x', lower_bound: bound }])).rejects.toMatchObject({ name: 'Invalid' });
});

it('only the function that makes rows writes JSON without cleaning it', () => {
  const folder = join(__dirname, '../../store');
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((file) => /^(?:sql|tables)\/.*\.ts$/.test(file))
    .sort();
  const found = files.flatMap(
    (file) =>
      readFileSync(join(folder, file), 'utf8')
        .match(/^.*JSON\.stringify\(.*$/gm)
        ?.map((line) => [file, line.trim()]) ?? [],
  );
  // Clients' objects keep every character, as in Ironic. They are of the type json, and SQL does not read their texts. The other lines compare.
  expect(found).toEqual([
    ['sql/rows.ts', "const text = kind === 'json' ? JSON.stringify(value ?? {}) : storableJson(value ?? {});"],
    ['tables/boots.ts', expect.stringContaining('const alike =')],
    ['tables/node-lists.ts', expect.stringContaining('countInStates:')],
  ]);
});

it('records with any texts can be written and read', async () => {
  const store = database.store();
  const read = async (uuid: string): Promise<unknown> => [
    await store.history.list({ where: { node_uuid: uuid } }),
    await store.biosSettings.ofNode(uuid),
    await store.firmwareComponents.ofNode(uuid),
    await store.introspections.find(uuid),
    await store.introspections.data(uuid, 'processed'),
    await store.inventories.find(uuid),
    await store.boots.ofNode(uuid),
    await store.ports.ofNode(uuid),
    await store.hardware.changes({ nodeUuid: uuid, limit: 10 }),
  ];
  let mac = 0;
  await fc.assert(
    fc.asyncProperty(anyText, anyText, async (text, other) => {
      const uuid = randomUUID();
      await store.nodes.create({
        uuid,
        driver: 'fake-hardware',
        description: text,
        driver_internal_info: { [text]: other },
        deploy_step: { step: text },
      });
      await store.nodes.mergeInternal(uuid, { [text]: other, agent_version: text });
      await store.nodes.mergeInternal(uuid, { [text]: undefined });
      await store.nodes.mergeInternalOnce(uuid, { [other]: text });
      const node = await store.nodes.reserve(uuid, 'here');
      const entry = {
        uuid: randomUUID(),
        node_uuid: uuid,
        conductor: text,
        event: text,
        user: other,
        severity: 'ERROR',
        event_type: other,
      } as never;
      const step = { interface: text, step: other, args: { [text]: other } };
      const internal = { [text]: [other], deploy_steps: [step], deploy_step_index: 0 };
      const changes = { last_error: text, maintenance_reason: other, deploy_step: step, clean_step: step, boot_mode: text };
      const written = await store.nodes.writeLocked(node, node.lock_fence, { ...EMPTY_WRITE, changes, internal, history: [entry] }, true);
      expect(written.driver_internal_info).toEqual((await store.nodes.find(uuid)).driver_internal_info);
      expect(written.last_error).toBe((await store.nodes.find(uuid)).last_error);
      const short = text.slice(0, 255);
      await store.biosSettings.put(uuid, [{ name: short, value: other, allowable_values: [text] }]);
      await store.biosSettings.remove(uuid, [other]);
      await store.firmwareComponents.put(uuid, [{ component: short, initial_version: other, current_version: text }]);
      await store.inventories.put(uuid, { inventory: { interfaces: [], [text]: other }, plugin_data: { [other]: text } });
      await store.introspections.start(
        { node_uuid: uuid, started_at: '2026-01-02T03:04:05+00:00', manage_boot: false, macs: [text], bmc_addresses: [other] },
        [],
      );
      await store.introspections.change(uuid, ['starting'], { error: text });
      await store.introspections.putData(uuid, 'processed', { [text]: other });
      await store.events.add(node, 'progress', { [text]: other });
      await store.ports.create({
        uuid: randomUUID(),
        node_uuid: uuid,
        address: (++mac).toString(16).padStart(12, '0'),
        physical_network: text,
        description: other,
      });
      await store.boots.put({
        node_uuid: uuid,
        macs: [],
        method: 'pxe',
        purpose: text,
        kernel_args: text,
        files: { [text]: other },
      } as never);
      await store.hardware.addChanges(
        uuid,
        [{ kind: text, component: other, key: text, before: { [text]: other }, after: { a: text } } as never],
        10,
      );
      for (const item of textsOf(await read(uuid))) expect(isStorable(item)).toBe(true);
    }),
    { examples: [['\\u0000'.repeat(10_923), '\ud800'.repeat(65_600)]], numRuns: 25 },
  );
  await store.events.read(await store.events.endPosition(), 1000);
});

it("requests of agents read nodes whose owners' objects have such characters", async () => {
  const store = database.store();
  const object = { fast_track: true, a: 'x\0', b: '\ud800' };
  const uuid = randomUUID();
  const instance = { configdrive: 'c'.repeat(200_000), ...object };
  await store.nodes.create({ uuid, driver: 'fake-hardware', driver_info: object, instance_info: instance });
  expect((await store.nodes.findLookup(uuid)).driver_info).toMatchObject({ fast_track: true });
  expect((await store.nodes.answered(uuid))?.instance_info).toEqual(instance);
  await store.nodes.update(uuid, { extra: { large: 'x'.repeat(100_000) } });
});
