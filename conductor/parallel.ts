/** Works through a list with at most `width` at once; a failure of one is its own affair (`each` catches). Ends early at the signal. */
export async function inParallel<T>(
  items: readonly T[],
  width: number,
  signal: AbortSignal,
  each: (item: T) => Promise<void>,
): Promise<void> {
  const rest = items[Symbol.iterator]();
  const lane = async (): Promise<void> => {
    for (const item of rest) {
      if (signal.aborted) return;
      await each(item);
    }
  };
  await Promise.all(Array.from({ length: Math.min(width, items.length) }, lane));
}
