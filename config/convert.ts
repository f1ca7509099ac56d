/** The types of options: from the texts of files and variables to values, as oslo.config's types do it. */
import { isKernelCommandLine } from '../wire/kernel-arguments';
import { strip } from './ini';
import type { LoadedOptions, OptionRow } from './options';

export type OptionValue = LoadedOptions[keyof LoadedOptions];

const TRUE = ['true', '1', 'on', 'yes'];
const FALSE = ['false', '0', 'off', 'no'];

const KERNEL_ARGUMENTS =
  'must be kernel arguments: key, key=value or key="a value", in printable ASCII, without #, ;, || and && as words of their own';

function withinLimits({ min = -Infinity, max = Infinity }: OptionRow, value: number, written: (value: number) => string): number {
  if (value < min) throw new Error(`must be at least ${written(min)}`);
  if (value > max) throw new Error(`must be at most ${written(max)}`);
  return value;
}
/** Python allows an underscore between digits. */
const plain = (text: string): string => strip(text).replace(/(?<=\d)_(?=\d)/g, '');
/** Empty items have no meaning in any option. (Ironic fails at them, or ignores them.) */
const itemsOf = (text: string): string[] =>
  text
    .split(',')
    .map(strip)
    .filter((item) => item !== '');

/** A value may contain commas: an item without a colon continues the one before it, or begins the next key. */
function pairsOf(text: string): Readonly<Record<string, string>> {
  const pairs = new Map<string, string>();
  let pending = '';
  for (const item of itemsOf(text)) {
    const pair = pending === '' ? item : `${pending},${item}`;
    const colon = pair.indexOf(':');
    pending = colon < 0 ? pair : '';
    if (colon < 0) continue;
    const key = strip(pair.slice(0, colon));
    if (key === '') throw new Error('must be key:value pairs, separated by commas');
    if (pairs.has(key)) throw new Error(`must not have the key ${key} twice`);
    pairs.set(key, strip(pair.slice(colon + 1)));
  }
  if (pending !== '') throw new Error('must be key:value pairs, separated by commas');
  return Object.fromEntries(pairs);
}

function convertOne(row: OptionRow, text: string): OptionValue {
  switch (row.kind) {
    case 'string':
      if (row.choices && !row.choices.includes(text)) throw new Error(`must be one of ${row.choices.join(', ')}`);
      if (row.kernelArguments && !isKernelCommandLine(text)) throw new Error(KERNEL_ARGUMENTS);
      return text;
    case 'integer': {
      const number = plain(text);
      if (!/^[+-]?\d+$/.test(number)) throw new Error('must be an integer');
      return withinLimits(row, Number(number), String);
    }
    case 'number': {
      const number = plain(text);
      if (!/^[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:e[+-]?\d+)?$/i.test(number)) throw new Error('must be a number');
      return withinLimits(row, Number(number), String);
    }
    case 'octal': {
      const number = plain(text);
      if (!/^(?:0o)?[0-7]{1,6}$/i.test(number)) throw new Error('must be an octal number');
      return withinLimits(row, parseInt(number.replace(/^0o/i, ''), 8), (value) => value.toString(8));
    }
    case 'boolean':
      if (TRUE.includes(text.toLowerCase())) return true;
      if (FALSE.includes(text.toLowerCase())) return false;
      throw new Error('must be true or false');
    case 'list':
      return itemsOf(text);
    case 'texts':
      return [text];
    case 'dict':
      return pairsOf(text);
  }
}

/**
 * @param texts one; or those of all occurrences, in order, of an option that may occur several times
 * @throws an Error that says what was expected
 */
export function convert(row: OptionRow, texts: readonly string[]): OptionValue {
  const values = texts.map((text) => convertOne(row, text));
  if (values.length === 1) return values[0]!;
  return row.kind === 'dict' ? (Object.assign({}, ...values) as OptionValue) : (values.flat() as OptionValue);
}

/** The text that a reference to an option with this value stands for. Python writes True and False; a list is as in a file. */
export function textOf(value: OptionValue): string {
  if (value === null) return '';
  if (typeof value === 'boolean') return value ? 'True' : 'False';
  if (Array.isArray(value)) return value.join(',');
  if (typeof value === 'object')
    return Object.entries(value)
      .map((pair) => pair.join(':'))
      .join(',');
  return String(value);
}
