/**
 * Root device hints select the disk for an image. `properties.root_device` (or `instance_info.root_device`) contains them as
 * {name: expression}. A disk must match every hint. The error messages are Ironic's.
 */

/** Hint → the type of its values. `size` is in GiB. */
const KINDS = {
  size: 'number',
  model: 'text',
  wwn: 'text',
  serial: 'text',
  vendor: 'text',
  wwn_with_extension: 'text',
  wwn_vendor_extension: 'text',
  name: 'text',
  rotational: 'truth',
  hctl: 'text',
  by_path: 'text',
  volume_name: 'text',
} as const;
/** Not a hint of Ironic's, and so not in its error message: the name of an array of software RAID. */
const OURS: readonly string[] = ['volume_name'];
const IRONICS = Object.keys(KINDS).filter((name) => !OURS.includes(name));
type HintName = keyof typeof KINDS;

type Test = (actual: string, expected: readonly string[]) => boolean;
const numbers =
  (compare: (a: number, b: number) => boolean): Test =>
  (actual, [expected]) =>
    compare(Number(actual), Number(expected));
const atLeast = numbers((a, b) => a >= b);
/** Operator → its test. A longer operator precedes its prefixes. As in OpenStack, `=` means `>=`. */
const OPERATORS: Readonly<Record<string, Test>> = {
  '<or>': (actual, expected) =>
    expected.some((candidate) => actual === candidate || (candidate !== '' && Number(actual) === Number(candidate))),
  '<in>': (actual, [expected]) => actual.includes(expected!),
  '<range-in>': (actual, [range]) => inRange(Number(actual), range!),
  '==': numbers((a, b) => a === b),
  '!=': numbers((a, b) => a !== b),
  '>=': atLeast,
  '<=': numbers((a, b) => a <= b),
  '=': atLeast,
  '>': numbers((a, b) => a > b),
  '<': numbers((a, b) => a < b),
  's==': (actual, [expected]) => actual === expected,
  's!=': (actual, [expected]) => actual !== expected,
  's<=': (actual, [expected]) => actual <= expected!,
  's>=': (actual, [expected]) => actual >= expected!,
  's<': (actual, [expected]) => actual < expected!,
  's>': (actual, [expected]) => actual > expected!,
};

interface Hint {
  readonly name: HintName;
  /** A key of OPERATORS, or `is` for booleans. */
  readonly operator: string;
  /** In lower case. Only `<or>` has several. */
  readonly values: readonly string[];
}
type DeviceHints = readonly Hint[];

/**
 * Parses hints. Null, undefined and an empty object mean no hints. Throws an Error with Ironic's message for unknown names, values of the
 * wrong type and expressions without a value.
 */
export function parseHints(value: unknown): DeviceHints {
  if (value === null || value === undefined) return [];
  if (typeof value !== 'object' || Array.isArray(value)) throw new Error('Root device hints must be an object of hint names and values');
  const invalid = Object.keys(value).filter((name) => !Object.hasOwn(KINDS, name));
  if (invalid.length > 0) {
    throw new Error(`The hints "${invalid.join(', ')}" are invalid. Valid hints are: "${IRONICS.join(', ')}"`);
  }
  return Object.entries(value).map(([name, expression]) => parseHint(name as HintName, expression));
}

/** What hints compare: the members of an inventory's disk. A member may be a list of names, one of which must match. */
export interface HintedDisk {
  readonly name: string;
  readonly size: number;
  readonly [more: string]: unknown;
}
/** The disks that match every hint, in the given order. */
export const matchDisks = <D extends HintedDisk>(disks: readonly D[], hints: DeviceHints): readonly D[] =>
  disks.filter((disk) => hints.every((hint) => matches(disk, hint)));

function parseHint(name: HintName, expression: unknown): Hint {
  const kind = KINDS[name];
  const shown = typeof expression === 'string' ? expression : JSON.stringify(expression);
  const text = shown.trim().toLowerCase();
  if (text === '') throw new Error(`Root device hint "${name}" expression is empty`);
  if (kind === 'truth') {
    const truth = truthOf(text);
    if (truth === undefined) throw new Error(`Root device hint "${name}" is not a Boolean value. Current value: ${shown}`);
    return { name, operator: 'is', values: [String(truth)] };
  }
  if (kind === 'text' && typeof expression !== 'string') {
    throw new Error(`Root device hint "${name}" is not a string value. Hint expression: ${shown}`);
  }
  const operator = Object.keys(OPERATORS).find((key) => text.startsWith(key) && text.length > key.length) ?? '';
  const values = (operator === '<or>' ? text.split('<or>').slice(1) : [text.slice(operator.length)]).map((part) => part.trim());
  if (kind === 'number') checkNumbers(name, operator, values, shown);
  return { name, operator: operator || (kind === 'number' ? '==' : 's=='), values };
}

function checkNumbers(name: HintName, operator: string, values: readonly string[], shown: string): void {
  if (operator === '<range-in>') {
    if (!RANGE.test(values[0]!)) throw new Error(`Root device hint "${name}" is not a range. Current value: ${shown}`);
    return;
  }
  if (!values.every((value) => /^[+-]?\d+$/.test(value))) {
    throw new Error(`Root device hint "${name}" is not an integer value. Current value: ${shown}`);
  }
  if (!values.every((value) => Number(value) > 0)) {
    throw new Error(`Root device hint "${name}" should be a positive integer. Current value: ${shown}`);
  }
}

function matches(disk: HintedDisk, { name, operator, values }: Hint): boolean {
  const actual = name === 'size' ? disk.size / 2 ** 30 : disk[name];
  return (Array.isArray(actual) ? (actual as unknown[]) : [actual]).some((candidate) => {
    if (typeof candidate !== 'string' && typeof candidate !== 'number' && typeof candidate !== 'boolean') return false;
    const text = String(candidate).trim().toLowerCase();
    return text !== '' && (operator === 'is' ? truthOf(text) === (values[0] === 'true') : OPERATORS[operator]!(text, values));
  });
}

const RANGE = /^([[(])\s+(\d+(?:\.\d+)?)\s+(\d+(?:\.\d+)?)\s+([\])])$/;
function inRange(actual: number, range: string): boolean {
  const [, open, low, high, close] = RANGE.exec(range) ?? [];
  const above = open === '[' ? actual >= Number(low) : actual > Number(low);
  const below = close === ']' ? actual <= Number(high) : actual < Number(high);
  return above && below;
}

/** Booleans in OpenStack's spelling. */
function truthOf(text: string): boolean | undefined {
  if (['1', 't', 'true', 'on', 'y', 'yes'].includes(text)) return true;
  if (['0', 'f', 'false', 'off', 'n', 'no'].includes(text)) return false;
  return undefined;
}
