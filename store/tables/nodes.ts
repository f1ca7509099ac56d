/** The table `nodes`: records, the reservation (the lock is a column of the row) and its fencing number. */
import type { Knex } from 'knex';
import type { Clock } from '../../model/clock';
import { timestamp } from '../../model/clock';
import { Fault } from '../../model/errors';
import { NODE_FIELDS } from '../../model/fields';
import type { NodeWrite } from '../../model/node-write';
import type { NewNode, NodeChanges, NodeRecord } from '../../model/records';
import { batched } from '../sql/batch';
import { ALIVE_VERSION, aliveAt } from './conductors';
import { run } from '../sql/faults';
import { lockedNodesOn } from './locked-nodes';
import { preparedOn } from '../sql/prepared';
import { applyPaging, applyProject, applyWhere, contains, ownedVersionsOf, SHARED_COLUMNS, toRow, versionsOf } from '../sql/rows';
import type { Columns, OwnedVersion, Paging, RowVersion } from '../sql/rows';

/** The columns that the handler of heartbeats reads. */
export type AgentNode = Pick<
  NodeRecord,
  'uuid' | 'name' | 'provision_state' | 'reservation' | 'last_error' | 'driver_info' | 'driver_internal_info'
>;
/** The columns that a request needs to find a node, check its policies and look up its cached JSON. */
export interface NodeSummary extends OwnedVersion {
  readonly uuid: string;
  /** The version of the alive conductors (`Conductors.alive`), read in the same query. */
  readonly conductors_version: string;
}
export interface NodeFilter extends Paging {
  readonly ids?: readonly number[];
  /** Only rows with a higher id: for reading all nodes in portions while others add and remove some. */
  readonly after?: number;
  /** Exact matches on columns. Null: the column is null; a list: any of its values. */
  readonly where?: Readonly<Partial<Record<keyof NodeRecord, string | number | boolean | null | readonly string[]>>>;
  readonly associated?: boolean;
  readonly reserved?: boolean;
  readonly sharded?: boolean;
  /** Only nodes with this key in driver_internal_info. */
  readonly internal?: string;
  /** Only nodes whose inspection noted one of these addresses of their BMC. */
  readonly bmcAddresses?: readonly string[];
  /** SQL LIKE on the description, with its `%` and `_`. */
  readonly descriptionContains?: string;
  /** The owner or the lessee. */
  readonly project?: string;
  /** Absent: only nodes without a parent. `'all'`: all nodes. A UUID: the children of that node. */
  readonly children?: string;
}
/** Methods with a `fence` throw NodeLocked if the row has another fencing number: another conductor has taken over the lock. */
export interface Nodes {
  /** Missing columns get Ironic's defaults; the state is `enroll`. Throws NodeAlreadyExists, DuplicateName, InstanceAssociated. */
  create(node: NewNode): Promise<NodeRecord>;
  /** By UUID or name. Throws NodeNotFound. */
  find(ident: string): Promise<NodeRecord>;
  /** The columns that a heartbeat needs. Concurrent calls share one query. Throws NodeNotFound. */
  findAgent(ident: string): Promise<AgentNode>;
  /** Records the times of heartbeats in one statement, except for nodes whose agent has another URL now. */
  recordHeartbeats(heartbeats: readonly { readonly nodeUuid: string; readonly agentUrl: string; readonly at: string }[]): Promise<void>;
  /** By UUIDs and names, in their order; undefined for unknown ones. `timeout`: see `Conductors.alive`. */
  findSummaries(idents: readonly string[], timeout: number): Promise<readonly (NodeSummary | undefined)[]>;
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
  /** The same with the projects of the nodes. */
  ownedVersions(filter: NodeFilter): Promise<readonly OwnedVersion[]>;
  /** Raises the revision and sets updated_at. Throws NodeNotFound, DuplicateName, InstanceAssociated. */
  update(uuid: string, changes: NodeChanges, fence?: number): Promise<NodeRecord>;
  /** As `update`, but only while the row has this revision and no reservation; undefined otherwise. */
  updateUnlocked(uuid: string, changes: NodeChanges, revision: number): Promise<NodeRecord | undefined>;
  /** Sets keys of driver_internal_info in one statement, so that no concurrent write is lost; `undefined` removes a key. */
  mergeInternal(uuid: string, keys: Readonly<Record<string, unknown>>, fence?: number): Promise<NodeRecord>;
  /** As `mergeInternal`, but only while the first of the keys is absent or empty; false otherwise. */
  mergeInternalOnce(uuid: string, keys: Readonly<Record<string, unknown>>): Promise<boolean>;
  /** Removes the node and everything that belongs to it, such as its ports. */
  remove(uuid: string, fence?: number): Promise<void>;
  /** Sets `reservation` by one conditional UPDATE, which raises the fencing number. Throws NodeLocked (with the holder), NodeNotFound. */
  reserve(ident: string, host: string): Promise<NodeRecord>;
  release(uuid: string, fence: number): Promise<void>;
  /** The number of nodes for each combination of these columns. */
  counts(): Promise<
    readonly (Pick<NodeRecord, 'provision_state' | 'power_state' | 'maintenance' | 'fault'> & { readonly count: number })[]
  >;
  /**
   * Writes a reserved node and the entries of its history in one statement, and answers the node as stored. `node` is the holder's copy.
   * `release` ends the reservation. Throws NodeLocked, NodeNotFound.
   */
  writeLocked(node: NodeRecord, fence: number, write: NodeWrite, release?: boolean): Promise<NodeRecord>;
  /** The number of nodes of each shard (null: without a shard), the largest first. */
  shards(): Promise<readonly { readonly name: string | null; readonly count: number }[]>;
  /** Ends all reservations of this host, which are stale because the host has just started. Answers the nodes as they were before. */
  releaseAll(host: string): Promise<readonly NodeRecord[]>;
}

export const NODE_COLUMNS: Columns<NodeRecord> = { ...NODE_FIELDS, ...SHARED_COLUMNS, lock_fence: 'integer' };

/** A UUID with or without hyphens. The API refuses names that match. */
const UUID = /^[0-9a-f]{8}-?(?:[0-9a-f]{4}-?){3}[0-9a-f]{12}$/i;
/** The column to look up an identifier from a request in. */
export const identColumn = (ident: string): 'uuid' | 'name' => (UUID.test(ident) ? 'uuid' : 'name');
/** False for texts that no row can have: PostgreSQL refuses U+0000 in texts and in queries. */
export const findable = (ident: string): boolean => ident !== '' && !ident.includes('\0');

const findBy = (column: string): string => `SELECT ${Object.keys(NODE_COLUMNS).join(', ')} FROM nodes WHERE ${column} = $1`;
const FIND = { uuid: findBy('uuid'), name: findBy('name') };
const AGENT_COLUMNS = ['uuid', 'name', 'provision_state', 'reservation', 'last_error', 'driver_info', 'driver_internal_info'] as const;
const RECORD_HEARTBEATS = `UPDATE nodes SET driver_internal_info = driver_internal_info || jsonb_build_object('agent_last_heartbeat', heartbeat.at),
    revision = revision + 1, updated_at = $4
  FROM unnest($1::text[], $2::text[], $3::text[]) AS heartbeat (uuid, url, at)
  WHERE nodes.uuid = heartbeat.uuid AND driver_internal_info ->> 'agent_url' = heartbeat.url`;
/** One UUID has a statement of its own: PostgreSQL caches its plan, but plans a list anew each time. */
const summariesBy = (condition: string): string =>
  `SELECT id, uuid, name, revision, owner, lessee, coalesce((${ALIVE_VERSION.replace('$2', '$3').replace('$1', '$2')}), '') AS conductors_version FROM nodes WHERE ${condition}`;

/**
 * @param db the pool, or a transaction
 * @param clock for created_at and updated_at
 */
export function nodesOn(db: Knex, clock: Clock): Nodes {
  const prepared = preparedOn(db);
  const nodes = () => db<NodeRecord>('nodes');
  /** The columns that every write sets. */
  const written = () => ({ revision: db.raw('nodes.revision + 1'), updated_at: timestamp(clock.now()) });

  const find = async (ident: string): Promise<NodeRecord> => {
    const column = identColumn(ident);
    const [node] = findable(ident) ? await prepared<NodeRecord>(`node_${column}`, FIND[column], [ident]) : [];
    if (!node) throw new Fault('NodeNotFound', { node: ident });
    return node;
  };
  const agentsBy = (column: 'uuid' | 'name') =>
    batched(async (idents: readonly string[]) => {
      const text = `SELECT ${AGENT_COLUMNS.join(', ')} FROM nodes WHERE ${column} = ANY($1)`;
      const found = new Map((await prepared<AgentNode>(`agents_${column}`, text, [idents])).map((node) => [node[column], node]));
      return idents.map((ident) => found.get(ident));
    });
  const agents = { uuid: agentsBy('uuid'), name: agentsBy('name') };
  const lockedRows = lockedNodesOn(prepared, clock, NODE_COLUMNS, find);
  /** The fault for a conditional write that changed no row. Reads the row again. */
  const conflictOf = async (ident: string): Promise<Fault> => {
    const node = await find(ident);
    return new Fault('NodeLocked', { node: node.uuid, host: node.reservation ?? 'another host' });
  };
  /** Selects the row of this UUID. With a fence: only while its reservation has that fencing number. */
  const fenced = (uuid: string, fence: number | undefined) => {
    const query = nodes().where({ uuid: findable(uuid) ? uuid : '' });
    return fence === undefined ? query : query.where({ lock_fence: fence }).whereNotNull('reservation');
  };
  const write = async (uuid: string, row: object, fence: number | undefined, record: object): Promise<NodeRecord> => {
    const query = fenced(uuid, fence).update({ ...row, ...written() } as object, '*') as unknown as PromiseLike<NodeRecord[]>;
    const [node] = await run(query, { ...record, uuid });
    if (!node) throw await conflictOf(uuid);
    return node;
  };

  /** driver_internal_info with these keys set; `undefined` removes a key. */
  const merged = (keys: Readonly<Record<string, unknown>>): Knex.Raw => {
    const present = Object.fromEntries(Object.entries(keys).filter(([, value]) => value !== undefined));
    const removed = Object.keys(keys).filter((key) => !(key in present));
    return db.raw('(driver_internal_info || ?::jsonb) - ?::text[]', [JSON.stringify(present), removed]);
  };

  /** A node of other projects is answered as missing. Otherwise the order would reveal its values. */
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
    if (filter.after !== undefined) void query.where('nodes.id', '>', filter.after);
    for (const [column, expected] of [
      ['instance_uuid', filter.associated],
      ['reservation', filter.reserved],
      ['shard', filter.sharded],
    ] as const)
      if (expected !== undefined) void (expected ? query.whereNotNull(column) : query.whereNull(column));
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

  return {
    find,

    async create(node) {
      const row = { ...toRow(NODE_COLUMNS, node), created_at: timestamp(clock.now()) };
      const [made] = await run(nodes().insert(row as object, '*') as unknown as PromiseLike<NodeRecord[]>, node);
      return made!;
    },

    async findAgent(ident) {
      const node = findable(ident) ? await agents[identColumn(ident)](ident) : undefined;
      if (!node) throw new Fault('NodeNotFound', { node: ident });
      return node;
    },
    async recordHeartbeats(heartbeats) {
      const columns = (['nodeUuid', 'agentUrl', 'at'] as const).map((name) => heartbeats.map((heartbeat) => heartbeat[name]));
      await prepared('record_heartbeats', RECORD_HEARTBEATS, [...columns, timestamp(clock.now())]);
    },

    async findSummaries(idents, timeout) {
      const found = new Map<string, NodeSummary>();
      for (const column of ['uuid', 'name'] as const) {
        const matching = idents.filter((ident) => findable(ident) && identColumn(ident) === column);
        if (matching.length === 0) continue;
        const [how, value] = matching.length === 1 ? ['= $1', matching[0]!] : ['= ANY($1)', matching];
        const summaries = await prepared<NodeSummary & Pick<NodeRecord, 'name'>>(`${column} ${how}`, summariesBy(`${column} ${how}`), [
          value,
          timeout,
          aliveAt(clock),
        ]);
        for (const summary of summaries) found.set(summary[column]!, summary);
      }
      return idents.map((ident) => found.get(ident));
    },

    list: async (filter) => run(selection(filter, await markerOf(filter)).select('*') as PromiseLike<NodeRecord[]>),
    listColumns: async (columns, filter) =>
      run(
        selection(filter, await markerOf(filter)).select(...columns) as unknown as PromiseLike<
          Pick<NodeRecord, (typeof columns)[number]>[]
        >,
      ),
    async countInStates(limit, states, group) {
      const inGroup = group === undefined ? '' : ' AND conductor_group = $3';
      const text = `SELECT count(*) AS count FROM (SELECT FROM nodes WHERE provision_state = ANY($1)${inGroup} LIMIT $2) AS found`;
      const values = [states, limit, ...(group === undefined ? [] : [group])];
      const [found] = await prepared<{ count: number }>(`nodes_in_states${inGroup}`, text, values);
      return found!.count;
    },
    versions: async (filter) => versionsOf(db, selection(filter, await markerOf(filter))),
    ownedVersions: async (filter) => ownedVersionsOf(db, selection(filter, await markerOf(filter))),

    update: (uuid, changes: NodeChanges, fence) => write(uuid, toRow(NODE_COLUMNS, changes), fence, changes),

    async updateUnlocked(uuid, changes, revision) {
      const unlocked = nodes()
        .where({ uuid: findable(uuid) ? uuid : '', revision })
        .whereNull('reservation');
      const row = { ...toRow(NODE_COLUMNS, changes), ...written() } as object;
      const [node] = await run(unlocked.update(row, '*') as unknown as PromiseLike<NodeRecord[]>, { ...changes, uuid });
      return node;
    },

    mergeInternal: (uuid, keys, fence) => write(uuid, { driver_internal_info: merged(keys) }, fence, {}),

    async mergeInternalOnce(uuid, keys) {
      const lacking = fenced(uuid, undefined).whereRaw("coalesce(driver_internal_info ->> ?, '') = ''", [Object.keys(keys)[0]!]);
      const changed = await run(lacking.update({ driver_internal_info: merged(keys), ...written() } as object));
      if (changed === 0) await find(uuid);
      return changed > 0;
    },

    async remove(uuid, fence) {
      const gone = await run(fenced(uuid, fence).delete());
      if (gone === 0) throw await conflictOf(uuid);
    },

    async reserve(ident, host) {
      // Met no row, and found it free a moment later: the holder let go in between.
      for (let attempt = 0; ; attempt++) {
        const node = findable(ident) ? await lockedRows.reserve(identColumn(ident), ident, host) : undefined;
        if (node) return node;
        const { uuid, reservation } = await find(ident);
        if (reservation !== null || attempt === 3) throw new Fault('NodeLocked', { node: uuid, host: reservation ?? 'another host' });
      }
    },

    async writeLocked(node, fence, write, release = false) {
      const now = await lockedRows.write(node, fence, write, release);
      if (!now) throw await conflictOf(node.uuid);
      return now;
    },

    async release(uuid, fence) {
      await run(fenced(uuid, fence).update({ reservation: null, ...written() } as object));
    },

    async counts() {
      const kinds = ['provision_state', 'power_state', 'maintenance', 'fault'] as const;
      const counts = db('nodes').select(kinds).count({ count: '*' }).groupBy(kinds);
      return run(counts as unknown as PromiseLike<Awaited<ReturnType<Nodes['counts']>>>);
    },
    async shards() {
      const counts = db('nodes').select({ name: 'shard' }).count({ count: '*' }).groupBy('shard');
      const ordered = counts.orderBy([
        { column: 'count', order: 'desc' },
        { column: 'name', order: 'asc', nulls: 'first' },
      ]);
      return run(ordered as unknown as PromiseLike<{ name: string | null; count: number }[]>);
    },

    async releaseAll(host) {
      // RETURNING would show the new row, so the previous one comes from a subquery.
      const { rows } = await run(
        db.raw<{ rows: NodeRecord[] }>(
          `UPDATE nodes SET reservation = NULL, revision = nodes.revision + 1, updated_at = :now
             FROM (SELECT * FROM nodes WHERE reservation = :host ORDER BY id FOR UPDATE) AS was
            WHERE nodes.id = was.id RETURNING was.*`,
          { now: timestamp(clock.now()), host },
        ),
      );
      return rows;
    },
  };
}
