/**
 * Parses JSON that JSON.parse would take more than a turn of the event loop for: in a thread, which returns the value in pieces. To receive
 * the value as a whole would take as long as to parse it.
 */
import { createThread } from './worker-thread';

/** Members of one container, in order. */
interface Piece {
  /** The number of their container. The first piece has the whole value, in the list number 0. */
  readonly into: number;
  /** Absent: the container is a list. */
  readonly names?: readonly string[];
  readonly values: readonly unknown[];
  /** Which of the values are containers whose members follow in pieces of their own. They get the next numbers. */
  readonly opens: readonly number[];
}
/** What the thread gets: JSON, or undefined to ask for the next piece. It answers undefined after the last one. */
type Question = { readonly bytes: Uint8Array } | undefined;
type Answer = Piece | { readonly error: string } | undefined;

/** The weight of a piece: one for each value and name, and one for each 256 characters. */
const PIECE = 2000;
const CODE = `
  const { parentPort, workerData: most } = require('node:worker_threads');
  /** The weight of the value; more than \`most\`, if it is that much. */
  function weigh(value) {
    if (typeof value === 'string') return 1 + value.length / 256;
    if (typeof value !== 'object' || value === null) return 1;
    const names = Array.isArray(value) ? undefined : Object.keys(value);
    let sum = 1;
    for (let at = 0; at < (names ?? value).length && sum <= most; at++)
      sum += names ? weigh(names[at]) + weigh(value[names[at]]) : weigh(value[at]);
    return sum;
  }
  const isContainer = (value) => typeof value === 'object' && value !== null;
  function* cut(root) {
    const open = [[root]];
    for (let into = 0; into < open.length; into++) {
      const container = open[into];
      open[into] = undefined;
      const names = Array.isArray(container) ? undefined : Object.keys(container);
      const members = names ? Object.values(container) : container;
      let [from, weight, values, opens] = [0, 0, [], []];
      for (let at = 0; at < members.length; at++) {
        const member = members[at];
        let heavy = weigh(member);
        if (heavy > most && isContainer(member)) {
          open.push(member);
          opens.push(values.length);
          values.push(Array.isArray(member) ? [] : {});
          heavy = 1;
        } else values.push(member);
        weight += heavy + (names ? weigh(names[at]) : 0);
        if (weight < most && at + 1 < members.length) continue;
        yield { into, names: names?.slice(from, at + 1), values, opens };
        [from, weight, values, opens] = [at + 1, 0, [], []];
      }
    }
  }
  let pieces;
  parentPort.on('message', (question) => {
    try {
      if (question) pieces = cut(JSON.parse(Buffer.from(question.bytes.buffer).toString()));
      parentPort.postMessage(pieces.next().value);
    } catch (error) {
      parentPort.postMessage({ error: error.message });
    }
  });`;

const IDLE_MS = 10_000;
/** Milliseconds for each piece. The first one needs the most, for the parsing: a second for the largest body. */
const MAX_MS = 60_000;
const thread = createThread<Question, Answer>(CODE, { data: PIECE, idleMs: IDLE_MS });

type Container = unknown[] | Record<string, unknown>;
function add(container: Container, { names, values }: Piece): void {
  values.forEach((value, at) => {
    const name = names?.[at];
    if (name === undefined) (container as unknown[]).push(value);
    // JSON.parse makes it a property like any other; an assignment would not.
    else if (name === '__proto__') Object.defineProperty(container, name, { value, enumerable: true, configurable: true, writable: true });
    else (container as Record<string, unknown>)[name] = value;
  });
}

/**
 * @param bytes UTF-8 without a byte order mark, whose values have been counted
 * @param nextTurn resolves in a turn that may receive a piece
 * @throws SyntaxError
 */
export function parseInThread(bytes: Uint8Array, nextTurn: () => Promise<void>): Promise<unknown> {
  return thread.use(async (ask) => {
    const copy = new Uint8Array(bytes);
    const root: unknown[] = [];
    const containers: Container[] = [root];
    for (let answer = await ask({ bytes: copy }, MAX_MS, [copy.buffer]); answer !== undefined; answer = await ask(undefined, MAX_MS)) {
      if ('error' in answer) throw new SyntaxError(answer.error);
      add(containers[answer.into]!, answer);
      for (const at of answer.opens) containers.push(answer.values[at] as Container);
      await nextTurn();
    }
    return root[0];
  });
}
