/** A database for a test file: migrated, empty, not shared, and removed at the end. */
import { randomUUID } from 'node:crypto';
import { Client } from 'pg';
import type { Clock } from '../../model/clock';
import { systemClock } from '../../model/clock';
import type { Log } from '../../model/log';
import { silentLog } from '../../model/log';
import type { OpenStore } from '../../store/postgres';
import { openStore } from '../../store/postgres';
import { ADMIN_URL, otherDatabase, TEMPLATE } from './cluster';
import { until } from './until';

export interface TestDatabase {
  /** The store on it, open from the first test on, closed after the last. */
  store(): OpenStore;
  /** Its URL, for a server or another store. */
  connection(): string;
  /** Empties every table, for a file whose tests each need an empty database: `beforeEach(() => database.clear())`. */
  clear(): Promise<void>;
  /** Runs `work` with the URL of a database without any tables, which is removed afterwards. */
  another<T>(work: (connection: string) => Promise<T>): Promise<T>;
  /** Runs SQL without the store, for checks and for corruptions. */
  query<Row extends object>(sql: string, values?: readonly unknown[]): Promise<readonly Row[]>;
  /** Waits until all events that are written now can be read: they are held back while an older transaction runs, also one of another test. */
  eventsReadable(): Promise<void>;
}
export interface DatabaseOptions {
  readonly clock?: Clock;
  readonly log?: Log;
  readonly poolSize?: number;
}

/** To be called once at the top of a test file (or of a `describe`): `const database = useDatabase();` */
export function useDatabase({ clock = systemClock, log = silentLog, poolSize = 10 }: DatabaseOptions = {}): TestDatabase {
  const admin = process.env[ADMIN_URL] ?? '';
  const name = `bloomery_test_${randomUUID().replaceAll('-', '')}`;
  const connection = otherDatabase(admin, name);
  let store: OpenStore | undefined;
  let client: Client | undefined;

  beforeAll(async () => {
    if (!admin) throw new Error('No test database: this jest project has no globalSetup (tests/support/jest/setup.ts)');
    // The other strategy first writes the whole template to the write-ahead log: twice the time.
    await onServer(admin, `CREATE DATABASE ${name} TEMPLATE ${process.env[TEMPLATE]} STRATEGY FILE_COPY`);
    client = new Client({ connectionString: connection });
    await client.connect();
    store = await openStore({ connection, poolSize, clock, log, migrate: false });
  });
  afterAll(async () => {
    await client?.end();
    await store?.close();
    if (admin) await onServer(admin, `DROP DATABASE IF EXISTS ${name} WITH (FORCE)`);
  });

  const query = async <Row extends object>(sql: string, values: readonly unknown[] = []): Promise<readonly Row[]> =>
    (await client!.query<Row>(sql, [...values])).rows;
  return {
    store: () => store!,
    connection: () => connection,
    query,
    async eventsReadable() {
      const [now] = await query<{ next: string }>('SELECT pg_snapshot_xmax(pg_current_snapshot())::text AS next');
      const ended = 'SELECT pg_snapshot_xmin(pg_current_snapshot()) >= $1::text::xid8 AS ended';
      await until('the transactions to end', async () => (await query<{ ended: boolean }>(ended, [now!.next]))[0]!.ended);
    },
    async another(work) {
      const empty = `bloomery_test_${randomUUID().replaceAll('-', '')}`;
      await query(`CREATE DATABASE ${empty} TEMPLATE template0 STRATEGY FILE_COPY`);
      try {
        return await work(otherDatabase(connection, empty));
      } finally {
        await query(`DROP DATABASE ${empty} WITH (FORCE)`);
      }
    },
    async clear() {
      const tables = await query<{ tablename: string }>(
        "SELECT tablename FROM pg_tables WHERE schemaname = 'public' AND tablename NOT LIKE 'knex%'",
      );
      const names = tables.map(({ tablename }) => tablename);
      // Like TRUNCATE, which takes ten times as long for a few rows, because it makes each table's files anew. The locks wait for sessions
      // that still write. In the role `replica`, neither triggers nor references apply.
      const all = [
        `LOCK TABLE ${names.join(', ')}`,
        'SET LOCAL session_replication_role = replica',
        // Servers refuse a database whose identity has changed.
        ...names.map((name) => `DELETE FROM ${name}${name === 'secrets' ? " WHERE name <> 'database-identity'" : ''}`),
      ];
      await query(all.join(';'));
    },
  };
}

async function onServer(admin: string, sql: string): Promise<void> {
  const client = new Client({ connectionString: admin });
  await client.connect();
  try {
    await client.query(sql);
  } finally {
    await client.end();
  }
}
