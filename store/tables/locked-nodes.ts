/**
 * The statements for reserved nodes: reserve, write while the row has the fencing number of the reservation, and both at once. Each is one
 * prepared statement and a transaction of its own: the node, its driver_internal_info and its history change together. After a lost
 * response, a write may be repeated with the same result. A repeated reservation or release changes nothing, but finds no matching row.
 */
import type { Clock } from '../../model/clock';
import { timestamp } from '../../model/clock';
import type { InternalKey } from '../../model/internal-info';
import { applyWrite, type NewHistory, type NodeWrite } from '../../model/node-write';
import type { HeldNode, NodeRecord } from '../../model/records';
import { storableJson } from '../../model/text';
import { createNames, type Prepared } from '../sql/prepared';
import { toRow, type Columns } from '../sql/rows';
import { checkJson, checkText, type Change, type Sizes } from '../sql/sizes';

/** The column types of a history entry. PostgreSQL does not infer the type of a parameter in a SELECT. */
const ENTRY: Readonly<Record<keyof NewHistory | 'created_at', string>> = {
  uuid: 'text',
  node_uuid: 'text',
  conductor: 'text',
  event_type: 'text',
  severity: 'text',
  event: 'text',
  user: 'text',
  project: 'text',
  state: 'text',
  target_provision_state: 'text',
  duration_seconds: 'integer',
  created_at: 'timestamptz',
};
const ENTRY_COLUMNS = Object.keys(ENTRY) as (keyof typeof ENTRY)[];

/**
 * A write applies to the row under a reservation with this fencing number, or to the free row as it was read (same revision). The latter
 * reserves the node for the host, unless the write ends the reservation too.
 */
type Held = { readonly fence: number } | { readonly host: string };
interface LockedNodes {
  /** Undefined: the node does not exist or is reserved. @param internal keys of driver_internal_info, written in the same statement */
  reserve(column: 'uuid' | 'name', ident: string, host: string, internal?: NodeWrite['internal']): Promise<HeldNode | undefined>;
  /** Undefined: the node does not exist, or is not held as `held` says. */
  write(node: NodeRecord, held: Held, write: NodeWrite, release: boolean): Promise<HeldNode | undefined>;
}

/** Most installations have none, and their flows need not look for those of the node. */
const HAS_DEFAULTS = 'EXISTS (SELECT FROM default_configs) AS has_default_configs';
const AFTER_WRITE = 'revision, lock_fence, reservation';
type AfterWrite = Pick<HeldNode, 'has_default_configs' | 'lock_fence' | 'reservation' | 'revision'>;

// Flows write sets of columns that the program's code names, with few numbers of entries.
const nameOfWrite = createNames(500);

interface Parts {
  readonly prepared: Prepared;
  readonly clock: Clock;
  readonly columns: Columns<NodeRecord>;
  readonly sizes: Sizes;
  /** Throws TooLarge. */
  readonly checkWhole: (uuid: string, change: Change) => Promise<void>;
  /** Reads the whole node after a concurrent write. */
  readonly find: (uuid: string) => Promise<NodeRecord>;
}
export function lockedNodesOn({ prepared, clock, columns, sizes, checkWhole, find }: Parts): LockedNodes {
  const all = Object.keys(columns).join(', ');
  return {
    async reserve(column, ident, host, internal = {}) {
      const merged = Object.keys(internal).length > 0;
      const keys = merged ? [storableJson(internal)] : [];
      if (merged) {
        const bytes = checkJson('driver_internal_info', internal, keys[0]!, sizes);
        await checkWhole(ident, { columns: [], bytes, merged: Object.keys(internal) });
      }
      const text =
        'UPDATE nodes SET reservation = $2, lock_fence = lock_fence + 1, revision = revision + 1, updated_at = $3' +
        `${merged ? ', driver_internal_info = driver_internal_info || $4::jsonb' : ''} ` +
        `WHERE ${column} = $1 AND reservation IS NULL RETURNING ${all}, ${HAS_DEFAULTS}`;
      const name = merged ? `reserve_merged_${column}` : `reserve_${column}`;
      const [node] = await prepared<HeldNode>(name, text, [ident, host, timestamp(clock.now()), ...keys]);
      return node;
    },

    async write(node, held, write, release) {
      const now = timestamp(clock.now());
      const isHeld = 'fence' in held;
      const values: unknown[] = [node.uuid, isHeld ? held.fence : node.revision, now];
      const parameter = (value: unknown): string => `$${values.push(value)}`;
      const row = toRow(columns, write.changes, sizes);
      const sets = Object.entries(row.values).map(([name, value]) => `${name} = ${parameter(value)}`);
      const keys = Object.keys(write.internal) as InternalKey[];
      let { bytes } = row;
      if (keys.length > 0) {
        const text = storableJson(write.internal);
        bytes += checkJson('driver_internal_info', write.internal, text, sizes);
        const present = parameter(text);
        const removed = parameter(keys.filter((key) => write.internal[key] === undefined));
        sets.push(`driver_internal_info = (driver_internal_info || ${present}::jsonb) - ${removed}::text[]`);
      }
      await checkWhole(node.uuid, { columns: row.columns, bytes, merged: keys });
      if (isHeld && release) sets.push('reservation = NULL');
      if (!isHeld) sets.push('lock_fence = lock_fence + 1', ...(release ? [] : [`reservation = ${parameter(held.host)}`]));
      const update =
        `UPDATE nodes SET ${[...sets, 'revision = revision + 1', 'updated_at = $3'].join(', ')} ` +
        `WHERE uuid = $1 AND ${isHeld ? 'lock_fence = $2 AND reservation IS NOT NULL' : 'revision = $2 AND reservation IS NULL'} ` +
        `RETURNING ${AFTER_WRITE}${isHeld || release ? '' : `, ${HAS_DEFAULTS}`}`;
      const entries = write.history.map((entry) => {
        const row = { ...entry, event: checkText('event', entry.event ?? '', sizes), created_at: now };
        return `SELECT ${ENTRY_COLUMNS.map((name) => `${parameter(row[name] ?? null)}::${ENTRY[name]}`).join(', ')} FROM written`;
      });
      const text =
        entries.length === 0
          ? update
          : `WITH written AS (${update}), entries AS (INSERT INTO node_history ("${ENTRY_COLUMNS.join('", "')}") ${entries.join(' UNION ALL ')} ` +
            // The statement is repeated after a lost response.
            'ON CONFLICT (uuid) DO NOTHING) SELECT * FROM written';
      const [done] = await prepared<AfterWrite>(nameOfWrite(text), text, values, {
        ...write.changes,
        uuid: node.uuid,
      });
      if (!done) return undefined;
      // A higher revision means a concurrent write, such as a heartbeat or a token. A holder that continues then needs the node as stored.
      if (done.revision !== node.revision + 1 && !release) return find(node.uuid);
      return { ...applyWrite(node, write), ...done, updated_at: now };
    },
  };
}
