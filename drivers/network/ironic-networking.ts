/** The network interface of Ironic's standalone networking: moves the switch ports of a node between VLANs, without Neutron. */
import { invalidParameter, Fault, reasonOf } from '../../model/errors';
import type { PortgroupRecord, PortRecord } from '../../model/records';
import type { ProvisionState } from '../../model/states';
import { SwitchError, type PortVlans, type Switches } from '../../wire/switches/switches';
import type { NetworkInterface, PortChange, Task } from '../interfaces';
import { noopNetwork } from '../noop';
import {
  isComplete,
  lagOf,
  lagProblem,
  shapeProblem,
  switchPortOfNetwork,
  switchPortOfPort,
  switchportOf,
  switchportProblem,
  type SwitchPort,
} from './switch-port';

type NetworkName = 'cleaning' | 'provisioning' | 'rescuing' | 'inspection' | 'servicing' | 'idle';

/** The network of [ironic_networking] or of the node's driver_info. @throws InvalidParameterValue */
function networkOf({ node, options }: Task, name: NetworkName): SwitchPort | undefined {
  const own = node.driver_info[`${name}_network`];
  const value = typeof own === 'string' && own !== '' ? own : options[`ironic_networking.${name}_network`];
  return value === '' ? undefined : switchPortOfNetwork(value, name);
}

interface Link {
  readonly switchId: string;
  readonly port: string;
}
function linkOf({ local_link_connection: link }: PortRecord): Link | undefined {
  const { switch_id: switchId, port_id: port } = link;
  return typeof switchId === 'string' && switchId !== '' && typeof port === 'string' && port !== '' ? { switchId, port } : undefined;
}

/** As `linkOf`. An incomplete link names no switch, so that the change fails: otherwise the machine would stay in its VLAN unnoticed. */
function attemptedLink(port: PortRecord): Link | undefined {
  const { switch_id: switchId, port_id: name } = port.local_link_connection;
  if (Object.keys(port.local_link_connection).length === 0) return undefined;
  return linkOf(port) ?? { switchId: typeof switchId === 'string' ? switchId : '', port: typeof name === 'string' ? name : '' };
}

function switchesOf({ connections }: Task): Switches {
  if (connections.switches) return connections.switches;
  throw new Fault('NetworkError', {
    message: 'No switch drivers are available. Please configure enabled_switch_drivers in the networking section.',
  });
}
const vlansOf = ({ mode, nativeVlan, allowedVlans }: SwitchPort, idle: SwitchPort | undefined): PortVlans => ({
  mode,
  nativeVlan,
  allowedVlans: allowedVlans ?? [],
  defaultVlan: idle?.nativeVlan ?? null,
});

/** The switch port configuration of a port in a network (null: the tenant's): that of the network, otherwise the port's own. */
function portIn(task: Task, port: PortRecord, network: NetworkName | null): SwitchPort | undefined {
  const common = network === null ? undefined : networkOf(task, network);
  if (isComplete(common)) return common;
  const own = switchPortOfPort(switchportOf(port));
  return isComplete(own) ? own : undefined;
}
interface Place extends Link {
  readonly uuid: string;
  readonly wanted: SwitchPort;
}
const placesOf = (task: Task, network: NetworkName | null): readonly Place[] =>
  task.ports.flatMap((port) => {
    const link = attemptedLink(port);
    // Only the ports themselves define the tenant's network.
    if (link === undefined || (network === null && switchportOf(port) === undefined)) return [];
    const wanted = portIn(task, port, network);
    return wanted === undefined ? [] : [{ ...link, uuid: port.uuid, wanted }];
  });

const failure = (message: string, cause: unknown): Fault => new Fault('NetworkError', { message }, { cause });
/** Starts all changes at once; the worker applies those of one switch one by one. Throws the first failure in the order of the ports. */
async function add(task: Task, network: NetworkName | null): Promise<void> {
  const idle = networkOf(task, 'idle');
  const places = placesOf(task, network);
  if (places.length === 0) return;
  const switches = switchesOf(task);
  const ended = await Promise.allSettled(
    places.map(({ switchId, port, wanted }) => switches.update(switchId, port, vlansOf(wanted, idle), task.signal)),
  );
  task.signal.throwIfAborted();
  for (const [index, result] of ended.entries()) {
    if (result.status === 'fulfilled') continue;
    throw failure(
      `Failed to configure ${network ?? 'tenant'} network for port ${places[index]!.uuid}: ${reasonOf(result.reason)}`,
      result.reason,
    );
  }
}
/** Tries every port, then throws one error with all failures. */
async function remove(task: Task, network: NetworkName | null): Promise<void> {
  const idle = networkOf(task, 'idle');
  const places = placesOf(task, network);
  if (places.length === 0) return;
  const switches = switchesOf(task);
  const ended = await Promise.allSettled(
    places.map(({ switchId, port, wanted }) => switches.reset(switchId, port, vlansOf(wanted, idle), task.signal)),
  );
  task.signal.throwIfAborted();
  const errors = ended.flatMap((result, index) =>
    result.status === 'fulfilled'
      ? []
      : [`Failed to reset ${network ?? 'tenant'} network for port ${places[index]!.uuid}: ${reasonOf(result.reason)}`],
  );
  if (errors.length === 0) return;
  const what = network === null ? 'ports for tenant network' : `${network} network`;
  throw failure(`Failed to reset ${what}, errors: [${errors.map((error) => JSON.stringify(error)).join(', ')}]`, errors);
}

/** The network of a state; null: the tenant's. */
const NETWORKS: Readonly<Partial<Record<ProvisionState, NetworkName | null>>> = {
  inspecting: 'inspection',
  'inspect wait': 'inspection',
  cleaning: 'cleaning',
  'clean wait': 'cleaning',
  deploying: 'provisioning',
  'wait call-back': 'provisioning',
  active: null,
  rescue: 'rescuing',
  rescuing: 'rescuing',
  'rescue wait': 'rescuing',
  servicing: 'servicing',
  'service wait': 'servicing',
};

/** @throws InvalidParameterValue */
function validatePort({ node }: Task, port: PortRecord): void {
  const switchport = switchportOf(port);
  const problem = switchport === undefined ? shapeProblem(port.extra['switchport']) : switchportProblem(switchport);
  if (problem !== undefined) throw invalidParameter(`Invalid switchport configuration for port ${port.uuid}: ${problem}`);
  if (switchport === undefined) return;
  if (port.pxe_enabled && switchport['mode'] !== 'access')
    throw invalidParameter(
      `Port ${port.uuid} is PXE-enabled but has switchport mode '${String(switchport['mode'])}'. PXE-enabled ports must use 'access' mode when switchport configuration is present.`,
    );
  const link = port.local_link_connection;
  if (Object.keys(link).length === 0) {
    // The LLDP data of the inspection will add local_link_connection.
    if (NETWORKS[node.provision_state] === 'inspection' || node.provision_state === 'inspect failed') return;
    throw invalidParameter(
      `Port ${port.uuid} has switchport configuration but is missing local_link_connection in state: ${node.provision_state}.`,
    );
  }
  const missing = ['switch_id', 'port_id'].filter((name) => !link[name]).map((name) => `'${name}'`);
  if (missing.length > 0)
    throw invalidParameter(`Port ${port.uuid} local_link_connection missing required field(s): ${missing.join(', ')}`);
}

/** The member ports of a link aggregation group (LAG) need a switchport and a link to a switch. @throws InvalidParameterValue */
function validatePortgroup({ ports }: Task, portgroup: PortgroupRecord): void {
  const lag = lagOf(portgroup);
  const problem = lag === undefined ? shapeProblem(portgroup.extra['lag']) : lagProblem(lag);
  if (problem !== undefined) throw invalidParameter(`Invalid LAG configuration for portgroup ${portgroup.uuid}: ${problem}`);
  if (lag === undefined) return;
  const members = ports.filter(({ portgroup_uuid: own }) => own === portgroup.uuid);
  if (members.length === 0) throw invalidParameter(`Portgroup ${portgroup.uuid} has LAG configuration but no member ports`);
  const named = (lacking: readonly PortRecord[]): string => lacking.map(({ uuid }) => uuid).join(', ');
  const plain = members.filter((port) => switchportOf(port) === undefined);
  const apart = members.filter((port) => switchportOf(port) !== undefined && linkOf(port) === undefined);
  const errors = [
    ...(plain.length === 0 ? [] : [`member ports ${named(plain)} lack switchport configuration`]),
    ...(apart.length === 0 ? [] : [`member ports ${named(apart)} lack proper local_link_connection with switch_id and port_id fields`]),
  ];
  if (errors.length > 0) throw invalidParameter(`Portgroup ${portgroup.uuid} has LAG configuration but: ${errors.join('; ')}`);
}

/** Finds an invalid network before the boot. A lack of ports is only logged: inspection may add them. @throws InvalidParameterValue */
function validateNetwork(task: Task, network: NetworkName): void {
  networkOf(task, network);
  if (placesOf(task, network).length > 0) return;
  task.log.warn('no port of the node has a switch port in a network', { network });
}

/** Moves a port's former switch port back to the idle network, and its new switch port into the network of the provision state. */
async function portChanged(task: Task, { before, after }: PortChange): Promise<void> {
  const same = (name: 'extra' | 'local_link_connection'): boolean => JSON.stringify(before[name]) === JSON.stringify(after[name]);
  if (same('extra') && same('local_link_connection')) return;
  const [had, has] = [switchportOf(before), switchportOf(after)];
  const [old, now] = [linkOf(before), linkOf(after)];
  const isMoved = old !== undefined && JSON.stringify(old) !== JSON.stringify(now);
  const state = NETWORKS[task.node.provision_state];
  const network = state === undefined ? 'idle' : state;
  const idle = networkOf(task, 'idle');
  // Without a configured idle network, the switch port keeps its configuration.
  const wantedOf = (port: PortRecord): SwitchPort | undefined =>
    network === 'idle' ? (isComplete(idle) ? idle : undefined) : portIn(task, port, network);
  try {
    if (had && old && (isMoved || !has)) {
      const wanted = wantedOf(before);
      if (wanted) await switchesOf(task).reset(old.switchId, old.port, vlansOf(wanted, idle), task.signal);
    }
    if (!has || !now || (JSON.stringify(had) === JSON.stringify(has) && !isMoved)) return;
    validatePort(task, after);
    const wanted = wantedOf(after);
    if (wanted) await switchesOf(task).update(now.switchId, now.port, vlansOf(wanted, idle), task.signal);
  } catch (error) {
    throw error instanceof SwitchError ? failure(error.message, error) : error;
  }
}

export const ironicNetworking: NetworkInterface = {
  ...noopNetwork,
  sharesNetwork: undefined,
  properties: Object.fromEntries(
    ['cleaning', 'provisioning', 'rescuing', 'inspection', 'servicing', 'idle'].map((name) => [
      `${name}_network`,
      { description: `Switch port configuration for the ${name} network, as {access|trunk}/native_vlan=VLAN_ID. Optional.` },
    ]),
  ),
  cannotLoad: (options) =>
    options['ironic_networking.enabled_switch_drivers'].length === 0
      ? 'set [ironic_networking]enabled_switch_drivers and switch_config_file'
      : undefined,
  validate: async (task) => {
    for (const port of task.ports) validatePort(task, port);
    for (const portgroup of await task.portgroups()) validatePortgroup(task, portgroup);
  },
  validateInspection: async (task) => validateNetwork(task, 'inspection'),
  validateRescue: async (task) => validateNetwork(task, 'rescuing'),
  addProvisioningNetwork: (task) => add(task, 'provisioning'),
  removeProvisioningNetwork: (task) => remove(task, 'provisioning'),
  addCleaningNetwork: (task) => add(task, 'cleaning'),
  removeCleaningNetwork: (task) => remove(task, 'cleaning'),
  addInspectionNetwork: (task) => add(task, 'inspection'),
  removeInspectionNetwork: (task) => remove(task, 'inspection'),
  addRescuingNetwork: (task) => add(task, 'rescuing'),
  removeRescuingNetwork: (task) => remove(task, 'rescuing'),
  addServicingNetwork: (task) => add(task, 'servicing'),
  removeServicingNetwork: (task) => remove(task, 'servicing'),
  configureTenantNetworks: (task) => add(task, null),
  unconfigureTenantNetworks: (task) => remove(task, null),
  portChanged,
};
