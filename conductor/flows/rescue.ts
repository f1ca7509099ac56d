/** active → rescue, by way of rescue wait while the agent boots. */
import { done } from '../../drivers/interfaces';
import { Fault, reasonOf } from '../../model/errors';
import { forgottenAt } from '../../model/internal-info';
import type { InterfaceKind, JsonObject, NodeRecord } from '../../model/records';
import { FORGET_TOKEN_AND_URL } from '../core/agent-info';
import { attempt, withFailureText } from '../core/attempt';
import type { NodeTask } from '../core/node-task';
import { validateInterface } from '../core/validate';
import { refuseInMaintenance } from './admission';
import { reported, unfinishedAbort, type Flow } from './flow';
import { applyOutcome } from './outcome';
import { hashPassword } from './password-hash';

const PASSWORDS = ['rescue_password', 'hashed_rescue_password'];
/** instance_info without the passwords of the rescue system. */
const withoutPasswords = ({ instance_info: info }: NodeRecord): JsonObject =>
  Object.fromEntries(Object.entries(info).filter(([key]) => !PASSWORDS.includes(key)));
/** Whether the node has the passwords of a rescue system, which the machine may be running. */
export const isRescued = ({ instance_info: info }: NodeRecord): boolean => PASSWORDS.some((key) => Object.hasOwn(info, key));

/** Checks interfaces before the response. Any Fault becomes `fault`. */
export async function validateForRescue(
  task: NodeTask,
  fault: 'InstanceRescueFailure' | 'InstanceUnrescueFailure',
  kinds: readonly InterfaceKind[],
): Promise<void> {
  try {
    for (const kind of kinds) await validateInterface(task, kind);
  } catch (error) {
    if (!(error instanceof Fault)) throw error;
    const { uuid: node, instance_uuid: instance } = task.node;
    throw new Fault(fault, { instance: instance ?? 'None', node, reason: `Validation failed: ${reasonOf(error)}` }, { cause: error });
  }
}

export const rescue: Flow = {
  errorType: 'rescue',
  admit: {
    rescue: {
      check: async (task, { rescue_password: password = '' }) => {
        refuseInMaintenance(task, 'rescuing');
        const { options, random } = task.context;
        const hashed = hashPassword(password, options['conductor.rescue_password_hash_algorithm'], random);
        const instance = { ...withoutPasswords(task.node), rescue_password: password, hashed_rescue_password: hashed };
        // The rescue interface checks the password too. The password is saved only when everything is valid.
        const withPassword: NodeTask = { ...task, node: { ...task.node, instance_info: instance } };
        await validateForRescue(withPassword, 'InstanceRescueFailure', ['power', 'rescue', 'network']);
        return { changes: { last_error: null, instance_info: instance }, internal: FORGET_TOKEN_AND_URL };
      },
    },
  },
  begin: (task) =>
    withFailureText(
      task,
      (reason) => `Failed to rescue: ${reason}`,
      () => task.driver.rescue.rescue(task),
    ),
  waiting: {
    inMaintenance: 'Rescue aborted as node is in maintenance mode',
    wake: async (task) => {
      await task.fire('resume');
      await applyOutcome(task, rescue, async () => {
        await withFailureText(
          task,
          (reason) => `Node failed to perform rescue operation: ${reason}`,
          async () => task.driver.rescue.finish?.(task),
        );
        return done;
      });
    },
    timeout: {
      text: () => 'Timeout reached while waiting for rescue ramdisk callback for node',
      interval: 'conductor.check_rescue_state_interval',
    },
  },
  finish: (task) => task.end('done', {}, forgottenAt('poll end')),
  asksAgent: true,
  fail: async (task, reason, how) => {
    const failure = await attempt(task, 'cleaning up the rescue', async () => {
      if (!task.node.disable_power_off) await task.power('power off');
      await task.driver.rescue.cleanUp?.(task);
    });
    const text = failure === undefined ? reason : `Rescue operation was unsuccessful, clean up failed for node: ${failure}`;
    await task.end(
      'fail',
      { last_error: reported(text, how), instance_info: withoutPasswords(task.node) },
      { ...FORGET_TOKEN_AND_URL, ...forgottenAt('poll end') },
    );
  },
  abort: {
    'rescue wait': (task) =>
      task.fire('abort', { last_error: null, instance_info: withoutPasswords(task.node) }, unfinishedAbort('rescue')),
  },
  afterAbort: {
    states: ['rescue failed'],
    work: async (task) => {
      const failure = await attempt(task, 'cleaning up the rescue', async () => task.driver.rescue.cleanUp?.(task));
      const type = 'rescue';
      if (failure === undefined)
        return task.record({ type, event: 'By request, the rescue operation was aborted.', error: false }, {}, FORGET_TOKEN_AND_URL);
      const event = 'Failed to clean up rescue after aborting the operation';
      return task.record({ type, event, error: true }, { maintenance: true, maintenance_reason: event, fault: 'rescue abort failure' });
    },
  },
};
