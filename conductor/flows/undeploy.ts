/** active and its like → deleting → cleaning: the instance ends, nothing of it stays on the node. */
import { stopConsole } from '../requests/console';
import { done, failed, type Outcome } from '../../drivers/interfaces';
import type { NodeChanges } from '../../model/records';
import { endAllocation } from '../requests/allocations';
import { reasonOf } from '../../model/errors';
import { FORGET_INSTANCE } from '../core/agent-info';
import { automatedRunbook } from '../steps/automated-runbook';
import type { NodeTask } from '../core/node-task';
import { isInterrupted } from '../core/interruption';
import { beginClean, clean, startingClean } from './clean';
import { applyOutcome, type Flow } from './flow';
import { failingWith } from '../core/attempt';
import { isRescued } from './rescue';

/** The columns that belong to the instance. */
const WIPED: NodeChanges = {
  instance_info: {},
  instance_uuid: null,
  allocation_uuid: null,
  instance_name: null,
  protected: false,
  protected_reason: null,
};
const wiped = (task: NodeTask): NodeChanges => ({
  ...WIPED,
  ...(task.node.driver_internal_info.automatic_lessee === true ? { lessee: null } : {}),
});

export async function beginUndeploy(task: NodeTask): Promise<Outcome> {
  return failingWith(
    task,
    (reason) => `Failed to tear down: ${reason}`,
    async () => {
      if (isRescued(task.node)) await task.driver.rescue.cleanUp?.(task);
      // It stays enabled: the next instance has it again.
      if (task.node.console_enabled) await stopConsole(task);
      await task.driver.deploy.cleanUp?.(task);
      const outcome = await task.driver.deploy.tearDown(task);
      if (outcome.kind === 'failed') throw new Error(outcome.reason);
      return outcome.kind === 'done' ? done : failed('Failed to tear down: the deploy interface cannot wait here');
    },
  );
}

/** The runbook of the cleaning that follows, or why it cannot be had: no machine becomes available that was not cleaned as it shall be. */
const runbookOr = (task: NodeTask) =>
  automatedRunbook(task.context, task.node).catch((error: unknown) => {
    if (isInterrupted(task.context, error)) throw error;
    return reasonOf(error);
  });

export const undeploy: Flow = {
  finish: async (task) => {
    const runbook = await runbookOr(task);
    const asked = typeof runbook === 'string' ? {} : runbook;
    await task.fire('clean', wiped(task), { ...FORGET_INSTANCE, ...startingClean(asked) }, endAllocation(task.node));
    await applyOutcome(task, clean, async () => (typeof runbook === 'string' ? failed(runbook) : beginClean(task)));
  },
  fail: (task, reason) => task.fire('fail', { ...wiped(task), last_error: reason }, FORGET_INSTANCE, endAllocation(task.node)),
};
