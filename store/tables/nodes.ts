/** The table `nodes`: records, the lock that is a column of the row, and its fencing number. */
import type { Knex } from 'knex';
import type { Clock } from '../../model/clock';
import { timestamp } from '../../model/clock';
import { Fault } from '../../model/errors';
import { NODE_FIELDS } from '../../model/fields';
import type { NodeChanges, NodeRecord } from '../../model/records';
import { batched } from '../sql/batch';
import { ALIVE_VERSION, aliveAt } from './conductors';
import { run } from '../sql/faults';
import { lockedNodesOn } from './locked-nodes';
import { preparedOn } from '../sql/prepared';
import { applyPaging, applyWhere, contains, SHARED_COLUMNS, toRow, versionsOf } from '../sql/rows';
import type { Columns } from '../sql/rows';
import type { AgentNode, NodeFilter, NodeSummary, Nodes } from '../store';

export const NODE_COLUMNS: Columns<NodeRecord> = { ...NODE_FIELDS, ...SHARED_COLUMNS, lock_fence: 'integer' };

/** Any spelling of a UUID; names never look like one (the API refuses such names). */
const UUID = /^[0-9a-f]{8}-?(?:[0-9a-f]{4}-?){3}[0-9a-f]{12}$/i;
/** The column that an identifier from outside is looked up in. */
export const identColumn = (ident: string): 'uuid' | 'name' => (UUID.test(ident) ? 'uuid' : 'name');
/** No text in the database has U+0000, and PostgreSQL refuses a query that mentions it. */
export const findable = (ident: string): boolean => ident !== '' && !ident.includes('\0');

const findBy = (column: string): string => `SELECT ${Object.keys(NODE_COLUMNS).join(', ')} FROM nodes WHERE ${column} = $1`;
const FIND = { uuid: findBy('uuid'), name: findBy('name') };
const AGENT_COLUMNS = ['uuid', 'name', 'provision_state', 'reservation', 'last_error', 'driver_info', 'driver_internal_info'] as const;
const STAMP_BEATS = `UPDATE nodes SET driver_internal_info = driver_internal_info || jsonb_build_object('agent_last_heartbeat', beat.at),
    revision = revision + 1, updated_at = $4
  FROM unnest($1::text[], $2::text[], $3::text[]) AS beat (uuid, url, at)
  WHERE nodes.uuid = beat.uuid AND driver_internal_info ->> 'agent_url' = beat.url`;
/** One, or many: a plan for many is made anew each time, and for one it is kept. */
const summariesBy = (condition: string): string =>
  `SELECT id, uuid, name, revision, owner, lessee, coalesce((${ALIVE_VERSION.replace('$2', '$3').replace('$1', '$2')}), '') AS conductors_version FROM nodes WHERE ${condition}`;

/**
 * @param db the pool, or a transaction
 * @param clock stamps created_at and updated_at
 */
export function nodesOn(db: Knex, clock: Clock): Nodes {
  const prepared = preparedOn(db);
  const nodes = () => db<NodeRecord>('nodes');
  /** What every write of a row adds. */
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
  /** A conditional write that met no row: says why. Only on the way to an error, so a second query costs nothing that matters. */
  const whyNot = async (ident: string): Promise<Fault> => {
    const node = await find(ident);
    return new Fault('NodeLocked', { node: node.uuid, host: node.reservation ?? 'another host' });
  };
  /** The row of this UUID; with a fence, only while its reservation is still the one that got that number. */
  const held = (uuid: string, fence: number | undefined) => {
    const query = nodes().where({ uuid: findable(uuid) ? uuid : '' });
    return fence === undefined ? query : query.where({ lock_fence: fence }).whereNotNull('reservation');
  };
  const write = async (uuid: string, row: object, fence: number | undefined, record: object): Promise<NodeRecord> => {
    const query = held(uuid, fence).update({ ...row, ...written() } as object, '*') as unknown as PromiseLike<NodeRecord[]>;
    const [node] = await run(query, { ...record, uuid });
    if (!node) throw await whyNot(uuid);
    return node;
  };

  /** driver_internal_info with these keys; `undefined` removes one. */
  const merged = (keys: Readonly<Record<string, unknown>>): Knex.Raw => {
    const kept = Object.fromEntries(Object.entries(keys).filter(([, value]) => value !== undefined));
    const removed = Object.keys(keys).filter((key) => !(key in kept));
    return db.raw('(driver_internal_info || ?::jsonb) - ?::text[]', [JSON.stringify(kept), removed]);
  };

  const markerOf = async ({ marker }: NodeFilter): Promise<NodeRecord | undefined> => (marker === undefined ? undefined : find(marker));
  /** The rows of a list, in order, without its columns. */
  const selection = (filter: NodeFilter, marker: NodeRecord | undefined): Knex.QueryBuilder => {
    const query = db('nodes');
    if (filter.where) applyWhere(query, NODE_COLUMNS, filter.where);
    if (filter.ids) void query.whereRaw('nodes.id = ANY(?)', [[...filter.ids]]);
    if (filter.after !== undefined) void query.where('nodes.id', '>', filter.after);
    for (const [column, wanted] of [
      ['instance_uuid', filter.associated],
      ['reservation', filter.reserved],
      ['shard', filter.sharded],
    ] as const)
      if (wanted !== undefined) void (wanted ? query.whereNotNull(column) : query.whereNull(column));
    if (filter.internal !== undefined) void query.whereRaw('jsonb_exists(driver_internal_info, ?)', [filter.internal]);
    if (filter.descriptionContains !== undefined) contains(query, 'description', filter.descriptionContains);
    const project = filter.project;
    if (project !== undefined) void query.where((either) => void either.where('owner', project).orWhere('lessee', project));
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
    async recordHeartbeats(beats) {
      const columns = (['nodeUuid', 'agentUrl', 'at'] as const).map((name) => beats.map((beat) => beat[name]));
      await prepared('stamp_beats', STAMP_BEATS, [...columns, timestamp(clock.now())]);
    },

    async findSummaries(idents, timeout) {
      const found = new Map<string, NodeSummary>();
      for (const column of ['uuid', 'name'] as const) {
        const asked = idents.filter((ident) => findable(ident) && identColumn(ident) === column);
        if (asked.length === 0) continue;
        const [how, value] = asked.length === 1 ? ['= $1', asked[0]!] : ['= ANY($1)', asked];
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
    async countInStates(most, states, group) {
      const inGroup = group === undefined ? '' : ' AND conductor_group = $3';
      const text = `SELECT count(*) AS count FROM (SELECT FROM nodes WHERE provision_state = ANY($1)${inGroup} LIMIT $2) AS found`;
      const values = [states, most, ...(group === undefined ? [] : [group])];
      const [found] = await prepared<{ count: number }>(`nodes_in_states${inGroup}`, text, values);
      return found!.count;
    },
    versions: async (filter) => versionsOf(db, selection(filter, await markerOf(filter))),

    update: (uuid, changes: NodeChanges, fence) => write(uuid, toRow(NODE_COLUMNS, changes), fence, changes),

    async updateUnlocked(uuid, changes, revision) {
      const free = nodes()
        .where({ uuid: findable(uuid) ? uuid : '', revision })
        .whereNull('reservation');
      const row = { ...toRow(NODE_COLUMNS, changes), ...written() } as object;
      const [node] = await run(free.update(row, '*') as unknown as PromiseLike<NodeRecord[]>, { ...changes, uuid });
      return node;
    },

    mergeInternal: (uuid, keys, fence) => write(uuid, { driver_internal_info: merged(keys) }, fence, {}),

    async mergeInternalOnce(uuid, keys) {
      const lacking = held(uuid, undefined).whereRaw("coalesce(driver_internal_info ->> ?, '') = ''", [Object.keys(keys)[0]!]);
      const changed = await run(lacking.update({ driver_internal_info: merged(keys), ...written() } as object));
      if (changed === 0) await find(uuid);
      return changed > 0;
    },

    async remove(uuid, fence) {
      const gone = await run(held(uuid, fence).delete());
      if (gone === 0) throw await whyNot(uuid);
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
      if (!now) throw await whyNot(node.uuid);
      return now;
    },

    async release(uuid, fence) {
      await run(held(uuid, fence).update({ reservation: null, ...written() } as object));
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
      // The row as it was comes from a subquery: RETURNING shows it as it is now.
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
