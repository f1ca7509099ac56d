/**
 * The statements for reserved nodes: reserve, and write while the row has the fencing number of the reservation. Each is one prepared
 * statement and a transaction of its own: the node, its driver_internal_info and its history change together. After a lost response, a
 * write may be repeated with the same result. A repeated reservation or release changes nothing, but finds no matching row.
 */
import type { Clock } from '../../model/clock';
import { timestamp } from '../../model/clock';
import type { InternalKey } from '../../model/internal-info';
import { applyWrite, type NewHistory, type NodeWrite } from '../../model/node-write';
import type { NodeRecord } from '../../model/records';
import { storableJson } from '../../model/text';
import { nameOf, type Prepared } from '../sql/prepared';
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

interface LockedNodes {
  /** Undefined: the node does not exist or is reserved. */
  reserve(column: 'uuid' | 'name', ident: string, host: string): Promise<NodeRecord | undefined>;
  /** Undefined: the node does not exist, is not reserved, or its reservation has another fencing number. */
  write(node: NodeRecord, fence: number, write: NodeWrite, release: boolean): Promise<NodeRecord | undefined>;
}

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
    async reserve(column, ident, host) {
      const text =
        'UPDATE nodes SET reservation = $2, lock_fence = lock_fence + 1, revision = revision + 1, updated_at = $3 ' +
        `WHERE ${column} = $1 AND reservation IS NULL RETURNING ${all}`;
      const [node] = await prepared<NodeRecord>(`reserve_${column}`, text, [ident, host, timestamp(clock.now())]);
      return node;
    },

    async write(node, fence, write, release) {
      const now = timestamp(clock.now());
      const values: unknown[] = [node.uuid, fence, now];
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
      if (release) sets.push('reservation = NULL');
      const update =
        `UPDATE nodes SET ${[...sets, 'revision = revision + 1', 'updated_at = $3'].join(', ')} ` +
        'WHERE uuid = $1 AND lock_fence = $2 AND reservation IS NOT NULL RETURNING revision';
      const entries = write.history.map((entry) => {
        const row = { ...entry, event: checkText('event', entry.event ?? '', sizes), created_at: now };
        return `SELECT ${ENTRY_COLUMNS.map((name) => `${parameter(row[name] ?? null)}::${ENTRY[name]}`).join(', ')} FROM written`;
      });
      const text =
        entries.length === 0
          ? update
          : `WITH written AS (${update}), entries AS (INSERT INTO node_history ("${ENTRY_COLUMNS.join('", "')}") ${entries.join(' UNION ALL ')} ` +
            // The statement is repeated after a lost response.
            'ON CONFLICT (uuid) DO NOTHING) SELECT revision FROM written';
      const [done] = await prepared<{ revision: number }>(nameOf(text), text, values, { ...write.changes, uuid: node.uuid });
      if (!done) return undefined;
      // A higher revision means a concurrent write, such as a heartbeat or a token. A holder that continues then needs the node as stored.
      if (done.revision !== node.revision + 1 && !release) return find(node.uuid);
      return { ...applyWrite(node, write), revision: done.revision, updated_at: now };
    },
  };
}
