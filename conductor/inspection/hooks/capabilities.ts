/** The format of `properties.capabilities`: `key:value,key:value`. */

/** Accepts an object too. */
export function readCapabilities(value: unknown): Map<string, string> {
  if (typeof value === 'object' && value !== null) return new Map(Object.entries(value).map(([key, entry]) => [key, String(entry)]));
  const pairs = typeof value === 'string' ? value.split(',').filter((pair) => pair.includes(':')) : [];
  return new Map(pairs.map((pair) => [pair.slice(0, pair.indexOf(':')).trim(), pair.slice(pair.indexOf(':') + 1).trim()]));
}
export const joinCapabilities = (all: ReadonlyMap<string, string>): string => [...all].map(([key, value]) => `${key}:${value}`).join(',');
