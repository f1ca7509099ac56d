/** The log, and what makes texts of machines, users and servers printable. */

/** logging.ts implements it, masks secrets and escapes texts; tests collect the lines. */
export interface Log {
  debug(message: string, fields?: object): void;
  info(message: string, fields?: object): void;
  warn(message: string, fields?: object): void;
  error(message: string, fields?: object): void;
  /** The same log with these fields on every line, such as node, request id and component. */
  child(fields: object): Log;
}

export const silentLog: Log = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {}, child: () => silentLog };

/**
 * Characters that control a terminal, break a line or change the order of a text: C0, DEL and C1; marks, embeddings and isolates of the
 * bidirectional algorithm (UAX #9); separators of lines; lone surrogates.
 */
const UNSAFE = /[\p{Cc}\p{Cs}\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/gu;
const SHORT: Readonly<Record<string, string>> = { '\n': '\\n', '\r': '\\r', '\t': '\\t' };
const escaped = (unit: string): string => SHORT[unit] ?? `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`;

/** One line, with escapes of JSON: JSON without line breaks keeps its value. */
export const printable = (text: string): string => text.replace(UNSAFE, escaped);
/** Lines that the program itself made: their line breaks and tabs stay. JSON keeps its value. */
export const printableText = (text: string): string =>
  text.replace(UNSAFE, (unit) => (unit === '\n' || unit === '\t' ? unit : escaped(unit)));
/** One line for people, as a part of a message: a blank stands for unsafe characters. */
export const oneLine = (text: string): string => text.replace(UNSAFE, ' ').replace(/ {2,}/g, ' ').trim();
