/** The conditions and actions of inspection rules, with their arguments. */
import { str } from '../python';
import type { JsonObject } from '../records';

interface Signature {
  readonly required: readonly string[];
  readonly optional: readonly string[];
  /** Arguments in which replacement fields are substituted. In a loop, they are substituted in all arguments. */
  readonly filled: readonly string[];
  /** The plugin data is an additional argument. */
  readonly onPluginData: boolean;
}
const words = (text: string): readonly string[] => text.split(' ').filter(Boolean);
/** A `*` marks arguments with replacement fields. */
const takes = (required: string, optional = '', onPluginData = false): Signature => ({
  required: [...words(required.replaceAll('*', '')), ...(onPluginData ? ['plugin_data'] : [])],
  optional: words(optional),
  filled: words(required).flatMap((name) => (name.endsWith('*') ? [name.slice(0, -1)] : [])),
  onPluginData,
});

export const OPERATORS: Readonly<Record<string, Signature>> = {
  eq: takes('values*', 'force_strings'),
  lt: takes('values*', 'force_strings'),
  gt: takes('values*', 'force_strings'),
  'is-empty': takes('value*'),
  'in-net': takes('address* subnet*'),
  matches: takes('value* regex'),
  contains: takes('value* regex'),
  'one-of': takes('value*', 'values'),
  'is-none': takes('value*'),
  'is-true': takes('value*'),
  'is-false': takes('value*'),
};
export const ACTIONS: Readonly<Record<string, Signature>> = {
  fail: takes('msg'),
  log: takes('msg*', 'level'),
  'set-attribute': takes('path value*'),
  'extend-attribute': takes('path value*', 'unique'),
  'del-attribute': takes('path'),
  'set-capability': takes('name value*'),
  'unset-capability': takes('name'),
  'add-trait': takes('name'),
  'remove-trait': takes('name'),
  'set-plugin-data': takes('path value*', '', true),
  'extend-plugin-data': takes('path value*', 'unique', true),
  'unset-plugin-data': takes('path', '', true),
  'set-port-attribute': takes('port_id path value*'),
  'extend-port-attribute': takes('port_id path value*', 'unique'),
  'del-port-attribute': takes('port_id path'),
  'api-call': takes('url*', 'headers proxies timeout retries backoff_factor'),
};
const PHASES = ['main'] as const;
/** The highest priority of a user's rule; the lowest is 0. Built-in rules may have others. */
const MAX_PRIORITY = 9999;

/** One condition or action. */
export type RuleStep = {
  readonly op: string;
  /** By name, or (the old format) in the order of the signature. */
  readonly args: JsonObject | readonly unknown[];
  readonly loop?: unknown;
  readonly multiple?: string;
};
const isList = (args: RuleStep['args']): args is readonly unknown[] => Array.isArray(args);
/** The operator's name without the negation `!`. */
export const operatorOf = (op: string): string => op.replace(/^!/, '');

/** Adds the argument `plugin_data`, which the server supplies. */
const completed = (step: RuleStep, { onPluginData }: Signature): RuleStep => {
  if (!onPluginData) return step;
  const { args } = step;
  return { ...step, args: isList(args) ? [...args, {}] : { ...args, plugin_data: {} } };
};
/** The error in the arguments of a completed step; undefined: none. */
function wrongArguments({ args }: RuleStep, { required, optional }: Signature): string | undefined {
  if (isList(args))
    return args.length < required.length ? `Not enough arguments provided. Missing: ${required.slice(args.length).join(', ')}` : undefined;
  const missing = required.filter((name) => !Object.hasOwn(args, name));
  const unexpected = Object.keys(args).filter((name) => !required.includes(name) && !optional.includes(name));
  const wrong = [
    ...(missing.length > 0 ? [`missing required argument(s): ${missing.join(', ')}`] : []),
    ...(unexpected.length > 0 ? [`unexpected argument(s): ${unexpected.join(', ')}`] : []),
  ];
  return wrong.length > 0 ? wrong.join('; ') : undefined;
}

interface Rule {
  readonly phase?: unknown;
  readonly priority?: number | undefined;
  readonly conditions: readonly RuleStep[];
  readonly actions: readonly RuleStep[];
}
/**
 * Checks the constraints that the schema cannot express.
 * @param rule valid against the schema
 * @returns the conditions and actions to store, and the errors
 */
export function checkedRule({ phase = 'main', priority = 0, conditions, actions }: Rule): {
  readonly conditions: readonly RuleStep[];
  readonly actions: readonly RuleStep[];
  readonly wrong: readonly string[];
} {
  const wrong: string[] = [];
  if (!(PHASES as readonly unknown[]).includes(phase)) wrong.push(`Invalid phase: ${str(phase)}. Valid phases are: ${PHASES.join(', ')}`);
  if (priority > MAX_PRIORITY) wrong.push(`Priority must be between 0 and ${MAX_PRIORITY} for user-defined rules.`);
  const check = (kind: string, known: Readonly<Record<string, Signature>>, step: RuleStep): RuleStep => {
    const op = operatorOf(step.op);
    const whole = completed(step, known[op]!);
    const problem = wrongArguments(whole, known[op]!);
    if (problem) wrong.push(`Invalid parameters for ${kind} operator ${op}: ${problem}`);
    return whole;
  };
  return {
    conditions: conditions.map((step) => check('condition', OPERATORS, step)),
    actions: actions.map((step) => check('action', ACTIONS, step)),
    wrong,
  };
}

/** The arguments of a step by name, without `plugin_data`. */
export function namedArguments({ args }: RuleStep, { required, optional, onPluginData }: Signature): JsonObject {
  const named = isList(args)
    ? Object.fromEntries([...required, ...optional].slice(0, args.length).map((name, at) => [name, args[at]]))
    : args;
  return onPluginData ? Object.fromEntries(Object.entries(named).filter(([name]) => name !== 'plugin_data')) : named;
}

/** A rule from the database or from the file of built-in rules. */
export interface InspectionRule {
  readonly uuid: string;
  readonly priority: number;
  readonly phase: string | null;
  readonly sensitive: boolean;
  readonly conditions: readonly RuleStep[];
  readonly actions: readonly RuleStep[];
}
