/**
 * What every table's file shares: columns as a table, records to columns, and the paging of lists. Column names that come from
 * callers reach SQL only if they are in the table.
 */
import type { Knex } from 'knex';
import { Fault } from '../../model/errors';
import type { ResourceRecord } from '../../model/records';
import { run } from './faults';
import type { NodeScope, Paging, RowVersion } from '../store';

/** How a column is written and whether lists may be sorted and filtered by it. */
export type ColumnKind = 'text' | 'boolean' | 'integer' | 'time' | 'json' | 'texts';
export type Columns<RecordType> = { readonly [Name in keyof RecordType]-?: ColumnKind };
/** The columns that every resource has. */
export const SHARED_COLUMNS: Columns<ResourceRecord> = {
  id: 'integer',
  uuid: 'text',
  created_at: 'time',
  updated_at: 'time',
  revision: 'integer',
};
/** A row as knex takes it. */
export type ColumnValues = Record<string, unknown>;

const kindOf = (columns: Readonly<Record<string, ColumnKind>>, name: string): ColumnKind | undefined =>
  Object.hasOwn(columns, name) ? columns[name] : undefined;

/** Members of a record as values for its columns; absent members stay absent, so that the column's default holds. */
export function toRow(columns: Readonly<Record<string, ColumnKind>>, record: object): ColumnValues {
  const row: ColumnValues = {};
  for (const [name, value] of Object.entries(record)) {
    if (value === undefined) continue;
    const kind = kindOf(columns, name);
    if (!kind) throw new TypeError(`No such column: ${name}`);
    if (kind === 'json') row[name] = JSON.stringify(value ?? {});
    else if (kind === 'texts') row[name] = value ?? [];
    else row[name] = value as unknown;
  }
  return row;
}

/** Adds the exact matches: null is "is null", a list is "any of". */
export function applyWhere(query: Knex.QueryBuilder, columns: Readonly<Record<string, ColumnKind>>, where: object): void {
  for (const [name, value] of Object.entries(where) as [string, unknown][]) {
    if (value === undefined) continue;
    const kind = kindOf(columns, name);
    if (!kind || kind === 'json' || kind === 'texts') throw new TypeError(`Not a column to filter by: ${name}`);
    if (value === null) void query.whereNull(name);
    else if (Array.isArray(value)) void query.whereRaw('?? = ANY(?)', [name, value]);
    else void query.where(name, value as string | number | boolean);
  }
}

/** Those that belong to nodes in one of the shards, and in one of the conductor groups. */
export function applyNodeScope(query: Knex.QueryBuilder, db: Knex, { shards, conductorGroups }: NodeScope): void {
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

/** A condition for "contains", whatever the letters' case; `%` and `_` stand for any text and any character, as clients know them. */
export const contains = (query: Knex.QueryBuilder, column: string, text: string): void =>
  void query.whereRaw("?? ILIKE ? ESCAPE ''", [column, `%${text}%`]);

/**
 * Adds order, position and limit. Nulls sort lowest (first when ascending), as on the databases that Ironic runs on mostly; ties are
 * broken by id in the same direction. `marker` is the row after which the page begins.
 */
export function applyPaging(
  query: Knex.QueryBuilder,
  columns: Readonly<Record<string, ColumnKind>>,
  paging: Paging,
  marker: Readonly<Record<string, unknown>> | undefined,
): void {
  const key = paging.sortKey ?? 'id';
  const kind = kindOf(columns, key);
  if (!kind || kind === 'json' || kind === 'texts')
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

/** The versions of the rows that `selection` finds, in its order. As two arrays of text: a thousand rows cost more than their reading. */
export async function versionsOf(db: Knex, selection: Knex.QueryBuilder): Promise<readonly RowVersion[]> {
  const page = selection.select('id', 'revision').as('page');
  const [found] = (await run(
    db.select(db.raw(`coalesce(json_agg(id), '[]') AS ids, coalesce(json_agg(revision), '[]') AS revisions`)).from(page),
  )) as unknown as readonly { readonly ids: readonly number[]; readonly revisions: readonly number[] }[];
  const { ids, revisions } = found!;
  return ids.map((id, index) => ({ id, revision: revisions[index]! }));
}
