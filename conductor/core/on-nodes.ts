/** Periodic work on this conductor's nodes, on several at once. A failure for one node does not stop the work on the others. */
import { Fault, reasonOf } from '../../model/errors';
import type { NodeRecord } from '../../model/records';
import type { NodeFilter } from '../../store/store';
import { sliced } from '../../wire/turns';
import type { Context } from './context';
import { inParallel } from '../runtime/parallel';

interface OnNodes {
  readonly purpose: string;
  readonly filter: NodeFilter;
  /** A condition beyond the columns; absent: all nodes. */
  readonly only?: (node: NodeRecord) => boolean;
  /** How many nodes at once; default: [conductor]periodic_max_workers. */
  readonly width?: number;
  readonly signal?: AbortSignal;
  readonly work: (node: NodeRecord) => Promise<unknown>;
}
/** Nodes whose sizes are read at once. */
const SIZED = 250;
/** This conductor's matching nodes, read in slices, so that not all are in memory at once. Nodes that changed since may be missing. */
export async function* ownNodesOf(
  context: Context,
  filter: NodeFilter,
  only: (node: NodeRecord) => boolean = () => true,
): AsyncGenerator<NodeRecord, void> {
  const { store } = context;
  const all = (await store.nodes.listColumns(['id'], { ...filter, children: 'all' })).map(({ id }) => id);
  for (let from = 0; from < all.length; from += SIZED) {
    const ids = all.slice(from, from + SIZED);
    const sizes = await store.nodes.sizes(ids);
    for (const slice of sliced(ids, (id) => sizes.get(id) ?? 0))
      yield* await context.ownNodes((await store.nodes.list({ ...filter, ids: slice, children: 'all' })).filter(only));
  }
}
export async function onNodes(context: Context, { purpose, filter, only, width, signal, work }: OnNodes): Promise<void> {
  const { options, log } = context;
  const nodes = ownNodesOf(context, filter, only);
  await inParallel(nodes, width ?? options['conductor.periodic_max_workers'], signal ?? context.signal, async (node) => {
    try {
      await work(node);
    } catch (error) {
      // Locked or deleted: other work uses the node.
      if (!(error instanceof Fault) && !context.signal.aborted)
        log.warn(`${purpose}: the work on node ${node.uuid} failed`, { reason: reasonOf(error), error });
    }
  });
}
