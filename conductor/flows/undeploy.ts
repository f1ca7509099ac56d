/** active and its like → deleting → cleaning: the instance ends, nothing of it stays on the node. */
import { done, failed, type Outcome } from '../../drivers/interfaces';
import type { NodeChanges } from '../../model/records';
import { endAllocation } from '../allocations';
import { FORGET_INSTANCE } from '../agent-info';
import type { Held } from '../task';
import { beginClean, clean, startingClean } from './clean';
import { saying, settle, type Flow } from './flow';
import { isRescued } from './rescue';

/** The columns that belong to the instance. */
const WIPED: NodeChanges = {
  instance_info: {},
  instance_uuid: null,
  allocation_uuid: null,
  instance_name: null,
  deploy_step: {},
  protected: false,
  protected_reason: null,
};
const wiped = (task: Held): NodeChanges => ({
  ...WIPED,
  ...(task.node.driver_internal_info.automatic_lessee === true ? { lessee: null } : {}),
});

export async function beginUndeploy(task: Held): Promise<Outcome> {
  return saying(
    task,
    (reason) => `Failed to tear down: ${reason}`,
    async () => {
      if (isRescued(task.node)) await task.driver.rescue.cleanUp?.(task);
      await task.driver.deploy.cleanUp?.(task);
      const outcome = await task.driver.deploy.tearDown(task);
      if (outcome.kind === 'failed') throw new Error(outcome.reason);
      return outcome.kind === 'done' ? done : failed('Failed to tear down: the deploy interface cannot wait here');
    },
  );
}

export const undeploy: Flow = {
  finish: async (task) => {
    await task.fire('clean', wiped(task), { ...FORGET_INSTANCE, ...startingClean() }, endAllocation(task.node));
    await settle(task, clean, () => beginClean(task));
  },
  fail: (task, reason) => task.fire('fail', { ...wiped(task), last_error: reason }, FORGET_INSTANCE, endAllocation(task.node)),
};
