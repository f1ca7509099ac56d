/**
 * The rules of the introspection service, applied to the draft that inspection rules use. All conditions are checked before any action
 * runs.
 */
import { Fault, reasonOf } from '../../model/errors';
import { fieldOf } from '../../model/rules/introspection-rules';
import { parseJsonPath } from '../../model/rules/json-path';
import { repr } from '../../model/python';
import type { IntrospectionRuleRecord, JsonObject } from '../../model/records';
import { ACTION_HANDLERS, type RuleEffects } from '../inspection/rules/actions';
import { format } from '../inspection/rules/format';
import { OPERATOR_CHECKS } from '../inspection/rules/operators';
import { allHold, someHolds, type Draft, type RuleArguments } from '../inspection/rules/rule';

/** Converts a found value to a number if the expected value is one. */
function coerced(found: unknown, expected: unknown): unknown {
  if (typeof expected !== 'number' && typeof expected !== 'boolean') return found;
  const number = typeof found === 'string' ? (found.trim() === '' ? NaN : Number(found)) : Number(found ?? NaN);
  if (Number.isNaN(number)) throw new Error(`${repr(found)} is not a number`);
  return Number.isInteger(Number(expected)) ? Math.trunc(number) : number;
}
type ConditionCheck = (found: unknown, expected: unknown) => boolean | Promise<boolean>;
const compared =
  (name: 'eq' | 'lt' | 'gt', isSo: boolean): ConditionCheck =>
  (found, expected) =>
    // These operators answer at once.
    OPERATOR_CHECKS[name]!({ values: [coerced(found, expected), expected] }) === isSo;
const CONDITIONS: Readonly<Record<string, ConditionCheck>> = {
  eq: compared('eq', true),
  ne: compared('eq', false),
  lt: compared('lt', true),
  ge: compared('lt', false),
  gt: compared('gt', true),
  le: compared('gt', false),
  'is-empty': (value) => OPERATOR_CHECKS['is-empty']!({ value }),
  'in-net': (address, subnet) => OPERATOR_CHECKS['in-net']!({ address, subnet }),
  matches: (value, regex) => OPERATOR_CHECKS['matches']!({ value, regex }),
  contains: (value, regex) => OPERATOR_CHECKS['contains']!({ value, regex }),
};
const MULTIPLE: Readonly<Record<string, typeof allHold>> = {
  any: someHolds,
  all: allHold,
  first: async ([result]) => result!(),
};

async function holds({ op, field, multiple, invert, value }: JsonObject, sources: Readonly<Record<string, unknown>>): Promise<boolean> {
  const { scheme, path } = fieldOf(field as string);
  const found = parseJsonPath(path)(sources[scheme]);
  // Only is-empty applies to missing values.
  if (found.length === 0 && op !== 'is-empty') return false;
  const results = (found.length === 0 ? [null] : found).map(
    (item) => async () => (await CONDITIONS[op as string]!(item, value)) !== (invert === true),
  );
  return MULTIPLE[multiple as string]!(results);
}

const filled = (value: unknown, data: JsonObject): unknown => {
  if (typeof value === 'string') return format(value, { data }, [], (found) => found);
  if (Array.isArray(value)) return value.map((item) => filled(item, data));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, entry]) => [String(filled(key, data)), filled(entry, data)]));
};
/** Action of an introspection rule → action of an inspection rule. */
const ACTION: Readonly<Record<string, (params: RuleArguments) => readonly [name: string, args: RuleArguments]>> = {
  'set-attribute': ({ path, value }) => ['set-attribute', { path, value }],
  'extend-attribute': ({ path, value, unique }) => ['extend-attribute', { path, value, unique }],
  // A capability without a value is removed.
  'set-capability': ({ name, value = null }) => (value === null ? ['unset-capability', { name }] : ['set-capability', { name, value }]),
  'add-trait': ({ name }) => ['add-trait', { name }],
  'remove-trait': ({ name }) => ['remove-trait', { name }],
};

const isInScope = ({ scope }: IntrospectionRuleRecord, { node }: Draft): boolean =>
  !scope || (node['properties'] as JsonObject)['inspection_scope'] === scope;

/**
 * Changes only the draft.
 * @param data the service's stored data
 * @throws Fault that names the rule and the reason
 */
export async function applyIntrospectionRules(
  rules: readonly IntrospectionRuleRecord[],
  draft: Draft,
  data: JsonObject,
  effects: RuleEffects,
): Promise<void> {
  const sources = { data, node: structuredClone(draft.node) };
  const failing = (rule: IntrospectionRuleRecord, reason: string, cause: unknown): Fault =>
    new Fault('Invalid', { message: `${reason} (introspection rule ${rule.description || rule.uuid})` }, { cause });
  const applying: IntrospectionRuleRecord[] = [];
  for (const rule of rules.filter((candidate) => isInScope(candidate, draft))) {
    try {
      if (await allHold(rule.conditions.map((condition) => () => holds(condition, sources)))) applying.push(rule);
    } catch (error) {
      throw failing(rule, `A condition cannot be checked: ${reasonOf(error)}`, error);
    }
  }
  for (const rule of applying) {
    effects.log.info(`introspection rule ${rule.uuid} applies`);
    for (const { action, ...params } of rule.actions) {
      if (action === 'fail') throw failing(rule, String(params['message']), undefined);
      try {
        const value = filled(params['value'], data);
        const [name, args] = ACTION[action as string]!(Object.hasOwn(params, 'value') ? { ...params, value } : params);
        await ACTION_HANDLERS[name]!(draft, args, effects);
      } catch (error) {
        throw failing(rule, reasonOf(error), error);
      }
    }
  }
}
