/** TaskService (DSP0266 §12.2): what takes time. A task monitor answers 202 until the task is over, and then shows it. */
import { extended, refuse } from '../protocol/messages';
import {
  ROOT,
  collectionRow,
  dateTime,
  link,
  resource,
  type Answer,
  type At,
  type Row,
  type Service,
  type Shown,
  type System,
} from '../protocol/routes';
import { addTask, findTask, removeTask, settle, type TaskRecord } from '../../hardware/task-records';

const TASKS = '/TaskService/Tasks';
const MONITORS = '/TaskService/TaskMonitors';
/** As a date: sushy 5.14 does not wait by a number of seconds (it hands the text to its sleep). */
const retryAfter = (now: number): string => new Date(now + 1000).toUTCString();

const STATES = { new: 'New', staged: 'Starting', running: 'Running', completed: 'Completed', failed: 'Exception' } as const;
const isOver = ({ phase }: TaskRecord): boolean => phase === 'completed' || phase === 'failed';

function percent({ phase, ends, takes }: TaskRecord, now: number): number {
  if (phase === 'completed') return 100;
  return phase === 'running' && takes > 0 ? Math.max(0, Math.min(99, Math.floor(100 - ((ends! - now) * 100) / takes))) : 0;
}
function show(task: TaskRecord, now: number): Shown {
  const { id, name, started, phase, ended, message } = task;
  const messages = message ? [message] : phase === 'completed' ? [['Success']] : [];
  return resource(`${TASKS}/${id}`, 'Task', id, name, {
    TaskState: STATES[phase],
    TaskStatus: phase === 'failed' ? 'Critical' : 'OK',
    StartTime: dateTime(started),
    ...(ended === undefined ? {} : { EndTime: dateTime(ended) }),
    PercentComplete: percent(task, now),
    TaskMonitor: `${ROOT}${MONITORS}/${id}`,
    HidePayload: true,
    Messages: messages.map(([first, ...args]) => extended(first!, args)),
  });
}

/** A machine's task by its identifier; what was due has happened. */
function find({ service, values: [id] }: At): { readonly system: System; readonly task: TaskRecord } | undefined {
  const system = service.systems.get(id!.slice(0, id!.lastIndexOf('-')));
  if (!system) return undefined;
  settle(system.hardware, service.clock.now());
  const task = findTask(system.hardware, id!);
  return task && { system, task };
}

/** Begins a task, and answers with where to look. */
export function begin(
  service: Service,
  system: System,
  task: Omit<TaskRecord, 'id' | 'started'>,
): { readonly task?: TaskRecord; readonly answer: Answer } {
  const added = addTask(system.hardware, system.name, { ...task, started: service.clock.now() });
  return added
    ? {
        task: added,
        answer: { status: 202, headers: { location: `${ROOT}${MONITORS}/${added.id}`, 'retry-after': retryAfter(service.clock.now()) } },
      }
    : { answer: refuse('CreateLimitReachedForResource') };
}

const taskService = ({ service }: At): Shown =>
  resource('/TaskService', 'TaskService', 'TaskService', 'Tasks', {
    ServiceEnabled: true,
    DateTime: dateTime(service.clock.now()),
    CompletedTaskOverWritePolicy: 'Oldest',
    LifeCycleEventOnTaskStateChange: false,
    Status: { State: 'Enabled', Health: 'OK' },
    Tasks: link(TASKS),
  });
const remove = (at: At): Answer | undefined => {
  const found = find(at);
  if (!found) return refuse('ResourceMissingAtURI', at.path);
  if (!isOver(found.task)) return refuse('ResourceInUse');
  removeTask(found.system.hardware, found.task.id);
  return undefined;
};

export const TASK_ROWS: readonly Row[] = [
  { path: '/TaskService', get: taskService },
  collectionRow(TASKS, 'Task', ({ service }) =>
    [...service.systems.values()].flatMap(({ hardware }) => (hardware.state.tasks?.records ?? []).map(({ id }) => id)),
  ),
  {
    path: `${TASKS}/{task}`,
    get: (at) => {
      const found = find(at);
      return found && show(found.task, at.service.clock.now());
    },
    delete: remove,
  },
  {
    path: `${MONITORS}/{task}`,
    answer: (at) => {
      const found = find(at);
      if (!found) return refuse('ResourceMissingAtURI', at.path);
      const body = show(found.task, at.service.clock.now());
      return isOver(found.task)
        ? { status: 200, body }
        : { status: 202, body, headers: { location: `${ROOT}${at.path}`, 'retry-after': retryAfter(at.service.clock.now()) } };
    },
    delete: remove,
  },
];
