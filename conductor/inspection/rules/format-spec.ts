/** Python's format specifications, as `:04d` in {inventory[cpu][count]:04d}. */
import { str, typeName } from '../../../model/python';

const SPEC =
  /^(?:(?<fill>.)?(?<align>[<>=^]))?(?<sign>[-+ ])?(?<alternate>#)?(?<zero>0)?(?<width>\d+)?(?<group>[,_])?(?:\.(?<precision>\d+))?(?<type>[a-zA-Z%])?$/su;
/** Python has no limits. These exceed any text that a field of a node needs. */
const MAX_WIDTH = 1000;
const MAX_PRECISION = 50;

type Spec = Readonly<
  Record<'fill' | 'align' | 'sign' | 'alternate' | 'zero' | 'width' | 'group' | 'precision' | 'type', string | undefined>
>;

const RADIX: Readonly<Record<string, number>> = { b: 2, o: 8, d: 10, n: 10, x: 16, X: 16 };
const FIXED = ['f', 'F', '%'];
const EXPONENTIAL = ['e', 'E'];
const GENERAL = ['g', 'G'];

function grouped(digits: string, every: number, separator: string): string {
  const first = digits.length % every;
  const groups = Array.from({ length: Math.floor(digits.length / every) }, (_, at) => digits.slice(first + at * every).slice(0, every));
  return [...(first === 0 ? [] : [digits.slice(0, first)]), ...groups].join(separator);
}

/** Python writes at least two digits of the exponent. */
const exponential = (value: number, digits: number): string => value.toExponential(digits).replace(/e([+-])(\d)$/, 'e$10$2');

/** Digits that tell a tie from any other value: a number with a fraction has no more. */
const BEYOND = 30;
/** As toFixed, but a tie goes to the even digit. */
function fixed(value: number, digits: number): string {
  const long = value.toFixed(digits + BEYOND);
  const kept = long.slice(0, -BEYOND).replace(/\.$/, '');
  return long.slice(-BEYOND) === '5'.padEnd(BEYOND, '0') && Number(kept.at(-1)) % 2 === 0 ? kept : value.toFixed(digits);
}

function general(value: number, precision: number, keepsZeros: boolean): string {
  const digits = Math.max(1, precision);
  const exponent = value === 0 ? 0 : Number(value.toExponential(digits - 1).split('e')[1]);
  const isFixed = exponent >= -4 && exponent < digits;
  const text = isFixed ? fixed(value, digits - 1 - exponent) : exponential(value, digits - 1);
  const [digitsAndZeros = '', ...power] = text.split('e');
  if (keepsZeros || !digitsAndZeros.includes('.')) return text;
  return [digitsAndZeros.replace(/(?<!0)0+$/, '').replace(/\.$/, ''), ...power].join('e');
}

/** The digits of a number of zero or more; undefined: the type does not suit the number. */
function digitsOf(value: number, { type, precision, alternate }: Spec): string | undefined {
  const places = precision === undefined ? 6 : Number(precision);
  const isInteger = Number.isInteger(value);
  if (type === undefined ? isInteger : type in RADIX) {
    if (!isInteger || precision !== undefined) return undefined;
    const text = value.toString(RADIX[type ?? 'd']);
    return type === 'X' ? text.toUpperCase() : text;
  }
  if (type === undefined) return precision === undefined ? str(value) : general(value, places, false);
  if (FIXED.includes(type)) return type === '%' ? `${fixed(value * 100, places)}%` : fixed(value, places);
  if (!EXPONENTIAL.includes(type) && !GENERAL.includes(type)) return undefined;
  const text = EXPONENTIAL.includes(type) ? exponential(value, places) : general(value, places, alternate !== undefined);
  return type === type.toUpperCase() ? text.toUpperCase() : text;
}

function signedNumber(value: number, spec: Spec): readonly [sign: string, digits: string] | undefined {
  const digits = digitsOf(Math.abs(value), spec);
  if (digits === undefined) return undefined;
  const sign = value < 0 ? '-' : spec.sign === '-' || spec.sign === undefined ? '' : spec.sign;
  const prefix = spec.alternate !== undefined && 'boxX'.includes(spec.type ?? ' ') ? `0${spec.type}` : '';
  if (spec.group === undefined) return [sign + prefix, digits];
  const [whole = ''] = /^[^.e%]+/.exec(digits) ?? [];
  return [sign + prefix, grouped(whole, 'boxX'.includes(spec.type ?? ' ') ? 4 : 3, spec.group) + digits.slice(whole.length)];
}

/**
 * Python's format(value, specification) of a JSON value.
 * @throws Error with the reason
 */
export function formatValue(value: unknown, specification: string): string {
  if (specification === '') return str(value);
  const spec = SPEC.exec(specification)?.groups as Spec | undefined;
  const refused = (): Error => new Error(`the format specification ${specification} does not suit a value of the type ${typeName(value)}`);
  if (!spec || Number(spec.width ?? 0) > MAX_WIDTH || Number(spec.precision ?? 0) > MAX_PRECISION) throw refused();
  const number = typeof value === 'boolean' ? Number(value) : value;
  if (typeof number === 'number') {
    const parts = signedNumber(number, spec);
    if (!parts) throw refused();
    const align = spec.align ?? (spec.zero === undefined ? '>' : '=');
    return align === '='
      ? parts[0] + aligned(parts[1], spec, '>', Number(spec.width ?? 0) - parts[0].length)
      : aligned(parts.join(''), spec, align, Number(spec.width ?? 0));
  }
  const isForNumbers = spec.sign !== undefined || spec.alternate !== undefined || spec.group !== undefined || spec.align === '=';
  if (typeof value !== 'string' || isForNumbers || (spec.type ?? 's') !== 's') throw refused();
  const text = spec.precision === undefined ? value : Array.from(value).slice(0, Number(spec.precision)).join('');
  return aligned(text, spec, spec.align ?? '<', Number(spec.width ?? 0));
}

function aligned(text: string, { fill, zero }: Spec, align: string, width: number): string {
  const missing = Math.max(0, width - Array.from(text).length);
  const left = align === '>' ? missing : align === '^' ? Math.floor(missing / 2) : 0;
  const filler = fill ?? (zero === undefined ? ' ' : '0');
  return filler.repeat(left) + text + filler.repeat(missing - left);
}
