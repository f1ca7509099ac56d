/** What a driver is: objects of tables and functions. A driver gets a Task, says how its work stands, and never moves the node. */
import type { Clock } from '../model/clock';
import type { Log } from '../model/log';
import type { Metrics } from '../model/metrics';
import type {
  BiosSettingRecord,
  Boots,
  FirmwareComponentRecord,
  Heartbeat,
  InterfaceKind,
  Inventory,
  JsonObject,
  Media,
  NodeChanges,
  NodeRecord,
  PortgroupRecord,
  PortRecord,
  Vif,
} from '../model/records';
import type { ProvisionState } from '../model/states';
import type { IpmiPool, SolPool } from '../wire/ipmi/client';
import type { IntrospectionClient } from '../wire/http/introspection';
import type { SdrCache } from '../wire/ipmi/records/sdr-repository';
import type { RedfishPool } from '../wire/redfish';
import type { Consoles } from './consoles';
import type { DriverOptions } from './options';

/** Bounded: the entry that was used longest ago goes first. */
export interface KeyedCache<Value> {
  get(key: string): Value | undefined;
  put(key: string, value: Value): void;
}
/** Sessions to BMCs, and what was read from them, shared by all tasks of a conductor. */
export interface Connections {
  readonly ipmi: IpmiPool;
  /** Sensor data records of BMCs. Absent: each task reads them. */
  readonly sdrCache?: SdrCache;
  readonly redfish: RedfishPool;
  /** Attribute registries of BIOSes. Absent: each task reads them. */
  readonly biosRegistries?: KeyedCache<BiosAttributeRegistry>;
  /** Absent: this process serves none. */
  readonly consoles?: Consoles & SolPool;
  /** Absent: [discoverd] names none. */
  readonly introspection?: IntrospectionClient;
}

/** A node that this caller holds. A driver gets one, and never makes one. `node` is always as last saved. */
export interface Task {
  readonly node: NodeRecord;
  readonly ports: readonly PortRecord[];
  readonly driver: Driver;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  readonly boots: Boots;
  readonly media: Media;
  readonly random: (bytes: number) => Buffer;
  readonly options: DriverOptions;
  readonly connections: Connections;
  /** The request id that a client gave for a chain of requests over services (`X-Openstack-Request-Id`), if one did. */
  readonly globalRequestId?: string;
  /**
   * True: the node is surely held still. Else it resolves once that is so, and throws when it is not: nothing may be sent then. Asked before
   * each call of an interface and each request to a BMC or an agent; a task that only looks has none.
   */
  stillHeld?(): true | Promise<void>;
  /** Shallow: whole columns. For `driver_internal_info` see `saveInternal`. */
  save(changes: NodeChanges): Promise<void>;
  /** Sets keys of driver_internal_info; `undefined` removes one. */
  saveInternal(keys: Readonly<Record<string, unknown>>): Promise<void>;
  /** Tells those who listen to events how far the running step is. Absent: nobody can. */
  reportProgress?(kind: SavedKind, step: PlannedStep, percent: number): Promise<void>;
  /** What the machine's BIOS settings are now: others than these are forgotten. */
  saveBiosSettings(settings: readonly BiosSetting[]): Promise<void>;
  /** What firmware the machine has now; components that it does not name stay as they were. */
  saveFirmwareComponents(components: readonly FirmwareComponent[]): Promise<void>;
  /** What the vendor data of the instance's config drive has for a recorder on its host: a new token at each call. Undefined: none is wanted. */
  recorderData(): Promise<JsonObject | undefined>;
  /** Changes the machine's power as the conductor does: forgets the agent (token, URL), sets target and state, waits until it is so. */
  power(target: Power, timeoutSeconds?: number): Promise<void>;
}

/** A setting of the BIOS by its name; what is not known of it stays away. */
export type BiosSetting = Pick<BiosSettingRecord, 'name' | 'value'> & Partial<Omit<BiosSettingRecord, 'created_at' | 'updated_at'>>;

/** What a BMC publishes about a BIOS attribute besides its value. */
export type BiosAttributeFacts = Required<Omit<BiosSetting, 'name' | 'value'>>;
/** By the attribute's name. */
export type BiosAttributeRegistry = ReadonlyMap<string, BiosAttributeFacts>;

/** A piece of firmware by its name: bios, bmc, nic:SERIAL. */
export type FirmwareComponent = Pick<FirmwareComponentRecord, 'component' | 'vendor' | 'model' | 'serial_number'> & {
  readonly current_version: string;
};

/** A driver never moves the provision state: it says how its work stands, and the conductor moves it. */
export type Outcome =
  /** `agentThere`: nothing was booted, since the agent is in the machine already; its steps can be had now. */
  | { readonly kind: 'done'; readonly agentThere?: true }
  /**
   * Over when the agent's next heartbeat says so, or when asked again after `pollEvery` seconds. `quiet`: asking showed nothing new, so the
   * time that the wait may take goes on.
   */
  | { readonly kind: 'wait'; readonly pollEvery?: number; readonly quiet?: true }
  | { readonly kind: 'failed'; readonly reason: string };
export const done: Outcome = { kind: 'done' };
export const agentThere: Outcome = { kind: 'done', agentThere: true };
export const wait: Outcome = { kind: 'wait' };
export const failed = (reason: string): Outcome => ({ kind: 'failed', reason });

export type StepKind = 'deploy' | 'clean' | 'service' | 'verify';
/** Kinds whose list is saved on the node; verify steps run in one go. */
export type SavedKind = Exclude<StepKind, 'verify'>;
export interface StepArgument {
  readonly description: string;
  readonly required?: boolean;
  /** What JSON it is; absent: any. Others are refused before anything is touched, and clients are not shown it. */
  readonly type?: 'string' | 'integer' | 'boolean' | 'list' | 'object';
}
export interface Step {
  readonly step: string;
  /** Absent: not a step of that kind. 0: only when asked for. */
  readonly priority: Readonly<Partial<Record<StepKind, number>>>;
  readonly args?: Readonly<Record<string, StepArgument>>;
  readonly abortable?: boolean;
  readonly requiresRamdisk?: boolean;
  /** After a conductor died while it ran, running it again is right (it asks where the work stands). Else the node fails. */
  readonly resumable?: boolean;
  run(task: Task, args: JsonObject): Promise<Outcome>;
  /**
   * How it stands, of a step that waits by itself for its machine: asked every `pollEvery` seconds, on another conductor too. Heartbeats do not
   * end such a step. Throws as `run`.
   */
  poll?(task: Task, args: JsonObject): Promise<Outcome>;
  /** The agent's return is news: `poll` is asked at its heartbeats too, and may end the step. */
  readonly pollAtHeartbeat?: boolean;
  /** A step that the agent ran for it is over: what it answered. Throws when that cannot be. */
  finish?(task: Task, result: unknown): Promise<void>;
}

/** A step as it stands in a node's saved list (`driver_internal_info.clean_steps`, …): the shape that clients see. */
export interface PlannedStep {
  readonly step: string;
  readonly interface: string;
  readonly priority: number;
  readonly args?: JsonObject;
  readonly abortable?: boolean;
  readonly requires_ramdisk?: boolean;
  readonly reboot_requested?: boolean;
  readonly argsinfo?: JsonObject | null;
  readonly execute_on_child_nodes?: boolean;
  /** UUIDs; absent: all children. */
  readonly limit_child_node_execution?: readonly string[];
}

/** A key of driver_info: `GET /v1/drivers/X/properties`, `validate` and masking read it. */
export interface Property {
  readonly description: string;
  readonly required?: boolean;
  readonly secret?: boolean;
}

/** What every interface has: its driver_info as a table, its steps as a table. */
export interface Interface {
  readonly properties?: Readonly<Record<string, Property>>;
  /** Beyond what `properties` says. Throws Fault InvalidParameterValue / MissingParameterValue / UnsupportedDriverExtension. */
  validate?(task: Task): Promise<void>;
  readonly steps?: readonly Step[];
  readonly periodics?: readonly InterfacePeriodic[];
  /** Why it cannot be used as the operator set it up: the conductor does not start then. */
  cannotLoad?(options: DriverOptions): string | undefined;
}
/** Work that comes again on the nodes of an interface. Safe to run twice: it asks, and needs no memory but the node's. */
export interface InterfacePeriodic {
  readonly name: string;
  /** Seconds between runs; 0: never. */
  every(options: DriverOptions): number;
  readonly states: readonly ProvisionState[];
  /** Of nodes in maintenance too. */
  readonly inMaintenance?: true;
  /** Which nodes in these states; absent: all. */
  only?(node: NodeRecord): boolean;
  /** How the step stands that runs on the waiting node; undefined: no step is meant. */
  run?(task: Task): Promise<Outcome | undefined>;
  /**
   * In the place of `run`, for nodes that others work on meanwhile: asked without holding the node (the task has no ports), which is held
   * only for what is news. Throws ServiceAway.
   */
  check?(task: Task): Promise<CheckResult | undefined>;
  /** Whether `look` needs the node as it is now: nodes of a round were read at its beginning. */
  needsFreshNode?(node: NodeRecord): boolean;
}
/** What a look at a node that nobody holds showed. */
export interface CheckResult {
  /** How its work stands; absent: nothing new. */
  readonly outcome?: Outcome;
  /** Keys of driver_internal_info to set, `undefined` removes one; before the outcome counts. */
  readonly internal?: Readonly<Record<string, unknown>>;
}
/** Whom a look asks does not answer: the other nodes of the round need not be asked. */
export class ServiceUnavailable extends Error {}

export type Power = 'power on' | 'power off' | 'rebooting' | 'soft power off' | 'soft rebooting';
export interface PowerInterface extends Interface {
  /**
   * It works through the agent: which must not be forgotten before it took the order, and whose machine is not seen again before the
   * agent is back.
   */
  readonly throughAgent?: true;
  readonly supported: readonly Power[];
  /** Null: it cannot be told (fake hardware whose power was never set). */
  get(task: Task): Promise<'power on' | 'power off' | null>;
  /** `get`, with what else the same answer of the BMC says. Absent: it says nothing else. */
  getStatus?(task: Task): Promise<MachineStatus>;
  /** Asks the BMC; returns when it took the order. The caller (Task.power) waits for the state. */
  set(task: Task, state: Power, timeoutSeconds?: number): Promise<void>;
}
/** What a BMC says of its machine in one answer. */
export interface MachineStatus {
  readonly power: 'power on' | 'power off' | null;
  /** Null: it does not say. */
  readonly health: 'OK' | 'Warning' | 'Critical' | null;
  readonly bootMode: 'bios' | 'uefi' | null;
  /** There is a vendor for ManagementInterface.detectVendor to find. */
  readonly namesVendor: boolean;
}
export interface BootDevice {
  readonly device: string | null;
  readonly persistent: boolean | null;
}
export interface ManagementInterface extends Interface {
  /** What it can boot from: pxe, disk, cdrom, bios, safe, wanboot, … */
  readonly bootDevices: readonly string[];
  getBootDevice(task: Task): Promise<BootDevice>;
  setBootDevice(task: Task, device: string, persistent: boolean): Promise<void>;
  /** What is absent from here on, the interface does not support: it is refused. */
  readonly bootMode?: {
    get(task: Task): Promise<'bios' | 'uefi' | null>;
    set(task: Task, mode: 'bios' | 'uefi'): Promise<void>;
    /** The modes that the BMC says it can be set to; undefined: it does not say. Absent: it cannot be asked. */
    supported?(task: Task): Promise<readonly ('bios' | 'uefi')[] | undefined>;
  };
  readonly secureBoot?: {
    get(task: Task): Promise<boolean | null>;
    set(task: Task, on: boolean): Promise<void>;
  };
  /** Who made the machine, as its BMC says; undefined: it does not. */
  detectVendor?(task: Task): Promise<string | undefined>;
  /** Those of the machine's network interfaces that are enabled and well, in lower case. Absent: its BMC cannot be asked. */
  macAddresses?(task: Task): Promise<readonly string[]>;
  injectNmi?(task: Task): Promise<void>;
  readonly indicators?: Indicators;
  /** Sensor kind → sensor → fields. `isWanted`: which kinds are read; absent: all. */
  sensors?(task: Task, isWanted?: (kind: string) => boolean): Promise<JsonObject>;
  readonly virtualMedia?: {
    get(task: Task): Promise<readonly JsonObject[]>;
    /** `source`: `http`, the BMC gets this very URL; `local`, one of ours, behind which the image is. */
    attach(task: Task, deviceType: VirtualMediaType, imageUrl: string, source: 'http' | 'local'): Promise<void>;
    /** Absent types: whatever is attached. */
    detach(task: Task, deviceTypes?: readonly VirtualMediaType[]): Promise<void>;
  };
}
export type VirtualMediaType = 'cdrom' | 'disk' | 'floppy';

/** Lamps: component (`chassis`, `system`, …) → name → what it can show. */
export type IndicatorTable = Readonly<Record<string, Readonly<Record<string, Indicator>>>>;
export interface Indicator {
  readonly readonly: boolean;
  readonly states: readonly string[];
}
export interface Indicators {
  supported(task: Task): Promise<IndicatorTable>;
  get(task: Task, component: string, indicator: string): Promise<string>;
  /** Absent: all of them are for reading. */
  set?(task: Task, component: string, indicator: string, state: string): Promise<void>;
}
export interface BootInterface extends Interface {
  /** It can boot instances that live in memory (DeployInterface.inMemory). */
  readonly bootsInMemory?: true;
  /** It gives such instances their config drive. */
  readonly attachesConfigdrive?: true;
  /** Whether it can boot the ramdisk for inspection, ports or not; throws as `validate`. Absent: it cannot. */
  validateInspection?(task: Task): Promise<void>;
  /** Whether it can boot the rescue ramdisk; throws as `validate`. Absent: it cannot. */
  validateRescue?(task: Task): Promise<void>;
  /** `kernelArgs`: added to what the boot interface itself says (ipa-api-url, …). The caller powers the machine. */
  prepareRamdisk(task: Task, kernelArgs: Readonly<Record<string, string>>): Promise<void>;
  cleanUpRamdisk(task: Task): Promise<void>;
  prepareInstance(task: Task): Promise<void>;
  cleanUpInstance(task: Task): Promise<void>;
}
export interface DeployInterface extends Interface {
  /** The instance is a kernel with its ramdisk, or an ISO image, which the machine boots over the network each time. */
  readonly inMemory?: true;
  /** Gets the node ready before the first deploy step runs. */
  prepare?(task: Task): Promise<void>;
  /** Undoes `prepare`: after a failure and at the end of undeploy. */
  cleanUp?(task: Task): Promise<void>;
  /** Ends the instance: the machine is off and boots nothing any more. */
  tearDown(task: Task): Promise<Outcome>;
  /** Boots the ramdisk for cleaning: `wait` until it calls; `done`: no ramdisk is needed. */
  prepareCleaning(task: Task): Promise<Outcome>;
  tearDownCleaning(task: Task): Promise<void>;
  /** Boots the ramdisk for servicing, as `prepareCleaning`. Absent: there is none. */
  prepareService?(task: Task): Promise<Outcome>;
  /** The instance is there again. */
  tearDownService?(task: Task): Promise<void>;
  /**
   * The steps that the agent in the machine offers, asked for at the first heartbeat; kept in driver_internal_info as Ironic does
   * (`agent_cached_KIND_steps`: whoever asks again looks there first, an empty answer is an answer). Undefined: the agent is busy, ask
   * at the next heartbeat.
   */
  agentSteps?(task: Task, kind: SavedKind): Promise<readonly PlannedStep[] | undefined>;
  /** Runs a step that `agentSteps` named. */
  runAgentStep?(task: Task, kind: SavedKind, step: PlannedStep): Promise<Outcome>;
  /**
   * The agent spoke while `step` runs (for `deploy.deploy`: the ramdisk is up, so it is over). `wait`: nothing new; `done`: the step is
   * over; `failed`: it is over badly, and the reason is a whole sentence that names the step.
   */
  onHeartbeat?(task: Task, kind: SavedKind, step: PlannedStep): Promise<Outcome>;
}
export interface InspectInterface extends Interface {
  /** The machine boots something that describes it: the ports that its BMC knows of are made before ([inspector]pre_create_ports). */
  readonly inBand?: true;
  /** A service of its own inspects, and takes the callbacks of its ramdisk itself: none of those that come here are meant for the node. */
  readonly byService?: true;
  /** In band: boots the ramdisk, then `wait`; out of band: what was found. */
  inspect(task: Task): Promise<Outcome | InspectionFindings>;
  /** The inventory arrived and its hooks ran: puts the machine to rest again. */
  finish?(task: Task): Promise<void>;
  /** Undoes `inspect`: when it failed, was aborted or took too long. */
  abort?(task: Task): Promise<void>;
}
/** A machine as its BMC describes it: the inspection is over but for the hooks. */
export interface InspectionFindings {
  readonly kind: 'found';
  readonly inventory: Inventory;
  readonly pluginData: JsonObject;
  /** For the node's properties; hooks may say otherwise. */
  readonly properties: JsonObject;
  /** For the capabilities that the node does not name itself. */
  readonly capabilities: Readonly<Record<string, string>>;
  /** Properties without which the inspection has failed. */
  readonly essential: readonly string[];
  readonly hooks: readonly string[];
}
export interface NetworkInterface extends Interface {
  addProvisioningNetwork(task: Task): Promise<void>;
  removeProvisioningNetwork(task: Task): Promise<void>;
  addCleaningNetwork(task: Task): Promise<void>;
  removeCleaningNetwork(task: Task): Promise<void>;
  addInspectionNetwork(task: Task): Promise<void>;
  removeInspectionNetwork(task: Task): Promise<void>;
  addRescuingNetwork(task: Task): Promise<void>;
  removeRescuingNetwork(task: Task): Promise<void>;
  addServicingNetwork(task: Task): Promise<void>;
  removeServicingNetwork(task: Task): Promise<void>;
  configureTenantNetworks(task: Task): Promise<void>;
  unconfigureTenantNetworks(task: Task): Promise<void>;
  /** VIFs: the names of the virtual ports that tenants plug into a node (vifs.ts has the rules). */
  vifList(task: Task): Promise<readonly Vif[]>;
  /** Throws VifAlreadyAttached, NoFreePhysicalPorts. */
  vifAttach(task: Task, vif: Vif): Promise<void>;
  /** Throws VifNotAttached. */
  vifDetach(task: Task, id: string): Promise<void>;
  /** The VIF that a port or portgroup carries now: it cannot be deleted then. */
  currentVif(held: PortRecord | PortgroupRecord): string | undefined;
  /** Throws Conflict for what it does not allow. */
  portChanged?(task: Task, change: PortChange): Promise<void>;
  portgroupChanged?(task: Task, change: PortgroupChange): Promise<void>;
}
/** What is about to change. `portgroup`: the one that the port belongs to then. */
export interface PortChange {
  readonly before: PortRecord;
  readonly after: PortRecord;
  readonly portgroup?: PortgroupRecord;
}
export interface PortgroupChange {
  readonly before: PortgroupRecord;
  readonly after: PortgroupRecord;
  readonly members: readonly PortRecord[];
}
export interface RescueInterface extends Interface {
  /** Boots the rescue system: `wait` until its agent calls; `done`: it is up. */
  rescue(task: Task): Promise<Outcome>;
  /** Boots the instance again. */
  unrescue(task: Task): Promise<Outcome>;
  /** The agent of the rescue system called: gives it the password and the tenant's network. */
  finish?(task: Task): Promise<void>;
  /** Undoes `rescue`: after a failure, and when the rescue system is up. */
  cleanUp?(task: Task): Promise<void>;
}
export interface ConsoleInterface extends Interface {
  start(task: Task): Promise<void>;
  stop(task: Task): Promise<void>;
  /** How to reach it: `{type, url}`. */
  get(task: Task): Promise<JsonObject>;
}
export interface RaidInterface extends Interface {
  /** Beyond the schema that holds for all. Throws InvalidParameterValue for a configuration that it cannot make, UnsupportedDriverExtension. */
  validateConfig?(task: Task, config: JsonObject): Promise<void>;
}
export interface StorageInterface extends Interface {
  /** False: the instance boots from a volume. */
  shouldWriteImage(task: Task): Promise<boolean>;
}

export type HttpMethod = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
/** A function of a vendor that clients call by its name: `…/vendor_passthru?method=NAME`. */
export interface VendorMethod<Subject> {
  readonly http: readonly HttpMethod[];
  readonly description: string;
  /** Answered with 202 before it has run; false: the answer is what it returned. Default: true. */
  readonly async?: boolean;
  /** Default: true. */
  readonly exclusive?: boolean;
  /** The names that it knows; absent: any. */
  readonly args?: readonly string[];
  /** Throws MissingParameterValue, InvalidParameterValue. */
  validate?(subject: Subject, args: JsonObject): Promise<void>;
  run(subject: Subject, args: JsonObject, http: HttpMethod): Promise<unknown>;
}
export interface VendorInterface extends Interface {
  readonly methods?: Readonly<Record<string, VendorMethod<Task>>>;
  /** Without a node: `/v1/drivers/X/vendor_passthru`. */
  readonly driverMethods?: Readonly<Record<string, VendorMethod<undefined>>>;
}

export interface BiosInterface extends Interface {
  /** The settings as they are now. Throws UnsupportedDriverExtension when the machine tells of none. */
  settings?(task: Task): Promise<readonly BiosSetting[]>;
}
export interface FirmwareInterface extends Interface {
  /** The firmware that the machine has now. Throws UnsupportedDriverExtension when it tells of none. */
  components?(task: Task): Promise<readonly FirmwareComponent[]>;
}

/** The objects that serve one node. */
export interface Driver {
  readonly bios: BiosInterface;
  readonly boot: BootInterface;
  readonly console: ConsoleInterface;
  readonly deploy: DeployInterface;
  readonly firmware: FirmwareInterface;
  readonly inspect: InspectInterface;
  readonly management: ManagementInterface;
  readonly network: NetworkInterface;
  readonly power: PowerInterface;
  readonly raid: RaidInterface;
  readonly rescue: RescueInterface;
  readonly storage: StorageInterface;
  readonly vendor: VendorInterface;
}
/** In a hardware type: its nodes may also have interfaces that it does not offer. */
export const ANY = '*';
/** A hardware type is data: for each kind, the names it offers, the best first (the first enabled one is the default). */
export type HardwareType = Readonly<Record<InterfaceKind, readonly string[]>>;
/** Name in the API → implementation. */
export type Interfaces = { readonly [Kind in InterfaceKind]: Readonly<Record<string, Driver[Kind]>> };

/** What an agent's heartbeat carries; re-exported so that drivers and conductor speak of the same thing. */
export type { Heartbeat };
