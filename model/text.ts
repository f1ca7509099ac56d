/**
 * Texts from machines, agents, servers and files, which go into records. PostgreSQL's text and jsonb refuse the character U+0000, and jsonb
 * refuses lone surrogates. The long ones are cut in the middle: the reason of an error is often at its end.
 */

/** Strings of ES2024, which Node 20 and the browsers have. */
interface Unicode {
  isWellFormed(): boolean;
  toWellFormed(): string;
}
const unicode = (text: string): Unicode => text as unknown as Unicode;

/** Whether every column of the database can hold the text. */
export const isStorable = (text: string): boolean => unicode(text).isWellFormed() && !text.includes('\0');

/** The text with U+FFFD in place of what the database refuses, so that different texts stay different from the ones without it. */
export const storable = (text: string): string => (isStorable(text) ? text : unicode(text).toWellFormed().replaceAll('\0', '\ufffd'));

/** An escaped backslash, or the escape of a character that jsonb refuses. JSON.stringify escapes only surrogates that are alone. */
const ESCAPES = /\\(?:\\|u0000|ud[89a-f][0-9a-f]{2})/g;
/** JSON that `json` and `jsonb` accept. */
export function storableJson(value: unknown): string {
  // JSON has no `undefined`.
  const text = JSON.stringify(value ?? null);
  if (!text.includes('\\u0000') && !text.includes('\\ud')) return text;
  return text.replace(ESCAPES, (escape) => (escape === '\\\\' ? escape : '\ufffd'));
}

const isLow = (unit: number): boolean => unit >= 0xdc00 && unit <= 0xdfff;
/** Moves a cut out of a surrogate pair. */
const between = (text: string, at: number): number => (isLow(text.charCodeAt(at)) ? at - 1 : at);

/** At most so many UTF-16 code units of a text: its beginning and, for a third of the room, its end. */
export function shortened(text: string, most: number): string {
  if (text.length <= most) return text;
  const mark = ' […] ';
  const room = most - mark.length;
  if (room < 3 * mark.length) return text.slice(0, between(text, most));
  const tail = Math.floor(room / 3);
  const from = text.length - tail;
  return `${text.slice(0, between(text, room - tail))}${mark}${text.slice(isLow(text.charCodeAt(from)) ? from + 1 : from)}`;
}

/** Code units of an error or an event in a record. */
export const MAX_ERROR = 65_535;
/** Columns that quote errors of others. */
const QUOTING: ReadonlySet<string> = new Set(['last_error', 'maintenance_reason', 'event']);
export const isQuoting = (column: string): boolean => QUOTING.has(column);
/** The text as a record has it: longer ones that quote others are shortened, because refusing them would hide the error. */
export const quotable = (column: string, text: string): string => (isQuoting(column) ? shortened(text, MAX_ERROR) : text);
