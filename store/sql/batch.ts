/** Batches queries: calls that arrive while a query runs share the next one. No call gets a result that was read before the call. */

interface Waiting<Key, Value> {
  readonly key: Key;
  readonly resolve: (value: Value) => void;
  readonly reject: (reason: unknown) => void;
}

/** @param query returns the values in the order of the keys */
export function batched<Key, Value>(query: (keys: readonly Key[]) => Promise<readonly Value[]>): (key: Key) => Promise<Value> {
  let waiting: Waiting<Key, Value>[] = [];
  let busy = false;
  const run = async (): Promise<void> => {
    busy = true;
    while (waiting.length > 0) {
      const batch = waiting;
      waiting = [];
      try {
        const values = await query(batch.map(({ key }) => key));
        for (const [index, { resolve }] of batch.entries()) resolve(values[index]!);
      } catch (error) {
        for (const { reject } of batch) reject(error);
      }
    }
    busy = false;
  };
  return (key) =>
    new Promise((resolve, reject) => {
      waiting.push({ key, resolve, reject });
      if (!busy) void run();
    });
}
