/** Reads the database of an Ironic: PostgreSQL, MariaDB (MySQL) or SQLite. Writes nothing to it. */
import { Client, types } from 'pg';

/** A row. From a database: JSON as text, times as text in UTC without zone. From an API: JSON values, times with zone. */
export type SourceRow = Readonly<Record<string, unknown>>;
export interface Source {
  /** The names of the source's tables. */
  readonly tables: ReadonlySet<string>;
  /** Whether the source masks secrets with `******`. */
  readonly masks: boolean;
  /** All rows of a table in pages. Databases sort them by `key`. Throws the reason of `signal`. */
  rows(table: string, key: string, signal: AbortSignal): AsyncIterable<readonly SourceRow[]>;
  close(): Promise<void>;
}
/** Up to {@link BATCH} rows of a table, sorted by `key`, after the row whose key is `after`. */
type Page = (table: string, key: string, after: unknown) => Promise<readonly SourceRow[]>;
const BATCH = 2000;
const TIMEOUT_MS = 30_000;
async function* pagesOf(page: Page, table: string, key: string, signal: AbortSignal): AsyncGenerator<readonly SourceRow[]> {
  for (let after: unknown; ;) {
    signal.throwIfAborted();
    const rows = await page(table, key, after);
    if (rows.length < BATCH) {
      if (rows.length > 0) yield rows;
      return;
    }
    // Rows with the last key may continue on the next page, unless the key is unique.
    const last = rows.at(-1)![key];
    const whole = key === 'id' ? rows : rows.filter((row) => row[key] !== last);
    if (whole.length === 0) throw new Error(`${table} has more than ${BATCH} rows with the same ${key}`);
    yield whole;
    after = whole.at(-1)![key];
  }
}
const databaseSource = (tables: readonly string[], page: Page, close: () => Promise<void>): Source => ({
  tables: new Set(tables),
  masks: false,
  rows: (table, key, signal) => pagesOf(page, table, key, signal),
  close,
});
/** Times are kept as text. Ironic stores them in UTC without a zone, and pg would parse them as local times. */
const TIMESTAMP: number = types.builtins.TIMESTAMP;
/** The names need no escapes: they come from tables.ts, never from the source. */
const statement = (table: string, key: string, after: boolean, parameter: string): string =>
  `SELECT * FROM ${table} ${after ? `WHERE ${key} > ${parameter}` : ''} ORDER BY ${key} LIMIT ${BATCH}`;

async function openPostgres(url: string): Promise<Source> {
  const usual = types.getTypeParser as (oid: number) => (value: string) => unknown;
  const texts = { getTypeParser: ((oid: number) => (oid === TIMESTAMP ? String : usual(oid))) as typeof types.getTypeParser };
  const client = new Client({ connectionString: url, types: texts, connectionTimeoutMillis: TIMEOUT_MS, query_timeout: TIMEOUT_MS });
  // An error of the connection also rejects the pending query. Without a handler, the event would end the process.
  client.on('error', () => {});
  await client.connect();
  await client.query('SET default_transaction_read_only = on');
  const { rows } = await client.query<{ name: string }>(
    'SELECT table_name AS name FROM information_schema.tables WHERE table_schema = current_schema()',
  );
  const page: Page = async (table, key, after) => {
    const isNext = after !== undefined;
    return (await client.query<SourceRow>(statement(table, key, isNext, '$1'), isNext ? [after] : [])).rows;
  };
  return databaseSource(
    rows.map(({ name }) => name),
    page,
    () => client.end(),
  );
}

async function openMysql(url: URL): Promise<Source> {
  // Loaded on demand, because no other command needs it.
  const { createConnection } = await import('mysql2/promise');
  const connection = await createConnection({
    ...(url.searchParams.get('unix_socket') === null
      ? { host: url.hostname, port: Number(url.port || 3306) }
      : { socketPath: url.searchParams.get('unix_socket')! }),
    user: decodeURIComponent(url.username),
    password: decodeURIComponent(url.password),
    database: decodeURIComponent(url.pathname.slice(1)),
    dateStrings: true,
    charset: 'utf8mb4',
    connectTimeout: TIMEOUT_MS,
  });
  connection.on('error', () => {});
  const query = async (sql: string, values: unknown[] = []): Promise<readonly SourceRow[]> => {
    const [rows] = await connection.query({ sql, values, timeout: TIMEOUT_MS });
    return rows as SourceRow[];
  };
  await query('SET SESSION TRANSACTION READ ONLY');
  const names = await query('SELECT table_name AS name FROM information_schema.tables WHERE table_schema = DATABASE()');
  const quoted = (name: string): string => `\`${name}\``;
  return databaseSource(
    names.map(({ name }) => String(name)),
    (table, key, after) => query(statement(quoted(table), quoted(key), after !== undefined, '?'), after === undefined ? [] : [after]),
    () => connection.end(),
  );
}

interface SqliteModule {
  readonly DatabaseSync: new (
    path: string,
    options: { readonly readOnly: boolean },
  ) => { prepare(sql: string): { all(...values: unknown[]): SourceRow[] }; close(): void };
}
async function openSqlite(path: string): Promise<Source> {
  // Part of Node since 22.13. The types of earlier versions do not have it.
  const sqlite = process.getBuiltinModule('node:sqlite') as unknown as SqliteModule | undefined;
  if (!sqlite) throw new Error(`reading SQLite needs Node 22.13 or later, and this is Node ${process.version.slice(1)}`);
  const database = new sqlite.DatabaseSync(path, { readOnly: true });
  const names = database.prepare("SELECT name FROM sqlite_master WHERE type = 'table'").all();
  const page: Page = async (table, key, after) => {
    const query = database.prepare(statement(`"${table}"`, `"${key}"`, after !== undefined, '?'));
    return after === undefined ? query.all() : query.all(after);
  };
  return databaseSource(
    names.map(({ name }) => String(name)),
    page,
    async () => database.close(),
  );
}

/**
 * @param url as Ironic's `[database]connection` has it: `mysql+pymysql://…`, `postgresql+psycopg2://…`, `sqlite:////path`
 * @throws an Error of one line, without the password
 */
export async function openSource(url: string): Promise<Source> {
  const plain = url.replace(/^(\w+)\+\w+:/, '$1:');
  const scheme = /^(\w+):/.exec(plain)?.[1];
  try {
    if (scheme === 'sqlite') return await openSqlite(plain.replace(/^sqlite:\/\/\//, '').split('?', 1)[0]!);
    // Not checked as a URL, because pg accepts texts that are not valid URLs, such as `postgresql://user@/database?host=/folder`.
    if (scheme === 'postgresql' || scheme === 'postgres') return await openPostgres(plain);
    if (scheme !== undefined && !URL.canParse(plain)) throw new Error('this is not the URL of a database');
    if (scheme === 'mysql' || scheme === 'mariadb') return await openMysql(new URL(plain));
  } catch (error) {
    throw new Error(`Ironic's database cannot be opened: ${(error as Error).message.split('\n')[0]!}`, { cause: error });
  }
  throw new Error("the URL of Ironic's database must begin with mysql, postgresql or sqlite, as in [database]connection of ironic.conf");
}
