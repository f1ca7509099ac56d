/** Connections to a PostgreSQL: what they are given, what the server must be, and the reason in one line when it cannot be had. */
import type { Socket } from 'node:net';
import createKnex from 'knex';
import type { Knex } from 'knex';
import { Client, types } from 'pg';
import type { CustomTypesConfig } from 'pg';
import type { Log } from '../../model/log';
import { messageOf } from './faults';

export interface ConnectOptions {
  /** postgresql://user:password@host:port/database; a Unix socket's folder as ?host=/folder. SQLAlchemy's `postgresql+driver:` is understood. */
  readonly connection: string;
  /** Most connections at once. */
  readonly poolSize: number;
  readonly log: Log;
  /** Statements may take as long as they need: for what changes the schema, or moves whole tables. */
  readonly patient?: boolean;
}
export interface Connected {
  readonly db: Knex;
  /** How to call the database in messages. */
  readonly where: string;
}

/** Name of a server's connections. */
export const SERVER = 'bloomery';
/** 13 is the oldest that is tested; lock, merge and RETURNING as used here are in all later ones. */
const OLDEST_SERVER = 130000;
/**
 * A request shall have its answer within ten seconds, also when the database is silent: the server gives a statement up, and a little
 * later we give a server up that says nothing.
 */
const CONNECT_TIMEOUT_MS = 5_000;
const ACQUIRE_TIMEOUT_MS = 8_000;
const STATEMENT_TIMEOUT_MS = 7_000;
const SILENCE_MS = 8_000;
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

/** A pool of connections to a server that was looked at. Throws an Error of one line that says why it cannot be used, without the password. */
export async function connect(options: ConnectOptions): Promise<Connected> {
  const { log, patient = false } = options;
  const settings = connectionSettings(options.connection, patient);
  const where = await inspectServer(settings);
  const db = createKnex({
    client: 'pg',
    connection: settings as Knex.StaticConnectionConfig,
    // Values, which may be secrets, stay out of error messages.
    compileSqlOnError: false,
    acquireConnectionTimeout: ACQUIRE_TIMEOUT_MS,
    pool: { min: 0, max: options.poolSize, idleTimeoutMillis: IDLE_TIMEOUT_MS, afterCreate: patient ? setUpPatient : setUpSession },
    log: {
      // Whoever wanted a connection says so.
      warn: (message: unknown) => log[String(message).startsWith('Acquire connection error') ? 'debug' : 'warn'](String(message)),
      error: (message: unknown) => log.error(String(message)),
      deprecate: (message: unknown) => log.debug(String(message)),
      debug: () => {},
    },
  });
  return { db, where };
}

/** The same, for what is thrown on the way: a line that names the database. */
export const unusable = (where: string, error: unknown): Error =>
  new Error(`${where} cannot be used: ${plainReason(error)}`, { cause: error });

/** What pg is given. Throws when the text is no PostgreSQL URL; the text itself may hold a password and is not shown. */
function connectionSettings(connection: string, patient: boolean) {
  const scheme = /^([a-z][a-z0-9+.-]*):\/\//i.exec(connection)?.[1] ?? '';
  if (!/^postgres(?:ql)?(?:\+\w+)?$/i.test(scheme))
    throw new Error(`[database]connection must be a postgresql:// URL${scheme === '' ? '' : `, not ${scheme}://`}`);
  return {
    connectionString: `postgresql${connection.slice(scheme.length)}`,
    // Servers are told from those that look after the database.
    application_name: patient ? 'bloomery-db' : SERVER,
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    keepAlive: true,
    types: typeParsers,
  };
}

type Done = (error: Error | null, connection: Client) => void;
/** The session's own settings, by a statement: a pooler in between need not know start-up options. */
const setUp =
  (statements: string, also: (connection: Client) => void = () => {}) =>
  (connection: Client, done: Done): void => {
    also(connection);
    connection.query(`SET timezone = 'UTC'; SET datestyle = 'ISO, YMD'; ${statements}`, (error: Error | null) => done(error, connection));
  };
/**
 * Cuts a connection on which a statement runs and nothing is heard: a server that was stopped, or a network that swallows everything. (A
 * timeout of the statement alone would leave the connection to those who come next.)
 */
function cutWhenSilent(client: Client): void {
  const state = client as unknown as { readonly connection: { readonly stream: Socket }; readonly readyForQuery: boolean };
  const socket = state.connection.stream;
  socket.setTimeout(SILENCE_MS, () => {
    if (!state.readyForQuery) socket.destroy(Object.assign(new Error('the database server is silent'), { code: 'ETIMEDOUT' }));
  });
}
const setUpSession = setUp(
  `SET statement_timeout = ${STATEMENT_TIMEOUT_MS}; SET idle_in_transaction_session_timeout = ${IDLE_TIMEOUT_MS}`,
  cutWhenSilent,
);
const setUpPatient = setUp('SET statement_timeout = 0; SET idle_in_transaction_session_timeout = 0');

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
    throw unusable(where, error);
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
