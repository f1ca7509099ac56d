export type Json = unknown;
export type JsonObject = Readonly<Record<string, Json>>;

/** Whether the value is a JSON object: neither a list nor null. The types of its members are unknown. */
export const isObject = (value: unknown): value is JsonObject => typeof value === 'object' && value !== null && !Array.isArray(value);

/** The value, or an empty object in place of anything else. */
export const objectOf = (value: unknown): JsonObject => (isObject(value) ? value : {});

type Defined<T> = { readonly [Name in keyof T]?: Exclude<T[Name], undefined> };
/** The members that are not undefined. */
export const defined = <T extends object>(members: T): Defined<T> =>
  Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined)) as Defined<T>;
