/**
 * Replacement fields in the arguments of inspection rules, in the syntax of Python's str.format: {node.name},
 * {inventory[cpu][count]:04d}, {item!r}.
 */
import { repr, str } from '../../../model/python';
import { formatValue } from './format-spec';

/** `missing`: the name does not exist, which some operators treat as empty. `wrong`: any other error. */
export class FormatError extends Error {
  override readonly name = 'Unfillable';
  constructor(
    readonly kind: 'missing' | 'wrong',
    message: string,
  ) {
    super(message);
  }
}
const missing = (name: string): FormatError => new FormatError('missing', `${repr(name)} is not there`);
const wrong = (message: string): FormatError => new FormatError('wrong', message);

/** Resolves a part of the path: `.name` of a record, `[key]` of an object or a list. */
function step(value: unknown, part: string, isRecord: boolean): unknown {
  if (part.startsWith('.')) {
    const name = part.slice(1);
    // Members of plain objects are not attributes.
    if (isRecord && Object.hasOwn(value as object, name)) return (value as Record<string, unknown>)[name];
    throw wrong(`no attribute ${repr(name)}`);
  }
  const key = part.slice(1, -1);
  if (Array.isArray(value)) {
    if (!/^\d+$/.test(key)) throw wrong(`a list has no member ${repr(key)}`);
    if (Number(key) >= value.length) throw wrong(`a list has no member ${key}`);
    return value[Number(key)] as unknown;
  }
  if (typeof value === 'string') {
    const character = /^\d{1,9}$/.test(key) ? Array.from(value)[Number(key)] : undefined;
    if (character === undefined) throw wrong(`a text has no member ${repr(key)}`);
    return character;
  }
  if (typeof value !== 'object' || value === null) throw wrong(`nothing has the member ${repr(key)}`);
  if (Object.hasOwn(value, key)) return (value as Record<string, unknown>)[key];
  throw missing(key);
}

/** Text, a doubled brace, a field, or a single brace. */
const PIECE = /[^{}]+|\{\{|\}\}|\{([^{}]*)\}|[{}]/g;
const FIELD = /^(\w*)((?:\.\w+|\[[^\]]+\])*)(![rsa])?(?::(.*))?$/s;

function specified(value: unknown, spec: string): string {
  try {
    return formatValue(value, spec);
  } catch (error) {
    throw wrong((error as Error).message);
  }
}

export interface Names {
  readonly [name: string]: unknown;
}
/**
 * @param records names whose members are attributes
 * @param convert converts the value at the end of a path before it becomes text; the path begins with the name
 * @param count called with the characters of each field's value before and after its format specification; may throw
 * @throws FormatError
 */
export function format(
  template: string,
  names: Names,
  records: readonly string[],
  convert: (found: unknown, path: readonly string[]) => unknown,
  count: (characters: number) => void = () => {},
): string {
  return template.replace(PIECE, (piece, field?: string) => {
    if (piece === '{{' || piece === '}}') return piece[0]!;
    if (field === undefined) {
      if (piece === '{' || piece === '}') throw wrong('a single brace');
      return piece;
    }
    const [, name, path, conversion, spec] = FIELD.exec(field) ?? [];
    if (name === undefined || name === '') throw wrong(`{${field}} is not a known field`);
    if (!Object.hasOwn(names, name)) throw missing(name);
    const parts = path!.match(/\.\w+|\[[^\]]+\]/gy) ?? [];
    const found = parts.reduce<unknown>((value, part, at) => step(value, part, at === 0 && records.includes(name)), names[name]);
    const value = convert(found, [name, ...parts.map((part) => part.replace(/^[.[]|\]$/g, ''))]);
    const converted = conversion === undefined ? value : conversion === '!s' ? str(value) : repr(value);
    const text = specified(converted, spec ?? '');
    count(Math.max(text.length, typeof converted === 'string' ? converted.length : 0));
    return text;
  });
}
