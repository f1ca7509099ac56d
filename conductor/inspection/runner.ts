/** Runs the hooks on what an agent or a BMC reported. Writes their changes and the inventory in one transaction. */
import { Fault, reasonOf } from '../../model/errors';
import { newUuid } from '../../model/idents';
import type { InspectionFindings } from '../../drivers/interfaces';
import { announcementOf, changesBetween, MAX_CHANGES, type HardwareChange } from '../../model/hardware-records';
import type { JsonObject, NodeRecord, PortChanges } from '../../model/records';
import { hardwareSignals } from '../../model/rules/health-hardware';
import { diskHealthOf, smartSignals } from '../../model/rules/health-smart';
import type { Store } from '../../store/store';
import { noteJudged, observeHealthNow } from '../core/health';
import { entryOf } from '../core/history';
import type { NodeTask } from '../core/node-task';
import { joinCapabilities, readCapabilities } from './hooks/capabilities';
import { inspectionFailure, type HookOptions, type Change, type HookFunction, type InspectionData } from './hooks/hook';
import { chosenHooks } from './hooks';
import { overwritesAsConfigured, overwritesAll, onlyMissing, type Overwrites } from './hooks/overwrite';
import { runRules, type ApplyRules } from './rules';

/**
 * Pure: returns the changes of the hooks, and the data with their additions to plugin_data. Throws the Fault of a failing hook.
 * @internal
 */
export function applyHooks(
  hookNames: readonly string[],
  start: InspectionData,
  overwrites: Overwrites = overwritesAsConfigured(start.options),
): { readonly changes: readonly Change[]; readonly data: InspectionData } {
  const hooks = chosenHooks(hookNames);
  let data = start;
  const changes: Change[] = [];
  const run = (name: string, hookFunction: HookFunction | undefined): void => {
    for (const given of hookFunction?.(data) ?? []) {
      const change = overwrites(name) ? given : onlyMissing(given, start);
      if (!change) continue;
      changes.push(change);
      if (change.on !== 'plugin_data') continue;
      const others = Object.entries(data.pluginData).filter(([name]) => name !== change.name);
      data = { ...data, pluginData: Object.fromEntries(change.value === undefined ? others : [...others, [change.name, change.value]]) };
    }
  };
  const { uuid } = start.node;
  // All preprocess hooks run, so that the operator sees all problems at once.
  const wrong = hooks.flatMap(({ name, preprocess }) => {
    const fault = faultOf(() => run(name, preprocess));
    if (!fault) return [];
    const how = isFailure(fault) ? 'Error in preprocess hook' : `Unexpected exception ${fault.name} during preprocess hook`;
    return [`${how} ${name}: ${fault.message}`];
  });
  if (wrong.length > 0)
    throw inspectionFailure(`The following failures happened while running preprocess hooks for node ${uuid}:\n${wrong.join('\n')}`);
  for (const { name, apply: hookFunction } of hooks) {
    const fault = faultOf(() => run(name, hookFunction));
    if (!fault) continue;
    if (isFailure(fault)) throw fault;
    throw inspectionFailure(`Unexpected exception ${fault.name} during processing for node: ${uuid}. Error: ${fault.message}`);
  }
  return { changes, data };
}

/** Returns the Fault that `work` throws. Any other error is a defect and is thrown on. */
function faultOf(work: () => void): Fault | undefined {
  try {
    work();
    return undefined;
  } catch (error) {
    if (error instanceof Fault) return error;
    throw error;
  }
}
/** Returns the result of `work`. A Fault is thrown as an inspection failure whose message begins with `before`. */
function withPrefix<T>(before: string | undefined, work: () => T): T {
  try {
    return work();
  } catch (error) {
    throw before !== undefined && error instanceof Fault ? inspectionFailure(`${before}: ${error.message}`) : error;
  }
}
const isFailure = ({ name }: Fault): boolean => name === 'HardwareInspectionFailure';

/** @internal */
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
  const removed = new Set(changes.flatMap((change) => (change.on === 'port removal' ? [change.uuid] : [])));
  const updates = updatesByMac(changes);
  // An address that belongs to another node's port stays there.
  await store.ports.createMissing(
    created.map(({ mac, pxeEnabled, clientId }) => ({
      uuid: newUuid(random),
      node_uuid: task.node.uuid,
      address: mac,
      pxe_enabled: pxeEnabled,
      extra: clientId === undefined ? {} : { 'client-id': clientId },
      ...updates.get(mac),
    })),
  );
  for (const { uuid, address } of task.ports) {
    const more = updates.get(address);
    if (removed.has(uuid)) await store.ports.remove(uuid);
    else if (more && Object.keys(more).length > 0) await store.ports.update(uuid, more);
  }
}
/** All changes to each port, by its address. */
function updatesByMac(changes: readonly Change[]): ReadonlyMap<string, PortChanges> {
  const updates = new Map<string, PortChanges>();
  for (const change of changes) if (change.on === 'port update') updates.set(change.mac, { ...updates.get(change.mac), ...change.changes });
  return updates;
}

/** The BMC's own findings, applied before the changes of hooks. Capabilities that are set on the node stay. */
function changesFromBmc(node: NodeRecord, { properties = {}, capabilities: reported = {} }: HookInput): readonly Change[] {
  const own = readCapabilities(node.properties.capabilities);
  return [
    ...Object.entries(properties).map(([name, value]) => ({ on: 'property' as const, name, value })),
    ...Object.entries(reported).flatMap(([name, value]) => (own.has(name) ? [] : [{ on: 'capability' as const, name, value }])),
  ];
}

/** What an inspection found. An agent reports only an inventory and plugin_data. */
type HookInput = Pick<InspectionFindings, 'inventory' | 'pluginData' | 'hooks'> & Partial<InspectionFindings>;
/** How out-of-band inspections, callbacks and introspections differ. */
interface HookRunOptions {
  /** Begins the error message if a hook fails. */
  readonly failurePrefix?: string;
  readonly rules?: ApplyRules;
  readonly options?: Partial<HookOptions>;
  /** Runs in the same transaction. */
  readonly writeMore?: (store: Store, pluginData: JsonObject) => Promise<void>;
}
/** Writes what has changed since the previous inspection: an event, an entry of the node's history, and the changes for the API. */
async function writeHardwareChanges(store: Store, { node, context }: NodeTask, changes: readonly HardwareChange[]): Promise<void> {
  if (changes.length === 0) return;
  const { payload, text } = announcementOf(changes, 'inspection');
  await store.events.add(node, 'hardware', payload);
  const entry = entryOf(context, node, { type: 'hardware', event: `Hardware since the last inspection: ${text}`, error: false });
  if (entry) await store.history.create(entry);
  if (context.options['health.enabled']) await noteJudged(context, store, node.uuid, hardwareSignals(changes));
  await store.hardware.addChanges(node.uuid, changes, context.options['recorder.history_max_entries'], 'inspection');
}
async function noteHardwareChanges(task: NodeTask, before: JsonObject, now: JsonObject): Promise<void> {
  try {
    const changes = changesBetween(before, now, MAX_CHANGES);
    if (changes.length > 0) await task.context.store.transaction((store) => writeHardwareChanges(store, task, changes));
  } catch (error) {
    task.log.warn('the differences to the inventory before this inspection cannot be stored', { error: reasonOf(error) });
  }
}
/** What the disks say of themselves, if the agent has read it (the collector `smart`). Never throws. */
async function noteSmart(task: NodeTask, given: unknown): Promise<void> {
  const disks = diskHealthOf(given);
  if (disks.length === 0) return;
  const { signals, found } = smartSignals(disks);
  await observeHealthNow(task.context, { uuid: task.node.uuid, power_state: 'power on' }, signals, found).catch((error: unknown) =>
    task.log.warn('what the disks say of themselves cannot be judged', { error: reasonOf(error) }),
  );
}
/**
 * Throws the Fault of a failing hook, or an inspection failure if an essential property is missing. Then nothing is written. The
 * ramdisk's logs are not stored with plugin_data.
 */
export async function runHooks(task: NodeTask, findings: HookInput, runOptions: HookRunOptions = {}): Promise<void> {
  const { inventory, pluginData, hooks, essential = [] } = findings;
  const { store: rows, accelerators } = task.context;
  const options = { ...task.context.options, ...runOptions.options };
  const compares = chosenHooks(hooks).some(({ usesPrevious: wantsPrevious }) => wantsPrevious);
  const before = await rows.inventories.find(task.node.uuid).catch((error: unknown) => {
    if (compares) throw error;
    // The differences are for people only.
    task.log.warn('the inventory before this inspection cannot be read; its differences are not known', { error: reasonOf(error) });
    return undefined;
  });
  const previous = compares ? before?.inventory : undefined;
  const start: InspectionData = {
    node: task.node,
    ports: task.ports,
    inventory,
    pluginData,
    options,
    accelerators,
    previous,
  };
  // A BMC is authenticated; a client that posts an inventory is not.
  const overwrites = 'kind' in findings ? overwritesAll : overwritesAsConfigured(options);
  const { changes, data } = withPrefix(runOptions.failurePrefix, () => applyHooks(hooks, start, overwrites));
  const properties = newProperties(task.node.properties, [...changesFromBmc(task.node, findings), ...changes]);
  const missing = essential.filter((name) => !Object.hasOwn(properties, name));
  if (missing.length > 0)
    throw inspectionFailure(`Failed to discover the following properties: ${missing.join(', ')} on node ${task.node.uuid}`);
  const ruleChanges = await runRules(task, { ...data, node: { ...task.node, properties } }, runOptions.rules);
  const storedPluginData = Object.fromEntries(Object.entries(ruleChanges.pluginData).filter(([name]) => name !== 'logs'));
  const found = { inventory, plugin_data: storedPluginData };
  const size = Buffer.byteLength(JSON.stringify(found)) / 1024;
  if (size > options['inventory.max_size'])
    throw inspectionFailure(`${Math.ceil(size)} KiB were found, and [inventory]max_size is ${options['inventory.max_size']}`);
  await task.write({ properties, ...ruleChanges.node }, {}, async (store) => {
    await changePorts(store, task, changes);
    for (const [uuid, more] of ruleChanges.ports) await store.ports.update(uuid, more);
    await store.inventories.put(task.node.uuid, found);
    await runOptions.writeMore?.(store, storedPluginData);
  });
  // After the transaction, in which addChanges must not wait for locks of other transactions. The differences are for people only.
  if (before) await noteHardwareChanges(task, before.inventory, inventory);
  await noteSmart(task, pluginData['smart']);
  await task.refresh();
}
