/** Periodic work on this conductor's nodes, on several at once. A failure for one node does not stop the work on the others. */
import { Fault, reasonOf } from '../../model/errors';
import type { NodeRecord } from '../../model/records';
import type { NodeFilter } from '../../store/store';
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
export async function onNodes(context: Context, { purpose, filter, only, width, signal, work }: OnNodes): Promise<void> {
  const { store, options, log } = context;
  const found = await store.nodes.list({ ...filter, children: 'all' });
  const nodes = await context.ownNodes(only ? found.filter(only) : found);
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
