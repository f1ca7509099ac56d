/**
 * Imports the contents of an Ironic's database in one transaction. Rows that exist here stay unchanged, so that the import can be repeated:
 * nodes that Ironic works on are left for a later run.
 */
import type { Knex } from 'knex';
import { isMac, isUuid } from '../../model/idents';
import { INTERFACE_KINDS } from '../../model/records';
import { successorOf } from '../../model/rules/retired-hardware';
import { STATES, type ProvisionState } from '../../model/states';
import { storableJson } from '../../model/text';
import { insertSecrets, type Secrets } from './secrets';
import type { Source, SourceRow } from './source';
import { IMPORT_TABLES, type ImportTable } from './tables';
import { printable } from '../../model/log';

interface ImportOptions {
  /** Roll everything back at the end. */
  readonly dryRun: boolean;
  /** `hardware_types`, `power_interfaces` … → the names that are enabled here. */
  readonly enabled: Readonly<Record<string, readonly string[]>>;
  /** The values of secrets that the source masks. */
  readonly secrets: Secrets;
  readonly signal: AbortSignal;
}
interface TableSummary {
  readonly what: string;
  readonly imported: number;
  /** Rows that existed already. */
  readonly present: number;
}
export interface ImportSummary {
  readonly tables: readonly TableSummary[];
  /** Rows that cannot be imported, and why; one line each. */
  readonly refused: readonly string[];
  /** Matters of imported rows that need attention; one line each. */
  readonly warnings: readonly string[];
}

interface Job {
  readonly db: Knex;
  readonly source: Source;
  readonly options: ImportOptions;
  /** Table → `id` in Ironic's database → UUID, of the rows that were imported or existed. */
  readonly uuids: Map<string, Map<unknown, string>>;
  readonly refused: string[];
  /** UUID of a node → its parent. */
  readonly parents: Map<string, string>;
  /** Warning → the nodes or tables that it concerns. */
  readonly warnings: Map<string, string[]>;
}

/** All rows of one of Ironic's tables, in pages. Without such a table, none. */
async function* rowsIn({ source, options }: Job, table: string, key: string): AsyncGenerator<readonly SourceRow[]> {
  if (source.tables.has(table)) yield* source.rows(table, key, options.signal);
}

type ColumnTypes = ReadonlyMap<string, string>;
async function columnsOf(db: Knex, table: string): Promise<ColumnTypes> {
  const rows = await db<{ column_name: string; data_type: string }>('information_schema.columns')
    .select('column_name', 'data_type')
    .whereRaw('table_schema = current_schema() AND table_name = ?', [table]);
  return new Map(rows.map(({ column_name: name, data_type: type }) => [name, type]));
}

const parsed = (value: unknown): unknown => (typeof value === 'string' ? (JSON.parse(value) as unknown) : value);
/** Data type of our column → the conversion of Ironic's value to it. Values for other types need none. */
const CONVERSIONS: Readonly<Record<string, (value: unknown) => unknown>> = {
  json: (value) => JSON.stringify(parsed(value)),
  jsonb: (value) => storableJson(parsed(value)),
  ARRAY: parsed,
  boolean: (value) => value === true || Number(value) === 1,
  // Times from Ironic's database have no zone and are in UTC; those from its API end with +00:00.
  'timestamp with time zone': (value) =>
    `${String(value)
      .replace(' ', 'T')
      .replace(/\+00:00$/, '')}+00:00`,
};
/** Columns that are not copied, because their values belong to the database. */
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

/** Our column → `id` of Ironic's row → the list for this column, which Ironic stores in a table of its own. */
type Lists = ReadonlyMap<string, ReadonlyMap<unknown, readonly unknown[]>>;
async function readLists(job: Job, { lists = [] }: ImportTable): Promise<Lists> {
  const all = new Map<string, Map<unknown, unknown[]>>();
  for (const { column, table, parent, key, members } of lists) {
    const found = new Map<unknown, unknown[]>();
    for await (const page of rowsIn(job, table, key))
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

function warn({ warnings }: Job, warning: string, subject: string): void {
  warnings.set(warning, [...(warnings.get(warning) ?? []), subject]);
}
const NAMED = 5;
const warningText = ([warning, subjects]: readonly [string, readonly string[]]): string => {
  const more = subjects.length > NAMED ? ` and ${subjects.length - NAMED} more` : '';
  return `${subjects.slice(0, NAMED).join(', ')}${more}: ${warning}`;
};
/** The value as text without control characters, for a terminal. */
const plain = (value: unknown): string => printable(String(value));
const nameOf = (row: SourceRow): string => plain(row['name'] ?? row['address'] ?? row['uuid']);
/** These values become parts of file names and configurations. Ironic checks them, but other programs may have written to its database. */
const FORMATS: Readonly<Record<string, (value: unknown) => boolean>> = { uuid: isUuid, address: isMac };
function malformed(row: SourceRow): string | undefined {
  const column = Object.keys(FORMATS).find((name) => (row[name] ?? undefined) !== undefined && !FORMATS[name]!(row[name]));
  return column === undefined ? undefined : `its ${column} ${printable(JSON.stringify(String(row[column])))} is malformed`;
}

/** Why a node cannot be imported now. Undefined: it can. */
function stateRefusal(row: SourceRow): string | undefined {
  const state = plain(row['provision_state']);
  const known = Object.hasOwn(STATES, state) ? STATES[state as ProvisionState] : undefined;
  if (!known) return `its provision state "${state}" does not exist here`;
  if (!('stable' in known || 'failed' in known)) return `Ironic works on it (${state}): let that end, then run the import again`;
  const holder = row['reservation'];
  return typeof holder === 'string' ? `the conductor ${plain(holder)} holds it: let that end, then run the import again` : undefined;
}
/** Why a node cannot keep its parent. Undefined: it can. Ironic has nodes that are their own ancestors. */
function parentRefusal({ parents }: Job, { uuid, parent_node: parent }: SourceRow): string | undefined {
  if (typeof uuid !== 'string' || typeof parent !== 'string' || parent === '') return undefined;
  const passed = new Set<string>();
  for (let above: string | undefined = parent; above !== undefined; above = parents.get(above)) {
    if (above === uuid) return 'it is its own ancestor: change its parent_node in Ironic, then run the import again';
    if (passed.has(above)) break;
    passed.add(above);
  }
  parents.set(uuid, parent);
  return undefined;
}
/** @param field `driver`, or that of an interface */
function remedy(field: string, value: string): string {
  const kind = field === 'driver' ? 'hardware type' : INTERFACE_KINDS.find((candidate) => field === `${candidate}_interface`);
  return (kind && successorOf(kind, value)) ?? 'enable it, or change it';
}
/** Warns of a node whose hardware type is not enabled here; if that is enabled, of its interfaces that are not. */
function warnOfDrivers(job: Job, row: SourceRow): void {
  const unknown = Object.entries(job.options.enabled).flatMap(([kind, names]) => {
    const field = kind === 'hardware_types' ? 'driver' : kind.replace(/s$/, '');
    const value = row[field];
    return typeof value === 'string' && !names.includes(value) ? [{ kind, field, value }] : [];
  });
  for (const { kind, field, value } of unknown[0]?.field === 'driver' ? unknown.slice(0, 1) : unknown)
    warn(job, `its ${field} ${plain(value)} is not in [DEFAULT]enabled_${kind}: ${remedy(field, value)}`, `node ${nameOf(row)}`);
}

/** The row with its secrets, or why it cannot be imported. */
function admission(job: Job, { table, from = table }: ImportTable, row: SourceRow): SourceRow | string {
  const reason = malformed(row) ?? (table === 'nodes' ? (stateRefusal(row) ?? parentRefusal(job, row)) : undefined);
  if (reason !== undefined) return reason;
  if (!job.source.masks) return row;
  if (table === 'inspection_rules' && row['sensitive'] === true) return 'it is sensitive, and the API does not show it: create it here';
  const { row: whole, missing, dropped } = insertSecrets(row, from, job.options.secrets);
  if (missing.length > 0) return `the API does not show ${missing.join(', ')}: give the value with --secrets`;
  for (const path of dropped) warn(job, `the API does not show ${path}: give it again with the next deployment`, `node ${nameOf(row)}`);
  return whole;
}
/** A new row with its secrets. Undefined: it cannot be imported, and the summary says why. */
function admitted(job: Job, table: ImportTable, row: SourceRow): SourceRow | undefined {
  const result = admission(job, table, row);
  if (typeof result !== 'string') return result;
  job.refused.push(`${table.what.replace(/s$/, '')} ${nameOf(row)}: ${result}`);
  return undefined;
}

/** Converts Ironic's row to ours. Undefined: it refers to a row, such as its node, that was not imported. */
function rowOf(job: Job, table: ImportTable, row: SourceRow, columns: ColumnTypes, lists: Lists): Record<string, unknown> | undefined {
  const values = converted(row, table, columns);
  for (const { column, from, table: target } of table.references ?? []) {
    const number = row[from];
    if (number === null || number === undefined) continue;
    const uuid: string | undefined = job.uuids.get(target)?.get(number);
    if (uuid === undefined) return undefined;
    values[column] = uuid;
  }
  for (const [column, found] of lists) {
    // A row from the API contains the list.
    if (Array.isArray(row[column])) continue;
    const list = found.get(row['id']) ?? [];
    values[column] = columns.get(column) === 'ARRAY' ? list : JSON.stringify(list);
  }
  return values;
}

/** PostgreSQL's limit of parameters in one statement is 65,535. */
const MAX_PARAMETERS = 60_000;
/** @returns the number of rows that did not exist yet */
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
  const most = Math.floor(MAX_PARAMETERS / columns.size);
  const hasUuid = columns.has('uuid');
  const numbers = uuids.get(table.table) ?? new Map<unknown, string>();
  uuids.set(table.table, numbers);
  const uuidsHere = async (rows: readonly object[]): Promise<ReadonlySet<unknown>> => {
    const wanted = hasUuid ? rows.map((row) => String((row as SourceRow)['uuid'])) : [];
    const found = wanted.length === 0 ? [] : await db<{ uuid: string }>(table.table).select('uuid').whereIn('uuid', wanted);
    return new Set(found.map(({ uuid }) => uuid));
  };
  let [imported, present] = [0, 0];
  for await (const page of rowsIn(job, from, table.key ?? 'id')) {
    const before = await uuidsHere(page);
    const rows = page.flatMap((row) => {
      const own = before.has(row['uuid']) ? undefined : admitted(job, table, row);
      const values = own && rowOf(job, table, own, columns, lists);
      if (values && table.table === 'nodes') warnOfDrivers(job, row);
      return values ? [values] : [];
    });
    const inserted = await insertNew(db, table.table, rows, hasUuid ? 'uuid' : 'node_uuid', most);
    imported += inserted;
    present += hasUuid ? before.size : rows.length - inserted;
    if (!hasUuid) continue;
    const after = inserted === rows.length ? new Set(rows.map(({ uuid }) => uuid)) : await uuidsHere(rows);
    for (const row of page) if (before.has(row['uuid']) || after.has(row['uuid'])) numbers.set(row['id'], String(row['uuid']));
    const others = rows.filter(({ uuid }) => !after.has(uuid));
    refused.push(...others.map((row) => `${table.what} ${nameOf(row)}: another has its name, address or instance here`));
  }
  return { what: table.what, imported, present };
}

/** Warns of tables that this Ironic does not have, because its release is older. */
function warnOfAbsent(job: Job): void {
  const absent = IMPORT_TABLES.filter(({ table, from = table }) => !job.source.tables.has(from)).map(({ what }) => what);
  if (absent.length > 0) warn(job, 'this Ironic is of an older release, which does not have them', absent.join(', '));
}

/** @throws Error; our database is then unchanged */
export async function importIronic(db: Knex, source: Source, options: ImportOptions): Promise<ImportSummary> {
  const transaction = await db.transaction();
  const job: Job = { db: transaction, source, options, uuids: new Map(), parents: new Map(), refused: [], warnings: new Map() };
  try {
    // Nodes and allocations refer to each other. The UUIDs of all allocations suffice for importing nodes first.
    const allocations = new Map<unknown, string>();
    for await (const page of rowsIn(job, 'allocations', 'id')) for (const row of page) allocations.set(row['id'], String(row['uuid']));
    job.uuids.set('allocations', allocations);
    const tables: TableSummary[] = [];
    for (const table of IMPORT_TABLES) tables.push(await importTable(job, table));
    await (options.dryRun ? transaction.rollback() : transaction.commit());
    warnOfAbsent(job);
    return { tables, refused: job.refused, warnings: [...job.warnings].map(warningText) };
  } catch (error) {
    await transaction.rollback();
    throw error;
  }
}
