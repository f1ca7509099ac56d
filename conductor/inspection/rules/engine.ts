/** Runs inspection rules on a draft, by descending priority: first the conditions, then the actions. */
import { Fault, reasonOf } from '../../../model/errors';
import { repr } from '../../../model/python';
import { ACTIONS, namedArguments, operatorOf, OPERATORS, type InspectionRule, type RuleStep } from '../../../model/rules/inspection-rules';
import { ACTION_HANDLERS, type RuleEffects } from './actions';
import { format, FormatError, type Names } from './format';
import { OPERATOR_CHECKS } from './operators';
import { actionFailure, allHold, executionFailure, someHolds, type Draft, type RuleArguments } from './rule';

interface RuleOptions {
  /** Which rules see inspection data with masked passwords. */
  readonly 'inspection_rules.mask_secrets': string;
}
const SECRETS = ['password', 'auth_token', 'bmc_password'];
const MASK = '***';
/** Names of data that the machine sent. */
const FROM_MACHINE = ['inventory', 'plugin_data'];
/** Masks secrets at every depth. */
function masked(value: unknown, name?: string): unknown {
  if (name !== undefined && SECRETS.includes(name)) return MASK;
  if (Array.isArray(value)) return value.map((item) => masked(item));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, entry]) => [key, masked(entry, key)]));
}

interface RuleRun extends RuleEffects {
  readonly draft: Draft;
  readonly masksSecrets: boolean;
}
/** The names that replacement fields may use. */
const namesIn = ({ draft }: RuleRun, item: readonly unknown[]): Names => ({
  node: draft.node,
  inventory: draft.inventory,
  plugin_data: draft.pluginData,
  ...(item.length > 0 ? { item: item[0] } : {}),
});
/** Calls `change` for each text of a value, keys included. */
function mapTexts(value: unknown, change: (text: string) => unknown): unknown {
  if (typeof value === 'string') return change(value);
  if (Array.isArray(value)) return value.map((item) => mapTexts(item, change));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, entry]) => [String(change(key)), mapTexts(entry, change)]));
}
/** The text with its fields replaced. The item of a loop may have fields too; text from the machine has none. Throws FormatError. */
function replaced({ masksSecrets }: RuleRun, template: string, names: Names): string {
  const { item: _, ...withoutItem } = names;
  const convert = (found: unknown, path: readonly string[]): unknown => {
    if (path[0] === 'item') return mapTexts(found, (text) => format(text, withoutItem, ['node'], convert));
    return masksSecrets && FROM_MACHINE.includes(path[0]!) ? masked(found, path.at(-1)) : found;
  };
  return format(template, names, ['node'], convert);
}
/**
 * Fills in the replacement fields of a value. If that is impossible, an action throws a Fault, so that no template is written as a value.
 * A condition compares the template itself; `is-empty` gets null for a missing name.
 */
const filled = (run: RuleRun, op: string, value: unknown, names: Names): unknown =>
  mapTexts(value, (template) => {
    try {
      return replaced(run, template, names);
    } catch (error) {
      if (!(error instanceof FormatError)) throw error;
      if (Object.hasOwn(ACTIONS, op)) throw actionFailure(`${op}: the fields of ${repr(template)} cannot be filled in: ${error.message}`);
      if (error.kind === 'missing' && op === 'is-empty') return null;
      run.log.warn(`inspection rule, ${op}: the fields of ${template} cannot be filled in`, { reason: error.message });
      return template;
    }
  });
/** @param item the loop's item; empty without a loop */
function argumentsOf(run: RuleRun, step: RuleStep, signature: (typeof OPERATORS)[string], item: readonly unknown[]): RuleArguments {
  const names = namesIn(run, item);
  const op = operatorOf(step.op);
  return Object.fromEntries(
    Object.entries(namedArguments(step, signature)).map(([name, value]) => [
      name,
      signature.filled.includes(name) || item.length > 0 ? filled(run, op, value, names) : value,
    ]),
  );
}
/** The iterations of a loop: one per item of a list, one for an object. Without a loop, one iteration without an item. */
function iterations({ loop }: RuleStep): readonly (readonly unknown[])[] {
  if (typeof loop !== 'object' || loop === null || Object.keys(loop).length === 0) return [[]];
  return Array.isArray(loop) ? loop.map((item: unknown) => [item]) : [[loop]];
}

async function holds(run: RuleRun, condition: RuleStep): Promise<boolean> {
  const op = operatorOf(condition.op);
  const signature = OPERATORS[op];
  const check = OPERATOR_CHECKS[op];
  if (!signature || !check)
    throw executionFailure(`Unsupported operator: '${op}'. Supported operators are: ${Object.keys(OPERATOR_CHECKS).join(', ')}.`);
  const results = iterations(condition).map((item) => async () => {
    const args = argumentsOf(run, condition, signature, item);
    // Filled-in numbers are strings, so a loop compares all values as strings.
    const asStrings = item.length > 0 && signature.optional.includes('force_strings');
    return (await check(asStrings ? { ...args, force_strings: true } : args)) !== condition.op.startsWith('!');
  });
  const how = results.length > 1 ? condition.multiple : undefined;
  if (how === 'last') return results.at(-1)!();
  return how === 'all' ? allHold(results) : someHolds(results);
}
async function act(run: RuleRun, action: RuleStep): Promise<void> {
  const signature = ACTIONS[action.op];
  const work = ACTION_HANDLERS[action.op];
  if (!signature || !work)
    throw executionFailure(`Unsupported action: '${action.op}'. Supported actions are: ${Object.keys(ACTION_HANDLERS).join(', ')}.`);
  for (const item of iterations(action)) await work(run.draft, argumentsOf(run, action, signature, item), run);
}

/**
 * Changes only the draft, and stops at the first failing rule.
 * @throws Fault that names the rule and the reason
 */
export async function applyRules(
  rules: readonly InspectionRule[],
  draft: Draft,
  options: RuleOptions,
  effects: RuleEffects,
): Promise<void> {
  const policy = options['inspection_rules.mask_secrets'];
  for (const rule of [...rules].sort((left, right) => right.priority - left.priority)) {
    const masksSecrets = policy === 'always' || (policy === 'sensitive' && !rule.sensitive);
    const run: RuleRun = { ...effects, draft, masksSecrets };
    try {
      if (!(await allHold(rule.conditions.map((condition) => () => holds(run, condition))))) continue;
      effects.log.info(`inspection rule ${rule.uuid} applies`);
      for (const action of rule.actions) await act(run, action);
    } catch (error) {
      const message =
        error instanceof Fault
          ? `${error.message} (inspection rule ${rule.uuid})`
          : `Failed to apply rule ${rule.uuid} to node ${String(draft.node['uuid'])}: ${reasonOf(error)}`;
      throw new Fault('Invalid', { message }, { cause: error });
    }
  }
}
