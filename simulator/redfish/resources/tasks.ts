/** TaskService (DSP0266 §12.2). A task monitor answers 202 until the task is over, and then 200. Both answers contain the task. */
import { extended, refuse } from '../protocol/messages';
import {
  ROOT,
  collectionRoute,
  dateTime,
  link,
  resource,
  type ServiceAnswer,
  type RouteContext,
  type Route,
  type Service,
  type ResourceBody,
  type System,
} from '../protocol/routes';
import { addTask, findTask, removeTask, isTaskOver, settleTasks, tasksOf, type TaskRecord } from '../../hardware/task-records';

const TASKS = '/TaskService/Tasks';
const MONITORS = '/TaskService/TaskMonitors';
/** A date, because sushy 5.14 fails on a number of seconds: it passes the text to sleep(). */
const retryAfter = (now: number): string => new Date(now + 1000).toUTCString();

const STATES = { new: 'New', staged: 'Starting', running: 'Running', completed: 'Completed', failed: 'Exception' } as const;

function percent({ phase, ends, takes }: TaskRecord, now: number): number {
  if (phase === 'completed') return 100;
  return phase === 'running' && takes > 0 ? Math.max(0, Math.min(99, Math.floor(100 - ((ends! - now) * 100) / takes))) : 0;
}
function show(task: TaskRecord, now: number): ResourceBody {
  const { id, name, started, phase, ended, message } = task;
  const messages = message ? [message] : phase === 'completed' ? [['Success']] : [];
  return resource(`${TASKS}/${id}`, 'Task', id, name, {
    TaskState: STATES[phase],
    TaskStatus: phase === 'failed' ? 'Critical' : 'OK',
    StartTime: dateTime(started),
    EndTime: ended === undefined ? undefined : dateTime(ended),
    PercentComplete: percent(task, now),
    TaskMonitor: `${ROOT}${MONITORS}/${id}`,
    HidePayload: true,
    Messages: messages.map(([first, ...args]) => extended(first!, args)),
  });
}

/** The task with the identifier in the path, and its machine. */
function find({ service, values: [id] }: RouteContext): { readonly system: System; readonly task: TaskRecord } | undefined {
  const system = service.systems.get(id!.slice(0, id!.lastIndexOf('-')));
  if (!system) return undefined;
  settleTasks(system.hardware, service.clock.now());
  const task = findTask(system.hardware, id!);
  return task && { system, task };
}

/** Adds a task. The answer has the URI of its monitor in Location; it is an error if the list is full. */
export function startTask(
  service: Service,
  system: System,
  task: Omit<TaskRecord, 'id' | 'started'>,
): { readonly task?: TaskRecord; readonly answer: ServiceAnswer } {
  const added = addTask(system.hardware, system.name, { ...task, started: service.clock.now() });
  return added
    ? {
        task: added,
        answer: { status: 202, headers: { location: `${ROOT}${MONITORS}/${added.id}`, 'retry-after': retryAfter(service.clock.now()) } },
      }
    : { answer: refuse('CreateLimitReachedForResource') };
}

const taskService = ({ service }: RouteContext): ResourceBody =>
  resource('/TaskService', 'TaskService', 'TaskService', 'Tasks', {
    ServiceEnabled: true,
    DateTime: dateTime(service.clock.now()),
    CompletedTaskOverWritePolicy: 'Oldest',
    LifeCycleEventOnTaskStateChange: false,
    Status: { State: 'Enabled', Health: 'OK' },
    Tasks: link(TASKS),
  });
const remove = (at: RouteContext): ServiceAnswer | undefined => {
  const found = find(at);
  if (!found) return refuse('ResourceMissingAtURI', at.path);
  if (!isTaskOver(found.task)) return refuse('ResourceInUse');
  removeTask(found.system.hardware, found.task.id);
  return undefined;
};

export const TASK_ROUTES: readonly Route[] = [
  { path: '/TaskService', get: taskService },
  collectionRoute(TASKS, 'Task', ({ service }) =>
    [...service.systems.values()].flatMap(({ hardware }) => tasksOf(hardware).map(({ id }) => id)),
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
      return isTaskOver(found.task)
        ? { status: 200, body }
        : { status: 202, body, headers: { location: `${ROOT}${at.path}`, 'retry-after': retryAfter(at.service.clock.now()) } };
    },
    delete: remove,
  },
];
