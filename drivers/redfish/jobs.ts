/** Tasks that a service forgets at their end. Dell's BMCs keep a job of the same number, whose state then counts. */
import { isStatus, member, readTask, textOf, type SendRedfishRequest } from '../../wire/redfish';

type TaskProgress = Awaited<ReturnType<typeof readTask>>;
/** JobState (schemas Job and DellJob) → state of the operation. Other states are those of unfinished jobs. */
const ENDS: Readonly<Record<string, 'done' | 'failed'>> = {
  Completed: 'done',
  CompletedWithErrors: 'failed',
  Failed: 'failed',
  Cancelled: 'failed',
  Exception: 'failed',
  RebootFailed: 'failed',
};
const MAX_CHARACTERS = 1000;
/** Where the job of this number may be. */
const placesOf = (job: string): readonly string[] => [
  `/redfish/v1/JobService/Jobs/${job}`,
  `/redfish/v1/Managers/iDRAC.Embedded.1/Oem/Dell/Jobs/${job}`,
  `/redfish/v1/Managers/iDRAC.Embedded.1/Jobs/${job}`,
];

/** As `readTask`. For a task that is gone: the state of its job, if the service has one. */
export async function readTaskOrJob(ask: SendRedfishRequest, monitor: string): Promise<TaskProgress> {
  const task = await readTask(ask, monitor);
  const [job] = task.kind === 'gone' ? (/\bJID_\d{1,20}$/.exec(monitor) ?? []) : [];
  if (job === undefined) return task;
  for (const place of placesOf(job)) {
    try {
      const { body } = await ask('GET', place);
      const state = textOf(member(body, 'JobState'));
      if (state === undefined) continue;
      const percent = member(body, 'PercentComplete');
      const message = textOf(member(body, 'Message'))?.slice(0, MAX_CHARACTERS) ?? '';
      return {
        ...task,
        state,
        messages: message,
        messageIds: [textOf(member(body, 'MessageId'))?.slice(0, MAX_CHARACTERS) ?? ''].filter((id) => id !== ''),
        kind: Object.hasOwn(ENDS, state) ? ENDS[state]! : 'running',
        percent: typeof percent === 'number' && percent >= 0 && percent <= 100 ? percent : undefined,
      };
    } catch (error) {
      if (!isStatus(error, 400, 404, 405)) throw error;
    }
  }
  return task;
}
