/** The end of a deployment: shuts the agent down after it has flushed the disk. */
import { waitUntil } from '../../model/clock';
import { reasonOf } from '../../model/errors';
import { type CommandOptions, withAgent } from './client';
import { isTrue } from '../common/boot-settings';
import { loadKernel } from './kexec';
import { canPowerOff } from '../common/power-cycle';
import { type Outcome, type Task, done, failed } from '../interfaces';

const FIRST_PAUSE_MS = 300;
/** Of the pauses: the last request is late by about a fifth of the time that the machine needs. */
const GROWTH = 1.2;
/** A machine that shuts down may not answer any more, so its response is not awaited for long. */
const SHUTDOWN_TIMEOUT_SECONDS = 10;

/**
 * Makes the agent power the machine off; the BMC does it when the agent did not in time. With driver_info.deploy_forces_oob_reboot the BMC
 * does it at once, after the disks are flushed. Where power off is forbidden, the agent only stops accepting commands. Where the power
 * interface cannot power off, the machine reboots. An agent that has loaded the kernel of the instance stays until boot_instance.
 */
export async function tearDownAgent(task: Task): Promise<Outcome> {
  try {
    if (await loadKernel(task)) return done;
    if (task.node.disable_power_off) {
      await lockDown(task);
      return done;
    }
    if (!canPowerOff(task)) {
      await command(task, 'standby.sync', { wait: true });
      await task.power('rebooting');
      return done;
    }
    if (isTrue(task.node.driver_info['deploy_forces_oob_reboot'])) {
      await command(task, 'standby.sync', { wait: true });
    } else {
      const off = new AbortController();
      await Promise.all([
        command(task, 'standby.power_off', { timeout: SHUTDOWN_TIMEOUT_SECONDS, signal: off.signal }),
        waitUntilOff(task).finally(() => off.abort()),
      ]);
    }
    await task.power('power off');
    return done;
  } catch (error) {
    task.signal.throwIfAborted();
    return failed(`Error rebooting node ${task.node.uuid} after deploy. ${reasonOf(error)}`);
  }
}

/** Makes the agent accept no more commands. */
export const lockDown = (task: Task): Promise<void> => command(task, 'system.lockdown', { timeout: SHUTDOWN_TIMEOUT_SECONDS });

/** Sends the command once and ignores errors: the power state shows the result. */
async function command(task: Task, name: string, options: CommandOptions): Promise<void> {
  try {
    await withAgent(task, (agent) => agent.command(name, {}, { ...options, attempts: 1 }));
  } catch (error) {
    task.signal.throwIfAborted();
    if (options.signal?.aborted) return;
    task.log.warn('The agent did not accept a command', { command: name, reason: reasonOf(error) });
  }
}

/** Polls at growing intervals: a fast machine does not wait, and a slow one gets few requests. */
async function waitUntilOff(task: Task): Promise<void> {
  const retries = task.options['agent.post_deploy_get_power_state_retries'];
  const interval = task.options['agent.post_deploy_get_power_state_retry_interval'] * 1000;
  const deadline = task.clock.now() + retries * interval;
  const isOff = async (): Promise<boolean> => {
    const state = await task.driver.power.get(task).catch((error: unknown) => {
      task.signal.throwIfAborted();
      task.log.warn('The power state cannot be read', { reason: reasonOf(error) });
      return null;
    });
    return state === 'power off';
  };
  let pause = FIRST_PAUSE_MS;
  const pauseAfter = (): number | undefined => {
    const left = deadline - task.clock.now();
    const next = Math.min(pause, left);
    pause = Math.min(pause * GROWTH, interval);
    return left <= 0 ? undefined : next;
  };
  if (await waitUntil(task, isOff, pauseAfter)) return;
  task.log.warn('The machine did not power itself off in time: the BMC does it', { seconds: (retries * interval) / 1000 });
}
