/** The operators of conditions: name → check of the arguments. Values compare as in Python. */
import { isIP } from 'node:net';
import { parseNetwork } from '../../../model/idents';
import { repr, str, typeName } from '../../../model/python';
import { fromPython, type Regex } from '../../../model/rules/python-regex';
import { testRegex } from './regex-test';
import { conditionFailure, executionFailure, type RuleArguments } from './rule';

const isNumber = (value: unknown): value is number | boolean => typeof value === 'number' || typeof value === 'boolean';
/** Python's `==`: True equals 1. */
export function equal(left: unknown, right: unknown): boolean {
  if (isNumber(left) && isNumber(right)) return Number(left) === Number(right);
  if (Array.isArray(left) && Array.isArray(right))
    return left.length === right.length && left.every((value, at) => equal(value, right[at]));
  if (
    typeof left !== 'object' ||
    typeof right !== 'object' ||
    left === null ||
    right === null ||
    Array.isArray(left) !== Array.isArray(right)
  )
    return left === right;
  const [names, others] = [Object.keys(left), Object.keys(right)];
  const member = (value: object, name: string): unknown => (value as Record<string, unknown>)[name];
  return (
    names.length === others.length && names.every((name) => Object.hasOwn(right, name) && equal(member(left, name), member(right, name)))
  );
}
/** Python's `<`. Throws a TypeError with Python's message for values without an order. */
function less(item: unknown, other: unknown, sign: '<' | '>'): boolean {
  if (isNumber(item) && isNumber(other)) return Number(item) < Number(other);
  if (typeof item === 'string' && typeof other === 'string') return Buffer.compare(Buffer.from(item), Buffer.from(other)) < 0;
  if (Array.isArray(item) && Array.isArray(other)) {
    const at = item.findIndex((value, index) => index >= other.length || !equal(value, other[index]));
    if (at === -1) return item.length < other.length;
    return at < other.length && less(item[at], other[at], sign);
  }
  const [left, right] = sign === '<' ? [item, other] : [other, item];
  throw new TypeError(`'${sign}' not supported between instances of '${typeName(left)}' and '${typeName(right)}'`);
}

/** Compares each value with the next. */
const chain =
  (name: string, holds: (value: unknown, next: unknown) => boolean) =>
  ({ values, force_strings: strings }: RuleArguments): boolean => {
    if (!Array.isArray(values))
      throw conditionFailure(
        `Failed to check condition: '${name}' on values: ${str(values)}: Expected list for 'values', got: ${typeName(values)}`,
      );
    const all: readonly unknown[] = strings ? values.map(str) : values;
    return all.every((value, at) => at === 0 || holds(all[at - 1], value));
  };

function compile(regex: unknown): Regex {
  if (typeof regex !== 'string') throw executionFailure(`invalid regular expression: ${repr(regex)}`);
  try {
    return fromPython(regex);
  } catch (error) {
    throw executionFailure(`invalid regular expression: ${(error as Error).message}`);
  }
}
async function test(regex: Regex, value: unknown): Promise<boolean> {
  const matches = await testRegex(regex, str(value));
  if (matches === undefined) throw executionFailure(`the regular expression ${repr(regex.source)} takes too long`);
  return matches;
}

function inNet({ address, subnet }: RuleArguments): boolean {
  const network = parseNetwork(str(subnet));
  if (!network) throw executionFailure(`invalid value: invalid IPNetwork ${str(subnet)}`);
  if (isIP(str(address)) === 0) throw executionFailure(`invalid value: failed to detect a valid IP address from ${repr(address)}`);
  return network.contains(str(address));
}

const oneOf = ({ value, values = [] }: RuleArguments): boolean => {
  if (Array.isArray(values)) return values.some((candidate) => equal(candidate, value));
  if (typeof values === 'string' && typeof value === 'string') return values.includes(value);
  if (typeof values === 'object' && values !== null) return typeof value === 'string' && Object.hasOwn(values, value);
  throw new TypeError(`argument of type '${typeName(values)}' is not iterable`);
};
const says =
  (words: readonly string[], whenNumber: (value: number) => boolean, otherwise: (value: unknown) => boolean) =>
  ({ value }: RuleArguments): boolean => {
    if (isNumber(value)) return whenNumber(Number(value));
    return typeof value === 'string' ? words.includes(value.toLowerCase()) : otherwise(value);
  };

/** Throws the Fault of a failed inspection, or a TypeError for values that cannot be compared. */
export const OPERATOR_CHECKS: Readonly<Record<string, (args: RuleArguments) => boolean | Promise<boolean>>> = {
  eq: chain('eq', equal),
  lt: chain('lt', (value, next) => less(value, next, '<')),
  gt: chain('gt', (value, next) => less(next, value, '>')),
  'is-empty': ({ value }) => ['', 'None', '[]', '{}'].includes(str(value)),
  'in-net': inNet,
  matches: ({ value, regex }) => {
    const { source, flags } = compile(regex);
    // As in Ironic, `$` belongs to the last alternative only.
    return test({ source: `^(?:${source}${source.endsWith('$') ? '' : '$'})`, flags }, value);
  },
  contains: ({ value, regex }) => test(compile(regex), value),
  'one-of': oneOf,
  'is-none': ({ value }) => value === null,
  'is-true': says(['yes', 'true'], Boolean, () => false),
  'is-false': says(
    ['no', 'false'],
    (value) => !value,
    (value) => value === null,
  ),
};
