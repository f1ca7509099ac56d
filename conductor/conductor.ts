/** All calls of the API to a conductor. Arguments and answers are plain JSON, so they can go over RPC. */
import type { HttpMethod, IndicatorTable, VirtualMediaType } from '../drivers/interfaces';
import type { Probes } from '../model/readiness';
import type { Reading } from './core/sensor-readings';
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
  PortChanges,
  PortgroupRecord,
  PortRecord,
  Vif,
} from '../model/records';
import type { Origin } from '../model/origin';
import type {
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
export type { Lookup, NewAllocation, ProvisionArgs, VendorAnswer, VolumeKind };

export interface Calls {
  /** Fills the interfaces by the hardware type; throws when the type or an interface is not enabled (400). */
  createNode(node: NewNode): Promise<NodeRecord>;
  /** The rules by state, protected, retired, interfaces against the hardware type; under the node's lock. */
  updateNode(uuid: string, changes: NodeChanges, resetInterfaces: boolean): Promise<NodeRecord>;
  deleteNode(uuid: string): Promise<void>;
  setMaintenance(uuid: string, on: boolean, reason?: string | null): Promise<void>;
  /** Per interface kind (all but vendor). */
  validate(uuid: string): Promise<Readonly<Record<string, Validation>>>;
  /** The part of the readiness that only the node's conductor knows: it asks the machine and image servers, each at most some seconds. */
  probe(uuid: string): Promise<Probes>;
  /** Returns when accepted (202): state and body are checked, the node is locked, the event is fired. The work continues under the lock. */
  provision(uuid: string, verb: string, args: ProvisionArgs): Promise<void>;
  /** Returns when accepted (202). */
  setPower(uuid: string, target: string, timeoutSeconds?: number): Promise<void>;
  /** The numbers that the sensors of the machine show now. */
  readSensors(uuid: string): Promise<readonly Reading[]>;
  getBootDevice(uuid: string): Promise<{ readonly boot_device: string | null; readonly persistent: boolean | null }>;
  setBootDevice(uuid: string, device: string, persistent: boolean): Promise<void>;
  supportedBootDevices(uuid: string): Promise<readonly string[]>;

  /** `{}` clears it. `objection`: the error of its schema, reported only if the node has RAID. Throws RaidNotSupported. */
  setRaidConfig(uuid: string, config: JsonObject, objection?: string): Promise<void>;
  /** Returns when accepted (202), as the next four. A later failure is in last_error. */
  setBootMode(uuid: string, mode: 'bios' | 'uefi'): Promise<void>;
  setSecureBoot(uuid: string, on: boolean): Promise<void>;
  setConsole(uuid: string, on: boolean): Promise<void>;
  attachVirtualMedia(uuid: string, device: VirtualMediaType, imageUrl: string, source: 'http' | 'local'): Promise<void>;
  /** `null`: all of them. */
  detachVirtualMedia(uuid: string, devices: readonly VirtualMediaType[] | null): Promise<void>;
  getVirtualMedia(uuid: string): Promise<readonly JsonObject[]>;
  /** `null`: the console is off. */
  consoleInfo(uuid: string): Promise<JsonObject | null>;
  injectNmi(uuid: string): Promise<void>;
  listIndicators(uuid: string): Promise<IndicatorTable>;
  getIndicator(uuid: string, component: string, indicator: string): Promise<string>;
  setIndicator(uuid: string, component: string, indicator: string, state: string): Promise<void>;
  /** Methods for the nodes of a hardware type. */
  vendorMethods(driver: string): Promise<Readonly<Record<string, VendorMethodInfo>>>;
  callVendor(uuid: string, method: string, http: HttpMethod, args: JsonObject): Promise<VendorAnswer>;
  driverVendorMethods(driver: string): Promise<Readonly<Record<string, VendorMethodInfo>>>;
  callDriverVendor(driver: string, method: string, http: HttpMethod, args: JsonObject): Promise<VendorAnswer>;

  /** One of the three changes. The API checked the traits. */
  setTraits(uuid: string, change: { readonly replace?: readonly string[]; readonly add?: string; readonly remove?: string }): Promise<void>;
  createPort(port: NewPort): Promise<PortRecord>;
  updatePort(uuid: string, changes: PortChanges): Promise<PortRecord>;
  deletePort(uuid: string): Promise<void>;
  /** Volume connectors and targets of a node: changed only while it is powered off. An empty change needs that too. */
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

  /** driver_info key → description. Throws DriverNotFound. */
  driverProperties(driver: string): Promise<Readonly<Record<string, string>>>;
  /** The token for a ramdisk that looks its node up: made at the first call, `******` at each later one. */
  agentToken(uuid: string): Promise<string>;
  heartbeat(uuid: string, beat: Heartbeat): Promise<void>;
  /** Answers the node of the inventory (in inspect wait, or just enrolled) with the token for its agent. The processing continues. */
  continueInspection(lookup: Lookup, inventory: Inventory, pluginData: JsonObject): Promise<NodeRecord>;

  /** The introspection service. All return when accepted. `manageBoot`: the conductor boots the machine. */
  startIntrospection(uuid: string, manageBoot: boolean): Promise<void>;
  abortIntrospection(uuid: string): Promise<void>;
  /** With the stored data, or with the given data. */
  reapplyIntrospection(uuid: string, data: JsonObject | null): Promise<void>;
  /** The report of a ramdisk. Answers its node when it is processed. */
  continueIntrospection(data: JsonObject): Promise<{ readonly uuid: string }>;
}

export type Conductor = Calls;
export interface ConductorApi extends Conductor {
  /** The same calls with the origin of a request. */
  from(origin: Origin): Conductor;
}
