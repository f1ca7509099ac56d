/** The table `nodes`: records, the reservation (the lock is a column of the row) and its fencing number. */
import type { Knex } from 'knex';
import type { Clock } from '../../model/clock';
import { timestamp } from '../../model/clock';
import { Fault } from '../../model/errors';
import type { InternalChanges } from '../../model/internal-info';
import { defined } from '../../model/json';
import { EMPTY_WRITE, type NodeWrite } from '../../model/node-write';
import type { NewNode, NodeChanges, NodeRecord } from '../../model/records';
import { storableJson } from '../../model/text';
import { run } from '../sql/faults';
import { createNames, insertOf, preparedOn } from '../sql/prepared';
import { toRow, type Row } from '../sql/rows';
import { checkJson, createTotalCheck, DEFAULT_SIZES, type Sizes } from '../sql/sizes';
import { lockedNodesOn } from './locked-nodes';
import { nodeListsOn, type NodeLists } from './node-lists';
import { findable, identColumn, NODE_COLUMNS, nodeLookupsOn, type LookupNode, type NodeLookups } from './node-lookups';

/** Methods with a `fence` throw NodeLocked if the row has another fencing number: another conductor has taken over the lock. */
interface Nodes extends NodeLookups, NodeLists {
  /** Missing columns get Ironic's defaults; the state is `enroll`. Throws NodeAlreadyExists, DuplicateName, InstanceAssociated. */
  create(node: NewNode): Promise<NodeRecord>;
  /** Records the times of heartbeats in one statement, except for nodes whose agent has another URL now. */
  recordHeartbeats(heartbeats: readonly { readonly nodeUuid: string; readonly agentUrl: string; readonly at: string }[]): Promise<void>;
  /** Raises the revision and sets updated_at. Throws NodeNotFound, DuplicateName, InstanceAssociated. */
  update(uuid: string, changes: NodeChanges, fence?: number): Promise<NodeRecord>;
  /** As `update`, but only while the row has this revision and no reservation; undefined otherwise. */
  updateUnlocked(uuid: string, changes: NodeChanges, revision: number): Promise<NodeRecord | undefined>;
  /** Sets keys of driver_internal_info in one statement, so that no concurrent write is lost; `undefined` removes a key. */
  mergeInternal(uuid: string, keys: InternalChanges, fence?: number): Promise<NodeRecord>;
  /**
   * As `mergeInternal`, but only while the first of the keys is absent or empty; false otherwise. Throws NodeLocked while the power changes:
   * the system that asks is about to end.
   */
  mergeInternalOnce(uuid: string, keys: InternalChanges): Promise<boolean>;
  /** Removes the node and everything that belongs to it, such as its ports. */
  remove(uuid: string, fence?: number): Promise<void>;
  /**
   * Sets `reservation` by one conditional UPDATE, which raises the fencing number. Throws NodeLocked (with the holder), NodeNotFound.
   * @param internal keys of driver_internal_info that are set in the same statement
   */
  reserve(ident: string, host: string, internal?: NodeWrite['internal']): Promise<NodeRecord>;
  /** @param host changes nothing if another host has made the reservation with this fencing number */
  release(uuid: string, fence: number, host?: string): Promise<void>;
  /**
   * Writes a reserved node and the entries of its history in one statement, and returns the node as stored. `node` is the holder's copy.
   * `release` ends the reservation. Throws NodeLocked, NodeNotFound.
   */
  writeLocked(node: NodeRecord, fence: number, write: NodeWrite, release?: boolean): Promise<NodeRecord>;
  /**
   * Reserves a node that is free and has the revision of `node`, and writes it, in one statement. `release`: without the reservation.
   * Undefined: the node is reserved, or has changed.
   */
  reserveUnchanged(node: NodeRecord, host: string, write: NodeWrite, release?: boolean): Promise<NodeRecord | undefined>;
  /** Ends all reservations of this host, which are stale because the host has just started. Returns the nodes as they were before. */
  releaseAll(host: string): Promise<readonly NodeRecord[]>;
}

const [nameOfInsert, nameOfUpdate] = [createNames(), createNames()];
const ALL = Object.keys(NODE_COLUMNS).join(', ');
const RECORD_HEARTBEATS = `UPDATE nodes SET driver_internal_info = driver_internal_info || jsonb_build_object('agent_last_heartbeat', heartbeat.at),
    revision = revision + 1, updated_at = $4
  FROM unnest($1::text[], $2::text[], $3::text[]) AS heartbeat (uuid, url, at)
  WHERE nodes.uuid = heartbeat.uuid AND driver_internal_info ->> 'agent_url' = heartbeat.url`;
/** RETURNING would show the new row, so the previous one comes from a subquery. */
const RELEASE_ALL = `UPDATE nodes SET reservation = NULL, revision = nodes.revision + 1, updated_at = :now
  FROM (SELECT * FROM nodes WHERE reservation = :host ORDER BY id FOR UPDATE) AS was
  WHERE nodes.id = was.id RETURNING was.*`;

const lockedBy = ({ uuid: node, reservation }: Pick<NodeRecord, 'uuid' | 'reservation'>): Fault =>
  new Fault('NodeLocked', { node, host: reservation ?? 'another host' });
function refuseDuringPowerChange(node: Pick<NodeRecord, 'uuid' | 'reservation' | 'target_power_state'>): void {
  if (node.target_power_state !== null) throw lockedBy(node);
}
/**
 * Writes a key that is missing. A power change may end between the write and the read: then the key is still missing, and the write is tried
 * again.
 * @returns false: the node has the key
 * @throws Fault NodeLocked while the power changes
 */
async function mergedOnce(key: keyof InternalChanges, write: () => Promise<number>, read: () => Promise<LookupNode>): Promise<boolean> {
  for (let attempt = 0; ; attempt++) {
    if ((await write()) > 0) return true;
    const now = await read();
    refuseDuringPowerChange(now);
    if ((now.driver_internal_info as InternalChanges)[key]) return false;
    if (attempt === 3) throw lockedBy(now);
  }
}
/**
 * The row for a write that found no reserved row. If the write ends the reservation, it may be repeated after a lost response: then the row
 * has its state. Throws NodeLocked otherwise.
 */
function afterRelease(
  found: NodeRecord,
  fence: number,
  { changes: { provision_state: state, provision_updated_at: at } }: NodeWrite,
): NodeRecord {
  const isOurs = found.lock_fence === fence && found.reservation === null;
  if (isOurs && state !== undefined && found.provision_state === state && found.provision_updated_at === at) return found;
  throw lockedBy(found);
}

/** driver_internal_info with these keys set; `undefined` removes a key. */
function mergedRow(db: Knex, keys: InternalChanges, sizes: Sizes): Row {
  const present = defined(keys);
  const removed = Object.keys(keys).filter((key) => !(key in present));
  const text = storableJson(present);
  return {
    values: { driver_internal_info: db.raw('(driver_internal_info || ?::jsonb) - ?::text[]', [text, removed]) },
    columns: [],
    bytes: checkJson('driver_internal_info', keys, text, sizes),
    merged: Object.keys(keys),
  };
}

/**
 * @param db the pool, or a transaction
 * @param clock for created_at and updated_at
 */
export function nodesOn(db: Knex, clock: Clock, sizes: Sizes = DEFAULT_SIZES): Nodes {
  const prepared = preparedOn(db);
  const checkWhole = createTotalCheck('nodes', NODE_COLUMNS, sizes, prepared);
  const nodes = () => db<NodeRecord>('nodes');
  /** The columns that every write sets. */
  const written = () => ({ revision: db.raw('nodes.revision + 1'), updated_at: timestamp(clock.now()) });
  const lookups = nodeLookupsOn(prepared, clock);
  const { find } = lookups;
  const lockedRows = lockedNodesOn({ prepared, clock, columns: NODE_COLUMNS, sizes, checkWhole, find });
  /** The fault for a conditional write that changed no row. Reads the row again. */
  const conflictOf = async (ident: string): Promise<Fault> => lockedBy(await find(ident));
  /** Selects the row of this UUID. With a fence: only while its reservation has that fencing number. */
  const fenced = (uuid: string, fence: number | undefined) => {
    const query = nodes().where({ uuid: findable(uuid) ? uuid : '' });
    return fence === undefined ? query : query.where({ lock_fence: fence }).whereNotNull('reservation');
  };
  const write = async (uuid: string, row: Row, fence: number | undefined, record: object): Promise<NodeRecord> => {
    await checkWhole(uuid, row);
    const query = fenced(uuid, fence).update({ ...row.values, ...written() } as object, '*') as unknown as PromiseLike<NodeRecord[]>;
    const [node] = await run(query, { ...record, uuid });
    if (!node) throw await conflictOf(uuid);
    return node;
  };

  return {
    ...lookups,
    ...nodeListsOn(db, prepared, find),

    async create(node) {
      const row = { ...toRow(NODE_COLUMNS, node, sizes).values, created_at: timestamp(clock.now()) };
      const text = insertOf('nodes', Object.keys(row), ALL);
      const [made] = await prepared<NodeRecord>(nameOfInsert(text), text, Object.values(row), node);
      return made!;
    },

    async recordHeartbeats(heartbeats) {
      const columns = (['nodeUuid', 'agentUrl', 'at'] as const).map((name) => heartbeats.map((heartbeat) => heartbeat[name]));
      await prepared('record_heartbeats', RECORD_HEARTBEATS, [...columns, timestamp(clock.now())]);
    },

    update: async (uuid, changes: NodeChanges, fence) => write(uuid, toRow(NODE_COLUMNS, changes, sizes), fence, changes),

    async updateUnlocked(uuid, changes, revision) {
      const made = toRow(NODE_COLUMNS, changes, sizes);
      await checkWhole(uuid, made);
      const sets = made.columns.map((column, index) => `"${column}" = $${index + 4}, `).join('');
      const text =
        `UPDATE nodes SET ${sets}revision = revision + 1, updated_at = $3 ` +
        `WHERE uuid = $1 AND revision = $2 AND reservation IS NULL RETURNING ${ALL}`;
      const values = [findable(uuid) ? uuid : '', revision, timestamp(clock.now()), ...Object.values(made.values)];
      const [node] = await prepared<NodeRecord>(nameOfUpdate(text), text, values, { ...changes, uuid });
      return node;
    },

    mergeInternal: async (uuid, keys, fence) => write(uuid, mergedRow(db, keys, sizes), fence, {}),

    async mergeInternalOnce(uuid, keys) {
      const [first] = Object.keys(keys) as [keyof InternalChanges];
      const lacking = () =>
        fenced(uuid, undefined).whereNull('target_power_state').whereRaw("coalesce(driver_internal_info ->> ?, '') = ''", [first]);
      const write = (): Promise<number> => run(lacking().update({ ...mergedRow(db, keys, sizes).values, ...written() } as object));
      return mergedOnce(first, write, () => lookups.findLookup(uuid));
    },

    async remove(uuid, fence) {
      const gone = await run(fenced(uuid, fence).delete(), { uuid });
      if (gone === 0) throw await conflictOf(uuid);
    },

    async reserve(ident, host, internal) {
      // If `reserve` finds no free row, and `find` a free one a moment later, the holder released the node in between: try again.
      for (let attempt = 0; ; attempt++) {
        const node = findable(ident) ? await lockedRows.reserve(identColumn(ident), ident, host, internal) : undefined;
        if (node) return node;
        const { uuid, reservation } = await find(ident);
        if (reservation !== null || attempt === 3) throw lockedBy({ uuid, reservation });
      }
    },

    async writeLocked(node, fence, write, release = false) {
      const now = await lockedRows.write(node, { fence }, write, release);
      if (now) return now;
      return afterRelease(await find(node.uuid), fence, release ? write : EMPTY_WRITE);
    },

    reserveUnchanged: async (node, host, write, release = false) => lockedRows.write(node, { host }, write, release),

    async release(uuid, fence, host) {
      const held = fenced(uuid, fence);
      await run((host === undefined ? held : held.where({ reservation: host })).update({ reservation: null, ...written() } as object));
    },

    async releaseAll(host) {
      const { rows } = await run(db.raw<{ rows: NodeRecord[] }>(RELEASE_ALL, { now: timestamp(clock.now()), host }));
      return rows;
    },
  };
}
