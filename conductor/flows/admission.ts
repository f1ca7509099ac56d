/** Checks of provision requests that several flows share, in Ironic's words. */
import { Fault, reasonOf } from '../../model/errors';
import type { InternalChanges } from '../../model/internal-info';
import type { NodeTask } from '../core/node-task';
import { keepAgentIfNeeded } from '../core/agent-info';

export function refuseInMaintenance({ node }: NodeTask, op: string): void {
  if (node.maintenance) throw new Fault('NodeInMaintenance', { op, node: node.uuid });
}

/** Runs a check. Its Fault with status 400 becomes InvalidParameterValue with the text of `sentence`. */
export async function refuseWith(sentence: (reason: string) => string, check: () => Promise<void>): Promise<void> {
  try {
    await check();
  } catch (error) {
    if (!(error instanceof Fault) || error.status !== 400) throw error;
    throw new Fault('InvalidParameterValue', { message: sentence(reasonOf(error)) }, { cause: error });
  }
}

/** The keys that a flow removes when it begins. Ignores `last_error`, which would forbid fast track, since the flow clears it too. */
export const forgottenAtBegin = (task: NodeTask, internal: InternalChanges): InternalChanges =>
  keepAgentIfNeeded(task, internal, { ...task.node, last_error: null });
