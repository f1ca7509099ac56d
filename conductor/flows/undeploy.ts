/** active and other states with an instance → deleting → cleaning: removes the instance and all that belongs to it from the node. */
import { done, failed } from '../../drivers/interfaces';
import { Fault, reasonOf } from '../../model/errors';
import { forgottenAt } from '../../model/internal-info';
import type { NodeChanges } from '../../model/records';
import { FORGET_TOKEN_AND_URL } from '../core/agent-info';
import { withFailureText } from '../core/attempt';
import { CLEANINGS } from '../core/concurrency';
import { isInterrupted } from '../core/interruption';
import type { NodeTask } from '../core/node-task';
import { validateInterface } from '../core/validate';
import { endAllocation } from '../requests/allocations';
import { stopConsole } from '../requests/console';
import { automatedRunbook } from '../steps/automated-runbook';
import { admitErase, runbookWithErase } from '../steps/erase-choice';
import { refuseWith } from './admission';
import { clean, startingClean } from './clean';
import type { Flow } from './flow';
import { applyOutcome } from './outcome';
import { isRescued } from './rescue';

/** The columns that belong to the instance. */
const INSTANCE_COLUMNS: NodeChanges = {
  instance_info: {},
  instance_uuid: null,
  allocation_uuid: null,
  instance_name: null,
  protected: false,
  protected_reason: null,
};
const withoutInstance = (task: NodeTask): NodeChanges => ({
  ...INSTANCE_COLUMNS,
  ...(task.node.driver_internal_info.automatic_lessee === true ? { lessee: null } : {}),
});

/** The runbook of the cleaning that follows, if any; or the reason why it cannot be used. Then the cleaning fails. */
const runbookOrReason = (task: NodeTask) =>
  automatedRunbook(task.context, task.node).catch((error: unknown) => {
    if (isInterrupted(task.context, error)) throw error;
    return reasonOf(error);
  });

async function tearDown(task: NodeTask): Promise<void> {
  if (isRescued(task.node)) await task.driver.rescue.cleanUp?.(task);
  // The console stays enabled: the next deployment starts it again.
  if (task.node.console_enabled) await stopConsole(task);
  await task.driver.deploy.cleanUp?.(task);
  const outcome = await task.driver.deploy.tearDown(task);
  if (outcome.kind === 'failed') throw new Error(outcome.reason);
  if (outcome.kind !== 'done') throw new Error('the deploy interface cannot wait here');
}
/** The VIFs belong to the instance. The next instance attaches its own. */
async function detachVifs(task: NodeTask): Promise<void> {
  const { network } = task.driver;
  for (const { id } of await network.vifList(task)) await network.vifDetach(task, id);
}

export const undeploy: Flow = {
  errorType: 'unprovision',
  usesDeploy: true,
  admit: {
    delete: {
      limit: { ...CLEANINGS, action: 'unprovisioning' },
      check: async (task, args) => {
        if (task.node.protected) throw new Fault('NodeProtected', { node: task.node.uuid });
        await refuseWith(
          (reason) => `Failed to validate power driver interface. Can not delete instance. Error: ${reason}`,
          () => validateInterface(task, 'power'),
        );
        const erase = await admitErase(task, args, 'forget');
        return { changes: { last_error: null }, internal: { ...FORGET_TOKEN_AND_URL, ...erase } };
      },
    },
  },
  begin: (task) =>
    withFailureText(
      task,
      (reason) => `Failed to tear down: ${reason}`,
      async () => {
        try {
          await tearDown(task);
        } finally {
          await detachVifs(task);
        }
        return done;
      },
    ),
  finish: async (task) => {
    const runbook = await runbookOrReason(task);
    const steps = typeof runbook === 'string' ? {} : runbookWithErase(task.node, runbook);
    await task.fire('clean', withoutInstance(task), { ...forgottenAt('instance end'), ...startingClean(steps) }, endAllocation(task.node));
    await applyOutcome(task, clean, async () => (typeof runbook === 'string' ? failed(runbook) : clean.begin(task)));
  },
  fail: (task, reason) =>
    task.end('fail', { ...withoutInstance(task), last_error: reason }, forgottenAt('instance end'), endAllocation(task.node)),
};
