/** Trait-based networking: which ports and portgroups of a node get a VIF, by the traits of its instance. */
import { Fault } from '../../model/errors';
import type { PortgroupRecord, PortRecord, Vif } from '../../model/records';
import type { Task } from '../interfaces';
import type { FilteredNetwork, NetworkTrait, TraitAction } from '../../model/rules/trait-filter';
import { DEFAULT_TRAIT, DEFAULT_TRAIT_NAME } from './network-traits';
import { tenantVif } from './vifs';

/** A port or portgroup that gets the VIF, or ports that become a dynamic portgroup for it. */
type PlannedAttachment =
  | { readonly kind: 'port' | 'portgroup'; readonly uuid: string }
  | { readonly kind: 'group'; readonly ports: readonly PortRecord[] };
interface Free {
  readonly ports: readonly PortRecord[];
  readonly portgroups: readonly PortgroupRecord[];
}

/** The ports or portgroups that match: the first one, or with min_count up to max_count of them. Empty: too few match. */
function matching<R>(records: readonly R[], matches: (record: R) => boolean, { minCount, maxCount }: TraitAction): readonly R[] {
  const found: R[] = [];
  for (const record of records) {
    if (!matches(record)) continue;
    found.push(record);
    if (minCount === null || found.length === maxCount) break;
  }
  return found.length < (minCount ?? 1) ? [] : found;
}
/** All members of a portgroup share one physical network: that of the first port that matches. */
function groupOf(
  ports: readonly PortRecord[],
  { filter, minCount, maxCount }: TraitAction,
  network: FilteredNetwork,
): readonly PortRecord[] {
  const members: PortRecord[] = [];
  for (const port of ports) {
    if (!port.available_for_dynamic_portgroup || !filter({ kind: 'port', record: port }, null)) continue;
    if (members.length > 0 && members[0]!.physical_network !== port.physical_network) continue;
    members.push(port);
    if (members.length === maxCount) break;
  }
  const [first] = members;
  if (!first || members.length < minCount!) return [];
  return filter({ kind: 'port', record: first }, network) ? members : [];
}

function planTrait({ actions }: NetworkTrait, free: Free, network: FilteredNetwork): readonly PlannedAttachment[] {
  const newest = <R extends { readonly id: number }>(records: readonly R[]): readonly R[] => [...records].sort((a, b) => b.id - a.id);
  let [ports, portgroups] = [newest(free.ports), newest(free.portgroups)];
  return actions.flatMap((action): readonly PlannedAttachment[] => {
    if (action.action === 'bond_ports')
      throw new Fault('TraitBasedNetworkingException', { message: `Action '${action.action}' not yet implemented.` });
    if (action.action === 'attach_portgroup') {
      const found = matching(portgroups, (record) => action.filter({ kind: 'portgroup', record }, network), action);
      portgroups = portgroups.filter((portgroup) => !found.includes(portgroup));
      return found.map(({ uuid }) => ({ kind: 'portgroup', uuid }));
    }
    const isGroup = action.action === 'group_and_attach_ports';
    const found = isGroup
      ? groupOf(ports, action, network)
      : matching(ports, (record) => action.filter({ kind: 'port', record }, network), action);
    ports = ports.filter((port) => !found.includes(port));
    if (isGroup) return found.length === 0 ? [] : [{ kind: 'group', ports: found }];
    return found.map(({ uuid }) => ({ kind: 'port', uuid }));
  });
}

/** The traits of the instance, in their order; else the default one. Undefined: none applies. */
function applicable({ node, options }: Task, traits: readonly NetworkTrait[]): readonly NetworkTrait[] | undefined {
  const { traits: given } = node.instance_info;
  const own = traits.filter(({ name }) => Array.isArray(given) && given.includes(name));
  if (own.length > 0) return [...own].sort((a, b) => a.order - b.order);
  if (!options['conductor.trait_based_networking_enable_default_trait']) return undefined;
  return [traits.find(({ name }) => name === DEFAULT_TRAIT_NAME) ?? DEFAULT_TRAIT];
}
const texts = (given: unknown): readonly string[] =>
  Array.isArray(given) ? given.filter((candidate): candidate is string => typeof candidate === 'string') : [];

/**
 * The attachments of the first trait with a match. Empty: no trait matches, and the options allow that.
 * @throws Fault TBNNoTraitsApplicableToNode, TBNNoPortMatchesFound, VifAlreadyAttached
 */
export async function planAttachment(task: Task, vif: Vif, traits: readonly NetworkTrait[]): Promise<readonly PlannedAttachment[]> {
  const { uuid } = task.node;
  const portgroups = await task.portgroups();
  for (const [type, records] of [
    ['Port', task.ports],
    ['Portgroup', portgroups],
  ] as const)
    for (const record of records)
      if (tenantVif(record) === vif.id) throw new Fault('VifAlreadyAttached', { vif: vif.id, object_type: type, object_uuid: record.uuid });
  const none = (fault: Fault): readonly PlannedAttachment[] => {
    if (task.options['conductor.trait_based_networking_raise_when_no_match']) throw fault;
    task.log.warn('no network trait attaches the VIF', { vif: vif.id, reason: fault.message });
    return [];
  };
  const chosen = applicable(task, traits);
  if (!chosen) return none(new Fault('TBNNoTraitsApplicableToNode', { node: uuid }));
  const network = { name: typeof vif['name'] === 'string' ? vif['name'] : null, tags: texts(vif['tags']) };
  const free = {
    ports: task.ports.filter((port) => tenantVif(port) === undefined),
    portgroups: portgroups.filter((group) => tenantVif(group) === undefined),
  };
  for (const trait of chosen) {
    const planned = planTrait(trait, free, network);
    if (planned.length > 0) return planned;
  }
  return none(new Fault('TBNNoPortMatchesFound', { node: uuid, vif_id: vif.id }));
}
