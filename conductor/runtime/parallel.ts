/**
 * Runs `each` on the items of a list or a generator, at most `width` at once, until the signal is aborted. `each` must catch its errors.
 */
export async function inParallel<T>(
  items: Iterable<T> | AsyncIterable<T>,
  width: number,
  signal: AbortSignal,
  each: (item: T) => Promise<void>,
): Promise<void> {
  const rest = Symbol.asyncIterator in items ? items[Symbol.asyncIterator]() : items[Symbol.iterator]();
  let more = true;
  const lane = async (): Promise<void> => {
    while (more && !signal.aborted) {
      const next = await rest.next();
      if (next.done) more = false;
      else await each(next.value);
    }
  };
  await Promise.all(Array.from({ length: width }, lane));
}
