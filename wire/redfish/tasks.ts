/**
 * Asynchronous operations (DSP0266 §12.1): a response 202 names a task monitor, which is polled until the operation ends.
 * For operations of seconds: `await followTask(ask, await ask('POST', …), …)`, which returns other responses at once.
 * For operations of minutes: `startedTask(answer)` returns the monitor's path for the node's record; the step's `poll` calls
 * `readTask(ask, path)`.
 */
import { RedfishError, isStatus, messagesOf, remarksOf } from './errors';
import { linkOf, member, textOf } from './json';
import type { SendRedfishRequest } from './resources';
import { retryAfter, type RedfishAnswer } from './transport';
import { shortened } from '../../model/text';

/** TaskState (schema Task) → state of the operation. */
const STATES: Readonly<Record<string, 'running' | 'done' | 'failed'>> = {
  New: 'running',
  Pending: 'running',
  Starting: 'running',
  Running: 'running',
  Service: 'running',
  Suspended: 'running',
  Interrupted: 'running',
  Stopping: 'running',
  Cancelling: 'running',
  Completed: 'done',
  Exception: 'failed',
  Killed: 'failed',
  Cancelled: 'failed',
};
/** JobState (schemas Job and DellJob) of finished jobs. All others are those of unfinished ones. */
const JOB_ENDS: Readonly<Record<string, 'done' | 'failed'>> = {
  Completed: 'done',
  RebootCompleted: 'done',
  CompletedWithErrors: 'failed',
  Failed: 'failed',
  Cancelled: 'failed',
  Exception: 'failed',
  Invalid: 'failed',
  RebootFailed: 'failed',
};

interface TaskProgress {
  /** `gone`: the service has forgotten the task, as many do soon after its end. The result must be read elsewhere. */
  readonly kind: 'running' | 'done' | 'failed' | 'gone';
  /** TaskState unchanged; undefined when the response is not a Task. */
  readonly state: string | undefined;
  /** 0 to 100. */
  readonly percent: number | undefined;
  /** The task's messages as one bounded text. */
  readonly messages: string;
  readonly messageIds: readonly string[];
  /** Milliseconds until the next poll as the service demands (Retry-After), bounded; undefined: no demand. */
  readonly retryAfterMs: number | undefined;
  /** The response of a finished operation. */
  readonly answer?: RedfishAnswer;
  /** The path of the job that the task has become. Later reads begin there. */
  readonly job?: string;
}

const MAX_CHARACTERS = 1000;
/** Characters of a state that is none of the tables. */
const MAX_STATE = 100;
const lookUp = <T>(table: Readonly<Record<string, T>>, key: string | undefined): T | undefined =>
  key !== undefined && Object.hasOwn(table, key) ? table[key] : undefined;
/** @param status of the response: a monitor answers 202 while the operation runs, and then with the operation's own status */
function progressOf(answer: RedfishAnswer): TaskProgress {
  const { status, headers, body } = answer;
  const [taskState, jobState] = [textOf(member(body, 'TaskState')), textOf(member(body, 'JobState'))];
  const state = (taskState ?? jobState)?.slice(0, MAX_STATE);
  const known = taskState === undefined ? lookUp(JOB_ENDS, jobState) : lookUp(STATES, taskState);
  const bad = known === 'done' && member(body, 'TaskStatus') === 'Critical';
  const percent = member(body, 'PercentComplete');
  const listed = messagesOf(member(body, 'Messages'));
  // Dell's jobs have one message.
  const messages = listed.length > 0 || jobState === undefined ? listed : messagesOf([body]);
  const unknown = state === undefined && status !== 202 ? 'done' : 'running';
  return {
    kind: bad ? 'failed' : (known ?? unknown),
    state,
    percent: typeof percent === 'number' && percent >= 0 && percent <= 100 ? percent : undefined,
    messages: shortened(messages.flatMap(({ id, text }) => text ?? id ?? []).join(' '), MAX_CHARACTERS),
    messageIds: messages.map(({ id }) => id).filter((id) => id !== undefined),
    retryAfterMs: retryAfter(headers['retry-after'], Date.now()),
    answer,
  };
}

/** The path of the task monitor; undefined: the operation has finished, or (`isUnseen`) the service does not say where its task can be seen. */
export function startedTask({ status, location, body }: RedfishAnswer): string | undefined {
  return status === 202 ? (location ?? textOf(member(body, 'TaskMonitor')) ?? linkOf(body)) : undefined;
}
/** The operation goes on, and no task shows when it ends. Its effect must be read. */
export const isUnseen = (answer: RedfishAnswer): boolean => answer.status === 202 && startedTask(answer) === undefined;

/** The path of the job that a task says it has become, in its messages or in place of a Task; undefined: it has become none. */
function jobOf({ answer }: TaskProgress): string | undefined {
  const said = [...messagesOf(member(answer?.body, 'Messages')), ...remarksOf(answer?.body)];
  const message = said.find(({ id }) => id?.endsWith('OperationTransitionedToJob'));
  if (message === undefined) return undefined;
  const named =
    message.args.find((value) => value.startsWith('/')) ?? /(\/redfish\/[^\s"',]{1,300}[^\s"',.])/.exec(message.text ?? '')?.[1];
  return named ?? answer?.location;
}

/**
 * The state of a task, by the path of its monitor, of the Task or of a Job. A task that has become a job is followed to the job.
 * @throws RedfishError when it cannot be read
 */
export async function readTask(ask: SendRedfishRequest, monitor: string): Promise<TaskProgress> {
  const task = await readOne(ask, monitor);
  const job = jobOf(task);
  return job === undefined || job === monitor ? task : { ...(await readOne(ask, job)), job };
}
async function readOne(ask: SendRedfishRequest, monitor: string): Promise<TaskProgress> {
  try {
    return progressOf(await ask('GET', monitor));
  } catch (error) {
    if (!isStatus(error) || error.status === undefined || error.status >= 500) throw error;
    // Errors of authentication and rate do not concern the operation.
    if ([401, 403, 408, 429].includes(error.status)) throw error;
    const kind = error.status === 404 || error.status === 410 ? 'gone' : 'failed';
    const { message, messageIds } = error;
    return { kind, state: undefined, percent: undefined, messages: message, messageIds, retryAfterMs: undefined };
  }
}

/** Milliseconds between polls, unless the service demands others. */
const PAUSES = [500, 1000, 1000, 2000, 3000, 5000] as const;
/**
 * Waits until a started operation has ended. A response that names no task is returned at once.
 * @param options.progress called at each poll
 * @returns the operation's own response, or its Task's; for a forgotten task the first response
 * @throws RedfishError kind `task` when it failed or did not end within `timeoutMs`; the signal's reason
 */
export async function followTask(
  ask: SendRedfishRequest,
  answer: RedfishAnswer,
  options: {
    readonly clock: { now(): number; sleep(milliseconds: number, signal?: AbortSignal): Promise<void> };
    readonly signal: AbortSignal;
    readonly timeoutMs: number;
    readonly progress?: (state: TaskProgress) => Promise<void> | void;
  },
): Promise<RedfishAnswer> {
  let monitor = startedTask(answer);
  if (monitor === undefined) return answer;
  const { clock, signal, timeoutMs, progress } = options;
  const until = clock.now() + timeoutMs;
  let next = retryAfter(answer.headers['retry-after'], clock.now());
  for (let polls = 0; ; polls++) {
    const pause = Math.max(next ?? PAUSES[polls] ?? PAUSES.at(-1)!, PAUSES[0]);
    if (clock.now() + pause > until) throw new RedfishError('task', `the task ${monitor} is not over after ${timeoutMs / 1000} s`);
    await clock.sleep(pause, signal);
    const state = await readTask(ask, monitor);
    monitor = state.job ?? monitor;
    await progress?.(state);
    if (state.kind === 'done') return state.answer ?? answer;
    if (state.kind === 'gone') return answer;
    if (state.kind === 'failed') {
      const why = state.messages === '' ? '' : `: ${state.messages}`;
      throw new RedfishError('task', `the task ${monitor} ended as ${state.state ?? 'failed'}${why}`, { messageIds: state.messageIds });
    }
    next = state.retryAfterMs;
  }
}
