/** Applies inspection rules during an inspection. Their changes are written together with those of the hooks. */
import type { InspectionRule, RuleStep } from '../../../model/rules/inspection-rules';
import { INTERFACE_KINDS, type InspectionRuleRecord, type JsonObject, type NodeChanges, type PortChanges } from '../../../model/records';
import type { NodeTask } from '../../core/node-task';
import type { InspectionData } from '../hooks/hook';
import type { RuleEffects } from './actions';
import { callApi } from './call';
import { applyRules } from './engine';
import { changesOf, draftOf, type Draft } from './rule';

const stored = (rule: InspectionRuleRecord): InspectionRule => ({
  ...rule,
  conditions: rule.conditions as unknown as readonly RuleStep[],
  actions: rule.actions as unknown as readonly RuleStep[],
});

interface RuleChanges {
  readonly node: NodeChanges;
  readonly ports: readonly (readonly [uuid: string, changes: PortChanges])[];
  readonly pluginData: JsonObject;
}
/** If the driver changes, interfaces that no rule sets become the defaults of the new driver. */
function withInterfaces({ node, context }: NodeTask, changes: NodeChanges): NodeChanges {
  const fields = INTERFACE_KINDS.map((kind) => `${kind}_interface` as const);
  if (changes.driver === undefined && !fields.some((field) => field in changes)) return changes;
  const interfaces = Object.fromEntries(
    fields.map((field) => [field, changes[field] ?? (changes.driver === undefined ? node[field] : null)]),
  );
  return { ...changes, ...context.hardware.fill(changes.driver ?? node.driver, interfaces) };
}

/** Changes the draft. Throws the Fault of a failing rule. */
export type ApplyRules = (draft: Draft, effects: RuleEffects) => Promise<void>;
/** The rules of clients and the built-in ones; undefined if there are none. */
async function inspectionRules({ context: { store, builtInRules, options } }: NodeTask): Promise<ApplyRules | undefined> {
  const rules = [...(await store.inspectionRules.list({})).map(stored), ...builtInRules].filter(({ phase }) => phase === 'main');
  return rules.length === 0 ? undefined : (draft, effects) => applyRules(rules, draft, options, effects);
}

/**
 * @param data the inspection data after the hooks
 * @param own used instead of the inspection rules
 * @throws Fault of a failing rule
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
  await apply(draft, {
    log: task.log,
    call: (request) => callApi(request, { clock, signal: AbortSignal.any([signal, task.signal]), options: task.options }),
  });
  const changed = ports.map((port, at) => [port.uuid, changesOf(port, draft.ports[at]!)] as const);
  return {
    node: withInterfaces(task, changesOf(node, draft.node)),
    ports: changed.filter(([, changes]) => Object.keys(changes).length > 0),
    pluginData: draft.pluginData,
  };
}
