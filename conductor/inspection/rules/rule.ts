/** What the parts of the rule engine share: rules, arguments, the draft and the failures. */
import { invalid, Fault } from '../../../model/errors';
import type { Inventory, JsonObject, NodeChanges, NodeRecord, PortChanges, PortRecord } from '../../../model/records';

/** Arguments by name, with their fields filled in. */
export type RuleArguments = Readonly<Record<string, unknown>>;

/** Copies that rules read and change. The changes are written together after all rules. */
export interface Draft {
  readonly node: Record<string, unknown>;
  readonly ports: readonly Record<string, unknown>[];
  readonly inventory: Inventory;
  readonly pluginData: Record<string, unknown>;
}
export const draftOf = (node: NodeRecord, ports: readonly PortRecord[], inventory: Inventory, pluginData: JsonObject): Draft =>
  structuredClone({ node, ports, inventory, pluginData }) as unknown as Draft;
/** The differences from the records that the draft was made from. */
export function changesOf<T extends NodeRecord | PortRecord>(
  before: T,
  after: Readonly<Record<string, unknown>>,
): T extends NodeRecord ? NodeChanges : PortChanges {
  const differs = (name: string): boolean => JSON.stringify(after[name]) !== JSON.stringify((before as unknown as JsonObject)[name]);
  return Object.fromEntries(
    Object.keys(after)
      .filter(differs)
      .map((name) => [name, after[name]]),
  );
}

type Condition = () => boolean | Promise<boolean>;
/** The remaining conditions are not checked after the one that decides. */
export async function someHolds(conditions: readonly Condition[]): Promise<boolean> {
  for (const holds of conditions) if (await holds()) return true;
  return false;
}
export async function allHold(conditions: readonly Condition[]): Promise<boolean> {
  for (const holds of conditions) if (!(await holds())) return false;
  return true;
}

export const executionFailure = (reason: string): Fault => invalid(`Inspection rule execution failed. Reason: ${reason}`);
export const conditionFailure = (reason: string): Fault => invalid(`Inspection rule condition check failed. Reason: ${reason}`);
export const actionFailure = (reason: string): Fault => invalid(`Inspection rule action execution failed. Reason: ${reason}`);
