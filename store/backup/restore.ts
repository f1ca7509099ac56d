/** Restores a backup in one transaction, so that the database has all of it or is unchanged. */
import type { Knex } from 'knex';
import { MIGRATIONS, type Migration } from '../../migrations';
import {
  connectionOf,
  count,
  FORMAT,
  FORMAT_VERSION,
  newHash,
  quoted,
  sequencesIn,
  tablesIn,
  type EndLine,
  type Header,
  type Progress,
  type RowsLine,
  type Summary,
  type TableLine,
} from './backup';
import { readBackup, type BackupReader } from './file';
import { SERVER } from '../sql/connection';
import { copyIn } from './copy';
import { forgetEvents } from '../tables/events';
import { migrate, pendingMigrations, stepsDone, tablesOf, MIGRATIONS_TABLE as STEPS } from '../sql/schema';

interface RestoreOptions {
  /** Delete the present content of the database. */
  readonly force: boolean;
  /** Seconds without a heartbeat after which a conductor is considered dead. */
  readonly heartbeatTimeout: number;
  readonly tell: (progress: Progress) => void;
  readonly signal: AbortSignal;
  /** Default: those of this program. */
  readonly migrations?: readonly Migration[];
}

/**
 * @param source the backup, uncompressed
 * @throws an Error of one line; the database is then unchanged
 */
export async function restore(db: Knex, source: AsyncIterable<Buffer>, options: RestoreOptions): Promise<Summary> {
  const whole = newHash();
  const reader = readBackup(source, (piece) => whole.update(piece));
  // Check the header before any change.
  const { migrations = MIGRATIONS } = options;
  const header = headerOf(await reader.line(), migrations);
  return db.transaction(async (transaction) => {
    const before = await emptied(transaction, options);
    await migrate(
      transaction,
      migrations.filter(({ name }) => header.schema.includes(name)),
    );
    // Remove rows that migrations inserted, because the backup contains them. Disable triggers, so that restored rows cause no events.
    const tables = (await tableNames(transaction)).filter((name) => !name.startsWith(STEPS));
    await transaction.raw(`TRUNCATE ${tables.map(quoted).join(', ')}`);
    await triggers(transaction, tables, 'DISABLE');
    const loaded = await load(transaction, await targetOf(transaction), reader, () => whole.copy().digest('hex'), options);
    await triggers(transaction, tables, 'ENABLE');
    await migrate(transaction, migrations);
    await forgetEvents(transaction);
    const foreign = await tablesGone(transaction, before);
    if (foreign.length > 0) throw new Error(`the database has tables that are not Bloomery's: ${foreign.join(', ')}`);
    return { ...loaded, schema: (await stepsDone(transaction)).at(-1)! };
  });
}

function headerOf(line: unknown, migrations: readonly Migration[]): Header {
  const header = line as Partial<Header> | null;
  if (header?.format !== FORMAT || !isTexts(header.schema) || header.schema.length === 0) throw new Error('it is not a backup of Bloomery');
  if (header.version !== FORMAT_VERSION)
    throw new Error(`its format is version ${String(header.version)}, and this program reads ${FORMAT_VERSION}`);
  pendingMigrations(header.schema, migrations);
  if (header.schema.some((name, index) => name !== migrations[index]!.name)) throw new Error('it is damaged: its schema has gaps');
  return header as Header;
}
const isTexts = (value: unknown): value is readonly string[] =>
  Array.isArray(value) && value.every((candidate) => typeof candidate === 'string');

const tableNames = async (db: Knex): Promise<readonly string[]> => (await tablesOf(db)).map(({ name }) => name);
const tablesGone = async (db: Knex, before: readonly string[]): Promise<readonly string[]> => {
  const now = await tableNames(db);
  return before.filter((name) => !now.includes(name));
};

const triggers = async (db: Knex, tables: readonly string[], what: 'DISABLE' | 'ENABLE'): Promise<void> => {
  for (const table of tables) await db.raw(`ALTER TABLE ${quoted(table)} ${what} TRIGGER USER`);
};

/** Empties the database if that is allowed. Returns its previous tables that no migration is known to have made. */
async function emptied(db: Knex, { force, heartbeatTimeout, migrations = MIGRATIONS }: RestoreOptions): Promise<readonly string[]> {
  const found = await tablesOf(db);
  const tables = found.map(({ name }) => name);
  if (tables.length === 0) return tables;
  if (!tables.includes(STEPS)) throw new Error(`the database is not empty, and not Bloomery's (it has the table ${tables[0]!})`);
  // With force, an older program replaces the database that a newer one has upgraded: the way back after an upgrade.
  if (!force) pendingMigrations(await stepsDone(db), migrations);
  const { rows: users } = await db.raw<{ rows: { count: number }[] }>(
    `SELECT count(*)::int AS count FROM pg_stat_activity
     WHERE datname = current_database() AND application_name = ?`,
    [SERVER],
  );
  const { rows: alive } = tables.includes('conductors')
    ? await db.raw<{ rows: { hostname: string }[] }>(
        'SELECT hostname FROM conductors WHERE online AND updated_at > now() - make_interval(secs => ?) ORDER BY hostname',
        [heartbeatTimeout],
      )
    : { rows: [] };
  if (alive.length > 0 || users[0]!.count > 0)
    throw new Error(`a server uses the database (${alive.map(({ hostname }) => hostname).join(', ') || 'it is connected'}): stop it first`);
  if (!force) {
    for (const table of tables) {
      // A server writes these tables even without nodes, so their rows do not count as content to protect.
      if (table.startsWith(STEPS) || table.startsWith('events') || ['conductors', 'state_counts'].includes(table)) continue;
      const { rows } = await db.raw<{ rows: unknown[] }>('SELECT FROM ?? LIMIT 1', [table]);
      if (rows.length > 0) throw new Error(`the database is not empty (the table ${table} has rows): --force replaces its content`);
    }
  }
  // A server that starts meanwhile waits for this command's locks. If it holds locks already, this command gives up after 10 s.
  await db.raw(`SET LOCAL lock_timeout = '10s'`);
  await db.raw(`DROP TABLE ${tables.map(quoted).join(', ')} CASCADE`);
  await db.raw(`DO $$ DECLARE one regprocedure; BEGIN
    FOR one IN SELECT p.oid FROM pg_proc p WHERE pronamespace = current_schema()::regnamespace
      AND NOT EXISTS (SELECT FROM pg_depend WHERE objid = p.oid AND deptype = 'e') LOOP
      EXECUTE format('DROP ROUTINE %s CASCADE', one);
    END LOOP; END $$`);
  return found.filter(({ isMarked }) => !isMarked).map(({ name }) => name);
}

/** What a file may fill: the names come from the schema, never from the file. */
interface Target {
  /** Name → columns. */
  readonly tables: ReadonlyMap<string, ReadonlySet<string>>;
  readonly sequences: ReadonlySet<string>;
}
async function targetOf(db: Knex): Promise<Target> {
  const tables = await tablesIn(db);
  const sequences = await sequencesIn(db);
  return {
    tables: new Map(tables.map(({ name, columns }) => [name, new Set(columns)])),
    sequences: new Set(sequences.map(({ name }) => name)),
  };
}
/** Throws unless the line names a table of the schema, for the first time, and columns of it. */
function checkedTable(
  { table, columns }: { readonly table?: unknown; readonly columns?: unknown },
  { tables }: Target,
  seen: Set<string>,
): TableLine {
  const known = typeof table === 'string' ? tables.get(table) : undefined;
  const name = String(table).slice(0, 100);
  if (typeof table !== 'string' || !known) throw new Error(`it has a table that is not of its schema: ${name}`);
  if (seen.has(table)) throw new Error(`it is damaged: it has the table ${name} twice`);
  seen.add(table);
  if (!isTexts(columns) || columns.length === 0 || new Set(columns).size < columns.length || columns.some((column) => !known.has(column)))
    throw new Error(`it has columns of ${name} that are not of its schema`);
  return { table, columns };
}
const objectOf = (line: unknown): object => {
  if (typeof line !== 'object' || line === null) throw new Error('it is damaged: a line is not an object');
  return line;
};
async function restoreSequences(db: Knex, given: unknown, { sequences }: Target): Promise<void> {
  if (typeof given !== 'object' || given === null) throw new Error('it is damaged: it has no sequences');
  for (const [name, value] of Object.entries(given)) {
    if (!sequences.has(name)) throw new Error(`it has a sequence that is not of its schema: ${name.slice(0, 100)}`);
    if (typeof value !== 'string' || !/^\d{1,19}$/.test(value)) throw new Error(`it is damaged: the sequence ${name} has no value`);
    await db.raw('SELECT setval(?::regclass, ?::bigint)', [quoted(name), value]);
  }
}

async function load(
  db: Knex,
  target: Target,
  reader: BackupReader,
  digest: () => string,
  { tell, signal }: RestoreOptions,
): Promise<{ readonly tables: number; readonly rows: number }> {
  const client = await connectionOf(db);
  const seen = new Set<string>();
  let total = 0;
  for (;;) {
    const before = digest();
    const line = objectOf(await reader.line()) as Partial<TableLine> | Partial<EndLine>;
    if (!('table' in line)) {
      const { sha256, tables, rows, sequences } = line as Partial<EndLine>;
      if (sha256 !== before || tables !== seen.size || rows !== total) throw new Error('it is damaged: its checksum does not match');
      await reader.end();
      await restoreSequences(db, sequences, target);
      return { tables: seen.size, rows: total };
    }
    const { table, columns } = checkedTable(line, target, seen);
    const own = newHash();
    let rows = 0;
    const counted = async function* (): AsyncGenerator<Buffer> {
      for await (const piece of reader.rows()) {
        signal.throwIfAborted();
        own.update(piece);
        rows += count(piece);
        yield piece;
        tell({ table, rows, done: false });
      }
    };
    await copyIn(client, `COPY ${quoted(table)} (${columns.map(quoted).join(', ')}) FROM STDIN`, counted());
    const trailer = objectOf(await reader.line()) as Partial<RowsLine>;
    if (trailer.rows !== rows || trailer.sha256 !== own.digest('hex'))
      throw new Error(`it is damaged: the checksum of ${table} does not match`);
    tell({ table, rows, done: true });
    total += rows;
  }
}
