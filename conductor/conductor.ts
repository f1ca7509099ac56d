/** All calls of the API to a conductor. Arguments and results are plain JSON, so they can go over RPC. */
import type { WebSocket } from 'ws';
import type { HttpMethod, IndicatorTable, Screen, VirtualMediaType } from '../drivers/interfaces';
import type { Screens } from '../drivers/screens';
import type { Probes } from '../model/readiness';
import type { Reading } from '../drivers/common/sensor-readings';
import type {
  AllocationRecord,
  ChangesOf,
  Heartbeat,
  Inventory,
  JsonObject,
  NewNode,
  NewPort,
  NodeChanges,
  NodeRecord,
  Outage,
  OutageRequest,
  PortChanges,
  PortgroupRecord,
  PortRecord,
  StepRecord,
  Vif,
} from '../model/records';
import type { BmcEvent } from '../model/rules/bmc-events';
import type { DefaultValues } from '../model/rules/default-config';
import type { Origin } from '../model/origin';
import type { AgentNode, ConfigScope } from '../store/store';
import { AlreadyRead } from './core/call-types';
import type {
  ConsoleLogPart,
  Validation,
  ProvisionArgs,
  VendorMethodInfo,
  VendorAnswer,
  Lookup,
  VolumeRecords,
  VolumeKind,
  NewAllocation,
} from './core/call-types';

export type { HttpMethod, VirtualMediaType };
export type { Lookup, ProvisionArgs, VendorAnswer };
export { AlreadyRead };

export interface Calls {
  /** Missing interfaces become the defaults of the hardware type. Throws when the type or an interface is not enabled (400). */
  createNode(node: NewNode): Promise<NodeRecord>;
  /** Checks the state, `protected` and `retired`, and the interfaces against the hardware type. Reserves nothing; throws NodeLocked. */
  updateNode(uuid: string, changes: NodeChanges, resetInterfaces: boolean, read?: AlreadyRead<NodeRecord>): Promise<NodeRecord>;
  deleteNode(uuid: string): Promise<void>;
  setMaintenance(uuid: string, on: boolean, reason?: string | null): Promise<void>;
  /** @param by the user; null: the server authenticates nobody */
  declareOutOfService(uuid: string, request: OutageRequest, by: string | null): Promise<Outage>;
  endOutOfService(uuid: string): Promise<void>;
  /** Interface kind (all but vendor) → whether the node has what the interface needs. */
  validate(uuid: string): Promise<Readonly<Record<string, Validation>>>;
  /** The readiness checks that only the node's conductor can make. It waits at most some seconds for the machine and the image servers. */
  probe(uuid: string): Promise<Probes>;
  /**
   * Returns when accepted (202): state and body are checked, the node is locked, the event is fired. The work continues under the lock.
   * @param read the node as the request found it; it may have changed since
   */
  provision(uuid: string, verb: string, args: ProvisionArgs, read?: AlreadyRead<NodeRecord>): Promise<void>;
  /** The default values of a node's steps, without secrets, beside what its machine has now. */
  readDefaults(uuid: string): Promise<DefaultValues>;
  /**
   * Checks default steps: the interfaces of the nodes of the scope have them, with these arguments. Without nodes, any interface that is
   * enabled. Throws InvalidParameterValue with the name of the field.
   */
  checkDefaultConfig(scope: ConfigScope, steps: readonly StepRecord[]): Promise<void>;
  /** Returns when accepted (202). */
  setPower(uuid: string, target: string, timeoutSeconds?: number): Promise<void>;
  /** The numbers that the sensors of the machine show now. */
  readSensors(uuid: string): Promise<readonly Reading[]>;
  /** Events that the node's BMC has sent: the machine is read soon. Returns whether it will be. */
  noteBmcEvents(uuid: string, events: readonly BmcEvent[]): Promise<boolean>;
  getBootDevice(uuid: string): Promise<{ readonly boot_device: string | null; readonly persistent: boolean | null }>;
  setBootDevice(uuid: string, device: string, persistent: boolean): Promise<void>;
  supportedBootDevices(uuid: string): Promise<readonly string[]>;

  /** `{}` clears the configuration. `objection`: its schema error, thrown only if the driver supports RAID. Throws RaidNotSupported. */
  setRaidConfig(uuid: string, config: JsonObject, objection?: string): Promise<void>;
  /** Returns when accepted (202), as do the next four calls. A later failure is in last_error. */
  setBootMode(uuid: string, mode: 'bios' | 'uefi'): Promise<void>;
  setSecureBoot(uuid: string, on: boolean): Promise<void>;
  setConsole(uuid: string, on: boolean): Promise<void>;
  attachVirtualMedia(uuid: string, device: VirtualMediaType, imageUrl: string, source: 'http' | 'local'): Promise<void>;
  /** `null`: all devices. */
  detachVirtualMedia(uuid: string, devices: readonly VirtualMediaType[] | null): Promise<void>;
  getVirtualMedia(uuid: string): Promise<readonly JsonObject[]>;
  /** `null`: the console is off. */
  consoleInfo(uuid: string): Promise<JsonObject | null>;
  /** What the machine said on its serial line. @param offset null: the last bytes @param limit bytes */
  readConsoleLog(uuid: string, offset: number | null, limit: number): Promise<ConsoleLogPart>;
  injectNmi(uuid: string): Promise<void>;
  listIndicators(uuid: string): Promise<IndicatorTable>;
  getIndicator(uuid: string, component: string, indicator: string): Promise<string>;
  setIndicator(uuid: string, component: string, indicator: string, state: string): Promise<void>;
  /** Methods for the nodes of a hardware type. */
  vendorMethods(driver: string): Promise<Readonly<Record<string, VendorMethodInfo>>>;
  callVendor(uuid: string, method: string, http: HttpMethod, args: JsonObject): Promise<VendorAnswer>;
  driverVendorMethods(driver: string): Promise<Readonly<Record<string, VendorMethodInfo>>>;
  callDriverVendor(driver: string, method: string, http: HttpMethod, args: JsonObject): Promise<VendorAnswer>;

  /** `change` has one of the three keys. The API has checked the traits already. */
  setTraits(uuid: string, change: { readonly replace?: readonly string[]; readonly add?: string; readonly remove?: string }): Promise<void>;
  createPort(port: NewPort): Promise<PortRecord>;
  updatePort(uuid: string, changes: PortChanges): Promise<PortRecord>;
  deletePort(uuid: string): Promise<void>;
  /** A volume connector or target. Throws InvalidStateRequested unless its node is powered off, also for an empty change. */
  updateVolume<Kind extends VolumeKind>(kind: Kind, uuid: string, changes: ChangesOf<VolumeRecords[Kind]>): Promise<VolumeRecords[Kind]>;
  deleteVolume(kind: VolumeKind, uuid: string): Promise<void>;

  updatePortgroup(uuid: string, changes: ChangesOf<PortgroupRecord>): Promise<PortgroupRecord>;
  deletePortgroup(uuid: string): Promise<void>;
  listVifs(uuid: string): Promise<readonly Vif[]>;
  attachVif(uuid: string, vif: Vif): Promise<void>;
  detachVif(uuid: string, id: string): Promise<void>;

  /** Finds a node in the background; with `node` (its UUID) the allocation is for that node, which has an instance already. */
  createAllocation(allocation: NewAllocation, node?: string): Promise<AllocationRecord>;
  deleteAllocation(uuid: string): Promise<void>;

  /** Removes the record and its file. Throws RecordNotFound, and Conflict while the disk is being saved. */
  deleteSnapshot(uuid: string): Promise<void>;

  /** driver_info key → description. Throws DriverNotFound. */
  driverProperties(driver: string): Promise<Readonly<Record<string, string>>>;
  /** @param read the node as the request found it */
  heartbeat(uuid: string, beat: Heartbeat, read?: AlreadyRead<AgentNode>): Promise<void>;
  /** Returns the node of the inventory (in inspect wait, or just enrolled) with the token for its agent. The processing continues. */
  continueInspection(lookup: Lookup, inventory: Inventory, pluginData: JsonObject): Promise<NodeRecord>;

  /** The introspection service. All return when accepted. `manageBoot`: the conductor boots the machine. */
  startIntrospection(uuid: string, manageBoot: boolean): Promise<void>;
  abortIntrospection(uuid: string): Promise<void>;
  /** `null`: processes the stored data again. */
  reapplyIntrospection(uuid: string, data: JsonObject | null): Promise<void>;
  /** Processes the report of a ramdisk, then returns its node. */
  continueIntrospection(data: JsonObject): Promise<{ readonly uuid: string }>;
}

export type Conductor = Calls;
export interface ConductorApi extends Conductor {
  /** The same calls with the origin of a request. */
  from(origin: Origin): Conductor;
}

/** The screens of the machines of this process. */
export interface LocalScreens extends Pick<Screens, 'enter'> {
  /** Connects to the screen of a node, whose console is on. @throws Fault */
  open(uuid: string, signal: AbortSignal): Promise<Screen>;
}
/** Where the screen of a node is: in this process, or in the one of the node's conductor. */
export interface ScreenPlaces {
  /** Absent: this process has no machines. */
  readonly local?: LocalScreens | undefined;
  /**
   * Opens a WebSocket to the conductor of a node, paused. Undefined: that is the one of this process. Absent: there is no other process.
   * @throws Fault, Error
   */
  readonly connect?:
    | ((uuid: string, path: string, protocols: readonly string[], signal: AbortSignal) => Promise<WebSocket | undefined>)
    | undefined;
}
