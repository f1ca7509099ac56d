/** Inspection rules in an inspection: which there are, and what they change, to be written with all the rest. */
import type { RuleStep } from '../../../model/rules/inspection-rules';
import { INTERFACE_KINDS, type InspectionRuleRecord, type JsonObject, type NodeChanges, type PortChanges } from '../../../model/records';
import type { NodeTask } from '../../core/task';
import type { InspectionData } from '../hooks/hook';
import type { RuleEffects } from './actions';
import { callApi } from './call';
import { applyRules } from './engine';
import { changesOf, draftOf, type Draft, type Rule } from './rule';

const stored = (rule: InspectionRuleRecord): Rule => ({
  ...rule,
  conditions: rule.conditions as unknown as readonly RuleStep[],
  actions: rule.actions as unknown as readonly RuleStep[],
});

export interface RuleChanges {
  readonly node: NodeChanges;
  readonly ports: readonly (readonly [uuid: string, changes: PortChanges])[];
  readonly pluginData: JsonObject;
}
/** Another driver has interfaces of its own: those that no rule named are its defaults. */
function withInterfaces({ node, context }: NodeTask, changes: NodeChanges): NodeChanges {
  const fields = INTERFACE_KINDS.map((kind) => `${kind}_interface` as const);
  if (changes.driver === undefined && !fields.some((field) => field in changes)) return changes;
  const kept = Object.fromEntries(fields.map((field) => [field, changes[field] ?? (changes.driver === undefined ? node[field] : null)]));
  return { ...changes, ...context.hardware.fill(changes.driver ?? node.driver, kept) };
}

/** Changes the draft. Throws the Fault of a rule that fails. */
export type ApplyRules = (draft: Draft, outward: RuleEffects) => Promise<void>;
/** The rules of clients and of the file; undefined: there are none. */
async function inspectionRules({ context: { store, builtInRules, options } }: NodeTask): Promise<ApplyRules | undefined> {
  const rules = [...(await store.inspectionRules.list({})).map(stored), ...builtInRules].filter(({ phase }) => phase === 'main');
  return rules.length === 0 ? undefined : (draft, outward) => applyRules(rules, draft, options, outward);
}

/**
 * @param seen as the hooks leave it
 * @param own other rules than those of inspections. Throws the Fault of a rule that fails.
 */
export async function runRules(
  task: NodeTask,
  { node, ports, inventory, pluginData }: InspectionData,
  own?: ApplyRules,
): Promise<RuleChanges> {
  const { clock, signal } = task.context;
  const apply = own ?? (await inspectionRules(task));
  if (!apply) return { node: {}, ports: [], pluginData };
  const draft = draftOf(node, ports, inventory, pluginData);
  await apply(draft, { log: task.log, call: (what) => callApi(what, clock, AbortSignal.any([signal, task.signal])) });
  const changed = ports.map((port, at) => [port.uuid, changesOf(port, draft.ports[at]!)] as const);
  return {
    node: withInterfaces(task, changesOf(node, draft.node)),
    ports: changed.filter(([, changes]) => Object.keys(changes).length > 0),
    pluginData: draft.pluginData,
  };
}
