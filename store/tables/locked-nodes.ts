/**
 * The statements of a node that is held: reserved, written while the row carries the fencing number of that reservation, let go. Each is
 * one round trip, prepared, and a transaction by itself: the node, its driver_internal_info and the entries of its history change together.
 * Asked twice, because an answer was lost, it comes to the same.
 */
import { createHash } from 'node:crypto';
import type { Clock } from '../../model/clock';
import { timestamp } from '../../model/clock';
import { applyWrite, type NewHistory, type NodeWrite } from '../../model/node-write';
import type { NodeRecord } from '../../model/records';
import type { Prepared } from '../sql/prepared';
import { toRow, type Columns } from '../sql/rows';

/** Column of an entry → its type, for PostgreSQL does not guess that of a parameter in a SELECT. */
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

/** The same text has the same name on every connection. */
const nameOf = (text: string): string => `held_${createHash('sha1').update(text).digest('base64url')}`;

export interface LockedNodes {
  /** Undefined: there is no such node, or it is reserved. */
  reserve(column: 'uuid' | 'name', ident: string, host: string): Promise<NodeRecord | undefined>;
  /** Undefined: the reservation is no longer that of this fencing number, or the node is gone. */
  write(node: NodeRecord, fence: number, write: NodeWrite, release: boolean): Promise<NodeRecord | undefined>;
}

/** @param find reads a node whole, after somebody else wrote it too */
export function lockedNodesOn(
  prepared: Prepared,
  clock: Clock,
  columns: Columns<NodeRecord>,
  find: (uuid: string) => Promise<NodeRecord>,
): LockedNodes {
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
      const given = (value: unknown): string => `$${values.push(value)}`;
      const sets = Object.entries(toRow(columns, write.changes)).map(([name, value]) => `${name} = ${given(value)}`);
      const keys = Object.keys(write.internal);
      if (keys.length > 0) {
        const kept = given(JSON.stringify(write.internal));
        const removed = given(keys.filter((key) => write.internal[key] === undefined));
        sets.push(`driver_internal_info = (driver_internal_info || ${kept}::jsonb) - ${removed}::text[]`);
      }
      if (release) sets.push('reservation = NULL');
      const update =
        `UPDATE nodes SET ${[...sets, 'revision = revision + 1', 'updated_at = $3'].join(', ')} ` +
        'WHERE uuid = $1 AND lock_fence = $2 AND reservation IS NOT NULL RETURNING revision';
      const entries = write.history.map((entry) => {
        const row = { ...entry, created_at: now };
        return `SELECT ${ENTRY_COLUMNS.map((name) => `${given(row[name] ?? null)}::${ENTRY[name]}`).join(', ')} FROM written`;
      });
      const text =
        entries.length === 0
          ? update
          : `WITH written AS (${update}), entries AS (INSERT INTO node_history ("${ENTRY_COLUMNS.join('", "')}") ${entries.join(' UNION ALL ')} ` +
            // Asked again when the first answer was lost.
            'ON CONFLICT (uuid) DO NOTHING) SELECT revision FROM written';
      const [done] = await prepared<{ revision: number }>(nameOf(text), text, values, { ...write.changes, uuid: node.uuid });
      if (!done) return undefined;
      // What this task knows of the node is all there is to know, unless others (an agent's sign of life, a token) wrote it meanwhile.
      if (done.revision !== node.revision + 1 && !release) return find(node.uuid);
      return { ...applyWrite(node, write), revision: done.revision, updated_at: now };
    },
  };
}
