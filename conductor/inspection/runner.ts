/** Runs the hooks over what an agent (or a BMC) reported, and writes what they say in one transaction with the inventory itself. */
import { Fault } from '../../model/errors';
import { newUuid } from '../../model/idents';
import type { Found } from '../../drivers/interfaces';
import type { JsonObject, NodeRecord, PortChanges } from '../../model/records';
import type { Store } from '../../store/store';
import type { NodeTask } from '../core/task';
import { joinCapabilities, readCapabilities } from './hooks/capabilities';
import { inspectionFailure, type HookOptions, type Change, type HookFunction, type InspectionData } from './hooks/hook';
import { chosenHooks } from './hooks';
import { overwritesAsConfigured, overwritesAll, onlyMissing, type Overwrites } from './hooks/overwrite';
import { runRules, type ApplyRules } from './rules';

/** Pure: what the hooks say, and the plugin_data with their additions. Throws the Fault of a hook that refuses. */
export function applyHooks(
  hookNames: readonly string[],
  start: InspectionData,
  overwrites: Overwrites = overwritesAsConfigured(start.options),
): { readonly changes: readonly Change[]; readonly seen: InspectionData } {
  const hooks = chosenHooks(hookNames);
  let seen = start;
  const changes: Change[] = [];
  const run = (name: string, look: HookFunction | undefined): void => {
    for (const given of look?.(seen) ?? []) {
      const change = overwrites(name) ? given : onlyMissing(given, start);
      if (!change) continue;
      changes.push(change);
      if (change.on !== 'plugin_data') continue;
      const others = Object.entries(seen.pluginData).filter(([name]) => name !== change.name);
      seen = { ...seen, pluginData: Object.fromEntries(change.value === undefined ? others : [...others, [change.name, change.value]]) };
    }
  };
  const { uuid } = start.node;
  // All of them, so that whoever mends one thing need not find the next by another inspection.
  const wrong = hooks.flatMap(({ name, preprocess }) => {
    const fault = faultOf(() => run(name, preprocess));
    if (!fault) return [];
    const how = isFailure(fault) ? 'Error in preprocess hook' : `Unexpected exception ${fault.name} during preprocess hook`;
    return [`${how} ${name}: ${fault.message}`];
  });
  if (wrong.length > 0)
    throw inspectionFailure(`The following failures happened while running preprocess hooks for node ${uuid}:\n${wrong.join('\n')}`);
  for (const { name, apply: look } of hooks) {
    const fault = faultOf(() => run(name, look));
    if (!fault) continue;
    if (isFailure(fault)) throw fault;
    throw inspectionFailure(`Unexpected exception ${fault.name} during processing for node: ${uuid}. Error: ${fault.message}`);
  }
  return { changes, seen };
}

/** The Fault that the work throws; what else it throws is a defect of ours. */
function faultOf(work: () => void): Fault | undefined {
  try {
    work();
    return undefined;
  } catch (error) {
    if (error instanceof Fault) return error;
    throw error;
  }
}
/** What the work returns; its Fault becomes a part of the sentence. */
function explained<T>(before: string | undefined, work: () => T): T {
  try {
    return work();
  } catch (error) {
    throw before !== undefined && error instanceof Fault ? inspectionFailure(`${before}: ${error.message}`) : error;
  }
}
const isFailure = ({ name }: Fault): boolean => name === 'HardwareInspectionFailure';

/** The node's properties after the changes. */
export function newProperties(before: JsonObject, changes: readonly Change[]): JsonObject {
  const properties: Record<string, unknown> = { ...before };
  for (const change of changes) {
    if (change.on === 'property') properties[change.name] = change.value;
    if (change.on === 'capability') {
      const all = readCapabilities(properties.capabilities).set(change.name, change.value);
      properties.capabilities = joinCapabilities(all);
    }
  }
  return properties;
}

async function changePorts(store: Store, task: NodeTask, changes: readonly Change[]): Promise<void> {
  const { random } = task.context;
  const created = changes.flatMap((change) => (change.on === 'port' ? [change] : []));
  // An address that is another node's port stays there.
  await store.ports.createMissing(
    created.map(({ mac, pxeEnabled, clientId }) => ({
      uuid: newUuid(random),
      node_uuid: task.node.uuid,
      address: mac,
      pxe_enabled: pxeEnabled,
      extra: clientId === undefined ? {} : { 'client-id': clientId },
      ...updatesOf(changes, mac),
    })),
  );
  for (const { uuid, address } of task.ports) {
    const more = updatesOf(changes, address);
    if (changes.some((change) => change.on === 'port removal' && change.uuid === uuid)) await store.ports.remove(uuid);
    else if (Object.keys(more).length > 0) await store.ports.update(uuid, more);
  }
}
/** All that is changed on the port with this address. */
const updatesOf = (changes: readonly Change[], mac: string): PortChanges =>
  Object.assign({}, ...changes.map((change) => (change.on === 'port update' && change.mac === mac ? change.changes : {}))) as PortChanges;

/** What the BMC itself says, as changes before those of the hooks; capabilities that the node names stay as they are. */
function changesFromBmc(node: NodeRecord, { properties = {}, capabilities: told = {} }: InspectionFindings): readonly Change[] {
  const own = readCapabilities(node.properties.capabilities);
  return [
    ...Object.entries(properties).map(([name, value]) => ({ on: 'property' as const, name, value })),
    ...Object.entries(told).flatMap(([name, value]) => (own.has(name) ? [] : [{ on: 'capability' as const, name, value }])),
  ];
}

/** What an inspection found; an agent tells an inventory and its plugin_data only. */
export type InspectionFindings = Pick<Found, 'inventory' | 'pluginData' | 'hooks'> & Partial<Found>;
/** What differs between those who inspect. */
export interface HookRunOptions {
  /** What stands before a hook's refusal. */
  readonly refusal?: string;
  readonly rules?: ApplyRules;
  readonly options?: Partial<HookOptions>;
  /** Written with all the rest. */
  readonly also?: (store: Store, pluginData: JsonObject) => Promise<void>;
}
/** Throws the Fault of a hook that refuses, or for lack of an essential property: then nothing is written. The logs of a ramdisk are dropped. */
export async function runHooks(task: NodeTask, findings: InspectionFindings, ways: HookRunOptions = {}): Promise<void> {
  const { inventory, pluginData, hooks, essential = [] } = findings;
  const { store: rows, accelerators } = task.context;
  const options = { ...task.context.options, ...ways.options };
  const compares = chosenHooks(hooks).some(({ usesPrevious: wantsPrevious }) => wantsPrevious);
  const previous = compares ? (await rows.inventories.find(task.node.uuid))?.inventory : undefined;
  const start: InspectionData = {
    node: task.node,
    ports: task.ports,
    inventory,
    pluginData,
    options,
    accelerators,
    ...(previous ? { previous } : {}),
  };
  // A BMC proves who it is; whoever posts an inventory does not.
  const overwrites = 'kind' in findings ? overwritesAll : overwritesAsConfigured(options);
  const { changes, seen } = explained(ways.refusal, () => applyHooks(hooks, start, overwrites));
  const properties = newProperties(task.node.properties, [...changesFromBmc(task.node, findings), ...changes]);
  const missing = essential.filter((name) => !Object.hasOwn(properties, name));
  if (missing.length > 0)
    throw inspectionFailure(`Failed to discover the following properties: ${missing.join(', ')} on node ${task.node.uuid}`);
  const ruled = await runRules(task, { ...seen, node: { ...task.node, properties } }, ways.rules);
  const kept = Object.fromEntries(Object.entries(ruled.pluginData).filter(([name]) => name !== 'logs'));
  const found = { inventory, plugin_data: kept };
  const size = Buffer.byteLength(JSON.stringify(found)) / 1024;
  if (size > options['inventory.max_size'])
    throw inspectionFailure(`${Math.ceil(size)} KiB were found, and [inventory]max_size is ${options['inventory.max_size']}`);
  await task.write({ properties, ...ruled.node }, {}, async (store) => {
    await changePorts(store, task, changes);
    for (const [uuid, more] of ruled.ports) await store.ports.update(uuid, more);
    await store.inventories.put(task.node.uuid, found);
    await ways.also?.(store, kept);
  });
  await task.refresh();
}
