/**
 * A consistent backup of the whole database in one file, without PostgreSQL's tools. docs/database.md describes the file. A backup requires
 * only COPY, and can be restored to every database that this program supports.
 */
import { createHash, type Hash } from 'node:crypto';
import type { Knex } from 'knex';
import type { Client } from 'pg';
import { copyOut } from './copy';
import { pendingMigrations, stepsDone, MIGRATIONS_TABLE as STEPS } from '../sql/schema';

export const FORMAT = 'bloomery-backup';
export const FORMAT_VERSION = 1;
/** The line after the last row of a table, as in pg_dump's files. */
export const END_OF_ROWS = '\\.\n';

/** The first line. */
export interface Header {
  readonly format: typeof FORMAT;
  readonly version: number;
  readonly created_at: string;
  readonly postgres: string;
  /** The migrations of the schema of the rows. */
  readonly schema: readonly string[];
}
/** The line before the rows of a table. */
export interface TableLine {
  readonly table: string;
  readonly columns: readonly string[];
}
/** The line after the rows. */
export interface RowsLine {
  readonly rows: number;
  readonly sha256: string;
}
/** The last line; `sha256` is the checksum of everything before it. */
export interface EndLine {
  readonly sequences: Readonly<Record<string, string>>;
  readonly tables: number;
  readonly rows: number;
  readonly sha256: string;
}
export interface Progress {
  readonly table: string;
  readonly rows: number;
  /** The table is complete. */
  readonly done: boolean;
}
export interface Summary {
  readonly tables: number;
  readonly rows: number;
  readonly schema: string;
}

export const quoted = (name: string): string => `"${name.replaceAll('"', '""')}"`;
export const newHash = (): Hash => createHash('sha256');

interface TableShape {
  readonly name: string;
  readonly columns: readonly string[];
  /** Tables that its foreign keys reference. */
  readonly needs: readonly string[];
}
/** All tables except those of knex's migrations. */
export async function tablesIn(db: Knex): Promise<readonly TableShape[]> {
  const { rows } = await db.raw<{ rows: TableShape[] }>(
    `SELECT relname AS name,
       (SELECT json_agg(attname ORDER BY attnum) FROM pg_attribute
         WHERE attrelid = c.oid AND attnum > 0 AND NOT attisdropped AND attgenerated = '') AS columns,
       (SELECT coalesce(json_agg(f.relname), '[]') FROM pg_constraint JOIN pg_class f ON f.oid = confrelid
         WHERE conrelid = c.oid AND contype = 'f' AND f.oid <> c.oid) AS needs
     FROM pg_class c WHERE relkind = 'r' AND relnamespace = current_schema()::regnamespace AND NOT starts_with(relname, ?)
     ORDER BY relname`,
    [STEPS],
  );
  return rows;
}
/** All sequences except those of knex's migrations. A sequence without a value was never used. */
export async function sequencesIn(db: Knex): Promise<readonly { readonly name: string; readonly value: string | null }[]> {
  const { rows } = await db.raw<{ rows: { name: string; value: string | null }[] }>(
    `SELECT sequencename AS name, last_value::text AS value FROM pg_sequences
     WHERE schemaname = current_schema() AND NOT starts_with(sequencename, ?)`,
    [STEPS],
  );
  return rows;
}
/** Sorts the tables so that referenced tables come first. */
function inOrder(tables: readonly TableShape[]): readonly TableShape[] {
  const ordered = new Set<TableShape>();
  const add = (table: TableShape): void => {
    for (const name of table.needs) for (const other of tables) if (other.name === name && !ordered.has(other)) add(other);
    ordered.add(table);
  };
  tables.forEach(add);
  return [...ordered];
}

/** The connection of a transaction, for use without the query builder. */
export const connectionOf = (transaction: Knex): Promise<Client> =>
  (transaction.client as { acquireConnection(): Promise<Client> }).acquireConnection();

/**
 * Yields the uncompressed backup in chunks. One transaction reads everything, so that the backup is consistent despite concurrent writes.
 * Throws an Error of one line if the database is not Bloomery's, or has the schema of a newer version.
 */
export async function* backup(
  db: Knex,
  now: string,
  tell: (progress: Progress) => void,
  signal: AbortSignal,
): AsyncGenerator<Buffer, Summary> {
  const transaction = await db.transaction(undefined, { isolationLevel: 'repeatable read', readOnly: true });
  const whole = newHash();
  const lineOf = (line: object): Buffer => hashed(whole, Buffer.from(`${JSON.stringify(line)}\n`));
  try {
    const schema = await stepsDone(transaction);
    pendingMigrations(schema);
    if (schema.length === 0) throw new Error('it is not a database of Bloomery');
    const { rows: server } = await transaction.raw<{ rows: { name: string }[] }>("SELECT current_setting('server_version') AS name");
    const client = await connectionOf(transaction);
    yield lineOf({ format: FORMAT, version: FORMAT_VERSION, created_at: now, postgres: server[0]!.name, schema } satisfies Header);

    const tables = inOrder(await tablesIn(transaction));
    let total = 0;
    for (const { name, columns } of tables) {
      yield lineOf({ table: name, columns } satisfies TableLine);
      const own = newHash();
      let rows = 0;
      for await (const piece of copyOut(client, `COPY ${quoted(name)} (${columns.map(quoted).join(', ')}) TO STDOUT`)) {
        signal.throwIfAborted();
        rows += count(piece);
        yield hashed(whole, hashed(own, piece));
        tell({ table: name, rows, done: false });
      }
      yield hashed(whole, Buffer.from(END_OF_ROWS));
      yield lineOf({ rows, sha256: own.digest('hex') } satisfies RowsLine);
      tell({ table: name, rows, done: true });
      total += rows;
    }
    const values = await sequencesIn(transaction);
    const sequences = Object.fromEntries(values.flatMap(({ name, value }) => (value === null ? [] : [[name, value]])));
    const end: EndLine = { sequences, tables: tables.length, rows: total, sha256: whole.digest('hex') };
    yield Buffer.from(`${JSON.stringify(end)}\n`);
    return { tables: tables.length, rows: total, schema: schema.at(-1)! };
  } finally {
    await transaction.rollback().catch(() => {});
  }
}

function hashed(hash: Hash, piece: Buffer): Buffer {
  hash.update(piece);
  return piece;
}
/** Counts the rows in a chunk of COPY's text, which escapes line breaks in values as `\n`. */
export function count(piece: Buffer): number {
  let lines = 0;
  for (let at = piece.indexOf(10); at !== -1; at = piece.indexOf(10, at + 1)) lines++;
  return lines;
}
