/** active → rescue, by way of rescue wait when an agent must call; and back. */
import { done, type Outcome } from '../../drivers/interfaces';
import type { NodeRecord, JsonObject } from '../../model/records';
import { FORGET_POLL, FORGET_TOKEN_AND_URL } from '../core/agent-info';
import type { NodeTask } from '../core/node-task';
import type { Flow } from './flow';
import { failingWith, attempt } from '../core/attempt';

const PASSWORDS = ['rescue_password', 'hashed_rescue_password'];
/** instance_info without the passwords of the rescue system. */
export const withoutPasswords = ({ instance_info: info }: NodeRecord): JsonObject =>
  Object.fromEntries(Object.entries(info).filter(([key]) => !PASSWORDS.includes(key)));
/** A rescue system may be in the machine: its passwords are on the node. */
export const isRescued = ({ instance_info: info }: NodeRecord): boolean => PASSWORDS.some((key) => Object.hasOwn(info, key));

export const beginRescue = (task: NodeTask): Promise<Outcome> =>
  failingWith(
    task,
    (reason) => `Failed to rescue: ${reason}`,
    () => task.driver.rescue.rescue(task),
  );

/** The agent called: what is left to do before the rescue system is the user's. */
export async function finishRescue(task: NodeTask): Promise<Outcome> {
  await failingWith(
    task,
    (reason) => `Node failed to perform rescue operation: ${reason}`,
    async () => task.driver.rescue.finish?.(task),
  );
  return done;
}

export const rescue: Flow = {
  finish: (task) => task.fire('done', {}, FORGET_POLL),
  fail: async (task, reason) => {
    const failure = await attempt(task, 'cleaning up the rescue', async () => {
      if (!task.node.disable_power_off) await task.power('power off');
      await task.driver.rescue.cleanUp?.(task);
    });
    const text = failure === undefined ? reason : `Rescue operation was unsuccessful, clean up failed for node: ${failure}`;
    await task.fire('fail', { last_error: text, instance_info: withoutPasswords(task.node) }, { ...FORGET_TOKEN_AND_URL, ...FORGET_POLL });
  },
};

/** After `abort` in rescue wait: the node is in rescue failed already. */
export async function afterRescueAbort(task: NodeTask): Promise<void> {
  const failure = await attempt(task, 'cleaning up the rescue', async () => task.driver.rescue.cleanUp?.(task));
  const type = 'rescue';
  if (failure === undefined)
    return task.record({ type, event: 'By request, the rescue operation was aborted.', error: false }, {}, FORGET_TOKEN_AND_URL);
  const event = 'Failed to clean up rescue after aborting the operation';
  return task.record({ type, event, error: true }, { maintenance: true, maintenance_reason: event, fault: 'rescue abort failure' });
}

export const beginUnrescue = (task: NodeTask): Promise<Outcome> =>
  failingWith(
    task,
    (reason) => `Failed to unrescue: ${reason}`,
    () => task.driver.rescue.unrescue(task),
  );
export const unrescue: Flow = {
  finish: (task) => task.fire('done', {}, FORGET_TOKEN_AND_URL),
  fail: (task, reason) => task.fire('fail', { last_error: reason }),
};
