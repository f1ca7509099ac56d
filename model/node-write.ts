/** One write of a locked node, and its result. */
import { withoutUrlCredentials } from './urls';
import type { HistoryRecord, NewOf, NodeChanges, NodeRecord } from './records';

export type NewHistory = NewOf<HistoryRecord, 'node_uuid'>;
export interface NodeWrite {
  /** Column values. */
  readonly changes: NodeChanges;
  /** Keys of driver_internal_info; `undefined` removes one. */
  readonly internal: Readonly<Record<string, unknown>>;
  readonly history: readonly NewHistory[];
}
export const EMPTY_WRITE: NodeWrite = { changes: {}, internal: {}, history: [] };

export const isEmptyWrite = ({ changes, internal, history }: NodeWrite): boolean =>
  history.length === 0 && Object.keys(changes).length === 0 && Object.keys(internal).length === 0;

/** Merges two writes. The later one takes precedence. */
export const mergeWrites = (first: NodeWrite, later: NodeWrite): NodeWrite => ({
  changes: { ...first.changes, ...later.changes },
  internal: { ...first.internal, ...later.internal },
  history: [...first.history, ...later.history],
});

/** Removes URL credentials from `last_error` and history, because more users may read these than the fields with the URLs. */
export const withoutQuotedCredentials = ({ changes, internal, history }: NodeWrite): NodeWrite => ({
  changes: typeof changes.last_error === 'string' ? { ...changes, last_error: withoutUrlCredentials(changes.last_error) } : changes,
  internal,
  history: history.map((entry) => (typeof entry.event === 'string' ? { ...entry, event: withoutUrlCredentials(entry.event) } : entry)),
});

/** The value as the database returns it. */
const stored = <T>(value: T): T => (typeof value === 'object' && value !== null ? (JSON.parse(JSON.stringify(value)) as T) : value);

/** The node after this write, as the database would return it. */
export function applyWrite(node: NodeRecord, { changes, internal }: NodeWrite): NodeRecord {
  const columns = Object.fromEntries(
    Object.entries(changes).flatMap(([name, value]) => (value === undefined ? [] : [[name, stored(value)]])),
  ) as NodeChanges;
  const info: Record<string, unknown> = { ...(columns.driver_internal_info ?? node.driver_internal_info) };
  for (const [key, value] of Object.entries(internal)) {
    if (value === undefined) delete info[key];
    else info[key] = stored(value);
  }
  return { ...node, ...columns, driver_internal_info: info };
}
