/** Threads for work that would take more than a turn of the event loop. */
import { once } from 'node:events';
import { Worker } from 'node:worker_threads';

interface ThreadOptions {
  /** The thread's `workerData`. */
  readonly data?: unknown;
  /** MiB. Absent: as much as the process may have. */
  readonly mostMemory?: number;
  /** Milliseconds without work after which the thread ends. Absent: it stays. */
  readonly idleMs?: number;
}
/** Rejects when the thread ends, for example because it has not answered in this time: then it is ended. */
type Ask<Question, Answer> = (question: Question, timeoutMs: number, transfer?: readonly ArrayBuffer[]) => Promise<Answer>;
interface WorkerThread<Question, Answer> {
  /** Several questions in a row, of one user at a time. */
  use<T>(work: (ask: Ask<Question, Answer>) => Promise<T>): Promise<T>;
}

/** A thread that has exited has this ID. */
const EXITED = -1;

function answerOf<Answer>(worker: Worker, ...[question, timeoutMs, transfer = []]: Parameters<Ask<unknown, Answer>>): Promise<Answer> {
  return new Promise((done, fail) => {
    const late = setTimeout(() => void worker.terminate(), timeoutMs);
    let reason = new Error('the thread has ended');
    const onError = (error: Error): void => {
      reason = error;
    };
    const stop = (): void => {
      clearTimeout(late);
      worker.off('message', onMessage).off('error', onError).off('exit', onExit);
    };
    const onMessage = (answer: Answer): void => {
      stop();
      done(answer);
    };
    const onExit = (): void => {
      stop();
      fail(reason);
    };
    if (worker.threadId === EXITED) {
      onExit();
      return;
    }
    worker.on('message', onMessage).on('error', onError).on('exit', onExit);
    worker.postMessage(question, transfer);
  });
}

/**
 * The thread starts with the first work, and after an end with the next. It keeps the process alive only while it
 * works.
 * @param code as text, because the file of a thread must be JavaScript, and ours are only after the build. It answers each message of its
 * `parentPort` with one message.
 */
export function createThread<Question, Answer>(code: string, options: ThreadOptions = {}): WorkerThread<Question, Answer> {
  const { data, mostMemory, idleMs } = options;
  let current: { readonly worker: Worker; readonly started: Promise<unknown> } | undefined;
  let idle: NodeJS.Timeout | undefined;
  let last: Promise<unknown> = Promise.resolve();

  function start(): NonNullable<typeof current> {
    const worker = new Worker(code, {
      eval: true,
      workerData: data,
      resourceLimits: mostMemory === undefined ? {} : { maxOldGenerationSizeMb: mostMemory },
    });
    const exited = once(worker, 'exit').catch(() => {});
    void exited.then(() => {
      if (current?.worker === worker) current = undefined;
    });
    worker.on('error', () => {});
    return { worker, started: Promise.race([once(worker, 'online'), exited]) };
  }
  async function converse<T>(work: (ask: Ask<Question, Answer>) => Promise<T>): Promise<T> {
    clearTimeout(idle);
    const { worker, started } = (current ??= start());
    worker.ref();
    try {
      // The time to start is not part of the time to answer.
      await started;
      return await work((...asked) => answerOf(worker, ...asked));
    } finally {
      worker.unref();
      if (idleMs !== undefined) idle = setTimeout(() => void worker.terminate(), idleMs).unref();
    }
  }
  return {
    use(work) {
      const turn = last.then(() => converse(work));
      last = turn.catch(() => {});
      return turn;
    },
  };
}
