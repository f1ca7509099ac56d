/** What stops work on a node without being a failure of the node. */
import { Fault } from '../../model/errors';
import type { Context } from './context';

/** The reservation went to another while this task worked: it must end without touching the node. */
export class LockLost extends Fault {
  constructor(node: string) {
    super('NodeLocked', { node, host: 'another host' });
  }
}
/**
 * Whether a flow must leave the node as it is: another holds it now, this conductor stops and a later one goes on, or the database is away
 * and the flow is resumed when it is back (recovery.ts). None of that is a failure of the node's.
 */
export const isInterrupted = (context: Context, error: unknown): boolean =>
  error instanceof LockLost || context.signal.aborted || (error instanceof Fault && error.name === 'TemporaryFailure');
