/** PUT …/states/provision with `abort` and `unhold`: how an operation that waits or is held ends, or goes on. */
import { Fault, reasonOf } from '../../model/errors';
import type { ProvisionState } from '../../model/states';
import { FORGET_TOKEN_AND_URL } from '../core/agent-info';
import { finishAbort, unfinished } from '../flows/after-abort';
import { clean } from '../flows/clean';
import { deploy } from '../flows/deploy';
import { aborted, type SteppedFlow } from '../flows/flow';
import { withoutPasswords } from '../flows/rescue';
import { service } from '../flows/service';
import { positionOf } from '../steps/running';
import type { NodeTask, InternalChanges } from '../core/node-task';
import { wake } from './waiting';

/** Fires the event; what is returned goes on after the answer. */
type Handler = (task: NodeTask) => Promise<(() => Promise<void>) | undefined>;

/** A step that cannot be stopped is only marked: the abort follows when it is over. Answers whether it was. */
async function markedForLater(task: NodeTask, { kind }: SteppedFlow): Promise<boolean> {
  const { running } = positionOf(task, kind);
  if (!running || running.abortable) return false;
  await task.save({ [`${kind}_step`]: { ...running, abort_after: true } });
  return true;
}
const steps =
  (flow: SteppedFlow, internal: InternalChanges = {}): Handler =>
  async (task) => {
    if (await markedForLater(task, flow)) return undefined;
    await task.fire('abort', { last_error: aborted(task, flow.kind) }, { ...internal, ...unfinished(flow.kind) });
    return () => finishAbort(task);
  };
/** The instance was there before: the node ends active again. */
const servicing: Handler = async (task) => {
  if (await markedForLater(task, service)) return undefined;
  await task.fire('fail', {}, unfinished('service, active again'));
  await task.fire('abort', { last_error: null });
  return () => finishAbort(task);
};

/** State → how an abort goes there. */
const ABORTS: Partial<Record<ProvisionState, Handler>> = {
  'clean wait': steps(clean),
  'clean hold': steps(clean),
  // The agent is not heard any more at once.
  'wait call-back': steps(deploy, FORGET_TOKEN_AND_URL),
  'deploy hold': steps(deploy, FORGET_TOKEN_AND_URL),
  'service wait': servicing,
  'service hold': servicing,
  'service failed': async (task) => {
    if (task.node.maintenance)
      throw new Fault('InvalidState', {
        message:
          `Can not abort service on node "${task.node.uuid}" while it is in maintenance mode. Please remove the node from ` +
          'maintenance prior to issuing the request to abort the service operation.',
      });
    await task.fire('abort', { last_error: null }, unfinished('service'));
    return () => finishAbort(task);
  },
  'rescue wait': async (task) => {
    await task.fire('abort', { last_error: null, instance_info: withoutPasswords(task.node) }, unfinished('rescue'));
    return () => finishAbort(task);
  },
  'inspect wait': async (task) => {
    const { inspect: driver } = task.driver;
    if (!driver.abort)
      throw new Fault('UnsupportedDriverExtension', { driver: task.node.inspect_interface ?? task.node.driver, extension: 'abort' });
    try {
      await driver.abort(task);
    } catch (error) {
      await task.record({ type: 'introspection', event: `Failed to abort inspection: ${reasonOf(error)}`, error: true });
      throw error;
    }
    await task.record({ type: 'introspection', event: 'Inspection was aborted by request.', error: true });
    await task.fire('abort', { inspection_started_at: null }, { ...FORGET_TOKEN_AND_URL, lookup_bmc_addresses: undefined });
    return undefined;
  },
};
export const abort: Handler = async (task) => ABORTS[task.node.provision_state]!(task);

/** Ends a hold: the next heartbeat goes on; servicing, and a machine without an agent that could speak, at once. */
export const unhold: Handler = async (task) => {
  const atOnce = task.node.provision_state === 'service hold' || task.node.driver_internal_info.agent_url === undefined;
  await task.fire('unhold');
  return atOnce ? () => wake(task, 'unhold') : undefined;
};
