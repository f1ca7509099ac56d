/** Adds an entry to a cache of bounded size, as its newest one. A Map iterates in insertion order: the oldest entry goes first. */
export function remember<Key, Value>(cache: Map<Key, Value>, key: Key, value: Value, most: number): void {
  cache.delete(key);
  const oldest = cache.size >= most ? cache.keys().next() : undefined;
  if (oldest?.done === false) cache.delete(oldest.value);
  cache.set(key, value);
}
