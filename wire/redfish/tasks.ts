/**
 * Asynchronous operations (DSP0266 §12.1): an answer 202 names a task monitor, which is asked until the operation is over.
 * What takes seconds: `await followTask(ask, await ask('POST', …), …)`, which passes other answers through at once.
 * What takes minutes: `startedTask(answer)` gives the monitor's path, to be kept on the node; `lookAtTask(ask, path)` in the step's `poll`.
 */
import { RedfishError, isStatus, messagesOf } from './errors';
import { linkOf, member, textOf } from './json';
import type { RedfishAsk } from './resources';
import { retryAfter, type RedfishAnswer } from './transport';

/** TaskState (schema Task) → how the operation stands. */
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

export interface TaskLook {
  /** `gone`: the service has forgotten it, which many do soon after the end; what became of it must be seen elsewhere. */
  readonly kind: 'running' | 'done' | 'failed' | 'gone';
  /** TaskState as it is; undefined when the answer is no Task. */
  readonly state: string | undefined;
  /** 0 to 100. */
  readonly percent: number | undefined;
  /** What the task says of itself, in one bounded text. */
  readonly messages: string;
  readonly messageIds: readonly string[];
  /** Milliseconds until the service wants to be asked again (Retry-After), bounded; undefined: it does not say. */
  readonly retryAfterMs: number | undefined;
  /** Of an operation that is over: what it answered. */
  readonly answer?: RedfishAnswer;
}

const MAX_WORDS = 1000;
/** @param status of the answer: a monitor says 202 while the operation runs, and what the operation itself says after that */
function lookAt({ status, headers, body }: RedfishAnswer): TaskLook {
  const state = textOf(member(body, 'TaskState'));
  const known = state !== undefined && Object.hasOwn(STATES, state) ? STATES[state] : undefined;
  const bad = known === 'done' && member(body, 'TaskStatus') === 'Critical';
  const percent = member(body, 'PercentComplete');
  const messages = messagesOf(member(body, 'Messages'));
  const unknown = state === undefined && status !== 202 ? 'done' : 'running';
  return {
    kind: bad ? 'failed' : (known ?? unknown),
    state,
    percent: typeof percent === 'number' && percent >= 0 && percent <= 100 ? percent : undefined,
    messages: messages
      .map(({ id, text }) => text ?? id)
      .filter((one) => one !== undefined)
      .join(' ')
      .slice(0, MAX_WORDS),
    messageIds: messages.map(({ id }) => id).filter((id) => id !== undefined),
    retryAfterMs: retryAfter(headers['retry-after'], Date.now()),
    answer: { status, headers, body },
  };
}

/** The path of the monitor of what an answer started; undefined: it is over already. Throws RedfishError for a 202 that names none. */
export function startedTask({ status, location, body }: RedfishAnswer): string | undefined {
  if (status !== 202) return undefined;
  const monitor = location ?? textOf(member(body, 'TaskMonitor')) ?? linkOf(body);
  if (monitor !== undefined) return monitor;
  throw new RedfishError('protocol', 'the service answered 202 and did not say where its task can be seen');
}

/** How a task stands now, by the path of its monitor or of the Task itself. Throws RedfishError when that cannot be learned. */
export async function lookAtTask(ask: RedfishAsk, monitor: string): Promise<TaskLook> {
  try {
    return lookAt(await ask('GET', monitor));
  } catch (error) {
    if (!isStatus(error) || error.status === undefined || error.status >= 500) throw error;
    // Who we are and how often we ask has nothing to do with the operation.
    if ([401, 403, 408, 429].includes(error.status)) throw error;
    const kind = error.status === 404 || error.status === 410 ? 'gone' : 'failed';
    const { message, messageIds } = error;
    return { kind, state: undefined, percent: undefined, messages: message, messageIds, retryAfterMs: undefined };
  }
}

/** Milliseconds between looks where the service does not say. */
const LOOKS = [500, 1000, 1000, 2000, 3000, 5000] as const;
/**
 * Waits until what an answer started is over; an answer that is no 202 is passed through at once.
 * @param options.progress told at each look
 * @returns the operation's own answer, or that of its Task. Of a task that the service forgot: the first answer
 * @throws RedfishError kind `task` when it failed or is not over within `timeoutMs`; the signal's reason
 */
export async function followTask(
  ask: RedfishAsk,
  answer: RedfishAnswer,
  options: {
    readonly clock: { now(): number; sleep(milliseconds: number, signal?: AbortSignal): Promise<void> };
    readonly signal: AbortSignal;
    readonly timeoutMs: number;
    readonly progress?: (look: TaskLook) => Promise<void> | void;
  },
): Promise<RedfishAnswer> {
  const monitor = startedTask(answer);
  if (monitor === undefined) return answer;
  const { clock, signal, timeoutMs, progress } = options;
  const until = clock.now() + timeoutMs;
  let next = retryAfter(answer.headers['retry-after'], clock.now());
  for (let looks = 0; ; looks++) {
    const pause = Math.max(next ?? LOOKS[looks] ?? LOOKS.at(-1)!, LOOKS[0]);
    if (clock.now() + pause > until) throw new RedfishError('task', `the task ${monitor} is not over after ${timeoutMs / 1000} s`);
    await clock.sleep(pause, signal);
    const look = await lookAtTask(ask, monitor);
    await progress?.(look);
    if (look.kind === 'done') return look.answer ?? answer;
    if (look.kind === 'gone') return answer;
    if (look.kind === 'failed') {
      const why = look.messages === '' ? '' : `: ${look.messages}`;
      throw new RedfishError('task', `the task ${monitor} ended as ${look.state ?? 'failed'}${why}`, { messageIds: look.messageIds });
    }
    next = look.retryAfterMs;
  }
}
