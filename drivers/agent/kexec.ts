/** The end of a deployment without the machine's firmware: the agent loads the kernel of the written image, and starts it (docs/kexec.md). */
import { waitUntil } from '../../model/clock';
import { printable } from '../../model/log';
import { shortened } from '../../model/text';
import { bootModeOf } from '../common/boot-settings';
import { kexecObstacle, wantsKexec } from '../common/kexec-request';
import type { Task } from '../interfaces';
import { AgentError, type AgentClient, commandError, withAgent } from './client';

const MAX_REASON = 500;
/** Characters of an agent's text in history and events. */
const MAX_KERNEL = 200;
const shown = (text: string, most: number): string => printable(shortened(text, most));

const rebootsBecause = (task: Task, reason: string): Promise<void> =>
  task.recordBoot({ of: 'instance', by: 'reboot', reason: shown(reason, MAX_REASON) });

/**
 * Makes the agent load the kernel of the image, if the node wants it and nothing prevents it. Otherwise false, and then the history says why.
 * It may run again: what was loaded before is replaced.
 */
export async function loadKernel(task: Task): Promise<boolean> {
  if (!wantsKexec(task.node, task.options)) return false;
  const obstacle = kexecObstacle(task);
  if (obstacle !== undefined) {
    await rebootsBecause(task, obstacle);
    return false;
  }
  try {
    const loaded = await withAgent(task, async (agent) =>
      agent.finished(await agent.command('kexec.load', { boot_mode: bootModeOf(task) })),
    );
    if (loaded.command_status !== 'SUCCEEDED') throw new AgentError('refused', commandError(loaded));
    const kernel = loaded.command_result?.['kernel'];
    await task.saveInternal({ kexec: { kernel: shown(typeof kernel === 'string' ? kernel : '', MAX_KERNEL) } });
    return true;
  } catch (error) {
    task.signal.throwIfAborted();
    if (!(error instanceof AgentError)) throw error;
    await rebootsBecause(task, error.message);
    return false;
  }
}

/** Seconds. The agent flushes the disks before it answers. */
const EXECUTE_TIMEOUT_SECONDS = 60;
const PROBE_TIMEOUT_SECONDS = 2;
const PROBE_PAUSE_MS = 1000;
const GONE_WITHIN_MS = 20_000;
/** Unanswered requests in a row: one alone may be lost. */
const SILENT_PROBES = 2;

/**
 * Makes the agent start the loaded kernel. False: the machine must be rebooted, since no kernel is loaded, or the agent did not go; the
 * history then says why.
 */
export async function startKernel(task: Task): Promise<boolean> {
  const { kexec } = task.node.driver_internal_info;
  if (kexec === undefined) return false;
  try {
    // If this conductor dies now, another one knows that the kernel may have been started.
    await task.saveInternal({ kexec: { ...kexec, told: true } });
    await withAgent(task, (agent) => tell(task, agent));
  } catch (error) {
    task.signal.throwIfAborted();
    if (!(error instanceof AgentError)) throw error;
    const again =
      kexec.told === true
        ? 'the conductor was restarted after it had told the agent to start the kernel, and whether it did is not known; '
        : '';
    await rebootsBecause(task, `${again}${error.message}`);
    return false;
  }
  await task.recordBoot({ of: 'instance', by: 'kexec', kernel: kexec.kernel });
  return true;
}

/** Throws AgentError unless the agent says that it goes, and then is silent. */
async function tell(task: Task, agent: AgentClient): Promise<void> {
  const answer = await agent.command('kexec.execute', {}, { attempts: 1, timeout: EXECUTE_TIMEOUT_SECONDS });
  if (answer.command_status !== 'SUCCEEDED' || answer.command_result?.['going'] !== true)
    throw new AgentError('refused', commandError(answer));
  const deadline = task.clock.now() + GONE_WITHIN_MS;
  let silent = 0;
  const isGone = async (): Promise<boolean> => {
    silent = (await answers(agent)) ? 0 : silent + 1;
    return silent >= SILENT_PROBES;
  };
  if (await waitUntil(task, isGone, () => (task.clock.now() > deadline ? undefined : PROBE_PAUSE_MS))) return;
  throw new AgentError('refused', `the agent said that it starts the kernel, and still answers after ${GONE_WITHIN_MS / 1000} s`);
}
/** Whether the agent answers, whatever it says. */
async function answers(agent: AgentClient): Promise<boolean> {
  try {
    await agent.command('standby.get_partition_uuids', {}, { attempts: 1, timeout: PROBE_TIMEOUT_SECONDS });
    return true;
  } catch (error) {
    if (!(error instanceof AgentError)) throw error;
    return error.kind !== 'unreachable';
  }
}
