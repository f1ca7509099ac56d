export type Json = unknown;
export type JsonObject = Readonly<Record<string, Json>>;

/** Whether the value is a JSON object: neither a list nor null. The types of its members are unknown. */
export const isObject = (value: unknown): value is JsonObject => typeof value === 'object' && value !== null && !Array.isArray(value);
