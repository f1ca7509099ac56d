/** Lists and counts the rows of the table `nodes`. */
import type { Knex } from 'knex';
import { Fault } from '../../model/errors';
import type { InternalKey } from '../../model/internal-info';
import type { NodeRecord } from '../../model/records';
import { asked, batched, eachOf } from '../sql/batch';
import { run } from '../sql/faults';
import type { Prepared } from '../sql/prepared';
import { applyPaging, applyProject, applyWhere, contains, ownedVersionsOf, versionsOf } from '../sql/rows';
import type { OwnedVersion, Paging, RowVersion } from '../sql/rows';
import { sizesByIds } from '../sql/sizes';
import { findable, NODE_COLUMNS } from './node-lookups';

export interface NodeFilter extends Paging {
  readonly ids?: readonly number[];
  /** Exact matches on columns. Null: the column is null; a list: any of its values. */
  readonly where?: Readonly<Partial<Record<keyof NodeRecord, string | number | boolean | null | readonly string[]>>> | undefined;
  readonly associated?: boolean | undefined;
  readonly reserved?: boolean;
  readonly sharded?: boolean | undefined;
  readonly outOfService?: boolean | undefined;
  /** Only nodes whose power state is synchronised: those without maintenance, or out of service. */
  readonly powerSynchronised?: true;
  /** Only nodes with this key in driver_internal_info. */
  readonly internal?: InternalKey;
  /** Only nodes with one of these BMC addresses in `lookup_bmc_addresses`, which an inspection sets. */
  readonly bmcAddresses?: readonly string[];
  /** SQL LIKE on the description, with its `%` and `_`. */
  readonly descriptionContains?: string | undefined;
  /** The owner or the lessee. */
  readonly project?: string | undefined;
  /** Absent: only nodes without a parent. `'all'`: all nodes. A UUID: the children of that node. */
  readonly children?: string | undefined;
}
export interface NodeLists {
  list(filter: NodeFilter): Promise<readonly NodeRecord[]>;
  /** As `list`, but only these columns: for work on all nodes. */
  listColumns<Column extends keyof NodeRecord>(
    columns: readonly Column[],
    filter: NodeFilter,
  ): Promise<readonly Pick<NodeRecord, Column>[]>;
  /** Counts the nodes (of a conductor group) in these states, up to `limit`. */
  countInStates(limit: number, states: readonly string[], group?: string): Promise<number>;
  /** As `list`, but only the versions of the rows: for the cache of JSON. */
  versions(filter: NodeFilter): Promise<readonly RowVersion[]>;
  /** As `versions`, with the owner and the lessee of each node. */
  ownedVersions(filter: NodeFilter): Promise<readonly OwnedVersion[]>;
  /** Bytes of the texts and JSON of these rows, by ID. */
  sizes(ids: readonly number[]): Promise<ReadonlyMap<number, number>>;
  /** The number of nodes for each combination of these columns. */
  counts(): Promise<
    readonly (Pick<NodeRecord, 'provision_state' | 'power_state' | 'maintenance' | 'fault'> & { readonly count: number })[]
  >;
  /** The number of nodes of each shard (null: without a shard), the largest first. */
  shards(): Promise<readonly { readonly name: string | null; readonly count: number }[]>;
}

/** The condition of an index (migrations/002/0021_out_of_service.ts). */
const OUT_OF_SERVICE = `(out_of_service <> '{}')`;

/** @param find reads the node that a marker names */
export function nodeListsOn(db: Knex, prepared: Prepared, find: (ident: string) => Promise<NodeRecord>): NodeLists {
  /** A node of other projects counts as unknown. Otherwise the list's position would reveal the node's values. */
  const markerOf = async ({ marker, project }: NodeFilter): Promise<NodeRecord | undefined> => {
    if (marker === undefined) return undefined;
    const node = await find(marker);
    if (project !== undefined && node.owner !== project && node.lessee !== project) throw new Fault('NodeNotFound', { node: marker });
    return node;
  };
  /** The query of a list, without columns. */
  const selection = (filter: NodeFilter, marker: NodeRecord | undefined): Knex.QueryBuilder => {
    const query = db('nodes');
    if (filter.where) applyWhere(query, NODE_COLUMNS, filter.where);
    if (filter.ids) void query.whereRaw('nodes.id = ANY(?)', [[...filter.ids]]);
    for (const [column, expected] of [
      ['instance_uuid', filter.associated],
      ['reservation', filter.reserved],
      ['shard', filter.sharded],
    ] as const)
      if (expected !== undefined) void (expected ? query.whereNotNull(column) : query.whereNull(column));
    if (filter.outOfService !== undefined) void query.whereRaw(filter.outOfService ? OUT_OF_SERVICE : `NOT ${OUT_OF_SERVICE}`);
    if (filter.powerSynchronised) void query.whereRaw(`(NOT maintenance OR ${OUT_OF_SERVICE})`);
    if (filter.internal !== undefined) void query.whereRaw('jsonb_exists(driver_internal_info, ?)', [filter.internal]);
    if (filter.bmcAddresses !== undefined)
      void query.whereRaw("jsonb_exists_any(driver_internal_info -> 'lookup_bmc_addresses', ?)", [filter.bmcAddresses.filter(findable)]);
    if (filter.descriptionContains !== undefined) contains(query, 'description', filter.descriptionContains);
    if (filter.project !== undefined) applyProject(query, filter.project);
    if (filter.children === undefined) void query.whereNull('parent_node');
    else if (filter.children !== 'all') void query.where('parent_node', filter.children);
    applyPaging(query, NODE_COLUMNS, filter, marker as unknown as Record<string, unknown> | undefined);
    return query;
  };

  /** By states, limit and group as JSON. Clients count before each verb of many nodes. */
  const counts = batched(async (all: readonly string[]): Promise<readonly number[]> => {
    const found = new Map<string, number>();
    for (const key of new Set(all)) {
      const [states, limit, group] = JSON.parse(key) as [readonly string[], number, (string | null)?];
      const inGroup = typeof group === 'string' ? 'conductor_group = $3' : 'true';
      const text = `SELECT count(*) AS count FROM (${eachOf('nodes', 'provision_state', '1', inGroup)} LIMIT $2) AS counted`;
      const values = [asked(states), limit, ...(typeof group === 'string' ? [group] : [])];
      found.set(key, (await prepared<{ readonly count: number }>(`nodes_in_states ${inGroup}`, text, values))[0]!.count);
    }
    return all.map((key) => found.get(key)!);
  });
  return {
    list: async (filter) => run(selection(filter, await markerOf(filter)).select('*') as PromiseLike<NodeRecord[]>),
    listColumns: async (columns, filter) =>
      run(
        selection(filter, await markerOf(filter)).select(...columns) as unknown as PromiseLike<
          Pick<NodeRecord, (typeof columns)[number]>[]
        >,
      ),
    countInStates: (limit, states, group) => counts(JSON.stringify([states, limit, group])),
    versions: async (filter) => versionsOf(db, prepared, selection(filter, await markerOf(filter))),
    ownedVersions: async (filter) => ownedVersionsOf(db, prepared, selection(filter, await markerOf(filter))),

    sizes: (ids) => sizesByIds(prepared, 'nodes', NODE_COLUMNS, ids),

    async counts() {
      const kinds = ['provision_state', 'power_state', 'maintenance', 'fault'] as const;
      const counts = db('nodes').select(kinds).count({ count: '*' }).groupBy(kinds);
      return run(counts as unknown as PromiseLike<Awaited<ReturnType<NodeLists['counts']>>>);
    },
    async shards() {
      const counts = db('nodes').select({ name: 'shard' }).count({ count: '*' }).groupBy('shard');
      const ordered = counts.orderBy([
        { column: 'count', order: 'desc' },
        { column: 'name', order: 'asc', nulls: 'first' },
      ]);
      return run(ordered as unknown as PromiseLike<{ name: string | null; count: number }[]>);
    },
  };
}
