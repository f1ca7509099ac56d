/** Runs inspection rules over what was found in a machine: the highest priority first, conditions, then actions, on a draft. */
import type { Options } from '../../../config/options';
import { Fault, reasonOf } from '../../../model/errors';
import { ACTIONS, namedArguments, operatorOf, OPERATORS, type RuleStep } from '../../../model/rules/inspection-rules';
import { ACTS, type Outward } from './actions';
import { format, Unfillable, type Names } from './format';
import { CHECKS } from './operators';
import { executionFailure, type Draft, type Rule, type Values } from './rule';

export type RuleOptions = Pick<Options, 'inspection_rules.mask_secrets'>;
const SECRETS = ['password', 'auth_token', 'bmc_password'];
const MASK = '***';
/** Names of what the machine told. */
const FROM_MACHINE = ['inventory', 'plugin_data'];
/** With stars in the place of its secrets, at every depth. */
function masked(value: unknown, name?: string): unknown {
  if (name !== undefined && SECRETS.includes(name)) return MASK;
  if (Array.isArray(value)) return value.map((one) => masked(one));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, masked(one, key)]));
}

interface Run extends Outward {
  readonly draft: Draft;
  readonly hides: boolean;
}
/** What replacement fields may name. */
const namesIn = ({ draft }: Run, item: readonly unknown[]): Names => ({
  node: draft.node,
  inventory: draft.inventory,
  plugin_data: draft.pluginData,
  ...(item.length > 0 ? { item: item[0] } : {}),
});
/** A value with its replacement fields filled in; what cannot be filled in stays as it is, and to `is-empty` is nothing. */
function filled(run: Run, op: string, value: unknown, names: Names): unknown {
  if (Array.isArray(value)) return value.map((one) => filled(run, op, one, names));
  if (typeof value === 'object' && value !== null)
    return Object.fromEntries(
      Object.entries(value).map(([key, one]) => [String(filled(run, op, key, names)), filled(run, op, one, names)]),
    );
  if (typeof value !== 'string') return value;
  try {
    return format(value, names, ['node'], (found, path) =>
      run.hides && FROM_MACHINE.includes(path[0]!) ? masked(found, path.at(-1)) : found,
    );
  } catch (error) {
    if (!(error instanceof Unfillable)) throw error;
    if (error.kind === 'missing' && op === 'is-empty') return null;
    run.log.warn(`an inspection rule's ${op}: ${value} is left as it is`, { reason: error.message });
    return value;
  }
}
/** @param item of the loop; empty: there is none */
function argumentsOf(run: Run, step: RuleStep, signature: (typeof OPERATORS)[string], item: readonly unknown[]): Values {
  const names = namesIn(run, item);
  const op = operatorOf(step.op);
  return Object.fromEntries(
    Object.entries(namedArguments(step, signature)).map(([name, value]) => [
      name,
      signature.filled.includes(name) || item.length > 0 ? filled(run, op, value, names) : value,
    ]),
  );
}
/** The items of a loop, each alone; an object is one item. No loop: one turn without an item. */
function turns({ loop }: RuleStep): readonly (readonly unknown[])[] {
  if (typeof loop !== 'object' || loop === null || Object.keys(loop).length === 0) return [[]];
  return Array.isArray(loop) ? loop.map((item: unknown) => [item]) : [[loop]];
}

function holds(run: Run, condition: RuleStep): boolean {
  const op = operatorOf(condition.op);
  const signature = OPERATORS[op];
  const check = CHECKS[op];
  if (!signature || !check)
    throw executionFailure(`Unsupported operator: '${op}'. Supported operators are: ${Object.keys(CHECKS).join(', ')}.`);
  const results = turns(condition).map((item) => () => {
    const args = argumentsOf(run, condition, signature, item);
    // Filled-in numbers are strings: in a loop all are compared as such.
    const asStrings = item.length > 0 && signature.optional.includes('force_strings');
    return check(asStrings ? { ...args, force_strings: true } : args) !== condition.op.startsWith('!');
  });
  const how = results.length > 1 ? condition.multiple : undefined;
  if (how === 'all') return results.every((result) => result());
  if (how === 'last') return results.at(-1)!();
  return results.some((result) => result());
}
async function act(run: Run, action: RuleStep): Promise<void> {
  const signature = ACTIONS[action.op];
  const work = ACTS[action.op];
  if (!signature || !work)
    throw executionFailure(`Unsupported action: '${action.op}'. Supported actions are: ${Object.keys(ACTS).join(', ')}.`);
  for (const item of turns(action)) await work(run.draft, argumentsOf(run, action, signature, item), run);
}

/**
 * Changes the draft only. A rule that fails ends it.
 * @throws Fault that names the rule and says why
 */
export async function applyRules(rules: readonly Rule[], draft: Draft, options: RuleOptions, outward: Outward): Promise<void> {
  const hide = options['inspection_rules.mask_secrets'];
  for (const rule of [...rules].sort((one, other) => other.priority - one.priority)) {
    const hides = hide === 'always' || (hide === 'sensitive' && !rule.sensitive);
    const run: Run = { ...outward, draft, hides };
    try {
      if (!rule.conditions.every((condition) => holds(run, condition))) continue;
      outward.log.info(`inspection rule ${rule.uuid} applies`);
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
