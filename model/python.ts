/**
 * Values as Ironic's messages print them. Clients match on those sentences, and they quote the caller's value in Python's notation:
 * 'text', True, None, {'a': [1]}.
 */

const ESCAPES: Readonly<Record<string, string>> = { '\\': '\\\\', '\n': '\\n', '\r': '\\r', '\t': '\\t' };

function text(value: string): string {
  const quote = value.includes("'") && !value.includes('"') ? '"' : "'";
  const escaped = value.replace(/[\\\p{Cc}]/gu, (c) => ESCAPES[c] ?? `\\x${c.charCodeAt(0).toString(16).padStart(2, '0')}`);
  return quote + (quote === "'" ? escaped.replaceAll("'", "\\'") : escaped) + quote;
}

/** What Python's repr() shows for a JSON value. */
export function repr(value: unknown): string {
  if (value === null || value === undefined) return 'None';
  if (typeof value === 'boolean') return value ? 'True' : 'False';
  if (typeof value === 'string') return text(value);
  if (Array.isArray(value)) return `[${value.map(repr).join(', ')}]`;
  if (typeof value === 'object')
    return `{${Object.entries(value)
      .map(([key, member]) => `${text(key)}: ${repr(member)}`)
      .join(', ')}}`;
  return typeof value === 'number' ? String(value) : typeof value;
}

/** What Python's str() shows: like repr, but text bare. */
export const str = (value: unknown): string => (typeof value === 'string' ? value : repr(value));

/** The name that Python's type() shows. */
export function typeName(value: unknown): string {
  if (value === null || value === undefined) return 'NoneType';
  if (Array.isArray(value)) return 'list';
  if (typeof value === 'number') return Number.isInteger(value) ? 'int' : 'float';
  return ({ string: 'str', boolean: 'bool', object: 'dict' } as Record<string, string>)[typeof value] ?? 'object';
}

const TRUE = ['1', 't', 'true', 'on', 'y', 'yes'];
const FALSE = ['0', 'f', 'false', 'off', 'n', 'no'];
/** A boolean as clients spell it; undefined when it is none. */
export function toBoolean(value: unknown): boolean | undefined {
  if (typeof value === 'boolean') return value;
  const word = str(value).trim().toLowerCase();
  return TRUE.includes(word) ? true : FALSE.includes(word) ? false : undefined;
}
export const BOOLEAN_WORDS = [...TRUE, ...FALSE]
  .sort()
  .map((word) => `'${word}'`)
  .join(', ');

/** An integer as clients spell it (text with blanks around and underscores inside, numbers cut to whole ones); undefined when it is none. */
export function toInteger(value: unknown): number | undefined {
  if (typeof value === 'boolean') return Number(value);
  if (typeof value === 'number') return Number.isFinite(value) ? Math.trunc(value) : undefined;
  if (typeof value !== 'string' || !/^\s*[+-]?\d+(?:_\d+)*\s*$/.test(value)) return undefined;
  return Number(value.replaceAll('_', ''));
}
