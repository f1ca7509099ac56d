/** BIOS settings of Dell machines: Redfish's, on an iDRAC whose job queue has none of its own that waits. */
import { collection, hasMessage, linkOf, member, textOf, unlessStatus } from '../../wire/redfish';
import { shortened } from '../../model/text';
import type { BiosInterface } from '../interfaces';
import { readTaskOrJob } from '../redfish/jobs';
import { biosBy } from '../redfish/steps/bios';
import { taskOfJob } from './jobs';
import { lockable } from './lockdown';
import { callService, onManager } from './manager';

/** Settings that a job waits to apply block others: the message in which the iDRAC says so. */
const COMMITTED = 'SYS011';
const BIOS_JOB = 'BIOSConfiguration';
const WAITING: readonly unknown[] = ['Scheduled', 'New', 'ReadyForExecution'];
/** The newest jobs, each of which may need a request. An iDRAC keeps 256. */
const MAX_JOBS = 256;
/** A job with this message stays as it is for ever ("initialization failure"). */
const NEVER = /\bPR30$/;

const bios = biosBy({
  unblock: async (task, { ask }, error) => {
    // Some firmware says so of any setting for a moment. Settings that cannot be written were refused before.
    if (hasMessage(error, 'PropertyNotWritable')) return true;
    if (!hasMessage(error, COMMITTED)) return false;
    return onManager(task, 'clear blocking jobs', async (manager) => {
      const place = linkOf(member(manager.body, 'Links', 'Oem', 'Dell', 'Jobs'));
      const jobs = place === undefined ? undefined : await unlessStatus(404, collection(ask, place, MAX_JOBS));
      const blocking = (jobs ?? [])
        .filter(({ body }) => member(body, 'JobType') === BIOS_JOB && WAITING.includes(member(body, 'JobState')))
        .flatMap(({ body }) => textOf(member(body, 'Id')) ?? []);
      for (const job of blocking) {
        task.log.warn('An older job with BIOS settings waits for a restart, and is deleted', { job });
        await callService(ask, manager, '#DellJobService.DeleteJobQueue', { JobID: job });
      }
      return blocking.length > 0;
    });
  },
  hopeless: async (ask, job) => {
    const { kind, messages, messageIds, answer } = await readTaskOrJob(ask, taskOfJob(job));
    const ofJob = ['MessageId', 'Message'].map((name) => textOf(member(answer?.body, 'Oem', 'Dell', name)));
    if (kind !== 'failed' && ![...messageIds, ofJob[0] ?? ''].some((id) => NEVER.test(id))) return undefined;
    return shortened(`The job ${job} says: ${messages || (ofJob[1] ?? kind)}`, 300);
  },
});
export const idracBios: BiosInterface = { ...bios, steps: lockable(bios.steps) };
