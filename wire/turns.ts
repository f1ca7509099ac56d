/** Spreads work that many callers would begin in the same turn of the event loop, in which the program answers nobody. */

/** @returns a function to wait for: so many callers continue in each turn, in the order of their calls */
export function createTurns(atOnce: number): () => Promise<void> {
  const waiting: (() => void)[] = [];
  let started = 0;
  let isPlanned = false;
  const plan = (): void => {
    if (isPlanned) return;
    isPlanned = true;
    setImmediate(nextTurn);
  };
  function nextTurn(): void {
    isPlanned = false;
    const starting = waiting.splice(0, atOnce);
    started = starting.length;
    if (started > 0) plan();
    for (const start of starting) start();
  }
  return () => {
    plan();
    if (started < atOnce) {
      started++;
      return Promise.resolve();
    }
    return new Promise((start) => waiting.push(start));
  };
}
