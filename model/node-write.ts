/** One write of a locked node, and its result. */
import type { InternalChanges } from './internal-info';
import { isQuoting, quotable, storable, storableJson } from './text';
import { withoutUrlCredentials } from './urls';
import type { HistoryRecord, NewOf, NodeChanges, NodeRecord } from './records';

export type NewHistory = NewOf<HistoryRecord, 'node_uuid'>;
export interface NodeWrite {
  /** Column values. */
  readonly changes: NodeChanges;
  /** Keys of driver_internal_info; `undefined` removes one. */
  readonly internal: InternalChanges;
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

const quoted = (column: string, text: string): string => quotable(column, withoutUrlCredentials(text));
/**
 * Bounds `last_error`, `maintenance_reason` and history, and removes URL credentials from them, because more users may read these than the
 * fields with the URLs.
 */
export function withQuotesBounded({ changes, internal, history }: NodeWrite): NodeWrite {
  const texts = Object.entries(changes).flatMap(([name, value]) =>
    typeof value === 'string' && isQuoting(name) ? [[name, quoted(name, value)] as const] : [],
  );
  return {
    changes: texts.length === 0 ? changes : { ...changes, ...Object.fromEntries(texts) },
    internal,
    history: history.map((entry) => (typeof entry.event === 'string' ? { ...entry, event: quoted('event', entry.event) } : entry)),
  };
}

/** The value of a column as the database returns it. */
const stored = (column: string, value: unknown): unknown =>
  typeof value === 'string'
    ? storable(quotable(column, value))
    : typeof value === 'object' && value !== null
      ? (JSON.parse(JSON.stringify(value)) as unknown)
      : value;
/** The same of a key of driver_internal_info. */
const storedInternal = (value: unknown): unknown =>
  typeof value === 'object' && value !== null
    ? (JSON.parse(storableJson(value)) as unknown)
    : typeof value === 'string'
      ? storable(value)
      : value;

/** The node after this write, as the database would return it. */
export function applyWrite(node: NodeRecord, { changes, internal }: NodeWrite): NodeRecord {
  const columns = Object.fromEntries(
    Object.entries(changes).flatMap(([name, value]) => (value === undefined ? [] : [[name, stored(name, value)]])),
  ) as NodeChanges;
  const info: Record<string, unknown> = { ...(columns.driver_internal_info ?? node.driver_internal_info) };
  for (const [name, value] of Object.entries(internal)) {
    const key = storable(name);
    if (value === undefined) delete info[key];
    else info[key] = storedInternal(value);
  }
  return { ...node, ...columns, driver_internal_info: info };
}
