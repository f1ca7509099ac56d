/**
 * Spreads work over turns of the event loop, because the program answers nobody during a turn. All kinds of waiting work share one budget
 * of time in each turn: otherwise a little of each would add up to a long turn.
 */

/** Milliseconds of such work in a turn. A piece of work that has begun is not interrupted. */
const BUDGET_MS = 6;

interface Queue {
  readonly atOnce: number;
  /** `starts` resolve promises: the work is the code that continues then. */
  readonly continues: boolean;
  readonly starts: (() => void)[];
}
/** The waiting work by source, in the order of their turns. */
const waiting = new Map<string, Queue>();
/** How much work each source has started in this turn. */
const started = new Map<string, number>();
/** Milliseconds that work has taken in this turn. */
let spent = 0;
let isPlanned = false;

function planNextTurn(): void {
  if (isPlanned) return;
  isPlanned = true;
  setImmediate(() => {
    isPlanned = false;
    started.clear();
    spent = 0;
    startNext();
  });
}
const countOf = (source: string): number => started.get(source) ?? 0;

/** Takes the first work of the source that has its turn. Undefined: no work may start in this turn. */
function takeNext(): { readonly start: () => void; readonly continues: boolean } | undefined {
  for (const [source, queue] of waiting) {
    const count = countOf(source);
    if (count >= queue.atOnce) continue;
    started.set(source, count + 1);
    const start = queue.starts.shift()!;
    // The source goes to the end of the order.
    waiting.delete(source);
    if (queue.starts.length > 0) waiting.set(source, queue);
    return { start, continues: queue.continues };
  }
  return undefined;
}
/** Starts waiting work until the budget of the turn is used up. */
function startNext(): void {
  if (waiting.size > 0) planNextTurn();
  while (spent < BUDGET_MS) {
    const next = takeNext();
    if (!next) return;
    const began = performance.now();
    next.start();
    if (!next.continues) {
      spent += performance.now() - began;
      continue;
    }
    // The work is the code that awaits the promise. Node runs callbacks of nextTick when no microtasks are left: the work has paused then.
    queueMicrotask(() =>
      process.nextTick(() => {
        spent += performance.now() - began;
        startNext();
      }),
    );
    return;
  }
}

function wait(source: string, atOnce: number, continues: boolean, start: () => void): void {
  planNextTurn();
  const queue = waiting.get(source);
  if (queue) queue.starts.push(start);
  else waiting.set(source, { atOnce, continues, starts: [start] });
}

let callers = 0;
/**
 * @returns a function that starts the work of a source in order: at once until the source has started `atOnce` in this turn or the budget
 * is used up, then in later turns. A source's first work in a turn starts at once if none of its work waits, however much others have
 * started. `start` does not throw.
 */
export function createSourceTurns(atOnce: number): (source: string, start: () => void) => void {
  const caller = ++callers;
  return (source, start) => {
    const key = `${caller} ${source}`;
    const count = countOf(key);
    if (waiting.has(key) || (count > 0 && (count >= atOnce || spent >= BUDGET_MS))) {
      wait(key, atOnce, false, start);
      return;
    }
    planNextTurn();
    started.set(key, count + 1);
    const began = performance.now();
    start();
    spent += performance.now() - began;
  };
}

/** @returns a function that resolves in a later turn: for at most `atOnce` callers in each turn, in the order of their calls */
export function createTurns(atOnce: number): () => Promise<void> {
  const caller = String(++callers);
  return () => new Promise((start) => wait(caller, atOnce, true, start));
}

/** Bytes of the rows of a slice. A larger row is a slice of its own. */
const SLICE = 512 * 1024;

/**
 * Divides rows into slices, so that only some bytes of them are in memory at once, and other work has its turn between two slices.
 * @param bytesOf the bytes of a row, about
 * @returns the rows in order
 */
export function sliced<Row>(rows: readonly Row[], bytesOf: (row: Row) => number): readonly (readonly Row[])[] {
  const slices: Row[][] = [];
  let left = 0;
  for (const row of rows) {
    const bytes = bytesOf(row);
    if (bytes > left || slices.length === 0) {
      slices.push([]);
      left = SLICE;
    }
    slices.at(-1)!.push(row);
    left -= bytes;
  }
  return slices;
}
