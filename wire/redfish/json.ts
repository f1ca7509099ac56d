/** Reads values of a service's response, which may be anything. */
import { withoutEndSlashes } from '../urls';

/** A member of a JSON object, by its path; undefined for anything else. */
export const member = (value: unknown, ...names: readonly string[]): unknown =>
  names.reduce<unknown>(
    (at, name) => (typeof at === 'object' && at !== null && Object.hasOwn(at, name) ? (at as Record<string, unknown>)[name] : undefined),
    value,
  );
/** The path of a link: `{ "@odata.id": "/redfish/…" }`. */
export const linkOf = (value: unknown): string | undefined => textOf(member(value, '@odata.id'));
/**
 * What two links to the same resource have in common: services write their own links with and without a host, a slash at the end, and in
 * upper and lower case. For comparison only.
 */
export const linkKey = (link: string): string => withoutEndSlashes(link.replace(/^https?:\/\/[^/]*/i, '')).toLowerCase();
/** A text that is not empty. */
export const textOf = (value: unknown): string | undefined => (typeof value === 'string' && value !== '' ? value : undefined);
/** A list; empty for anything else. */
export const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? (value as unknown[]) : []);
/** The texts of a list, such as AllowableValues; undefined for anything else. */
export const textsOf = (value: unknown): readonly string[] | undefined =>
  Array.isArray(value) ? (value as unknown[]).filter((candidate) => typeof candidate === 'string') : undefined;
