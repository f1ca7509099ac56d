import { createHash, randomUUID } from 'node:crypto';
import { Readable } from 'node:stream';
import { gzipSync, gunzipSync } from 'node:zlib';
import { Client } from 'pg';
import { MIGRATIONS } from '../../../migrations';
import { systemClock } from '../../../model/clock';
import { silentLog } from '../../../model/log';
import { backup, type Progress } from '../../../store/backup/backup';
import { connect } from '../../../store/sql/connection';
import { openStore } from '../../../store/postgres';
import { restore } from '../../../store/backup/restore';
import { LATEST, migrate } from '../../../store/sql/schema';
import { useDatabase } from '../../support/database';

const database = useDatabase();
beforeEach(() => database.clear());

const never = new AbortController().signal;
const NOW = '2026-01-02T03:04:05.000000+00:00';
const on = async <T>(connection: string, work: (db: Awaited<ReturnType<typeof connect>>['db']) => Promise<T>): Promise<T> => {
  const { db } = await connect({ connection, poolSize: 1, log: silentLog, patient: true });
  try {
    return await work(db);
  } finally {
    await db.destroy();
  }
};
const saved = (connection: string, signal = never, tell: (progress: Progress) => void = () => {}): Promise<Buffer> =>
  on(connection, async (db) => {
    const pieces: Buffer[] = [];
    for await (const piece of backup(db, NOW, tell, signal)) pieces.push(piece);
    return Buffer.concat(pieces);
  });
/** Restores a backup that arrives in pieces of this many bytes. */
const restored = (connection: string, file: Buffer, { force = false, pieces = 1000, signal = never, migrations = MIGRATIONS } = {}) =>
  on(connection, (db) => {
    const parts = Array.from({ length: Math.ceil(file.length / pieces) }, (_, index) =>
      file.subarray(index * pieces, (index + 1) * pieces),
    );
    return restore(db, Readable.from(parts), { force, heartbeatTimeout: 60, tell: () => {}, signal, migrations });
  });
const ask = async <Row extends object>(connection: string, sql: string): Promise<readonly Row[]> => {
  const client = new Client({ connectionString: connection });
  await client.connect();
  try {
    return (await client.query<Row>(sql)).rows;
  } finally {
    await client.end();
  }
};
/** Everything in a database, table by table, without the events, which a restore drops. */
const contents = async (connection: string): Promise<Readonly<Record<string, unknown>>> => {
  const tables = await ask<{ name: string }>(
    connection,
    "SELECT relname AS name FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace AND relname NOT LIKE 'knex%' AND relname NOT LIKE 'events%'",
  );
  if (tables.length === 0) return {};
  const all = tables.map(({ name }) => `(SELECT json_agg(t::text ORDER BY t::text) FROM ${name} t) AS ${name}`);
  return (await ask<Record<string, unknown>>(connection, `SELECT ${all.join(', ')}`))[0]!;
};

const AWKWARD = 'a\tb\nc\\.\n\\.\nd\\N"\'{}é漢💥\u0001 end';
/** A node with values that are hard to encode. */
const fill = async (): Promise<string> => {
  const store = database.store();
  const { uuid } = await store.nodes.create({
    uuid: randomUUID(),
    driver: 'x',
    name: 'node-1',
    description: AWKWARD,
    extra: { z: 1, a: AWKWARD, nothing: null },
    driver_info: { redfish_password: 'hush', number: 1e300 },
    traits: ['CUSTOM_A', AWKWARD],
  });
  await store.nodes.mergeInternal(uuid, { agent_url: AWKWARD });
  const { uuid: port } = await store.ports.create({ uuid: randomUUID(), node_uuid: uuid, address: '52:54:00:00:00:01' });
  await store.ports.update(port, { description: '' });
  await store.portgroups.create({ uuid: randomUUID(), node_uuid: uuid, name: AWKWARD });
  await store.inventories.put(uuid, { inventory: { large: 'x\n'.repeat(200_000) }, plugin_data: { a: AWKWARD } } as never);
  return uuid;
};

it.each([7, 1000, 1 << 20])('restores the whole database from a backup that is read in pieces of %i bytes', async (pieces) => {
  const uuid = await fill();
  if (pieces < 100) await database.store().inventories.put(uuid, { inventory: {}, plugin_data: {} } as never);
  const told: Progress[] = [];
  const file = await saved(database.connection(), never, (progress) => told.push(progress));
  expect(told.filter(({ done, rows }) => done && rows > 0).map(({ table, rows }) => [table, rows])).toEqual(
    expect.arrayContaining([
      ['nodes', 1],
      ['ports', 1],
    ]),
  );
  await database.another(async (connection) => {
    expect(await restored(connection, file, { pieces })).toMatchObject({ schema: LATEST });
    expect(await contents(connection)).toEqual(await contents(database.connection()));
    const store = await openStore({ connection, poolSize: 1, clock: systemClock, log: silentLog, migrate: false });
    const made = await store.nodes.create({ uuid: randomUUID(), driver: 'x' });
    expect(made.id).toBeGreaterThan((await database.store().nodes.find(uuid)).id);
    // Positions in the events of the former database are invalid.
    expect(await store.events.isReachable('1-1')).toBe(false);
    await store.close();
    // The triggers were off during the restore, and are on again.
    await ask(connection, "UPDATE nodes SET name = 'by hand' WHERE name = 'node-1'");
    const [row] = await ask<{ revision: string }>(connection, "SELECT revision FROM nodes WHERE name = 'by hand'");
    expect(Number(row!.revision)).toBe((await database.store().nodes.find(uuid)).revision + 1);
  });
});

it('is a consistent snapshot despite later writes', () =>
  on(database.connection(), async (db) => {
    await fill();
    const pieces = backup(db, NOW, () => {}, never);
    const read = [(await pieces.next()).value as Buffer];
    await database.store().nodes.create({ uuid: randomUUID(), driver: 'later' });
    for await (const piece of pieces) read.push(piece);
    expect(Buffer.concat(read).toString()).not.toContain('later');
  }));

it('with an older schema is migrated by the restore, and such a database can be backed up', () =>
  database.another(async (old) => {
    await on(old, (db) => migrate(db, MIGRATIONS.slice(0, 2)));
    await ask(old, "INSERT INTO nodes (uuid, driver, created_at, provision_state) VALUES ('u', 'x', now(), 'available')");
    await ask(
      old,
      "INSERT INTO conductors (hostname, conductor_group, drivers, online, created_at, updated_at) VALUES ('h', '', '{}', true, '2020-01-01', '2020-01-01')",
    );
    const file = await saved(old);
    await database.another(async (connection) => {
      expect(await restored(connection, file)).toMatchObject({ rows: 2, schema: LATEST });
      expect(await ask(connection, 'SELECT hostname, revision FROM conductors')).toEqual([{ hostname: 'h', revision: '1' }]);
      expect(await ask(connection, 'SELECT uuid FROM nodes')).toEqual([{ uuid: 'u' }]);
    });
  }));

/** The schemas of all versions since the first package. */
const PACKAGED = MIGRATIONS.map(({ name }) => name).filter((name) => name >= '0014' && name !== LATEST);
it.each(PACKAGED)('of schema %s is upgraded, and its program restores it over the newest', (name) =>
  database.another(async (connection) => {
    const migrations = MIGRATIONS.filter((migration) => migration.name <= name);
    await on(connection, (db) => migrate(db, migrations));
    await ask(connection, "INSERT INTO nodes (uuid, driver, created_at, provision_state) VALUES ('u', 'x', now(), 'active')");
    const file = await saved(connection);
    const before = await contents(connection);
    await on(connection, (db) => migrate(db));
    expect(await ask(connection, 'SELECT provision_state FROM nodes')).toEqual([{ provision_state: 'active' }]);
    await ask(connection, "INSERT INTO nodes (uuid, driver, created_at, provision_state) VALUES ('v', 'x', now(), 'active')");
    await expect(restored(connection, file, { migrations })).rejects.toThrow(/^its schema is newer/);
    expect(await restored(connection, file, { migrations, force: true })).toMatchObject({ schema: name });
    expect(await contents(connection)).toEqual(before);
  }),
);
it("an older program does not replace a newer database that has somebody else's table", () =>
  database.another(async (connection) => {
    const migrations = MIGRATIONS.slice(0, -1);
    await on(connection, (db) => migrate(db, migrations));
    const file = await saved(connection);
    await on(connection, (db) => migrate(db));
    await ask(connection, 'CREATE TABLE precious (a int)');
    await expect(restored(connection, file, { migrations, force: true })).rejects.toThrow("tables that are not Bloomery's: precious");
    expect(await ask(connection, 'SELECT a FROM precious')).toEqual([]);
  }));

describe('is rejected, and leaves the database unchanged:', () => {
  let file: Buffer;
  let before: Readonly<Record<string, unknown>>;
  beforeEach(async () => {
    await fill();
    file = await saved(database.connection());
    before = await contents(database.connection());
  });
  const lines = (): string[] => file.toString('utf8').split('\n');
  const changed = (change: (text: string) => string): Buffer => Buffer.from(change(file.toString('utf8')));
  /** Recomputes the last checksum. */
  const resealed = (all: readonly string[]): Buffer => {
    const body = `${all.slice(0, -2).join('\n')}\n`;
    const end = JSON.parse(all.at(-2)!) as object;
    return Buffer.from(`${body}${JSON.stringify({ ...end, sha256: createHash('sha256').update(body).digest('hex') })}\n`);
  };
  it('a damaged or truncated file, or another file', () =>
    database.another(async (connection) => {
      const cases: readonly (readonly [string, () => Buffer, RegExp])[] = [
        ['nothing', () => Buffer.alloc(0), /^it is truncated/],
        ['another file', () => Buffer.from('root:x:0:0\n'), /^it is damaged: a line is not JSON$/],
        ['other JSON', () => Buffer.from('null\n'), /^it is not a backup of Bloomery$/],
        ['one long line', () => Buffer.alloc(3 << 20, 'x'), /^it is damaged: a line has no end$/],
        [
          'a later format',
          () => changed((text) => text.replace('"version":1', '"version":2')),
          /^its format is version 2, and this program reads 1$/,
        ],
        [
          'a newer schema',
          () => changed((text) => text.replace(`"${LATEST}"`, `"${LATEST}","0099_later"`)),
          /^its schema is newer \(0099_later\)/,
        ],
        ['cut off in the rows', () => file.subarray(0, file.length / 2), /^it is truncated: its end is missing$/],
        ['cut off before the last line', () => Buffer.from(`${lines().slice(0, -2).join('\n')}\n`), /^it is truncated/],
        ['with something behind', () => Buffer.concat([file, Buffer.from('{}\n')]), /^it is damaged: something follows its end$/],
        [
          'with another value',
          () => changed((text) => text.replace('hush', 'hash')),
          /^it is damaged: the checksum of nodes does not match$/,
        ],
        ['with another header', () => changed((text) => text.replace('2026-', '2027-')), /^it is damaged: its checksum does not match$/],
        [
          'with a table that is not ours',
          () => resealed(lines().map((line) => line.replace('{"table":"nodes"', '{"table":"others"'))),
          /^it has a table that is not of its schema: others$/,
        ],
        [
          'with a table of PostgreSQL',
          () => resealed(lines().map((line) => line.replace('{"table":"nodes"', '{"table":"pg_proc"'))),
          /^it has a table that is not of its schema: pg_proc$/,
        ],
        [
          'with the migrations',
          () => resealed(lines().map((line) => line.replace('{"table":"nodes"', '{"table":"knex_migrations"'))),
          /^it has a table that is not of its schema: knex_migrations$/,
        ],
        [
          'with a table twice',
          () => resealed(lines().map((line) => line.replace('{"table":"ports"', '{"table":"nodes"'))),
          /^it (?:is damaged: it has the table nodes twice|has columns of nodes that are not of its schema)$/,
        ],
        [
          'with an unknown column',
          () => resealed(lines().map((line) => line.replace('{"table":"nodes","columns":["id"', '{"table":"nodes","columns":["ctid"'))),
          /^it has columns of nodes that are not of its schema$/,
        ],
        [
          'with another sequence',
          () => resealed(lines().map((line) => line.replace('"nodes_id_seq":', '"pg_catalog.x":'))),
          /^it has a sequence that is not of its schema: pg_catalog\.x$/,
        ],
        [
          'with a sequence that has no number',
          () => resealed(lines().map((line) => line.replace(/"nodes_id_seq":"\d+"/, '"nodes_id_seq":"1; x"'))),
          /^it is damaged: the sequence nodes_id_seq has no value$/,
        ],
        [
          'with a schema that has gaps',
          () => changed((text) => text.replace(`"${MIGRATIONS[0]!.name}",`, '')),
          /^it is damaged: its schema has gaps$/,
        ],
        [
          'with a line that is no object',
          () => changed((text) => text.replace(/\n\{"table".*/, '\n7')),
          /^it is damaged: a line is not an object$/,
        ],
      ];
      for (const [what, make, message] of cases) {
        const error = await restored(connection, make()).catch((reason: unknown) => (reason as Error).message);
        expect([what, error]).toEqual([what, expect.stringMatching(message)]);
        expect(await contents(connection)).toEqual({});
      }
    }));

  it('a backup or restore that is aborted', async () => {
    const controller = new AbortController();
    controller.abort(new Error('stopped'));
    await database.another((connection) => expect(restored(connection, file, { signal: controller.signal })).rejects.toThrow('stopped'));
    await expect(saved(database.connection(), controller.signal)).rejects.toThrow('stopped');
  });

  describe('into a database', () => {
    afterEach(async () => expect(await contents(database.connection())).toEqual(before));

    it('that is not empty, unless with force', () =>
      database.another(async (connection) => {
        await restored(connection, file);
        await expect(restored(connection, file)).rejects.toThrow(
          /^the database is not empty \(the table \w+ has rows\): --force replaces its content/,
        );
        await ask(connection, "UPDATE nodes SET name = 'other'; UPDATE ports SET name = 'other'");
        await restored(connection, file, { force: true });
        expect(await contents(connection)).toEqual(before);
      }));
    it('that has a schema but no content (accepted like an empty one)', () =>
      database.another(async (connection) => {
        await on(connection, (db) => migrate(db));
        // A server without nodes writes these.
        await ask(connection, "INSERT INTO state_counts (at, counts) VALUES (now(), '{}')");
        await restored(connection, file);
        expect(await contents(connection)).toEqual(before);
      }));
    it('that a server is connected to', async () => {
      await expect(restored(database.connection(), file, { force: true })).rejects.toThrow(
        /^a server uses the database \(it is connected\): stop it first$/,
      );
    });
    it('with a conductor that is alive', () =>
      database.another(async (connection) => {
        await restored(connection, file);
        const store = await openStore({ connection, poolSize: 1, clock: systemClock, log: silentLog });
        await store.conductors.register({ hostname: 'host-1', conductor_group: '', drivers: {}, address: null, instance: 'i' }, null);
        await store.close();
        await expect(restored(connection, file, { force: true })).rejects.toThrow('a server uses the database (host-1): stop it first');
      }));
    it("with tables that are not Bloomery's", () =>
      database.another(async (connection) => {
        await ask(connection, 'CREATE TABLE precious (a int); INSERT INTO precious VALUES (1)');
        await expect(restored(connection, file, { force: true })).rejects.toThrow(
          "the database is not empty, and not Bloomery's (it has the table precious)",
        );
        await on(connection, (db) => migrate(db));
        await expect(restored(connection, file, { force: true })).rejects.toThrow(
          "the database has tables that are not Bloomery's: precious",
        );
        expect(await ask(connection, 'SELECT a FROM precious')).toEqual([{ a: 1 }]);
      }));
    it('with a newer schema, unless with force', () =>
      database.another(async (connection) => {
        await on(connection, (db) => migrate(db));
        await ask(connection, "INSERT INTO knex_migrations (name, batch, migration_time) VALUES ('0099_later', 2, now())");
        await expect(restored(connection, file)).rejects.toThrow('its schema is newer (0099_later)');
        await expect(saved(connection)).rejects.toThrow('its schema is newer (0099_later)');
      }));
  });
});

it('of a database without tables fails', () =>
  database.another((connection) => expect(saved(connection)).rejects.toThrow('it is not a database of Bloomery')));

it('is text with a JSON header', async () => {
  await fill();
  const text = gunzipSync(gzipSync(await saved(database.connection()))).toString();
  expect(JSON.parse(text.split('\n')[0]!)).toEqual({
    format: 'bloomery-backup',
    version: 1,
    created_at: NOW,
    postgres: expect.stringMatching(/^\d+/) as string,
    schema: MIGRATIONS.map(({ name }) => name),
  });
  expect(text).toContain('\n{"table":"nodes","columns":["id","uuid","name",');
});
