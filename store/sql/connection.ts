/** Connections to PostgreSQL: settings of the sessions, a check of the server, and error messages of one line. */
import type { Socket } from 'node:net';
import createKnex from 'knex';
import type { Knex } from 'knex';
import { Client, types } from 'pg';
import type { CustomTypesConfig } from 'pg';
import type { Log } from '../../model/log';
import { storable } from '../../model/text';
import { messageOf } from './faults';
import type { IdentityCheck } from './identity';

export interface ConnectOptions {
  /** postgresql://user:password@host:port/database; ?host=/folder for a Unix socket. SQLAlchemy's `postgresql+driver:` is accepted. */
  readonly connection: string;
  /** Maximum number of connections. */
  readonly poolSize: number;
  readonly log: Log;
  /** No statement timeout: for migrations, backup and restore. */
  readonly patient?: boolean;
  /** Checks each new connection of the pool. */
  readonly identity?: IdentityCheck;
}
export interface Connected {
  readonly db: Knex;
  /** The name of the database in messages. */
  readonly where: string;
}

/** The application name of the server's connections. */
export const SERVER = 'bloomery';
/** The oldest tested version, 13, as in server_version_num. */
const OLDEST_SERVER = 130000;
/**
 * An API request gets its response within ten seconds, even if the database does not respond. PostgreSQL cancels a statement first. A
 * little later this program closes the connection to a server that sends nothing.
 */
const CONNECT_TIMEOUT_MS = 5_000;
const ACQUIRE_TIMEOUT_MS = 8_000;
const STATEMENT_TIMEOUT_MS = 7_000;
const SILENCE_MS = 8_000;
const IDLE_TIMEOUT_MS = 60_000;

const INT8: number = types.builtins.INT8;
const TIMESTAMPTZ: number = types.builtins.TIMESTAMPTZ;
const defaultParser = types.getTypeParser as (oid: number) => (value: string) => unknown;
/** 2025-11-21 11:38:00.12+00 (session in UTC) → 2025-11-21T11:38:00.120000+00:00 @internal */
export function isoTimestamp(text: string): string {
  // Fast, because large responses contain thousands of timestamps.
  const end = text.endsWith('+00') ? text.length - 3 : text.length;
  const blank = text.indexOf(' ');
  const point = text.indexOf('.');
  const seconds = text.slice(blank + 1, point < 0 ? end : point);
  return `${text.slice(0, blank)}T${seconds}.${(point < 0 ? '' : text.slice(point + 1, end)).padEnd(6, '0')}+00:00`;
}
/** Parsers of values for these connections only, because pg's own table is global. */
export const TYPE_PARSERS: CustomTypesConfig = {
  getTypeParser: ((oid: number) => {
    if (oid === INT8) return Number;
    if (oid === TIMESTAMPTZ) return isoTimestamp;
    return defaultParser(oid);
  }) as CustomTypesConfig['getTypeParser'],
};

/** Checks the server and creates a pool of connections. Throws an Error of one line with the reason, without the password. */
export async function connect(options: ConnectOptions): Promise<Connected> {
  const { log, patient = false } = options;
  const settings = connectionSettings(options.connection, patient);
  const where = await inspectServer(settings);
  const db = createKnex({
    client: 'pg',
    connection: settings as Knex.StaticConnectionConfig,
    // Error messages must not contain values, which may be secrets.
    compileSqlOnError: false,
    acquireConnectionTimeout: ACQUIRE_TIMEOUT_MS,
    pool: {
      min: 0,
      max: options.poolSize,
      idleTimeoutMillis: IDLE_TIMEOUT_MS,
      afterCreate: patient ? setUpPatient : setUpSession(options.identity),
    },
    log: {
      // The caller reports this error.
      warn: (message: unknown) => log[String(message).startsWith('Acquire connection error') ? 'debug' : 'warn'](String(message)),
      error: (message: unknown) => log.error(String(message)),
      deprecate: (message: unknown) => log.debug(String(message)),
      debug: () => {},
    },
  });
  return { db, where };
}

/** An Error of one line that names the database. */
export const unusable = (where: string, error: unknown): Error =>
  new Error(`${where} cannot be used: ${plainReason(error)}`, { cause: error });

/** @throws an Error unless the text is a PostgreSQL URL. The message does not contain the text, which may hold a password. */
export function schemeOf(connection: string): string {
  const scheme = /^([a-z][a-z0-9+.-]*):\/\//i.exec(connection)?.[1] ?? '';
  if (/^postgres(?:ql)?(?:\+\w+)?$/i.test(scheme)) return scheme;
  throw new Error(
    `[database]connection must be a postgresql:// URL${scheme === '' ? '' : `, not ${scheme}://`}; without it, the server runs its own PostgreSQL`,
  );
}

/** The settings for pg. Throws if the text is not a PostgreSQL URL. The message does not contain the text, which may hold a password. */
function connectionSettings(connection: string, patient: boolean) {
  const scheme = schemeOf(connection);
  return {
    connectionString: `postgresql${connection.slice(scheme.length)}`,
    // Distinguishes servers from maintenance commands.
    application_name: patient ? 'bloomery-db' : SERVER,
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    keepAlive: true,
    types: TYPE_PARSERS,
  };
}

/** A value as the database accepts it, also inside of arrays. */
const bound = (value: unknown): unknown => (typeof value === 'string' ? storable(value) : Array.isArray(value) ? value.map(bound) : value);
/** A statement with its values, and not an object that submits itself, such as a stream. */
const hasValues = (statement: unknown): statement is { readonly values: readonly unknown[] } =>
  typeof statement === 'object' &&
  statement !== null &&
  'values' in statement &&
  Array.isArray(statement.values) &&
  !('submit' in statement);
/** The protocol counts the values of a statement in 16 bits. */
const MAX_VALUES = 65_535;
/** The values of a statement, as the database accepts them. */
export function cleanedValues(values: readonly unknown[]): unknown[] {
  if (values.length > MAX_VALUES) throw new RangeError(`a statement has ${values.length} values; ${MAX_VALUES} are possible`);
  return values.map(bound);
}
/**
 * Prepared statements clean their values themselves (prepared.ts). All others send them through `query` of their connection, so that no
 * table can forget it, and no text of a machine can make the write of its own error fail. JSON is cleaned where it is encoded
 * (storableJson).
 */
function cleanValues(connection: Client): void {
  const query = connection.query.bind(connection) as (...all: unknown[]) => unknown;
  const cleaning = (statement: unknown, ...more: unknown[]): unknown =>
    query(hasValues(statement) ? { ...statement, values: cleanedValues(statement.values) } : statement, ...more);
  connection.query = cleaning as Client['query'];
}

type Done = (error: Error | null, connection: Client) => void;
/** Sets session parameters by a statement, because a connection pooler may not support startup options. */
const setUp =
  (statements: string, also: (connection: Client) => void = () => {}, check: (connection: Client) => Promise<void> = async () => {}) =>
  (connection: Client, done: Done): void => {
    cleanValues(connection);
    also(connection);
    connection
      .query(`SET timezone = 'UTC'; SET datestyle = 'ISO, YMD'; ${statements}`)
      .then(() => check(connection))
      .then(
        () => done(null, connection),
        (error: unknown) => done(error as Error, connection),
      );
  };
/**
 * Closes a connection if a statement runs and the server sends nothing: a stopped server or a broken network. A timeout of the statement
 * alone would leave the broken connection in the pool.
 */
function cutWhenSilent(client: Client): void {
  const state = client as unknown as { readonly connection: { readonly stream: Socket }; readonly readyForQuery: boolean };
  const socket = state.connection.stream;
  socket.setTimeout(SILENCE_MS, () => {
    if (!state.readyForQuery) socket.destroy(Object.assign(new Error('the database server is silent'), { code: 'ETIMEDOUT' }));
  });
}
const setUpSession = (identity?: IdentityCheck) =>
  setUp(
    `SET statement_timeout = ${STATEMENT_TIMEOUT_MS}; SET idle_in_transaction_session_timeout = ${IDLE_TIMEOUT_MS}`,
    cutWhenSilent,
    identity?.check,
  );
const setUpPatient = setUp('SET statement_timeout = 0; SET idle_in_transaction_session_timeout = 0');

/** Connects once outside the pool, which would hide the reason of a failure. Returns the name of the database for messages. */
async function inspectServer(settings: ReturnType<typeof connectionSettings>): Promise<string> {
  let client: Client;
  try {
    client = new Client(settings);
  } catch {
    throw new Error('[database]connection is not a valid postgresql:// URL');
  }
  const where = `The database ${client.database ?? ''} at ${client.host.startsWith('/') ? client.host : `${client.host}:${client.port}`}`;
  // Later errors of this connection are irrelevant.
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

/** The reason in one line. If all addresses of a host fail, the error is an AggregateError without a message. */
function plainReason(error: unknown): string {
  const first: unknown = error instanceof AggregateError ? error.errors[0] : error;
  const code = (first as { code?: unknown } | undefined)?.code;
  if (code === '28P01') return 'wrong user or password';
  return messageOf(first)
    .split('\n')[0]!
    .replace(/^.* - /, '');
}
