/** Batches queries: calls of one turn of the event loop, or that arrive while a query runs, share the next one. No call gets a result that was read before the call. */
import { storableJson } from '../../model/text';

/**
 * SQL for the rows that have one of these values in the column, of the type text.
 * PostgreSQL plans `= ANY` anew for each array, which takes longer than the rest of such a query. The plan of this one is kept.
 * @param columns the columns of the result, which is called `found`
 * @param also a further condition
 */
export const eachOf = (table: string, column: string, columns: string, also = 'true'): string =>
  `SELECT found.* FROM json_array_elements_text($1::json) AS asked (value),
    LATERAL (SELECT ${columns} FROM ${table} WHERE ${column} = asked.value AND ${also} OFFSET 0) AS found`;
/** The values for `eachOf`, as its parameter `$1`. */
export const asked = (values: readonly string[]): string => storableJson([...new Set(values)]);

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
      if (busy) return;
      busy = true;
      // After all requests that have arrived by now were read.
      setImmediate(() => void run());
    });
}
