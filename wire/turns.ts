/** Spreads work that would begin in the same turn of the event loop, in which the program answers nobody. */

/** @returns starts work in the order of its source: at once, until the source has started `atOnce` in this turn, then in later turns */
export function createSourceTurns(atOnce: number): (source: string, start: () => void) => void {
  const started = new Map<string, number>();
  const waiting = new Map<string, (() => void)[]>();
  let isPlanned = false;
  const plan = (): void => {
    if (isPlanned) return;
    isPlanned = true;
    setImmediate(nextTurn);
  };
  function nextTurn(): void {
    isPlanned = false;
    started.clear();
    for (const [source, queue] of waiting) {
      const starting = queue.splice(0, atOnce);
      if (queue.length === 0) waiting.delete(source);
      started.set(source, starting.length);
      for (const start of starting) start();
    }
    if (started.size > 0) plan();
  }
  return (source, start) => {
    const count = started.get(source) ?? 0;
    plan();
    if (count < atOnce) {
      started.set(source, count + 1);
      start();
      return;
    }
    const queue = waiting.get(source);
    if (queue) queue.push(start);
    else waiting.set(source, [start]);
  };
}

/** @returns a function to wait for: so many callers continue in each turn, in the order of their calls */
export function createTurns(atOnce: number): () => Promise<void> {
  const inTurn = createSourceTurns(atOnce);
  return () => new Promise((start) => inTurn('', start));
}
