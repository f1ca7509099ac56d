/**
 * VIFs, the virtual ports of tenants, on the ports and portgroups of a node. Lists the attached VIFs, and finds the port or portgroup for a
 * new VIF. For network interfaces that store VIFs in `internal_info`, where clients see them.
 */
import { Fault } from '../../model/errors';
import type { PortgroupRecord, PortRecord, Vif } from '../../model/records';
import type { PortChange, PortgroupChange } from '../interfaces';

type PortOrPortgroup =
  | { readonly kind: 'port'; readonly record: PortRecord }
  | { readonly kind: 'portgroup'; readonly record: PortgroupRecord };
/** The ports and portgroups of one node. */
interface Carriers {
  readonly ports: readonly PortRecord[];
  readonly portgroups: readonly PortgroupRecord[];
}

export const TENANT_VIF = 'tenant_vif_port_id';
/** A machine is in one network at a time. A temporary network takes precedence over the tenant's. */
const NETWORKS = ['cleaning', 'provisioning', 'rescuing', 'inspection', 'servicing'].map((name) => `${name}_vif_port_id`);

export const tenantVif = ({ internal_info: info }: PortRecord | PortgroupRecord): string | undefined =>
  typeof info[TENANT_VIF] === 'string' ? info[TENANT_VIF] : undefined;

/** The VIF that a port or portgroup uses now. */
export function currentVif({ internal_info: info }: PortRecord | PortgroupRecord): string | undefined {
  const key = [...NETWORKS, TENANT_VIF].find((name) => name in info);
  return key === undefined ? undefined : ((info[key] as string | null) ?? undefined);
}

export const attachedVifs = ({ ports, portgroups }: Carriers): readonly Vif[] =>
  [...ports, ...portgroups].flatMap((port) => tenantVif(port) ?? []).map((id) => ({ id }));

/** Throws VifNotAttached. */
export function portOrPortgroupOf(id: string, node: string, { ports, portgroups }: Carriers): PortOrPortgroup {
  const portgroup = portgroups.find((candidate) => tenantVif(candidate) === id);
  if (portgroup) return { kind: 'portgroup', record: portgroup };
  const port = ports.find((candidate) => tenantVif(candidate) === id);
  if (port) return { kind: 'port', record: port };
  throw new Fault('VifNotAttached', { vif: id, node });
}

/** Whether a port carries a VIF. Throws VifAlreadyAttached when it is this one. */
function isTaken(record: PortRecord | PortgroupRecord, kind: 'Port' | 'Portgroup', id: string): boolean {
  const attached = tenantVif(record);
  if (attached === id) throw new Fault('VifAlreadyAttached', { vif: id, object_type: kind, object_uuid: record.uuid });
  return attached !== undefined;
}

interface Candidate {
  readonly carrier: PortOrPortgroup;
  readonly network: string | null;
  readonly pxe: boolean;
}
const ofPort = (record: PortRecord): Candidate => ({
  carrier: { kind: 'port', record },
  network: record.physical_network,
  pxe: record.pxe_enabled,
});

/** A portgroup is one candidate unless one of its ports carries a VIF itself. In that case its free ports are candidates. */
function candidates(
  { id, port_uuid: only, portgroup_uuid: group }: Vif,
  networks: readonly string[],
  { ports, portgroups }: Carriers,
): Candidate[] {
  const selected = ports.filter(({ uuid }) => !only || uuid === only);
  const split = new Set<string | null>();
  const free = selected.filter((port) => {
    const { portgroup_uuid: own, physical_network: network } = port;
    if (!isTaken(port, 'Port', id)) return networks.length === 0 || network === null || networks.includes(network);
    split.add(own);
    return false;
  });
  const alone = free.filter(({ portgroup_uuid: own }) => own === null && (only || !group));
  if (only) return alone.map(ofPort);
  const grouped = portgroups
    .filter((portgroup) => (!group || portgroup.uuid === group) && !isTaken(portgroup, 'Portgroup', id))
    .flatMap((record): Candidate[] => {
      const members = free.filter(({ portgroup_uuid: own }) => own === record.uuid);
      if (split.has(record.uuid)) return group ? [] : members.map(ofPort);
      const [first] = members;
      return first ? [{ carrier: { kind: 'portgroup', record }, network: first.physical_network, pxe: true }] : [];
    });
  return [...alone.map(ofPort), ...grouped];
}

/**
 * The port or portgroup for a VIF. Preferred are the VIF's physical networks, then portgroups over ports, then ports that boot.
 * @param networks the physical networks that the VIF can be on; empty: any
 * @throws Fault VifAlreadyAttached, NoFreePhysicalPorts
 */
export function choosePortOrPortgroup(vif: Vif, networks: readonly string[], carriers: Carriers): PortOrPortgroup {
  const rank = ({ carrier, network, pxe }: Candidate): number =>
    (network !== null && networks.includes(network) ? 4 : 0) + (carrier.kind === 'portgroup' ? 2 : 0) + (pxe ? 1 : 0);
  const [best] = candidates(vif, networks, carriers).sort((left, right) => rank(right) - rank(left));
  if (!best) throw new Fault('NoFreePhysicalPorts', { vif: vif.id });
  return best.carrier;
}

/** A port of a portgroup without standalone ports cannot boot or carry a VIF by itself. Throws Conflict. */
export function checkPortChange({ before, after, portgroup }: PortChange): void {
  const vif = tenantVif(after);
  const concerns = before.pxe_enabled !== after.pxe_enabled || before.portgroup_uuid !== after.portgroup_uuid || vif !== undefined;
  if (!portgroup || portgroup.standalone_ports_supported || !concerns) return;
  const reasons = [
    ...(after.pxe_enabled ? ["'pxe_enabled' was set to True"] : []),
    ...(vif === undefined ? [] : [`VIF ${vif} is attached to the port`]),
  ];
  if (reasons.length > 0)
    throw new Fault('Conflict', {
      message:
        `Port group ${portgroup.uuid} doesn't support standalone ports. This port ${after.uuid} cannot be  a member of that port group ` +
        `because of: ${reasons.join(', ')}`,
    });
}

/** The same check for a change of the portgroup. Throws Conflict. */
export function checkPortgroupChange({ before, after, members }: PortgroupChange): void {
  if (after.standalone_ports_supported || !before.standalone_ports_supported) return;
  for (const port of members) {
    const vif = tenantVif(port);
    const reasons = [
      ...(port.pxe_enabled ? ["'pxe_enabled' is set to True"] : []),
      ...(vif === undefined ? [] : [`VIF ${vif} is attached to this port`]),
    ];
    if (reasons.length > 0)
      throw new Fault('Conflict', {
        message:
          `standalone_ports_supported can not be set to False, because the port group ${after.uuid} ` +
          `contains port with ${reasons.join(', ')}`,
      });
  }
}
