/** What follows an abort, which the node's state shows already: done to its end, by this conductor or by the one that has the node next. */
import type { ProvisionState } from '../../model/states';
import type { NodeTask, InternalChanges } from '../core/node-task';
import { clean } from './clean';
import { deploy } from './deploy';
import { afterRescueAbort } from './rescue';
import { service } from './service';

interface Rest {
  /** Where the abort led. In another state somebody went on with the node: then nothing is left to do. */
  readonly states: readonly ProvisionState[];
  readonly work: (task: NodeTask) => Promise<void>;
}
const RESTS = {
  clean: { states: ['clean failed'], work: (task) => clean.afterAbort(task) },
  deploy: { states: ['deploy failed'], work: (task) => deploy.afterAbort(task) },
  rescue: { states: ['rescue failed'], work: afterRescueAbort },
  service: { states: ['service failed', 'active'], work: (task) => service.afterAbort(task) },
  // The instance was there before: two events lead to it, of which the second may be left.
  'service, active again': {
    states: ['service failed', 'active'],
    work: async (task) => {
      if (task.node.provision_state === 'service failed') await task.fire('abort', { last_error: null });
      await service.afterAbort(task);
    },
  },
} as const satisfies Record<string, Rest>;
export type Aborted = keyof typeof RESTS;

/** Key of driver_internal_info: the flow whose abort is not at its end. */
export const UNFINISHED_ABORT = 'abort_unfinished';
/** Goes with the event, and with the node until all is done. */
export const unfinished = (flow: Aborted): InternalChanges => ({ [UNFINISHED_ABORT]: flow });

/** May be done again from its beginning. */
export async function finishAbort(task: NodeTask): Promise<void> {
  const flow = task.node.driver_internal_info[UNFINISHED_ABORT];
  if (typeof flow !== 'string' || !Object.hasOwn(RESTS, flow)) return;
  const { states, work }: Rest = RESTS[flow as Aborted];
  if (states.includes(task.node.provision_state)) await work(task);
  task.note({}, { [UNFINISHED_ABORT]: undefined });
}
