/** Jobs of iDRACs: most of what they are asked to do is one, and shows as a task of the same number. */
import { RedfishError, startedTask, type RedfishAnswer, type SendRedfishRequest } from '../../wire/redfish';
import type { Task } from '../interfaces';
import { readTaskOrJob } from '../redfish/jobs';

/** Milliseconds between reads of a job. */
const POLL_MS = 5000;
/** Milliseconds for which a new job may not be found: then it counts as over and forgotten. */
const APPEARS_MS = 30_000;

/** Where the task of the job is that a request has started. Throws RedfishError when the answer names none. */
export function startedJob(answer: RedfishAnswer, action: string): string {
  const job = answer.location ?? startedTask(answer);
  if (job === undefined) throw new RedfishError('protocol', `the answer of ${action} does not include Location: in header`);
  return taskOfJob(job);
}
/** Where the task of a job is. */
export function taskOfJob(job: string): string {
  const [number] = /\bJID_\d{1,20}$/.exec(job) ?? [];
  return number === undefined ? job : `/redfish/v1/TaskService/Tasks/${number}`;
}

/**
 * Waits for the end of a job.
 * @param timeoutMs after which it has failed
 * @returns the answer with the result of the job, if it has any
 * @throws RedfishError kind `task` when it failed, or takes longer
 */
export async function untilOver(
  { clock, signal }: Pick<Task, 'clock' | 'signal'>,
  ask: SendRedfishRequest,
  job: string,
  timeoutMs: number,
): Promise<RedfishAnswer | undefined> {
  const begun = clock.now();
  for (;;) {
    const { kind, state, messages, messageIds, answer } = await readTaskOrJob(ask, job);
    if (kind === 'done') return answer;
    if (kind === 'failed')
      throw new RedfishError('task', `the job ${job} ended as ${state ?? 'failed'}${messages === '' ? '' : `: ${messages}`}`, {
        messageIds,
      });
    const waited = clock.now() - begun;
    if (kind === 'gone' && waited >= APPEARS_MS) return undefined;
    if (waited + POLL_MS > timeoutMs) throw new RedfishError('task', `the job ${job} is not over after ${timeoutMs / 1000} s`);
    await clock.sleep(POLL_MS, signal);
  }
}
