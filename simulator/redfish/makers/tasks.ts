/** Habits with tasks and their monitors. */
import { findTask, isTaskOver, removeTask, type TaskRecord } from '../../hardware/task-records';
import type { Habit, HabitContext } from '../protocol/habits';
import { refuse } from '../protocol/messages';
import { ROOT, link, resource, type ServiceAnswer } from '../protocol/routes';
import { MONITOR, problem, replies, shows, together } from './change';

const idIn = (path: string): string => path.slice(path.lastIndexOf('/') + 1);
const taskAt = ({ system }: HabitContext, path: string): TaskRecord | undefined => findTask(system.hardware, idIn(path));
const TASK = /^\/redfish\/v1\/TaskService\/Tasks\/[^/]+$/;
const GONE = refuse('ResourceMissingAtURI', 'the task');
const JOBS = '/JobService/Jobs';
/** Changes the answers of monitors of tasks that are over. */
const whenOver = (change: (answer: ServiceAnswer, task: TaskRecord, context: HabitContext) => ServiceAnswer) =>
  replies('GET', MONITOR, (answer, context, { path }) => {
    const task = taskAt(context, path);
    return task && isTaskOver(task) ? change(answer, task, context) : answer;
  });
const JOB_STATES = { new: 'New', staged: 'Pending', running: 'Running', completed: 'Completed', failed: 'Exception' } as const;

export const TASK_HABITS = {
  'tasks-untold': {
    about: 'A request that starts a task gets 202 without Location and body.',
    source: 'bmc-toolbox/bmclib providers/supermicro; openbmc/bmcweb redfish-core/lib/task.hpp',
    around: replies(/^(?:POST|PATCH|DELETE)$/, /./, (answer) => (answer.status === 202 ? { status: 202 } : answer)),
  },
  'task-monitors-late': {
    about: 'The first two reads of a task and of its monitor get 404.',
    source: 'openstack/sushy oem/dell/asynchronous.py',
    around: replies('GET', /^\/redfish\/v1\/TaskService\/Task(?:Monitor)?s\/[^/]+$/, (answer, { count }, { path }) =>
      count(`late ${path}`) <= 2 ? GONE : answer,
    ),
  },
  'task-monitors-vanish': {
    about: 'A task that is over, and its monitor, get 404.',
    source: 'NVIDIA/infra-controller crates; openstack/sushy oem/dell/asynchronous.py',
    around: together(
      whenOver(() => GONE),
      replies('GET', TASK, (answer, context, { path }) => {
        const task = taskAt(context, path);
        return task && isTaskOver(task) ? GONE : answer;
      }),
    ),
  },
  'task-monitors-delete': {
    about: 'The first read of the monitor of a task that is over deletes the task.',
    source: 'bmc-toolbox/bmclib providers/lenovo/firmware_push.go',
    around: whenOver((answer, { id }, { system }) => {
      removeTask(system.hardware, id);
      return answer;
    }),
  },
  'task-monitors-end-204': {
    about: 'The monitor of a task that is over gets 204 without a body.',
    source: 'openbmc/bmcweb redfish-core/lib/task.hpp',
    around: whenOver(() => ({ status: 204 })),
  },
  'tasks-become-jobs': {
    about: 'The monitor of a task answers OperationTransitionedToJob; the job is in the JobService.',
    source: 'ironcore-dev/metal-operator bmc/redfish_lenovo.go; NVIDIA/libredfish src/standard.rs',
    around: together(
      shows('ServiceRoot', (body) => ({ ...body, JobService: link('/JobService') })),
      replies('GET', MONITOR, (answer, context, { path }) => {
        const job = `${ROOT}${JOBS}/${idIn(path)}`;
        const body = problem(202, 'Base.1.18.OperationTransitionedToJob', `The operation has transitioned to a job at URI '${job}'.`).body;
        return taskAt(context, path) ? { status: 202, body: body!, headers: { location: job } } : answer;
      }),
    ),
    routes: [
      {
        path: `${JOBS}/{job}`,
        get: ({ path, system, values: [id] }) => {
          const task = findTask(system.hardware, id!);
          return (
            task && {
              ...resource(path, 'Task', task.id, task.name, {}),
              '@odata.type': '#Job.v1_2_3.Job',
              JobState: JOB_STATES[task.phase],
              JobStatus: task.phase === 'failed' ? 'Critical' : 'OK',
              PercentComplete: task.phase === 'completed' ? 100 : 0,
              Messages: [],
            }
          );
        },
      },
    ],
  },
} as const satisfies Readonly<Record<string, Habit>>;
