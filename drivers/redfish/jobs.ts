/** Tasks that a service forgets at their end. Dell's BMCs keep a job of the same number, whose state then counts. */
import { readTask, type SendRedfishRequest } from '../../wire/redfish';

type TaskProgress = Awaited<ReturnType<typeof readTask>>;
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
    const { answer: _, ...found } = await readTask(ask, place);
    if (found.state !== undefined) return found;
  }
  return task;
}
