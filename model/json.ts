export type Json = unknown;
export type JsonObject = Readonly<Record<string, Json>>;

/** Whether it is a JSON object: no list, not null. Its members are unknown. */
export const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
