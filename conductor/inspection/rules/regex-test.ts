/**
 * Tests texts of machines against regular expressions of clients. Both may be hostile, and backtracking can take forever, so the event
 * loop does only what takes a few milliseconds. A thread does the rest, and ends at its time limit.
 */
import { setImmediate } from 'node:timers/promises';
import { createContext, Script, type Context } from 'node:vm';
import { Worker } from 'node:worker_threads';
import type { Regex } from '../../../model/rules/python-regex';

/** Milliseconds on the event loop. */
const SHORT_MS = 5;
/** Characters of an expression that is tried on the event loop: to compile it cannot be interrupted. */
const SHORT_SOURCE = 250;
/** Milliseconds in the thread. */
const LONGEST_MS = 500;
/** MiB of the thread. */
const MOST_MEMORY = 192;
/** The thread ends after this time without work. */
const IDLE_MS = 1000;

const TEST = new Script('new RegExp(source, flags).test(text)');
let context: Context | undefined;
/** Undefined: it takes longer. */
function testShortly({ source, flags }: Regex, text: string): boolean | undefined {
  context ??= createContext({});
  Object.assign(context, { source, flags, text });
  try {
    return TEST.runInContext(context, { timeout: SHORT_MS }) as boolean;
  } catch {
    return undefined;
  } finally {
    context['text'] = '';
  }
}

/** As text, because the file of a worker must be JavaScript. This file is JavaScript only after the build. */
const WORKER = `
  const { parentPort } = require('node:worker_threads');
  parentPort.on('message', ({ source, flags, text }) => parentPort.postMessage(new RegExp(source, flags).test(text)));
  parentPort.postMessage(undefined);`;
interface Thread {
  readonly worker: Worker;
  /** Called with each message of the thread, and with undefined at its end. */
  hear: (matches: boolean | undefined) => void;
}
let thread: Thread | undefined;
let idle: NodeJS.Timeout | undefined;
const forget = (one: Thread): void => {
  if (thread === one) thread = undefined;
};
/** The next test starts another thread. */
const end = (one: Thread): void => {
  forget(one);
  void one.worker.terminate();
};
/** Its first message says that it is ready. It does not keep the process alive. */
function startThread(): Thread {
  const worker = new Worker(WORKER, { eval: true, resourceLimits: { maxOldGenerationSizeMb: MOST_MEMORY } });
  const started: Thread = { worker, hear: () => {} };
  worker.on('message', (matches: boolean | undefined) => started.hear(matches));
  // An error of the thread ends it, too.
  worker.on('error', () => {});
  worker.once('exit', () => {
    forget(started);
    started.hear(undefined);
  });
  // After the listeners, because adding a listener refs the worker again.
  worker.unref();
  return started;
}
const heard = (from: Thread): Promise<boolean | undefined> => new Promise((done) => (from.hear = done));

/** Undefined: it takes longer than LONGEST_MS, or too much memory. */
async function testInThread(regex: Regex, text: string): Promise<boolean | undefined> {
  clearTimeout(idle);
  const running = thread ?? startThread();
  if (thread !== running) {
    thread = running;
    await heard(running);
  }
  const late = setTimeout(() => end(running), LONGEST_MS);
  const result = heard(running);
  running.worker.postMessage({ ...regex, text });
  try {
    return await result;
  } finally {
    clearTimeout(late);
    idle = setTimeout(() => end(running), IDLE_MS).unref();
  }
}

/** One test at a time. */
let last: Promise<unknown> = Promise.resolve();

/** Whether the text contains a match. Undefined: it takes too long. */
export async function testRegex(regex: Regex, text: string): Promise<boolean | undefined> {
  const shortly = regex.source.length <= SHORT_SOURCE ? testShortly(regex, text) : undefined;
  // Between the tests of a loop, the event loop does other work.
  await setImmediate();
  if (shortly !== undefined) return shortly;
  const turn = last.then(() => testInThread(regex, text));
  last = turn;
  return turn;
}
