/**
 * What the files of all tables share: kinds of columns, conversion of records to rows, filters and paging. Column names from callers
 * reach SQL only if the table of columns has them.
 */
import type { Knex } from 'knex';
import { Fault } from '../../model/errors';
import type { ResourceRecord } from '../../model/records';
import { storableJson } from '../../model/text';
import { run } from './faults';
import { createNames, type Prepared } from './prepared';
import { checkJson, checkText, checkTotal, type Change, type ColumnKind, type Sizes } from './sizes';

export interface Paging {
  /** UUID of the last row of the previous page. An unknown marker is the fault NodeNotFound, PortNotFound and the like. */
  readonly marker?: string | undefined;
  readonly limit?: number;
  /** A column; rows with equal values are sorted by id. Default: id. */
  readonly sortKey?: string;
  readonly sortDir?: 'asc' | 'desc';
}
/** Identifies one state of a row: every write raises the revision. Cached JSON is valid while both are equal. */
export interface RowVersion {
  readonly id: number;
  readonly revision: number;
}
/** The version of a row that belongs to projects. */
export interface OwnedVersion extends RowVersion {
  readonly owner: string | null;
  readonly lessee: string | null;
}
/** Limits a list to the records of nodes in these shards and in these conductor groups, and to the nodes of a project. */
export interface NodeScope {
  readonly shards?: readonly string[] | undefined;
  readonly conductorGroups?: readonly string[] | undefined;
  /** The owner or the lessee of the node. */
  readonly project?: string | undefined;
}

const isContainer = (kind: ColumnKind | undefined): boolean => kind === 'json' || kind === 'jsonb' || kind === 'texts';
export type Columns<RecordType> = { readonly [Name in keyof RecordType]-?: ColumnKind };
/** The columns that every resource has. */
export const SHARED_COLUMNS: Columns<ResourceRecord> = {
  id: 'integer',
  uuid: 'text',
  created_at: 'time',
  updated_at: 'time',
  revision: 'integer',
};
/** A row in the form that knex expects. */
type ColumnValues = Record<string, unknown>;

const kindOf = (columns: Readonly<Record<string, ColumnKind>>, name: string): ColumnKind | undefined =>
  Object.hasOwn(columns, name) ? columns[name] : undefined;

export interface Row extends Change {
  readonly values: ColumnValues;
}
/**
 * Converts the members of a record to column values. Undefined members are omitted, so that the column's default applies.
 * @throws Fault TooLarge
 */
export function toRow(columns: Readonly<Record<string, ColumnKind>>, record: object, sizes: Sizes): Row {
  const row: ColumnValues = {};
  let bytes = 0;
  for (const [name, value] of Object.entries(record)) {
    if (value === undefined) continue;
    const kind = kindOf(columns, name);
    if (!kind) throw new TypeError(`No such column: ${name}`);
    if (kind === 'json' || kind === 'jsonb') {
      const text = kind === 'json' ? JSON.stringify(value ?? {}) : storableJson(value ?? {});
      bytes += checkJson(name, value, text, sizes);
      row[name] = text;
    } else if (kind === 'texts') {
      row[name] = value ?? [];
      checkJson(name, value, storableJson(row[name]), sizes);
    } else row[name] = kind === 'text' && typeof value === 'string' ? checkText(name, value, sizes) : (value as unknown);
  }
  checkTotal(bytes, sizes);
  return { values: row, columns: Object.keys(row), bytes };
}

/** Adds exact matches: null means IS NULL, a list means any of its values. */
export function applyWhere(query: Knex.QueryBuilder, columns: Readonly<Record<string, ColumnKind>>, where: object): void {
  for (const [name, value] of Object.entries(where) as [string, unknown][]) {
    if (value === undefined) continue;
    const kind = kindOf(columns, name);
    if (!kind || isContainer(kind)) throw new TypeError(`Not a column to filter by: ${name}`);
    if (value === null) void query.whereNull(name);
    else if (Array.isArray(value)) void query.whereRaw('?? = ANY(?)', [name, value]);
    else void query.where(name, value as string | number | boolean);
  }
}

/** Limits a query of nodes to those that the project owns or leases. */
export const applyProject = (query: Knex.QueryBuilder, project: string): void =>
  void query.where((either) => void either.where('owner', project).orWhere('lessee', project));

/** Whether the project owns or leases the node. Otherwise the node's records may not be markers in the project's lists. */
export async function isOfProject(db: Knex, nodeUuid: string, project: string | undefined): Promise<boolean> {
  if (project === undefined) return true;
  const query = db('nodes').select('uuid').where('uuid', nodeUuid);
  applyProject(query, project);
  return (await run(query)).length > 0;
}

/** Limits the query to records of nodes in one of the shards, in one of the conductor groups, and of the project. */
export function applyNodeScope(query: Knex.QueryBuilder, db: Knex, { shards, conductorGroups, project }: NodeScope): void {
  if (project !== undefined) void query.whereIn('node_uuid', (nodes) => applyProject(nodes.from('nodes').select('uuid'), project));
  for (const [column, values] of [
    ['shard', shards],
    ['conductor_group', conductorGroups],
  ] as const)
    if (values)
      void query.whereIn(
        'node_uuid',
        db('nodes')
          .select('uuid')
          .whereRaw('?? = ANY(?)', [column, [...values]]),
      );
}

/** Adds a case-insensitive "contains". As in Ironic, `%` and `_` in the text are wildcards. */
export const contains = (query: Knex.QueryBuilder, column: string, text: string): void =>
  void query.whereRaw("?? ILIKE ? ESCAPE ''", [column, `%${text}%`]);

/**
 * Adds order, position and limit. Nulls sort lowest, as in MySQL and SQLite, which Ironic usually runs on. Equal values are sorted by
 * id in the same direction.
 * @param marker the last row of the previous page
 */
export function applyPaging(
  query: Knex.QueryBuilder,
  columns: Readonly<Record<string, ColumnKind>>,
  paging: Paging,
  marker: Readonly<Record<string, unknown>> | undefined,
): void {
  const key = paging.sortKey ?? 'id';
  const kind = kindOf(columns, key);
  if (!kind || isContainer(kind))
    throw new Fault('InvalidParameterValue', { message: `The sort_key value "${key}" is an invalid field for sorting` });
  const descending = paging.sortDir === 'desc';
  const [than, direction, nulls] = descending ? (['<', 'desc', 'last'] as const) : (['>', 'asc', 'first'] as const);
  if (key !== 'id') void query.orderBy(key, direction, nulls);
  void query.orderBy('id', direction);
  if (paging.limit !== undefined) void query.limit(paging.limit);
  if (!marker) return;
  const id = marker['id'] as number;
  const value = (marker[key] ?? null) as string | number | boolean | null;
  if (key === 'id') void query.where('id', than, id);
  else if (value === null)
    void query.where((either) => {
      void either.where((tie) => void tie.whereNull(key).where('id', than, id));
      if (!descending) void either.orWhereNotNull(key);
    });
  else
    void query.where((either) => {
      void either.where(key, than, value).orWhere((tie) => void tie.where(key, value).where('id', than, id));
      if (descending) void either.orWhereNull(key);
    });
}

const nameOfList = createNames();
type ColumnLists<Row> = { readonly [Column in keyof Row]: readonly Row[Column][] };
/** Reads columns of the selected rows, in order. JSON arrays are cheaper to transfer than a thousand rows. */
async function columnsOf<Row>(
  db: Knex,
  prepared: Prepared,
  selection: Knex.QueryBuilder,
  columns: readonly (keyof Row & string)[],
): Promise<ColumnLists<Row>> {
  const page = selection.select(...columns).as('page');
  const lists = columns.map((column) => `coalesce(json_agg(${column}), '[]') AS ${column}`).join(', ');
  const { sql, bindings } = db.select(db.raw(lists)).from(page).toSQL().toNative();
  // PostgreSQL plans a named statement without its values, and would then read a whole table for a filter that few rows match. The limit
  // and the id of a marker, which are numbers, change no plan.
  const name = bindings.every((value) => typeof value === 'number') ? nameOfList(sql) : undefined;
  const [found] = await prepared<ColumnLists<Row>>(name, sql, bindings);
  return found!;
}
/** The versions of the selected rows, in order. */
export async function versionsOf(db: Knex, prepared: Prepared, selection: Knex.QueryBuilder): Promise<readonly RowVersion[]> {
  const lists = await columnsOf<RowVersion>(db, prepared, selection, ['id', 'revision']);
  return lists.id.map((id, index) => ({ id, revision: lists.revision[index]! }));
}
/** As `versionsOf`, with the owner and the lessee of each row. */
export async function ownedVersionsOf(db: Knex, prepared: Prepared, selection: Knex.QueryBuilder): Promise<readonly OwnedVersion[]> {
  const {
    id: ids,
    revision,
    owner,
    lessee,
  } = await columnsOf<OwnedVersion>(db, prepared, selection, ['id', 'revision', 'owner', 'lessee']);
  return ids.map((id, index) => ({ id, revision: revision[index]!, owner: owner[index]!, lessee: lessee[index]! }));
}
