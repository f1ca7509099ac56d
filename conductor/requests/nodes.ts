/** Creates, changes and removes nodes for clients: what the state, the flags and the hardware type allow. */
import { Fault, invalidParameter } from '../../model/errors';
import { repr, str, toInteger } from '../../model/python';
import {
  INTERFACE_KINDS,
  type InterfaceFields,
  type JsonObject,
  type NewNode,
  type NodeChanges,
  type NodeRecord,
} from '../../model/records';
import { conductorsServing } from '../../model/ring';
import { outageOf } from '../../model/rules/out-of-service';
import { DELETABLE_STATES, stateRow, type ProvisionState } from '../../model/states';
import { MAX_TRAITS } from '../../model/traits';
import { checkErasure } from '../../drivers/common/erase-request';
import { checkKexec } from '../../drivers/common/kexec-request';
import { endAllocation } from './allocations';
import { endConsole, removeConsoleLog } from './console';
import { endOfRemoved } from '../core/bmc-watch';
import type { Context } from '../core/context';
import { type AlreadyRead, recordOf } from '../core/call-types';
import { changeUnlocked, withTask } from '../core/task';

const INTERFACE_FIELDS = INTERFACE_KINDS.map((kind) => `${kind}_interface` as const);
/** States in which interfaces and an existing resource_class may change. */
const UPDATABLE_STATES: readonly ProvisionState[] = ['enroll', 'inspecting', 'inspect wait', 'manageable', 'available'];

/** Throws Invalid, with Ironic's message, if no living conductor serves this driver in this group. */
async function checkServed({ store, options }: Context, driver: string, group: string): Promise<void> {
  const { conductors } = await store.conductors.alive(options['conductor.heartbeat_timeout']);
  if (conductorsServing(conductors, { driver, conductor_group: group }).length === 0)
    throw new Fault('Invalid', {
      message:
        `No valid host was found. Reason: No conductor service registered which supports driver ${driver} ` +
        `for conductor group "${group}". Ensure the driver is valid and enabled.`,
    });
}

const SIZES = ['local_gb', 'memory_mb'] as const;
/** Throws InvalidParameterValue unless the sizes among the properties are non-negative integers, or text of such. */
function checkSizes(uuid: string | undefined, properties: JsonObject | null | undefined): void {
  const wrong = SIZES.filter((name) => {
    const value = properties?.[name] ?? null;
    return value !== null && !((toInteger(value) ?? -1) >= 0);
  });
  if (wrong.length === 0) return;
  const values = wrong.map((name) => `${name}=${str(properties![name])}`).join(', ');
  throw new Fault('InvalidParameterValue', {
    message: `The following properties for node ${uuid} should be non-negative integers, but provided values are: ${values}`,
  });
}

/**
 * Throws Invalid (no conductor serves the node), InvalidParameterValue (an interface, a property), NodeAlreadyExists, DuplicateName,
 * InstanceAssociated, ParentNodeUnknown, ParentNodeCycle.
 */
export async function createNode(context: Context, node: NewNode): Promise<NodeRecord> {
  const { options, hardware, store } = context;
  const group = (node.conductor_group ?? options['DEFAULT.default_conductor_group']).toLowerCase();
  await checkServed(context, node.driver, group);
  const interfaces = hardware.fill(node.driver, node);
  checkSizes(node.uuid, node.properties);
  checkKexec(node);
  checkErasure(node);
  const whole: NewNode = {
    resource_class: options['DEFAULT.default_resource_class'],
    ...node,
    conductor_group: group,
    ...interfaces,
  };
  const { parent_node: parent } = whole;
  if (!parent) return store.nodes.create(whole);
  return store.transaction(async ({ nodes }) => {
    const made = await nodes.create(whole);
    // The parent cannot be deleted from here on.
    const [found] = await nodes.listColumns(['uuid'], { where: { uuid: parent }, children: 'all' });
    if (!found) throw new Fault('ParentNodeUnknown', { parent });
    return made;
  });
}

const refuse = (message: string): never => {
  throw new Fault('InvalidState', { message });
};

/** Throws InvalidState if the node's state allows no changes. In maintenance the instance may be removed in every state. */
function checkTransit(node: NodeRecord, changes: NodeChanges): void {
  const frees = node.maintenance && Object.keys(changes).length === 1 && changes.instance_uuid === null;
  if (node.target_provision_state !== null && !stateRow(node.provision_state).changeable && !frees)
    refuse(`Node ${node.uuid} can not be updated while a state transition is in progress.`);
}

/** Checks single fields. Returns further changes that follow, such as reasons that are cleared with their flag. */
function checkFields(node: NodeRecord, changes: NodeChanges): NodeChanges {
  const { uuid, provision_state: state } = node;
  const follows: { -readonly [Key in keyof NodeChanges]: NodeChanges[Key] } = {};
  const after = { ...node, ...changes };
  const changed = (key: keyof NodeChanges): boolean => key in changes && changes[key] !== node[key];

  if (changed('maintenance') && !after.maintenance && outageOf(node)) throw new Fault('NodeOutOfService', { node: uuid });
  if (changed('maintenance') && !after.maintenance) Object.assign(follows, { maintenance_reason: null, fault: null });
  if (changed('protected')) {
    if (!after.protected) follows.protected_reason = null;
    else if (state !== 'active' && state !== 'rescue')
      refuse(`Node ${uuid} can only be made protected in provision states 'active' or 'rescue', the current state is '${state}'`);
  }
  if (changed('protected_reason') && after.protected_reason && !after.protected)
    throw invalidParameter('The protected_reason field can only be set when protected is True');
  if (changed('retired')) {
    if (!after.retired) follows.retired_reason = null;
    else if (state === 'available')
      refuse(`Node ${uuid} can not have 'retired' set in provision state 'available', the current state is '${state}'`);
  }
  if (changed('retired_reason') && after.retired_reason && !after.retired)
    throw invalidParameter('The retired_reason field can only be set when retired is True');
  if (changed('instance_uuid') && after.instance_uuid && node.instance_uuid)
    throw new Fault('NodeAssociated', { node: uuid, instance: node.instance_uuid });
  const allowed = `unless it is in one of allowed (${UPDATABLE_STATES.join(', ')}) states`;
  if (changed('resource_class') && node.resource_class && !UPDATABLE_STATES.includes(state))
    refuse(`Node ${uuid} can not have resource_class updated ${allowed}. Current state is '${state}'.`);
  if (changed('instance_uuid') && !after.instance_uuid && node.allocation_uuid) {
    if (!UPDATABLE_STATES.includes(state) && !node.maintenance)
      refuse(
        `Node ${uuid} with an allocation can not have instance_uuid removed ${allowed} or in maintenance mode. Current state is '${state}'.`,
      );
    follows.allocation_uuid = null;
  }
  const field = INTERFACE_FIELDS.find(changed);
  if (field && !UPDATABLE_STATES.includes(state) && !node.maintenance)
    refuse(`Node ${uuid} can not have ${field} updated ${allowed} or in maintenance mode. Current state is '${state}'.`);
  return follows;
}

/** The interfaces after the change: validated against the hardware type; removed ones get its defaults. */
function newInterfaces(context: Context, node: NodeRecord, changes: NodeChanges, reset: boolean): Partial<InterfaceFields> {
  const changesDriver = changes.driver !== undefined && changes.driver !== node.driver;
  if (!changesDriver && !INTERFACE_FIELDS.some((field) => field in changes && changes[field] !== node[field])) return {};
  const current = Object.fromEntries(INTERFACE_FIELDS.map((field) => [field, changesDriver && reset ? null : node[field]]));
  const given = Object.fromEntries(INTERFACE_FIELDS.flatMap((field) => (field in changes ? [[field, changes[field]]] : [])));
  return context.hardware.fill(changes.driver ?? node.driver, { ...current, ...given });
}

/** A deploy interface that the client sets counts more than the one that `autodetect` had replaced. */
function choiceOf({ deploy_interface: before, driver_internal_info: info }: NodeRecord, after: NodeChanges): NodeChanges {
  const { original_deploy_interface: original, ...others } = info;
  const isSet = after.deploy_interface !== undefined && after.deploy_interface !== before;
  return isSet && original !== undefined ? { driver_internal_info: others } : {};
}

/** Throws NodeLocked, NodeNotFound; InvalidState, NodeAssociated (409); InvalidParameterValue, Invalid, ParentNode… (400); DuplicateName. */
export async function updateNode(
  context: Context,
  uuid: string,
  requested: NodeChanges,
  resetInterfaces: boolean,
  read?: AlreadyRead<NodeRecord>,
): Promise<NodeRecord> {
  const changes =
    requested.conductor_group === undefined ? requested : { ...requested, conductor_group: requested.conductor_group.toLowerCase() };
  let hasNewOwner = false;
  const decide = async (node: NodeRecord): Promise<NodeChanges> => {
    hasNewOwner = changes.owner !== undefined && changes.owner !== node.owner;
    checkTransit(node, changes);
    const follows = checkFields(node, changes);
    const driver = changes.driver ?? node.driver;
    const group = changes.conductor_group ?? node.conductor_group;
    if (driver !== node.driver || group !== node.conductor_group) await checkServed(context, driver, group);
    const interfaces = newInterfaces(context, node, changes, resetInterfaces);
    checkSizes(uuid, changes.properties);
    checkKexec(changes);
    checkErasure(changes);
    return { ...changes, ...follows, ...interfaces, ...choiceOf(node, { ...changes, ...interfaces }) };
  };
  const updated = await changeUnlocked(context, uuid, decide, {
    also: (node, { allocation_uuid: allocation }) => (allocation === null ? endAllocation(node) : undefined),
    read: recordOf(read),
  });
  // What the machine said is the former owner's.
  if (hasNewOwner) await removeConsoleLog(context, uuid);
  return updated;
}

/** Throws NodeLocked, NodeNotFound, NodeAssociated, NodeProtected, NodeHasChildren, InvalidState. */
export async function deleteNode(context: Context, uuid: string): Promise<void> {
  const allowed = [...DELETABLE_STATES, ...(context.options['conductor.allow_deleting_available_nodes'] ? ['available' as const] : [])];
  const removed = await withTask(context, uuid, { purpose: 'node deletion', retry: true }, async (task) => {
    const { node } = task;
    if (!node.maintenance && node.instance_uuid !== null) throw new Fault('NodeAssociated', { node: uuid, instance: node.instance_uuid });
    if (node.protected) throw new Fault('NodeProtected', { node: uuid });
    if (!node.maintenance && !allowed.includes(node.provision_state))
      refuse(
        `Can not delete node "${uuid}" while it is in provision state "${node.provision_state}". Valid provision states to ` +
          `perform deletion are: "(${allowed.map(repr).join(', ')})", or set the node into maintenance mode`,
      );
    await endConsole(task);
    return context.store.transaction(async (inner) => {
      const watch = context.options['health.event_address'] === null ? undefined : await inner.bmcWatches.find(uuid);
      await inner.nodes.remove(uuid, node.lock_fence);
      await inner.inventories.remove(uuid);
      return { node, isSubscribed: watch?.subscription != null };
    });
  });
  await removeConsoleLog(context, uuid);
  if (removed.isSubscribed) endOfRemoved(context, removed.node);
}

/** The end of maintenance clears reason and fault. Throws NodeLocked, NodeOutOfService, NodeNotFound. */
export async function setMaintenance(context: Context, uuid: string, on: boolean, reason?: string | null): Promise<void> {
  await changeUnlocked(context, uuid, async (node) => {
    if (on) return { maintenance: true, maintenance_reason: reason ?? null };
    if (outageOf(node)) throw new Fault('NodeOutOfService', { node: uuid });
    return { maintenance: false, maintenance_reason: null, fault: null };
  });
}

interface TraitChange {
  readonly replace?: readonly string[];
  readonly add?: string;
  readonly remove?: string;
}
/** Throws NodeLocked, NodeNotFound, NodeTraitNotFound, InvalidParameterValue (too many). */
export async function setTraits(context: Context, uuid: string, change: TraitChange): Promise<void> {
  await changeUnlocked(context, uuid, async (node) => {
    const { remove } = change;
    const before = change.replace ?? node.traits;
    if (remove !== undefined && !before.includes(remove)) throw new Fault('NodeTraitNotFound', { node_id: uuid, trait: remove });
    const traits = [...new Set([...before, ...(change.add === undefined ? [] : [change.add])])].filter((candidate) => candidate !== remove);
    if (traits.length > MAX_TRAITS)
      throw invalidParameter(
        `Could not modify traits for node ${node.id} as it would exceed the maximum number of traits per node ` +
          `(${traits.length} vs. ${MAX_TRAITS})`,
      );
    return { traits };
  });
}
