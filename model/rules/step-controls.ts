/**
 * What a step may say besides its name and arguments: when it runs, who must agree, how long it may take, and what its failure means.
 * Ironic's clients send and see none of these members (docs/steps.md).
 */
import { isObject } from '../json';
import { repr } from '../python';
import type { Inventory, JsonObject, NodeRecord, StepControls } from '../records';

const NAMES = ['when', 'confirm', 'timeout', 'on_failure'] as const satisfies readonly (keyof StepControls)[];
export const CONTROL_NAMES: readonly string[] = NAMES;

/** Only these members of a step. */
export const controlsOf = (step: StepControls): StepControls =>
  Object.fromEntries(NAMES.flatMap((name) => (step[name] === undefined ? [] : [[name, step[name]]])));

const MAX_CONDITIONS = 16;
const MAX_VALUES = 64;
const MAX_TEXT = 255;
const MAX_TIMEOUT = 604_800;
const MAX_RETRIES = 20;
/** Shorter than the waits for the machine, whose limits count on during a pause. */
const MAX_PAUSE = 600;
const DEFAULT_PAUSE = 10;

type ValueKind = 'text' | 'number' | 'flag';
const IS: Readonly<Record<ValueKind, readonly [words: string, is: (value: unknown) => boolean]>> = {
  text: ['a text', (value) => typeof value === 'string' && value.length <= MAX_TEXT],
  number: ['a number', (value) => typeof value === 'number'],
  flag: ['true or false', (value) => typeof value === 'boolean'],
};
/** The fields that conditions may name. A field below a list, such as the disks, stands for its values in all entries. */
const FIELDS: Readonly<Record<string, ValueKind>> = {
  traits: 'text',
  resource_class: 'text',
  conductor_group: 'text',
  driver: 'text',
  'inventory.cpu.architecture': 'text',
  'inventory.cpu.count': 'number',
  'inventory.cpu.model_name': 'text',
  'inventory.memory.physical_mb': 'number',
  'inventory.memory.total': 'number',
  'inventory.disks.name': 'text',
  'inventory.disks.size': 'number',
  'inventory.disks.rotational': 'flag',
  'inventory.disks.model': 'text',
  'inventory.disks.vendor': 'text',
  'inventory.disks.serial': 'text',
  'inventory.disks.wwn': 'text',
  'inventory.interfaces.name': 'text',
  'inventory.interfaces.mac_address': 'text',
  'inventory.interfaces.has_carrier': 'flag',
  'inventory.interfaces.vendor': 'text',
  'inventory.interfaces.product': 'text',
  'inventory.interfaces.ipv4_address': 'text',
  'inventory.interfaces.speed_mbps': 'number',
  'inventory.system_vendor.manufacturer': 'text',
  'inventory.system_vendor.product_name': 'text',
  'inventory.system_vendor.serial_number': 'text',
  'inventory.boot.current_boot_mode': 'text',
  'inventory.bmc_address': 'text',
};
/** `properties.KEY`: any key, and values of any kind. */
const PROPERTY = /^properties\.[^.]{1,200}$/;

const same = (found: unknown, value: unknown): boolean =>
  found === value || (typeof value === 'number' && typeof found === 'string' && found.trim() !== '' && Number(found) === value);
type Operator = { readonly takes: 'one' | 'number' | 'list'; readonly holds: (found: unknown, value: unknown) => boolean };
/** The names are those of inspection rules. */
const OPERATORS: Readonly<Record<string, Operator>> = {
  eq: { takes: 'one', holds: same },
  lt: { takes: 'number', holds: (found, value) => Number(found) < (value as number) },
  gt: { takes: 'number', holds: (found, value) => Number(found) > (value as number) },
  'one-of': { takes: 'list', holds: (found, value) => (value as readonly unknown[]).some((candidate) => same(found, candidate)) },
};
const nameOf = (op: string): string => op.replace(/^!/, '');

interface WrongMember {
  /** `timeout`, `when[0].field`, … */
  readonly field: string;
  readonly problem: string;
}
const wrong = (field: string, problem: string): readonly WrongMember[] => [{ field, problem }];

function wrongValue(kind: ValueKind | undefined, { takes }: Operator, value: unknown): string | undefined {
  const kinds = kind === undefined ? (Object.keys(IS) as ValueKind[]) : [kind];
  const fits = (item: unknown): boolean => kinds.some((candidate) => IS[candidate][1](item));
  const words = kinds.map((candidate) => IS[candidate][0]).join(', or ');
  if (takes === 'number') return typeof value === 'number' ? undefined : `${repr(value)} is not a number`;
  if (takes === 'one') return fits(value) ? undefined : `${repr(value)} is not ${words} of at most ${MAX_TEXT} characters`;
  const isList = Array.isArray(value) && value.length > 0 && value.length <= MAX_VALUES && value.every(fits);
  return isList ? undefined : `this is not a list of 1 to ${MAX_VALUES} values, each ${words}`;
}
function wrongCondition(condition: unknown, at: string): readonly WrongMember[] {
  if (!isObject(condition)) return wrong(at, 'this is not an object with field, op and value');
  const { field, op, value } = condition;
  const unknown = Object.keys(condition).find((name) => !['field', 'op', 'value'].includes(name));
  if (unknown !== undefined) return wrong(`${at}.${unknown.slice(0, MAX_TEXT)}`, 'a condition has no such member');
  if (typeof field !== 'string') return wrong(`${at}.field`, 'this is not a text');
  const kind = Object.hasOwn(FIELDS, field) ? FIELDS[field] : undefined;
  if (kind === undefined && !PROPERTY.test(field))
    return wrong(
      `${at}.field`,
      `there is no field ${repr(field.slice(0, MAX_TEXT))}; known are properties.KEY, ${Object.keys(FIELDS).join(', ')}`,
    );
  const operator = typeof op === 'string' && Object.hasOwn(OPERATORS, nameOf(op)) ? OPERATORS[nameOf(op)]! : undefined;
  if (!operator) return wrong(`${at}.op`, `this is not one of ${Object.keys(OPERATORS).join(', ')}, which a leading ! negates`);
  if (operator.takes === 'number' && kind !== undefined && kind !== 'number')
    return wrong(`${at}.op`, `the values of ${field} are not numbers, so they cannot be compared by ${nameOf(op as string)}`);
  const problem = wrongValue(kind, operator, value);
  return problem === undefined ? [] : wrong(`${at}.value`, problem);
}

const RETRY = /^retry\((\d{1,3})(?:, ?(\d{1,4}))?\)$/;
interface FailurePolicy {
  /** How often the step runs again. */
  readonly retries: number;
  /** Seconds before it runs again. */
  readonly pause: number;
  /** The list goes on after the last failure. */
  readonly goesOn: boolean;
}
/** What a failure of the step means. */
export function failurePolicy({ on_failure: text = 'abort' }: StepControls): FailurePolicy {
  const [, retries = '0', pause = String(DEFAULT_PAUSE)] = RETRY.exec(text) ?? [];
  return { retries: Number(retries), pause: Number(pause), goesOn: text === 'continue' };
}
function isFailurePolicy(text: unknown): boolean {
  if (text === 'abort' || text === 'continue') return true;
  if (typeof text !== 'string' || !RETRY.test(text)) return false;
  const { retries, pause } = failurePolicy({ on_failure: text });
  return retries >= 1 && retries <= MAX_RETRIES && pause <= MAX_PAUSE;
}

type Check = (value: unknown) => readonly WrongMember[];
const CHECKS: Readonly<Record<(typeof NAMES)[number], Check>> = {
  when: (value) => {
    if (!Array.isArray(value) || value.length === 0 || value.length > MAX_CONDITIONS)
      return wrong('when', `this is not a list of 1 to ${MAX_CONDITIONS} conditions`);
    return value.flatMap((condition, at) => wrongCondition(condition, `when[${at}]`));
  },
  confirm: (value) =>
    typeof value === 'string' && value.trim() !== '' && value.length <= MAX_TEXT
      ? []
      : wrong('confirm', `this is not a text of 1 to ${MAX_TEXT} characters`),
  timeout: (value) =>
    Number.isInteger(value) && (value as number) >= 1 && (value as number) <= MAX_TIMEOUT
      ? []
      : wrong('timeout', `this is not a whole number of seconds from 1 to ${MAX_TIMEOUT}`),
  on_failure: (value) =>
    isFailurePolicy(value)
      ? []
      : wrong(
          'on_failure',
          `this is not abort, continue, retry(N) or retry(N, SECONDS), with N from 1 to ${MAX_RETRIES} and SECONDS up to ${MAX_PAUSE}`,
        ),
};
/** Members that a reserved step cannot have. */
const WITHOUT: Readonly<Record<string, Readonly<Partial<Record<keyof StepControls, string>>>>> = {
  'power.hold': {
    confirm: 'a hold itself waits for an operator',
    timeout: 'a hold waits for an operator, without a limit',
  },
  'power.wait': { timeout: 'a wait is limited by its argument seconds' },
};

/** The errors in these members of a step, in the order of the members. Other members are not checked. */
export function wrongControls(step: JsonObject): readonly WrongMember[] {
  const given = NAMES.filter((name) => Object.hasOwn(step, name));
  const refused = WITHOUT[`${String(step['interface'])}.${String(step['step'])}`] ?? {};
  return given.flatMap((name) => (refused[name] === undefined ? CHECKS[name](step[name]) : wrong(name, refused[name])));
}

/** What conditions compare. */
export interface ConditionFacts {
  readonly node: Pick<NodeRecord, 'traits' | 'resource_class' | 'conductor_group' | 'driver' | 'properties'>;
  /** Undefined: the node has none. */
  readonly inventory: Inventory | undefined;
}
/** The values of a field; undefined: the node does not have the field. */
function valuesAt(facts: ConditionFacts, field: string): readonly unknown[] | undefined {
  const [first = '', ...rest] = field.split('.');
  let found: readonly unknown[] = [first === 'inventory' ? facts.inventory : Reflect.get(facts.node, first)];
  for (const name of rest) {
    const entries = found.flat();
    found = entries
      .map((entry) => (isObject(entry) && Object.hasOwn(entry, name) ? entry[name] : undefined))
      .filter((value) => value !== undefined && value !== null);
    if (entries.length > 0 && found.length === 0) return undefined;
  }
  const values = found.filter((value) => value !== undefined && value !== null);
  return values.length === 0 && found.length > 0 ? undefined : values.flat();
}
/** The first condition that names a field that the node does not have. */
export function missingField({ when = [] }: StepControls, facts: ConditionFacts): WrongMember | undefined {
  const at = when.findIndex(({ field }) => valuesAt(facts, field) === undefined);
  return at < 0 ? undefined : { field: `when[${at}].field`, problem: `the node has no ${when[at]!.field}` };
}
/** The first condition that does not hold, in words. A field that the node does not have makes its condition fail. */
export function unmetCondition({ when = [] }: StepControls, facts: ConditionFacts): string | undefined {
  const unmet = when.find(({ field, op, value }) => {
    const holds = (valuesAt(facts, field) ?? []).some((found) => OPERATORS[nameOf(op)]!.holds(found, value));
    return holds === op.startsWith('!');
  });
  return unmet && `${unmet.field} ${unmet.op} ${repr(unmet.value)}`;
}
export const needsInventory = ({ when = [] }: StepControls): boolean => when.some(({ field }) => field.startsWith('inventory.'));
