/** The job queue of an iDRAC: each task is a job with the same number. */
import { BIOS } from '../../../hardware/bios-settings';
import { findTask, removeTask, tasksOf, type TaskRecord } from '../../../hardware/task-records';
import type { NameChange } from '../../protocol/habits';
import { refuse } from '../../protocol/messages';
import {
  ROOT,
  dateTime,
  link,
  type ResourceBody,
  type Route,
  type ServiceAnswer,
  type System,
  type SystemContext,
} from '../../protocol/routes';
import { startTask } from '../../resources/tasks';

const DIGITS = 12;
const jobId = (task: string): string => `JID_${task.slice(task.lastIndexOf('-') + 1).padStart(DIGITS, '0')}`;
const JOBS = '/Managers/{system}/Oem/Dell/Jobs';
export const jobsLink = (name: string): ResourceBody => link(JOBS.replace('{system}', name));
/** sim-0-3 is JID_000000000003 in all paths, and a task's monitor is the task. */
export const JOB_NAMES: NameChange = {
  outward: (path, machine) =>
    path
      .replace('/TaskService/TaskMonitors/', '/TaskService/Tasks/')
      .split('/')
      .map((name) => (name.startsWith(`${machine}-`) ? jobId(name) : name))
      .join('/'),
  inward: (path, machine) => path.replace(/\/JID_0{0,11}(\d{1,12})(?=\/|$)/, (_, number: string) => `/${machine}-${number}`),
};
const STATES = { new: 'Downloading', staged: 'Scheduled', running: 'Running', completed: 'Completed', failed: 'Failed' } as const;
const MESSAGES = {
  new: 'Downloading the update package.',
  staged: 'Task successfully scheduled.',
  running: 'Job in progress.',
  completed: 'Job completed successfully.',
  failed: 'Job failed.',
} as const;
const NO_TIME = 'TIME_NA';
/** What a job and the Oem part of its task show. */
export const jobOf = (task: TaskRecord): ResourceBody => ({
  '@odata.type': '#DellJob.v1_4_0.DellJob',
  Id: jobId(task.id),
  Name: task.name,
  JobState: STATES[task.phase],
  JobType:
    task.work.kind === 'firmware' || task.work.kind === 'fetch'
      ? 'FirmwareUpdate'
      : task.work.kind === 'done'
        ? task.work.what
        : 'RAIDConfiguration',
  Message: MESSAGES[task.phase],
  MessageArgs: [],
  MessageId: task.phase === 'completed' ? 'PR19' : task.phase === 'failed' ? 'PR21' : 'JCP001',
  PercentComplete: task.phase === 'completed' || task.phase === 'failed' ? 100 : task.phase === 'running' ? 34 : 0,
  StartTime: task.phase === 'staged' ? 'TIME_NOW' : dateTime(task.started),
  EndTime: NO_TIME,
  CompletionTime: task.ended === undefined ? null : dateTime(task.ended),
  TargetSettingsURI: null,
});
const shown = ({ name }: System, task: TaskRecord): ResourceBody => ({
  ...link(`${JOBS.replace('{system}', name)}/${task.id}`),
  ...jobOf(task),
});

/** Adds a job. @param what the type of the job @returns the job, and an answer with its URI */
export const addJob = (
  { service, system }: Pick<SystemContext, 'service' | 'system'>,
  name: string,
  what: string,
  phase: 'staged' | 'running',
  takes = service.settings.taskMs,
): { readonly task?: TaskRecord; readonly answer: ServiceAnswer } =>
  startTask(service, system, {
    name,
    phase,
    work: { kind: 'done', what },
    takes,
    ...(phase === 'running' && { ends: service.clock.now() + takes }),
  });
const isBiosJob = ({ work }: TaskRecord): boolean => work.kind === 'done' && work.what === 'BIOSConfiguration';
export const biosJobWaits = ({ hardware }: System): boolean =>
  tasksOf(hardware).some((task) => isBiosJob(task) && (task.phase === 'staged' || task.phase === 'running'));
export const importRuns = ({ hardware }: System): boolean =>
  tasksOf(hardware).some(({ work, phase }) => work.kind === 'done' && work.what === 'ImportConfiguration' && phase === 'running');
/** Removes jobs; a removed BIOS job takes the pending settings with it. */
function removeJobs({ hardware }: System, tasks: readonly TaskRecord[]): void {
  for (const task of tasks) removeTask(hardware, task.id);
  if (!tasks.some((task) => isBiosJob(task) && task.phase === 'staged')) return;
  const { current, taken } = hardware.get(BIOS);
  hardware.set(BIOS, { current, ...(taken !== undefined && { taken }) });
}

const SERVICE = '/Managers/{system}/Oem/Dell/DellJobService';
export const jobServiceLink = (name: string): ResourceBody => link(SERVICE.replace('{system}', name));
const DELETE = 'DellJobService.DeleteJobQueue';
export const JOB_ROUTES: readonly Route<SystemContext>[] = [
  {
    path: JOBS,
    // Not `get`, so that $expand is no error: the members are always whole.
    answer: ({ path, system }) => {
      const jobs = tasksOf(system.hardware).map((task) => shown(system, task));
      const body = {
        ...link(path),
        '@odata.type': '#DellJobCollection.DellJobCollection',
        Name: 'Jobs',
        Members: jobs,
        'Members@odata.count': jobs.length,
      };
      return { status: 200, body };
    },
  },
  {
    path: `${JOBS}/{job}`,
    get: ({ system, values: [, id] }) => {
      const task = findTask(system.hardware, id!);
      return task && shown(system, task);
    },
    delete: ({ system, values: [, id], path }) => {
      const task = findTask(system.hardware, id!);
      if (!task) return refuse('ResourceMissingAtURI', path);
      removeJobs(system, [task]);
      return { status: 200, body: {} };
    },
  },
  {
    path: SERVICE,
    get: ({ path }) => ({
      ...link(path),
      '@odata.type': '#DellJobService.v1_1_0.DellJobService',
      Id: 'DellJobService',
      Name: 'DellJobService',
      Actions: { [`#${DELETE}`]: { target: `${ROOT}${path}/Actions/${DELETE}` } },
    }),
  },
  {
    path: `${SERVICE}/Actions/${DELETE}`,
    post: ({ system }, { JobID }) => {
      const all = tasksOf(system.hardware);
      const chosen = all.filter(({ id }) => JobID === 'JID_CLEARALL' || JobID === 'JID_CLEARALL_FORCE' || JobID === jobId(id));
      if (chosen.length === 0 && !String(JobID).startsWith('JID_CLEARALL'))
        return refuse('ActionParameterValueNotInList', String(JobID), 'JobID', DELETE);
      removeJobs(system, chosen);
      return { status: 200, body: {} };
    },
  },
];
