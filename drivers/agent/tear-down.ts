/** The end of a deployment: the agent leaves the machine, with everything on its disk. */
import { reasonOf } from '../../model/errors';
import { type CommandOptions, withAgent } from './client';
import { isTrue } from '../common/boot-settings';
import { canBeOff } from '../common/power-cycle';
import { type Outcome, type Task, done, failed } from '../interfaces';

const FIRST_LOOK_MS = 300;
const GROWTH = 1.5;
/** A machine that goes down may take its answer with it: it is not waited for. */
const LAST_WORD_SECONDS = 10;

/**
 * Asks the agent to switch the machine off, and the BMC does it when the agent did not in time; with driver_info.deploy_forces_oob_reboot
 * the BMC does it at once, after the disks were flushed. Where off is forbidden the agent only stops to answer.
 */
export async function tearDownAgent(task: Task): Promise<Outcome> {
  try {
    if (task.node.disable_power_off) {
      await lockDown(task);
      return done;
    }
    if (!canBeOff(task)) {
      await tell(task, 'standby.sync', { wait: true });
      await task.power('rebooting');
      return done;
    }
    if (isTrue(task.node.driver_info['deploy_forces_oob_reboot'])) {
      await tell(task, 'standby.sync', { wait: true });
    } else {
      const off = new AbortController();
      await Promise.all([
        tell(task, 'standby.power_off', { timeout: LAST_WORD_SECONDS, signal: off.signal }),
        untilOff(task).finally(() => off.abort()),
      ]);
    }
    await task.power('power off');
    return done;
  } catch (error) {
    task.signal.throwIfAborted();
    return failed(`Error rebooting node ${task.node.uuid} after deploy. ${reasonOf(error)}`);
  }
}

/** The agent answers nobody any more. */
export const lockDown = (task: Task): Promise<void> => tell(task, 'system.lockdown', { timeout: LAST_WORD_SECONDS });

/** Says it once; what became of it, the power state tells. */
async function tell(task: Task, command: string, options: CommandOptions): Promise<void> {
  try {
    await withAgent(task, (agent) => agent.command(command, {}, { ...options, attempts: 1 }));
  } catch (error) {
    task.signal.throwIfAborted();
    if (options.signal?.aborted) return;
    task.log.warn('The agent did not take a command', { command, reason: reasonOf(error) });
  }
}

/** Looks soon, then less and less often: a machine that is off shall not wait for us, a slow one not be asked all the time. */
async function untilOff(task: Task): Promise<void> {
  const retries = task.options['agent.post_deploy_get_power_state_retries'];
  const interval = task.options['agent.post_deploy_get_power_state_retry_interval'] * 1000;
  const deadline = task.clock.now() + retries * interval;
  for (let pause = FIRST_LOOK_MS; ; pause = Math.min(pause * GROWTH, interval)) {
    const state = await task.driver.power.get(task).catch((error: unknown) => {
      task.signal.throwIfAborted();
      task.log.warn('The power state cannot be read', { reason: reasonOf(error) });
      return null;
    });
    if (state === 'power off') return;
    const left = deadline - task.clock.now();
    if (left <= 0) break;
    await task.clock.sleep(Math.min(pause, left), task.signal);
  }
  task.log.warn('The machine did not switch itself off in time: it is switched off', { seconds: (retries * interval) / 1000 });
}
