/** The store on PostgreSQL: a pool of connections, what it must be to be used, and the tables on it. */
import createKnex from 'knex';
import type { Knex } from 'knex';
import { Client, types } from 'pg';
import type { CustomTypesConfig } from 'pg';
import type { Clock } from '../model/clock';
import type { Log } from '../model/log';
import { silentMetrics, type Metrics } from '../model/metrics';
import { bootsOn } from './boots';
import { conductorsOn } from './conductors';
import { messageOf, run } from './faults';
import { biosSettingsOn, firmwareComponentsOn } from './hardware-facts';
import { inventoriesOn } from './inventories';
import { leasesOn } from './leases';
import { measurePool } from './measures';
import { nodesOn } from './nodes';
import { portsOn } from './ports';
import { migrate, missing, stepsDone } from './schema';
import type { Store } from './store';
import { tablesOn } from './tables';

export interface StoreOptions {
  /** postgresql://user:password@host:port/database; a Unix socket's folder as ?host=/folder. SQLAlchemy's `postgresql+driver:` is understood. */
  readonly connection: string;
  /** Most connections at once. */
  readonly poolSize: number;
  readonly clock: Clock;
  readonly log: Log;
  /** Absent: nothing is measured (tools, tests). */
  readonly metrics?: Metrics;
  /** Bring the schema up to date (default); false: refuse an outdated one. */
  readonly migrate?: boolean;
}
export interface OpenStore extends Store {
  /** Waits for running queries, then ends the connections. */
  close(): Promise<void>;
  /** Versions of the server ('18.4') and of the schema (name of the last migration). Answers only if the database does. */
  version(): Promise<{ readonly postgres: string; readonly schema: string }>;
}

/** 13 is the oldest that is tested; lock, merge and RETURNING as used here are in all later ones. */
const OLDEST_SERVER = 130000;
const CONNECT_TIMEOUT_MS = 10_000;
/** The server gives a statement up after this; our side a little later, should the server be silent. */
const STATEMENT_TIMEOUT_MS = 30_000;
const IDLE_TIMEOUT_MS = 60_000;

const INT8: number = types.builtins.INT8;
const TIMESTAMPTZ: number = types.builtins.TIMESTAMPTZ;
const defaultParser = types.getTypeParser as (oid: number) => (value: string) => unknown;
/** 2025-11-21 11:38:00.12+00 (session in UTC) → 2025-11-21T11:38:00.120000+00:00 */
export function isoTimestamp(text: string): string {
  const [day, time = ''] = text.replace(/\+00$/, '').split(' ');
  const [seconds, fraction = ''] = time.split('.');
  return `${day}T${seconds}.${fraction.padEnd(6, '0')}+00:00`;
}
/** How values are read, for these connections only: pg's own table is shared by the whole process. */
const typeParsers: CustomTypesConfig = {
  getTypeParser: ((oid: number) => {
    if (oid === INT8) return Number;
    if (oid === TIMESTAMPTZ) return isoTimestamp;
    return defaultParser(oid);
  }) as CustomTypesConfig['getTypeParser'],
};

const storeOn = (db: Knex, clock: Clock): Store => ({
  nodes: nodesOn(db, clock),
  ports: portsOn(db, clock),
  boots: bootsOn(db, clock),
  inventories: inventoriesOn(db, clock),
  conductors: conductorsOn(db, clock),
  leases: leasesOn(db),
  ...tablesOn(db, clock),
  biosSettings: biosSettingsOn(db, clock),
  firmwareComponents: firmwareComponentsOn(db, clock),
  transaction: (work) => run(db.transaction((transaction) => work(storeOn(transaction, clock)))),
});

/** Opens the store. Throws an Error of one line that names what is wrong with the database, without the password. */
export async function openStore(options: StoreOptions): Promise<OpenStore> {
  const { clock, log, metrics = silentMetrics } = options;
  const settings = connectionSettings(options.connection);
  const where = await inspectServer(settings);
  const db = createKnex({
    client: 'pg',
    connection: settings as Knex.StaticConnectionConfig,
    // Values, which may be secrets, stay out of error messages.
    compileSqlOnError: false,
    acquireConnectionTimeout: CONNECT_TIMEOUT_MS,
    pool: { min: 0, max: options.poolSize, idleTimeoutMillis: IDLE_TIMEOUT_MS, afterCreate: setUpSession },
    log: {
      warn: (message: unknown) => log.warn(String(message)),
      error: (message: unknown) => log.error(String(message)),
      deprecate: (message: unknown) => log.debug(String(message)),
      debug: () => {},
    },
  });
  measurePool(db, options.poolSize, metrics);
  try {
    if (options.migrate ?? true) await migrate(db);
    else {
      const [next] = missing(await stepsDone(db));
      if (next) throw new Error(`its schema is older than this program needs (${next.name} is missing)`);
    }
  } catch (error) {
    await db.destroy();
    throw new Error(`${where} cannot be used: ${plainReason(error)}`, { cause: error });
  }
  return {
    ...storeOn(db, clock),
    close: () => db.destroy(),
    async version() {
      const { rows } = await run(db.raw<{ rows: { server: string }[] }>("SELECT current_setting('server_version') AS server"));
      return { postgres: rows[0]!.server.split(' ')[0]!, schema: (await run(stepsDone(db))).at(-1) ?? '' };
    },
  };
}

/** What pg is given. Throws when the text is no PostgreSQL URL; the text itself may hold a password and is not shown. */
function connectionSettings(connection: string) {
  const scheme = /^([a-z][a-z0-9+.-]*):\/\//i.exec(connection)?.[1] ?? '';
  if (!/^postgres(?:ql)?(?:\+\w+)?$/i.test(scheme))
    throw new Error(`[database]connection must be a postgresql:// URL${scheme === '' ? '' : `, not ${scheme}://`}`);
  return {
    connectionString: `postgresql${connection.slice(scheme.length)}`,
    application_name: 'bloomery',
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    query_timeout: STATEMENT_TIMEOUT_MS + 5_000,
    keepAlive: true,
    types: typeParsers,
  };
}

/** The session's own settings, by a statement: a pooler in between need not know start-up options. */
function setUpSession(connection: Client, done: (error: Error | null, connection: Client) => void): void {
  connection.query(
    `SET timezone = 'UTC'; SET datestyle = 'ISO, YMD'; SET statement_timeout = ${STATEMENT_TIMEOUT_MS};
     SET idle_in_transaction_session_timeout = ${IDLE_TIMEOUT_MS}`,
    (error: Error | null) => done(error, connection),
  );
}

/** Connects once, outside the pool, which would hide the reason of a failure. Answers how to call the database in messages. */
async function inspectServer(settings: ReturnType<typeof connectionSettings>): Promise<string> {
  let client: Client;
  try {
    client = new Client(settings);
  } catch {
    throw new Error('[database]connection is not a valid postgresql:// URL');
  }
  const where = `The database ${client.database ?? ''} at ${client.host.startsWith('/') ? client.host : `${client.host}:${client.port}`}`;
  // A connection that ends badly later says so here too; it is of no use to anyone then.
  client.on('error', () => {});
  try {
    await client.connect();
    const { rows } = await client.query<{ number: number; name: string }>(
      "SELECT current_setting('server_version_num')::int AS number, current_setting('server_version') AS name",
    );
    if (rows[0]!.number < OLDEST_SERVER) throw new Error(`it is PostgreSQL ${rows[0]!.name}; 13 or newer is needed`);
  } catch (error) {
    throw new Error(`${where} cannot be used: ${plainReason(error)}`, { cause: error });
  } finally {
    await client.end().catch(() => {});
  }
  return where;
}

/** The reason in one line. Several addresses of a host that all failed come as one error without text of its own. */
function plainReason(error: unknown): string {
  const first: unknown = error instanceof AggregateError ? error.errors[0] : error;
  const code = (first as { code?: unknown } | undefined)?.code;
  if (code === '28P01') return 'wrong user or password';
  return messageOf(first)
    .split('\n')[0]!
    .replace(/^.* - /, '');
}
