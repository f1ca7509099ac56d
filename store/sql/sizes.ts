/**
 * Bounds the values of records. A record is read whole, for every request about it, so one that grows without end would slow down all
 * requests. Every write of a JSON or text column passes these checks, whoever sends the value: users, agents, BMCs, other processes.
 */
import { Fault } from '../../model/errors';
import { isQuoting, quotable, storableJson } from '../../model/text';
import { createNames, type Prepared } from './prepared';

/**
 * Determines how a value is written, and whether lists may be sorted and filtered by the column. `json` keeps every character. `jsonb` has
 * U+FFFD in place of U+0000 and lone surrogates: columns of this type, and columns whose texts SQL reads, such as triggers.
 */
export type ColumnKind = 'text' | 'boolean' | 'integer' | 'time' | 'json' | 'jsonb' | 'texts';
const isJson = (kind: ColumnKind | undefined): boolean => kind === 'json' || kind === 'jsonb';
/** Bytes. See the options of the same names in [database]. */
export interface Sizes {
  /** Of one field. */
  readonly field: number;
  /** Of all JSON fields of a record together. */
  readonly record: number;
  /** Of a config drive, which counts neither as a part of its field nor of its record. */
  readonly configdrive: number;
}
const KIB = 1024;
export const DEFAULT_SIZES: Sizes = { field: 1024 * KIB, record: 4096 * KIB, configdrive: 8192 * KIB };

/** The most values in a field, as in a request's body. A field of as many empty lists as its bytes allow would take long to parse. */
const MAX_VALUES = 50_000;
/** A patch may nest values deeper than a request's body, and functions that go through a value call themselves for each level. */
const MAX_DEPTH = 128;
/** Field → its member with a limit of its own. */
const APART: Readonly<Record<string, string>> = { instance_info: 'configdrive' };
/** Writes below this size cannot make a record grow much, and cost no query. */
const LARGE = 64 * KIB;

const tooLarge = (message: string): Fault => new Fault('TooLarge', { message });
const tooManyBytes = (what: string, bytes: number, option: keyof Sizes, limit: number): Fault =>
  tooLarge(`${what} is too large: it would have ${bytes} bytes. [database]max_${option}_size allows ${limit}.`);
/** The bytes of a text. A character of a JavaScript string has at most three. */
const bytesOf = (text: string): number => Buffer.byteLength(text);

/** Throws TooLarge for a value with too many values or too much nesting. */
function checkShape(field: string, whole: unknown): void {
  let count = 0;
  const visit = (value: unknown, depth: number): void => {
    if (typeof value !== 'object' || value === null) return;
    if (depth > MAX_DEPTH) throw tooLarge(`${field} is nested too deeply: ${MAX_DEPTH} levels are allowed.`);
    for (const name in value) {
      if (++count > MAX_VALUES) throw tooLarge(`${field} has too many values: ${MAX_VALUES} are allowed.`);
      visit((value as Readonly<Record<string, unknown>>)[name], depth + 1);
    }
  };
  visit(whole, 1);
}

/** The bytes of the member that has a limit of its own. */
function bytesApart(field: string, value: unknown, sizes: Sizes): number {
  const member = APART[field];
  const apart = member === undefined ? undefined : (value as Readonly<Record<string, unknown>> | null)?.[member];
  if (apart === undefined || apart === null) return 0;
  const bytes = bytesOf(typeof apart === 'string' ? apart : storableJson(apart));
  if (bytes > sizes.configdrive) throw tooManyBytes(`${field}.${member}`, bytes, 'configdrive', sizes.configdrive);
  return bytes;
}
/** @returns the bytes that the text of this JSON value adds to its record. @throws Fault TooLarge */
export function checkJson(field: string, value: unknown, text: string, sizes: Sizes): number {
  if (text.length > MAX_DEPTH) checkShape(field, value);
  if (text.length < LARGE / 3) return text.length;
  const bytes = bytesOf(text) - bytesApart(field, value, sizes);
  if (bytes > sizes.field) throw tooManyBytes(field, bytes, 'field', sizes.field);
  return bytes;
}
/** @returns the text, or its beginning if it quotes others. @throws Fault TooLarge */
export function checkText(field: string, text: string, sizes: Sizes): string {
  if (text.length < LARGE / 3) return text;
  if (isQuoting(field)) return quotable(field, text);
  const bytes = bytesOf(text);
  if (bytes > sizes.field) throw tooManyBytes(field, bytes, 'field', sizes.field);
  return text;
}
/** Throws TooLarge for a record whose JSON fields have so many bytes together. */
export function checkTotal(bytes: number, sizes: Sizes): void {
  if (bytes > sizes.record) throw tooManyBytes('The record', bytes, 'record', sizes.record);
}

/** A change of some columns that is about to be written. */
export interface Change {
  readonly columns: readonly string[];
  /** The bytes of their JSON values. */
  readonly bytes: number;
  /** Keys of driver_internal_info that are merged. */
  readonly merged?: readonly string[];
}
/**
 * SQL that is true if PostgreSQL can read members of a `json` column. It keeps the escapes of U+0000 and of lone surrogates, but every
 * operator on a value with one of them fails. (False also for escapes of a backslash before such letters.)
 */
export const isReadable = (column: string): string => `(strpos(${column}::text, '\\u0000') = 0 AND strpos(${column}::text, '\\ud') = 0)`;
/** SQL for the bytes of a JSON column. */
function sizeOf(column: string): string {
  const member = APART[column];
  const whole = `coalesce(octet_length("${column}"::text), 0)`;
  if (member === undefined) return whole;
  return `${whole} - CASE WHEN ${isReadable(column)} THEN coalesce(octet_length("${column}" ->> '${member}'), 0) ELSE 0 END`;
}
/** SQL for the bytes of a row in memory. */
export const rowSize = (columns: Readonly<Record<string, ColumnKind>>): string =>
  Object.entries(columns)
    .filter(([, kind]) => isJson(kind) || kind === 'texts' || kind === 'text')
    .map(([name]) => `coalesce(octet_length("${name}"::text), 0)`)
    .join(' + ') || '0';

/** Bytes of the texts and JSON of rows, by ID. */
export async function sizesByIds(
  prepared: Prepared,
  table: string,
  columns: Readonly<Record<string, ColumnKind>>,
  ids: readonly number[],
): Promise<ReadonlyMap<number, number>> {
  const text = `SELECT id, (${rowSize(columns)})::bigint AS bytes FROM ${table} WHERE id = ANY($1)`;
  const found = await prepared<{ readonly id: number; readonly bytes: number }>(`sizes_${table}`, text, [ids]);
  return new Map(found.map(({ id, bytes }) => [id, bytes]));
}

const nameOfCheck = createNames();
/**
 * @returns a function that throws TooLarge if the change would make the record too large. Small changes are not checked
 */
export function createTotalCheck(
  table: string,
  columns: Readonly<Record<string, ColumnKind>>,
  sizes: Sizes,
  prepared: Prepared,
): (uuid: string, change: Change) => Promise<void> {
  const json = Object.keys(columns).filter((name) => isJson(columns[name]));
  return async (uuid, { columns: changed, bytes, merged = [] }) => {
    if (bytes < LARGE) return;
    const kept = json.filter((name) => !changed.includes(name) && (merged.length === 0 || name !== 'driver_internal_info')).map(sizeOf);
    if (merged.length > 0) kept.push('octet_length((driver_internal_info - $2::text[])::text)');
    if (kept.length === 0) return;
    const values = merged.length > 0 ? [uuid, merged] : [uuid];
    const text = `SELECT (${kept.join(' + ')})::bigint AS bytes FROM ${table} WHERE uuid = $1`;
    const [found] = await prepared<{ readonly bytes: number }>(nameOfCheck(text), text, values);
    if (found) checkTotal(found.bytes + bytes, sizes);
  };
}
