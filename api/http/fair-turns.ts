/** Runs work of many sources in turn: each source has its turn, however much another one sends. */
import { createShares, type ShareLimits } from '../../wire/shares';

interface TurnLimits {
  readonly running: ShareLimits;
  readonly waiting: ShareLimits;
  /** Thrown when too much waits. */
  readonly refusal: () => Error;
}
/**
 * @param isPreferred the work runs before other work. The waiting limits count each kind by itself; preferred work has none per source
 * @throws the refusal, and what `work` throws
 */
type FairTurns = <T>(source: string, work: () => Promise<T>, isPreferred?: boolean) => Promise<T>;

export function createFairTurns({ running: mostRunning, waiting: mostWaiting, refusal }: TurnLimits): FairTurns {
  const running = createShares(mostRunning);
  const waiting = createShares(mostWaiting);
  const preferredWaiting = createShares({ ...mostWaiting, ofSource: mostWaiting.inAll });
  const preferred: { readonly source: string; readonly start: () => void }[] = [];
  /** What waits, by source, in the order of their turns. */
  const queues = new Map<string, (() => void)[]>();

  const startPreferred = (): boolean => {
    const at = preferred.findIndex(({ source }) => running.take(source, 1));
    const [next] = at < 0 ? [] : preferred.splice(at, 1);
    if (!next) return false;
    preferredWaiting.give(next.source, 1);
    next.start();
    return true;
  };
  const startOther = (): boolean => {
    for (const [source, queue] of queues) {
      if (!running.take(source, 1)) continue;
      const start = queue.shift()!;
      // The source goes to the end of the order.
      queues.delete(source);
      if (queue.length > 0) queues.set(source, queue);
      waiting.give(source, 1);
      start();
      return true;
    }
    return false;
  };
  const wait = (source: string, isPreferred: boolean): Promise<void> => {
    if (!(isPreferred ? preferredWaiting : waiting).take(source, 1)) throw refusal();
    return new Promise((start) => {
      const queue = queues.get(source);
      if (isPreferred) preferred.push({ source, start });
      else if (queue) queue.push(start);
      else queues.set(source, [start]);
    });
  };
  return async (source, work, isPreferred = false) => {
    if (!running.take(source, 1)) await wait(source, isPreferred);
    try {
      return await work();
    } finally {
      running.give(source, 1);
      while (startPreferred() || startOther());
    }
  };
}
