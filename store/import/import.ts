/**
 * Brings the contents of an Ironic's database into ours. What is there already stays as it is, so that an interrupted import continues when it
 * is run again. Nodes that Ironic works on are left for a later run.
 */
import type { Knex } from 'knex';
import { STATES, type ProvisionState } from '../../model/states';
import { BATCH, type Source, type SourceRow } from './source';
import { IMPORT_TABLES, type ImportTable } from './tables';

export interface ImportOptions {
  /** Roll everything back at the end. */
  readonly dryRun: boolean;
  readonly hardwareTypes: readonly string[];
  readonly signal: AbortSignal;
}
interface TableSummary {
  readonly what: string;
  readonly imported: number;
  /** Rows that were there already. */
  readonly present: number;
}
export interface ImportSummary {
  readonly tables: readonly TableSummary[];
  /** What cannot come, and why; a line each. */
  readonly refused: readonly string[];
  /** What comes, and needs attention; a line each. */
  readonly warnings: readonly string[];
}

interface Job {
  readonly db: Knex;
  readonly source: Source;
  readonly options: ImportOptions;
  /** Their table → the UUIDs by their numbers, of rows that came or are there. */
  readonly uuids: Map<string, Map<unknown, string>>;
  readonly refused: string[];
  readonly warnings: string[];
}

/** All rows of a table of theirs, in pieces. */
async function* pagesOf({ source, options }: Job, table: string, key: string): AsyncGenerator<readonly SourceRow[]> {
  if (!source.tables.has(table)) return;
  for (let after: unknown; ;) {
    options.signal.throwIfAborted();
    const page = await source.page(table, key, after);
    if (page.length === 0) return;
    const last = page.at(-1)![key];
    if (page.length < BATCH) {
      yield page;
      return;
    }
    // Rows with the last key may continue on the next page, unless the key is unique.
    const whole = key === 'id' ? page : page.filter((row) => row[key] !== last);
    if (whole.length === 0) throw new Error(`${table} has more than ${BATCH} rows with the same ${key}`);
    yield whole;
    after = whole.at(-1)![key];
  }
}

type ColumnTypes = ReadonlyMap<string, string>;
async function columnsOf(db: Knex, table: string): Promise<ColumnTypes> {
  const rows = await db<{ column_name: string; data_type: string }>('information_schema.columns')
    .select('column_name', 'data_type')
    .whereRaw('table_schema = current_schema() AND table_name = ?', [table]);
  return new Map(rows.map(({ column_name: name, data_type: type }) => [name, type]));
}

const parsed = (value: unknown): unknown => (typeof value === 'string' ? (JSON.parse(value) as unknown) : value);
/** Kind of our column → a value of theirs in that kind. Undefined: our default. */
const CONVERSIONS: Readonly<Record<string, (value: unknown) => unknown>> = {
  json: (value) => JSON.stringify(parsed(value)),
  jsonb: (value) => JSON.stringify(parsed(value)),
  ARRAY: parsed,
  boolean: (value) => value === true || Number(value) === 1,
  // Theirs are in UTC, and do not say so.
  'timestamp with time zone': (value) => `${String(value).replace(' ', 'T')}+00:00`,
};
/** Columns with other values here than there. */
const OWN: ReadonlySet<string> = new Set(['id', 'revision', 'lock_fence', 'reservation']);

function converted(row: SourceRow, { renamed = {} }: ImportTable, columns: ColumnTypes): Record<string, unknown> {
  const values: Record<string, unknown> = {};
  for (const [theirs, value] of Object.entries(row)) {
    const name = renamed[theirs] ?? theirs;
    const type = columns.get(name);
    if (type === undefined || OWN.has(name) || value === null || value === undefined) continue;
    values[name] = CONVERSIONS[type]?.(value) ?? value;
  }
  return values;
}

/** Their number → the list of a column, from a table of their own. */
async function readLists(job: Job, { lists = [] }: ImportTable): Promise<ReadonlyMap<string, ReadonlyMap<unknown, readonly unknown[]>>> {
  const all = new Map<string, Map<unknown, unknown[]>>();
  for (const { column, table, parent, members } of lists) {
    const found = new Map<unknown, unknown[]>();
    const key = table.endsWith('_steps') ? 'id' : parent;
    for await (const page of pagesOf(job, table, key))
      for (const row of page) {
        const item =
          members.length === 1
            ? row[members[0]!]
            : Object.fromEntries(members.map((name) => [name, name === 'args' ? (parsed(row[name]) ?? {}) : row[name]]));
        const items = found.get(row[parent]);
        if (items) items.push(item);
        else found.set(row[parent], [item]);
      }
    all.set(column, found);
  }
  return all;
}

/** Why a node does not come now; undefined: it does. */
function refusalOf(row: SourceRow, { warnings, options }: Job): string | undefined {
  const [state, name] = [String(row['provision_state']), `node ${String(row['name'] ?? row['uuid'])}`];
  const known = Object.hasOwn(STATES, state) ? STATES[state as ProvisionState] : undefined;
  if (!known) return `${name}: its provision state "${state}" does not exist here`;
  if (!('stable' in known || 'failed' in known)) return `${name}: Ironic works on it (${state}): let that end, then run the import again`;
  const holder = row['reservation'];
  if (typeof holder === 'string') return `${name}: the conductor ${holder} holds it: let that end, then run the import again`;
  if (!options.hardwareTypes.includes(String(row['driver'])))
    warnings.push(
      `${name}: its hardware type ${String(row['driver'])} is not in [DEFAULT]enabled_hardware_types: enable it, or change \`driver\``,
    );
  return undefined;
}

/** Their rows as ours, without those that cannot come. */
function rowsOf(
  job: Job,
  table: ImportTable,
  page: readonly SourceRow[],
  columns: ColumnTypes,
  lists: Awaited<ReturnType<typeof readLists>>,
): Record<string, unknown>[] {
  return page.flatMap((row) => {
    const reason = table.table === 'nodes' ? refusalOf(row, job) : undefined;
    if (reason !== undefined) {
      job.refused.push(reason);
      return [];
    }
    const values = converted(row, table, columns);
    for (const { column, from, table: target } of table.references ?? []) {
      const number = row[from];
      if (number === null || number === undefined) continue;
      const uuid: string | undefined = job.uuids.get(target)?.get(number);
      // The rows of a node that does not come now stay away too.
      if (uuid === undefined) return [];
      values[column] = uuid;
    }
    for (const [column, found] of lists) {
      const list = found.get(row['id']) ?? [];
      values[column] = columns.get(column) === 'ARRAY' ? list : JSON.stringify(list);
    }
    return [values];
  });
}

/** PostgreSQL's limit of parameters in one statement is 65,535. */
const MOST_PARAMETERS = 60_000;
/** @returns how many were not there already */
async function insertNew(db: Knex, table: string, rows: readonly object[], key: string, most: number): Promise<number> {
  let inserted = 0;
  for (let at = 0; at < rows.length; at += most)
    inserted += (
      await db(table)
        .insert(rows.slice(at, at + most))
        .onConflict()
        .ignore()
        .returning(key)
    ).length;
  return inserted;
}

async function importTable(job: Job, table: ImportTable): Promise<TableSummary> {
  const { db, uuids, refused } = job;
  const columns = await columnsOf(db, table.table);
  const lists = await readLists(job, table);
  const from = table.from ?? table.table;
  const numbers = uuids.get(table.table) ?? new Map<unknown, string>();
  uuids.set(table.table, numbers);
  let [imported, present] = [0, 0];
  for await (const page of pagesOf(job, from, table.key ?? 'id')) {
    const rows = rowsOf(job, table, page, columns, lists);
    if (rows.length === 0) continue;
    const key = columns.has('uuid') ? 'uuid' : 'node_uuid';
    const inserted = await insertNew(db, table.table, rows, key, Math.floor(MOST_PARAMETERS / columns.size));
    imported += inserted;
    if (key !== 'uuid') {
      present += rows.length - inserted;
      continue;
    }
    const wanted = rows.map(({ uuid }) => String(uuid));
    const here = new Set((await db<{ uuid: string }>(table.table).select('uuid').whereIn('uuid', wanted)).map(({ uuid }) => uuid));
    present += here.size - inserted;
    for (const row of page) if (here.has(String(row['uuid']))) numbers.set(row['id'], String(row['uuid']));
    const others = rows.filter(({ uuid }) => !here.has(String(uuid)));
    refused.push(
      ...others.map(
        (row) => `${table.what} ${String(row['name'] ?? row['address'] ?? row['uuid'])}: another has its name, address or instance here`,
      ),
    );
  }
  return { what: table.what, imported, present };
}

/** Throws an Error; our database is then as it was. */
export async function importIronic(db: Knex, source: Source, options: ImportOptions): Promise<ImportSummary> {
  const transaction = await db.transaction();
  const job: Job = { db: transaction, source, options, uuids: new Map(), refused: [], warnings: [] };
  try {
    // Nodes refer to allocations, which refer to nodes: only their UUIDs are needed first.
    const allocations = new Map<unknown, string>();
    for await (const page of pagesOf(job, 'allocations', 'id')) for (const row of page) allocations.set(row['id'], String(row['uuid']));
    job.uuids.set('allocations', allocations);
    const tables: TableSummary[] = [];
    for (const table of IMPORT_TABLES) tables.push(await importTable(job, table));
    await (options.dryRun ? transaction.rollback() : transaction.commit());
    return { tables, refused: job.refused, warnings: job.warnings };
  } catch (error) {
    await transaction.rollback();
    throw error;
  }
}
