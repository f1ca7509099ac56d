/**
 * Tests texts of machines against regular expressions of clients. Both may be hostile, and backtracking can take forever, so the event
 * loop does only what takes a few milliseconds. A thread does the rest, and ends at its time limit.
 */
import { setImmediate } from 'node:timers/promises';
import { createContext, Script, type Context } from 'node:vm';
import type { Regex } from '../../../model/rules/python-regex';
import { createThread } from '../../../wire/worker-thread';

/** Milliseconds on the event loop. */
const SHORT_MS = 5;
/** Characters of an expression that is tried on the event loop: to compile it cannot be interrupted. */
const SHORT_SOURCE = 250;
/** Milliseconds in the thread. */
const MAX_MS = 500;
/** MiB of the thread. */
const MAX_MEMORY = 192;
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

const CODE = `
  const { parentPort } = require('node:worker_threads');
  parentPort.on('message', ({ source, flags, text }) => parentPort.postMessage(new RegExp(source, flags).test(text)));`;
const thread = createThread<Regex & { readonly text: string }, boolean>(CODE, { mostMemory: MAX_MEMORY, idleMs: IDLE_MS });

/** Whether the text contains a match. Undefined: it takes longer than MAX_MS, or too much memory. */
export async function testRegex(regex: Regex, text: string): Promise<boolean | undefined> {
  const shortly = regex.source.length <= SHORT_SOURCE ? testShortly(regex, text) : undefined;
  // Between the tests of a loop, the event loop does other work.
  await setImmediate();
  return shortly ?? thread.use((ask) => ask({ ...regex, text }, MAX_MS)).catch(() => undefined);
}
