/** The reasons to stop work on a node that are not failures of the node. */
import { Fault } from '../../model/errors';
import type { Context } from './context';

/** Another conductor got the reservation while this task worked: the task must end without a write to the node. */
export class LockLost extends Fault {
  constructor(node: string) {
    super('NodeLocked', { node, host: 'another host' });
  }
}
/**
 * Whether work must leave the node as it is: another conductor holds it, this one stops, or the database is unreachable. Recovery
 * (engine/recovery.ts) continues the flow. None of these is a failure of the node.
 */
export const isInterrupted = (context: Context, error: unknown): boolean =>
  error instanceof LockLost || context.signal.aborted || (error instanceof Fault && error.name === 'TemporaryFailure');
