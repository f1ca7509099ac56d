/**
 * A backup of the whole database: what it holds at one moment, in one file, without any tool of PostgreSQL's. docs/database.md describes
 * the file. It needs nothing from the server but COPY, and is read from any database that this program can use.
 */
import { createHash, type Hash } from 'node:crypto';
import type { Knex } from 'knex';
import type { Client } from 'pg';
import { copyOut } from './copy';
import { missing, stepsDone, TABLE as STEPS } from '../sql/schema';

export const FORMAT = 'bloomery-backup';
export const FORMAT_VERSION = 1;
/** The line behind the last row of a table, as in PostgreSQL's own files. */
export const END_OF_ROWS = '\\.\n';

/** The first line. */
export interface Header {
  readonly format: typeof FORMAT;
  readonly version: number;
  readonly created_at: string;
  readonly postgres: string;
  /** Steps of the schema that the rows fit. */
  readonly schema: readonly string[];
}
/** The line before the rows of a table. */
export interface TableLine {
  readonly table: string;
  readonly columns: readonly string[];
}
/** The line behind them. */
export interface RowsLine {
  readonly rows: number;
  readonly sha256: string;
}
/** The last line; `sha256` is that of everything before it. */
export interface EndLine {
  readonly sequences: Readonly<Record<string, string>>;
  readonly tables: number;
  readonly rows: number;
  readonly sha256: string;
}
export interface Progress {
  readonly table: string;
  readonly rows: number;
  /** The table is whole. */
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
  /** Tables that its rows point to. */
  readonly needs: readonly string[];
}
/** Our tables, but for those of the schema's steps. */
async function tablesIn(db: Knex): Promise<readonly TableShape[]> {
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
/** Each behind those that it needs, so that no row comes before the one that it points to. */
function inOrder(tables: readonly TableShape[]): readonly TableShape[] {
  const ordered = new Set<TableShape>();
  const add = (table: TableShape): void => {
    for (const name of table.needs) for (const other of tables) if (other.name === name && !ordered.has(other)) add(other);
    ordered.add(table);
  };
  tables.forEach(add);
  return [...ordered];
}

/** The connection of a transaction, for what goes past the query builder. */
export const connectionOf = (transaction: Knex): Promise<Client> =>
  (transaction.client as { acquireConnection(): Promise<Client> }).acquireConnection();

/**
 * The backup, in pieces, uncompressed. All of it is read in one transaction: it is the database at one moment, whatever is written meanwhile.
 * Throws an Error of one line when there is nothing of ours to keep, or a newer program's.
 */
export async function* backup(
  db: Knex,
  now: string,
  tell: (progress: Progress) => void,
  signal: AbortSignal,
): AsyncGenerator<Buffer, Summary> {
  const transaction = await db.transaction(undefined, { isolationLevel: 'repeatable read', readOnly: true });
  const whole = newHash();
  const say = (line: object): Buffer => hashed(whole, Buffer.from(`${JSON.stringify(line)}\n`));
  try {
    const schema = await stepsDone(transaction);
    missing(schema);
    if (schema.length === 0) throw new Error('there is nothing of Bloomery in it');
    const { rows: server } = await transaction.raw<{ rows: { name: string }[] }>("SELECT current_setting('server_version') AS name");
    const client = await connectionOf(transaction);
    yield say({ format: FORMAT, version: FORMAT_VERSION, created_at: now, postgres: server[0]!.name, schema } satisfies Header);

    const tables = inOrder(await tablesIn(transaction));
    let total = 0;
    for (const { name, columns } of tables) {
      yield say({ table: name, columns } satisfies TableLine);
      const own = newHash();
      let rows = 0;
      for await (const piece of copyOut(client, `COPY ${quoted(name)} (${columns.map(quoted).join(', ')}) TO STDOUT`)) {
        signal.throwIfAborted();
        rows += count(piece);
        yield hashed(whole, hashed(own, piece));
        tell({ table: name, rows, done: false });
      }
      yield hashed(whole, Buffer.from(END_OF_ROWS));
      yield say({ rows, sha256: own.digest('hex') } satisfies RowsLine);
      tell({ table: name, rows, done: true });
      total += rows;
    }
    const { rows: values } = await transaction.raw<{ rows: { name: string; value: string }[] }>(
      `SELECT sequencename AS name, last_value::text AS value FROM pg_sequences
       WHERE schemaname = current_schema() AND last_value IS NOT NULL AND NOT starts_with(sequencename, ?)`,
      [STEPS],
    );
    const sequences = Object.fromEntries(values.map(({ name, value }) => [name, value]));
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
/** Rows in a piece of COPY's text: a line break within a value is written as `\n`. */
export function count(piece: Buffer): number {
  let lines = 0;
  for (let at = piece.indexOf(10); at !== -1; at = piece.indexOf(10, at + 1)) lines++;
  return lines;
}
