/** Values in Python's notation: 'text', True, None, {'a': [1]}. Ironic's messages contain them, and clients match on the messages. */

const ESCAPES: Readonly<Record<string, string>> = { '\\': '\\\\', '\n': '\\n', '\r': '\\r', '\t': '\\t' };

/** Printable ASCII without single quotes and backslashes. Most texts match and need no escapes. */
const PLAIN = /^[ -&(-[\]-~]*$/;
function text(value: string): string {
  if (PLAIN.test(value)) return `'${value}'`;
  const quote = value.includes("'") && !value.includes('"') ? '"' : "'";
  const escaped = value.replace(/[\\\p{Cc}]/gu, (c) => ESCAPES[c] ?? `\\x${c.charCodeAt(0).toString(16).padStart(2, '0')}`);
  return quote + (quote === "'" ? escaped.replaceAll("'", "\\'") : escaped) + quote;
}

/** Python's repr() of a JSON value. */
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

/** Python's str(): like repr, but without quotes around a text. */
export const str = (value: unknown): string => (typeof value === 'string' ? value : repr(value));

/** Splits a text that is too long for its line: after each line break, and then after blanks. */
function chunks(value: string, width: number, last: number): string[] {
  const lines = value.split(/(?<=\n)|(?<=\r)(?!\n)/);
  return lines.flatMap((line, at) => {
    const end = at === lines.length - 1 ? width - last : width;
    if (text(line).length <= end) return [text(line)];
    const made: string[] = [];
    let current = '';
    const words = line.match(/\S*\s*/g)!.filter(Boolean);
    words.forEach((word, index) => {
      const room = index === words.length - 1 ? end : width;
      if (current && text(current + word).length > room) {
        made.push(text(current));
        current = word;
      } else current += word;
    });
    return [...made, text(current)];
  });
}
/**
 * Python's pprint of a JSON value: like repr, but a value that is too long for a line has a line for each member.
 * @param width characters per line
 */
export function pformat(value: unknown, width: number): string {
  const write = (item: unknown, indent: number, allowance: number): string => {
    const whole = repr(item);
    if (whole.length <= width - indent - allowance || item === null) return whole;
    const next = `\n${' '.repeat(indent + 1)}`;
    if (typeof item === 'string') return chunks(item, width - indent, allowance).join(`\n${' '.repeat(indent)}`);
    if (typeof item !== 'object') return whole;
    const isList = Array.isArray(item);
    const members = Object.entries(item);
    const written = members.map(([key, member], index) => {
      const label = isList ? '' : `${text(key)}: `;
      return label + write(member, indent + 1 + label.length, index === members.length - 1 ? allowance + 1 : 1);
    });
    return `${isList ? '[' : '{'}${written.join(`,${next}`)}${isList ? ']' : '}'}`;
  };
  if (typeof value !== 'string' || repr(value).length <= width) return write(value, 0, 0);
  const parts = chunks(value, width - 1, 1);
  // pprint puts parentheses around a value that is one split text.
  return parts.length > 1 ? `(${parts.join('\n ')})` : parts[0]!;
}

/** The name of the Python type. */
export function typeName(value: unknown): string {
  if (value === null || value === undefined) return 'NoneType';
  if (Array.isArray(value)) return 'list';
  if (typeof value === 'number') return Number.isInteger(value) ? 'int' : 'float';
  return ({ string: 'str', boolean: 'bool', object: 'dict' } as Record<string, string>)[typeof value] ?? 'object';
}

const TRUE = ['1', 't', 'true', 'on', 'y', 'yes'];
const FALSE = ['0', 'f', 'false', 'off', 'n', 'no'];
/** Parses a boolean in OpenStack's spelling; undefined for other values. */
export function toBoolean(value: unknown): boolean | undefined {
  if (typeof value === 'boolean') return value;
  const word = str(value).trim().toLowerCase();
  return TRUE.includes(word) ? true : FALSE.includes(word) ? false : undefined;
}
export const BOOLEAN_WORDS = [...TRUE, ...FALSE]
  .sort()
  .map((word) => `'${word}'`)
  .join(', ');

/** Converts to an integer like Python's int(): texts may have blanks and underscores; numbers lose their fraction. Undefined: neither. */
export function toInteger(value: unknown): number | undefined {
  if (typeof value === 'boolean') return Number(value);
  if (typeof value === 'number') return Number.isFinite(value) ? Math.trunc(value) : undefined;
  if (typeof value !== 'string' || !/^\s*[+-]?\d+(?:_\d+)*\s*$/.test(value)) return undefined;
  return Number(value.replaceAll('_', ''));
}
