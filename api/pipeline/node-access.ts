/** Which fields of a node a caller may read. Some fields have a policy of their own; everybody who sees the node sees the others. */
import type { NodeRecord } from '../../model/records';
import type { FieldRow } from '../schema/document';
import type { Target } from '../../policy/vocabulary';
import type { ApiContext, Request } from './handler';

/** Shown in place of the value, in Ironic's words. */
export const REDACTED: Readonly<Record<string, unknown>> = {
  last_error: '** Value Redacted - Requires baremetal:node:get:last_error permission. **',
  reservation: '** Redacted - requires baremetal:node:get:reservation permission. **',
  driver_internal_info: { content: '** Redacted - Requires baremetal:node:get:driver_internal_info permission. **' },
  driver_info: { content: '** Redacted - requires baremetal:node:get:driver_info permission. **' },
};
/** The policies that show secrets, which are masked otherwise, and the fields that have them. */
const SECRETS: readonly (readonly [policy: string, fields: readonly string[]])[] = [
  ['show_password', ['driver_info', 'driver_internal_info']],
  ['show_instance_secrets', ['instance_info']],
];

interface Readable {
  /** Equal for callers and nodes whose presentation is the same. */
  readonly key: string;
  /** Fields whose value the caller may not read. */
  readonly unreadable: ReadonlySet<string>;
  /** Fields whose secrets are shown. */
  readonly unmasked: ReadonlySet<string>;
}
export interface NodeAccess {
  /** The caller may read the same fields of all nodes, whatever their projects. */
  readonly isUniform: boolean;
  /** @param node may be absent if `isUniform` */
  to(node?: Target): Readable;
}

/** The rows with a policy of their own, and the policies of their secrets, by the rows that are shown. */
const guards = new WeakMap<readonly FieldRow[], { readonly guarded: readonly FieldRow[]; readonly secrets: typeof SECRETS }>();
function guardsOf(rows: readonly FieldRow[]): { readonly guarded: readonly FieldRow[]; readonly secrets: typeof SECRETS } {
  const known = guards.get(rows);
  if (known) return known;
  const found = {
    guarded: rows.filter(({ readPolicy }) => readPolicy !== null),
    secrets: SECRETS.filter(([, fields]) => rows.some(({ name }) => fields.includes(name))),
  };
  guards.set(rows, found);
  return found;
}

/**
 * @param rows the fields that are shown
 * @param isList as in Ironic, a list checks the policy `node:get:filter_threshold` once and without a node
 */
export function nodeAccess(
  { caller }: Pick<Request, 'caller'>,
  { auth }: Pick<ApiContext, 'auth'>,
  rows: readonly FieldRow[],
  isList: boolean,
): NodeAccess {
  const { guarded, secrets } = guardsOf(rows);
  const unmasked = new Set(secrets.flatMap(([policy, fields]) => (auth.allowed(caller, policy) ? fields : [])));
  const isAbove = (node?: Target): boolean => auth.allowed(caller, 'node:get:filter_threshold', node);
  const readable = (unreadable: readonly string[]): Readable => ({
    key: [...unreadable, '-', ...unmasked].join(),
    unreadable: new Set(unreadable),
    unmasked,
  });

  const all = readable([]);
  if (guarded.length === 0 || isAbove()) return { isUniform: true, to: () => all };
  const known = new Map<string, Readable>();
  const evaluate = (node: Target): Readable =>
    !isList && isAbove(node)
      ? all
      : readable(guarded.filter(({ readPolicy }) => !auth.allowed(caller, readPolicy!, node)).map(({ name }) => name));
  return {
    isUniform: false,
    to(node) {
      const { owner, lessee } = node!;
      const projects = JSON.stringify([owner, lessee]);
      const before = known.get(projects);
      if (before) return before;
      const found = evaluate({ owner, lessee });
      known.set(projects, found);
      return found;
    },
  };
}

/** The node with `last_error` and `reservation` redacted if the caller may not read them, for responses with parts of a node. */
export function readableNode(
  node: NodeRecord,
  request: Pick<Request, 'caller'>,
  context: Pick<ApiContext, 'auth' | 'document'>,
): NodeRecord {
  const { unreadable } = nodeAccess(request, context, context.document.fields('Node'), false).to(node);
  const shown = (name: 'last_error' | 'reservation'): string | null =>
    node[name] !== null && unreadable.has(name) ? String(REDACTED[name]) : node[name];
  return { ...node, last_error: shown('last_error'), reservation: shown('reservation') };
}
