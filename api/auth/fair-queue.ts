/** A queue that is fair to sources: each has its turn, however much another one asks for. */

interface FairQueueLimits {
  readonly most: number;
  readonly mostOfSource: number;
}
export interface FairQueue<T> {
  /** @returns false when the queue, or the source's part of it, is full; preferred items are refused only by the queue */
  add(item: T, source: string, isPreferred: boolean): boolean;
  /** Preferred items first, then one of each source in turn. */
  take(): T | undefined;
}

export function createFairQueue<T>({ most, mostOfSource }: FairQueueLimits): FairQueue<T> {
  const preferred: T[] = [];
  /** In the order of their turns. */
  const sources = new Map<string, T[]>();
  let waiting = 0;
  return {
    add(item, source, isPreferred) {
      const lane = isPreferred ? preferred : (sources.get(source) ?? []);
      // Preferred items have half of the room to themselves.
      if (isPreferred ? preferred.length >= most / 2 : waiting - preferred.length >= most / 2 || lane.length >= mostOfSource) return false;
      lane.push(item);
      if (!isPreferred) sources.set(source, lane);
      waiting++;
      return true;
    },
    take() {
      if (waiting === 0) return undefined;
      waiting--;
      if (preferred.length > 0) return preferred.shift();
      const [source, lane] = sources.entries().next().value!;
      const item = lane.shift();
      sources.delete(source);
      if (lane.length > 0) sources.set(source, lane);
      return item;
    },
  };
}
