/** The interfaces of drivers: objects of tables and functions. Their functions get a Task; most return an Outcome. */
import type { Duplex } from 'node:stream';
import type { Options } from '../config/options';
import type { Clock } from '../model/clock';
import type { InternalChanges } from '../model/internal-info';
import type { Caller } from '../model/origin';
import type { Log } from '../model/log';
import type { Metrics } from '../model/metrics';
import type {
  BiosSettingRecord,
  Boots,
  FirmwareComponentRecord,
  InterfaceKind,
  Inventory,
  JsonObject,
  Media,
  NodeChanges,
  NodeRecord,
  PortgroupRecord,
  PortRecord,
  ResidentAgent,
  StepControls,
  Vif,
  Snapshots,
  Volumes,
} from '../model/records';
import type { ProvisionState } from '../model/states';
import type { IpmiPool, SolPool } from '../wire/ipmi/client';
import type { IntrospectionClient } from '../wire/http/introspection';
import type { Signal, SignalState } from '../model/rules/health-rules';
import type { NetworkPort } from '../model/rules/network-ports';
import type { NetworkTraits } from '../model/rules/trait-filter';
import type { Switches } from '../wire/switches/switches';
import type { Services } from '../wire/keystone/services';
import type { SdrCache } from '../wire/ipmi/records/sdr-repository';
import type { RedfishPool } from '../wire/redfish';
import type { ConsoleLogs } from './console-logs';
import type { Consoles } from './consoles';
import type { Screens } from './screens';

/** A bounded cache, which drops the least recently used entry. */
export interface KeyedCache<Value> {
  get(key: string): Value | undefined;
  put(key: string, value: Value): void;
}
/**
 * Clients of machines and services, and what was read from them, shared by all tasks of a conductor. The functions of each member return
 * promises, and check the reservation of an exclusive task first, except those of UNFENCED.
 */
export interface Connections {
  readonly ipmi: IpmiPool;
  /** Sensor data records of BMCs. Absent: each task reads them. */
  readonly sdrCache?: SdrCache;
  readonly redfish: RedfishPool;
  /** Attribute registries of BIOSes. Absent: each task reads them. */
  readonly biosRegistries?: KeyedCache<BiosAttributeRegistry>;
  /** Absent: this process serves none. */
  readonly consoles?: (Consoles & SolPool) | undefined;
  /** What machines said on their serial lines. Absent: it is not saved. */
  readonly consoleLogs?: ConsoleLogs | undefined;
  /** Who looks at screens. Absent: this process shows none. */
  readonly screens?: Screens | undefined;
  /** The introspection service. Absent: [discoverd] names none. */
  readonly introspection?: IntrospectionClient | undefined;
  /** Absent: [ironic_networking] enables no driver. */
  readonly switches?: Switches | undefined;
  /** Absent: [conductor]enable_trait_based_networking is false. */
  readonly networkTraits?: NetworkTraits | undefined;
  /** The API's URL from Keystone's catalog, for ramdisks. Absent: [service_catalog]endpoint_override is used. */
  readonly apiUrl?: (() => Promise<string>) | undefined;
  /** Neutron, Glance and others. A client reads its options and connects at its first request. */
  readonly services: Services;
}

/**
 * The members that are used without that check: those that send nothing, consoles, which outlive the task, and OpenStack services, where
 * the drivers check before they change a node's ports or volumes.
 */
export const UNFENCED: readonly (keyof Connections)[] = [
  'sdrCache',
  'biosRegistries',
  'networkTraits',
  'apiUrl',
  'consoles',
  'consoleLogs',
  'screens',
  'services',
];

/** A node with its driver while code works on it, usually reserved. Only the conductor makes tasks. `node` is always as last saved. */
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
  readonly volumes: Volumes;
  readonly snapshots: Snapshots;
  readonly random: (bytes: number) => Buffer;
  readonly options: Options;
  readonly connections: Connections;
  /** The request id that the client gave for a chain of requests over services (`X-Openstack-Request-Id`). */
  readonly globalRequestId?: string | undefined;
  /** The user who requested this work, or the flow that it belongs to. Absent: no user requested it. */
  readonly caller?: Caller | undefined;
  /**
   * True: the reservation certainly holds. Otherwise the promise resolves once that is certain. It rejects when the reservation is lost,
   * and then nothing may be sent. Called before each call of an interface and each request to a BMC or an agent. Absent: no reservation.
   */
  stillHeld?(): true | Promise<void>;
  /** Shallow: whole columns. For `driver_internal_info` see `saveInternal`. */
  save(changes: NodeChanges): Promise<void>;
  /** The node's portgroups, read anew. */
  portgroups(): Promise<readonly PortgroupRecord[]>;
  /** Sets keys of the `internal_info` of one of the node's ports or portgroups; `undefined` removes one. */
  saveAttachment(kind: 'port' | 'portgroup', uuid: string, keys: Readonly<Record<string, unknown>>): Promise<void>;
  /** Creates a portgroup with these ports of the node, in one transaction. Throws PortgroupDuplicateName. */
  groupPorts(group: Partial<PortgroupRecord>, ports: readonly string[]): Promise<PortgroupRecord>;
  /** Removes a portgroup. Its ports stay. */
  ungroupPorts(uuid: string): Promise<void>;
  /**
   * Sets keys of driver_internal_info; `undefined` removes one.
   * @param when `with next`: with the next write, at the latest that of the node's release. For what is read again if this conductor dies
   * before, and on which nothing outside the database depends
   */
  saveInternal(keys: InternalChanges, when?: 'now' | 'with next'): Promise<void>;
  /**
   * Reports the progress of the running step to listeners of events. Absent: there are no events.
   * @param bytes of the image that the step writes
   */
  reportProgress?(
    kind: SavedKind,
    step: PlannedStep,
    percent: number,
    bytes?: { readonly done: number; readonly of: number },
  ): Promise<void>;
  /** Issues the certificate of a step of the agent that erased disks, once for each command. Throws an Error if it cannot be signed. */
  certifyErasure(report: { readonly step: string; readonly command: string; readonly result: unknown }): Promise<void>;
  /** Replaces the node's BIOS settings by these. */
  saveBiosSettings(settings: readonly BiosSetting[]): Promise<void>;
  /** Saves the firmware of these components; others stay as they were. */
  saveFirmwareComponents(components: readonly FirmwareComponent[]): Promise<void>;
  /** The config drive's vendor data for a recorder on the instance; each call creates a token. Undefined: the instance gets no recorder. */
  recorderData(): Promise<JsonObject | undefined>;
  /** The agent in the deployed system; undefined: the instance has no token for one. */
  residentAgent(): Promise<ResidentAgent | undefined>;
  /** Says in the node's history, and to listeners of events, how the machine boots. After a kexec, the agent is forgotten. */
  recordBoot(boot: RecordedBoot): Promise<void>;
  /** Changes the machine's power as the conductor does: forgets the agent (token, URL), sets target and state, waits for the state. */
  power(target: Power, timeoutSeconds?: number): Promise<void>;
}

/**
 * How an instance boots after its deployment, or the ramdisk on a machine with an instance, where a kexec was asked for. The texts are for
 * operators.
 */
export type RecordedBoot = { readonly of: 'instance' | 'ramdisk' } & (
  | { readonly by: 'kexec'; readonly kernel: string }
  | { readonly by: 'reboot'; readonly reason: string }
);

/** A setting of the BIOS by its name. Unknown facts are absent. */
export type BiosSetting = Pick<BiosSettingRecord, 'name' | 'value'> & Partial<Omit<BiosSettingRecord, 'created_at' | 'updated_at'>>;

/** What a BMC publishes about a BIOS attribute besides its value. */
export type BiosAttributeFacts = Required<Omit<BiosSetting, 'name' | 'value'>>;
/** By the attribute's name. */
export type BiosAttributeRegistry = ReadonlyMap<string, BiosAttributeFacts>;

/** A piece of firmware by its name: bios, bmc, nic:SERIAL. */
export type FirmwareComponent = Pick<FirmwareComponentRecord, 'component' | 'vendor' | 'model' | 'serial_number'> & {
  readonly current_version: string;
};

/** A driver never changes the provision state: it returns an outcome, and the conductor changes the state. */
export type Outcome =
  /** `agentRunning`: nothing was booted, since the agent already runs on the machine; its steps are available now. */
  | { readonly kind: 'done'; readonly agentRunning?: true }
  /**
   * The wait ends with the agent's next heartbeat, or with a poll after `pollEvery` seconds. `quiet`: the poll showed nothing new, so the
   * timeout of the wait is not restarted.
   */
  | { readonly kind: 'wait'; readonly pollEvery?: number | undefined; readonly quiet?: true | undefined }
  | { readonly kind: 'failed'; readonly reason: string };
export const done: Outcome = { kind: 'done' };
export const agentAlreadyRunning: Outcome = { kind: 'done', agentRunning: true };
export const wait: Outcome = { kind: 'wait' };
export const failed = (reason: string): Outcome => ({ kind: 'failed', reason });

export type StepKind = 'deploy' | 'clean' | 'service' | 'verify';
/** Kinds whose list is saved on the node. Verify steps are never saved. */
export type SavedKind = Exclude<StepKind, 'verify'>;
export interface StepArgument {
  readonly description: string;
  readonly required?: boolean;
  /** The JSON type; absent: any. Other types are refused before the machine is touched. Clients do not see it. */
  readonly type?: 'string' | 'integer' | 'boolean' | 'list' | 'object';
  /** What is wrong with a value beside the step's other arguments; undefined: nothing. Such values are refused as those of other types. */
  readonly problem?: (value: unknown, args: JsonObject) => string | undefined;
}
export interface Step {
  readonly step: string;
  /** Absent: not a step of that kind. 0: runs only on request. */
  readonly priority: Readonly<Partial<Record<StepKind, number>>>;
  readonly args?: Readonly<Record<string, StepArgument>>;
  readonly abortable?: boolean;
  readonly requiresRamdisk?: boolean;
  /** The step may run again after its conductor died, because it finds out how far the work is. Otherwise the node fails. */
  readonly resumable?: boolean;
  /**
   * The agent was restarted while it did the step. Returns whether it may begin the step again; the step itself finds out how far the work
   * is. Absent: the step fails, since a disk may be half written.
   */
  readonly mayBeginAgain?: (task: Task) => Promise<boolean>;
  /** The agent does the step, or is asked in it: it is asked for the reason of a failure. The agent's own steps need no mark. */
  readonly usesAgent?: true;
  /** Checks arguments before there is a machine, as far as that is possible. Throws InvalidParameterValue. */
  readonly checkArguments?: (args: JsonObject) => void;
  run(task: Task, args: JsonObject): Promise<Outcome>;
  /**
   * The state of a step that waits for its machine. Called every `pollEvery` seconds, also on another conductor. Heartbeats do not end such
   * a step. Throws as `run`.
   */
  poll?(task: Task, args: JsonObject): Promise<Outcome>;
  /** Heartbeats call `poll` too, and may end the step. */
  readonly pollAtHeartbeat?: boolean;
  /** Called with the result when the agent has finished the step. Throws when the result is not acceptable. */
  finish?(task: Task, result: unknown): Promise<void>;
}

/** A step in a node's saved list (`driver_internal_info.clean_steps`, …), in the shape that clients see. */
export interface PlannedStep extends StepControls {
  readonly step: string;
  readonly interface: string;
  readonly priority: number;
  readonly args?: JsonObject;
  readonly abortable?: boolean;
  readonly requires_ramdisk?: boolean;
  readonly reboot_requested?: boolean;
  readonly argsinfo?: JsonObject | null;
  /** Arguments that the driver adds to a step of the agent, as `argsinfo`. They are not saved: each heartbeat would write them again. */
  readonly addedArguments?: JsonObject;
  readonly execute_on_child_nodes?: boolean;
  /** UUIDs; absent: all children. */
  readonly limit_child_node_execution?: readonly string[];
  /** The arguments that a default config filled in → where they come from. */
  readonly defaults?: Readonly<Record<string, string>>;
}

/** A key of driver_info: `GET /v1/drivers/X/properties`, `validate` and masking read it. */
export interface Property {
  readonly description: string;
  readonly required?: boolean;
  readonly secret?: boolean;
}

/** The members of every interface: its keys of driver_info and its steps, as tables. */
export interface Interface {
  readonly properties?: Readonly<Record<string, Property>>;
  /** Checks beyond `properties`. Throws Fault InvalidParameterValue / MissingParameterValue / UnsupportedDriverExtension. */
  validate?(task: Task): Promise<void>;
  readonly steps?: readonly Step[];
  readonly periodics?: readonly InterfacePeriodic[];
  /** Why the configuration does not allow this interface. The conductor does not start then. */
  cannotLoad?(options: Options): string | undefined;
  /** Whether the service that the interface needs is configured. If not, the interface is never a node's default. Absent: it needs none. */
  hasService?(options: Options): boolean;
}
/** Periodic work on the nodes of an interface. Running it twice is safe: it keeps no state outside the node. */
export interface InterfacePeriodic {
  readonly name: string;
  /** Seconds between runs; 0: never. */
  every(options: Options): number;
  readonly states: readonly ProvisionState[];
  /** Includes nodes in maintenance. */
  readonly inMaintenance?: true;
  /** Selects among the nodes in these states; absent: all. */
  only?(node: NodeRecord): boolean;
  /** The outcome of the running step of a waiting node; undefined: no step is concerned. */
  run?(task: Task): Promise<Outcome | undefined>;
  /**
   * Replaces `run` for nodes that an external service works on. It runs without a reservation (the task has no ports); the conductor
   * reserves the node only when there is something new. Throws ServiceUnavailable.
   */
  check?(task: Task): Promise<CheckResult | undefined>;
  /** `check` needs the node as it is now. The nodes of a round were read at its beginning. */
  needsFreshNode?(node: NodeRecord): boolean;
}
/** What a check without a reservation found. */
export interface CheckResult {
  /** Absent: nothing new. */
  readonly outcome?: Outcome;
  /** Keys of driver_internal_info to set before the outcome is applied; `undefined` removes one. */
  readonly internal?: InternalChanges;
}
/** The external service does not answer, so the round skips its other nodes. */
export class ServiceUnavailable extends Error {}

export type Power = 'power on' | 'power off' | 'rebooting' | 'soft power off' | 'soft rebooting';
export interface PowerInterface extends Interface {
  /**
   * Power goes through the agent. The conductor must not forget the agent before the request, and sees the machine again only when the
   * agent is back.
   */
  readonly throughAgent?: true;
  /** Every reboot is a `reset`. Absent: power off and on, since the reset of some BMCs leaves the machine off or does not reset it. */
  readonly rebootsByReset?: true;
  /** Null: unknown (fake hardware whose power was never set). */
  get(task: Task): Promise<'power on' | 'power off' | null>;
  /** As `get`, with the other facts of the same response. Absent: the response has no other facts. */
  getStatus?(task: Task): Promise<MachineStatus>;
  /** Each order sends its request and does not wait for the state. The conductor waits, and composes reboots. Absent: impossible. */
  readonly on?: (task: Task) => Promise<void>;
  readonly off?: (task: Task) => Promise<void>;
  readonly softOff?: (task: Task) => Promise<void>;
  /** Restarts the machine without a power off: for machines that must stay on. */
  readonly reset?: (task: Task) => Promise<void>;
  /**
   * Restarts the machine's system, which shuts down first, without a power off. Returns false, and sends nothing, if this machine cannot;
   * throws instead if it must stay on.
   */
  readonly softReset?: (task: Task, mustStayOn: boolean) => Promise<boolean>;
}
/** What a BMC reports about its machine in one response. */
export interface MachineStatus {
  readonly power: 'power on' | 'power off' | null;
  /** Null: not reported. */
  readonly health: 'OK' | 'Warning' | 'Critical' | null;
  /** Those of all memory modules, and of all processors; absent or null: not reported. */
  readonly memoryHealth?: MachineStatus['health'];
  readonly processorHealth?: MachineStatus['health'];
  readonly bootMode: 'bios' | 'uefi' | null;
  /** The BMC reports a vendor, which ManagementInterface.detectVendor can read. */
  readonly namesVendor: boolean;
}
interface BootDevice {
  readonly device: string | null;
  readonly persistent: boolean | null;
}
/** What the rules of health need beside Ironic's fields. `kind` and `sensor` are keys of the result, as far as it has this sensor. */
export interface SensorNotes {
  /** What the states of a sensor or a part mean, and a reading that has no field. */
  part(kind: string, sensor: string, states: readonly SignalState[], reading?: { readonly value: number; readonly unit: string }): void;
  /** The sensors of this kind could not be read, so that none of them is known to be gone. */
  unread(kind: string): void;
}
/** Subscriptions to the events of a BMC. `owner` tells those of this server for this node from others. Throw Fault. */
export interface EventSubscriptions {
  /** Makes the subscription unless there is one that works, and ends others of this owner. Its path; undefined: the BMC sends no events. */
  keep(task: Task, owner: string, destination: string): Promise<string | undefined>;
  /** Ends the subscriptions of this owner. */
  end(task: Task, owner: string): Promise<void>;
  /** How the part is that an event names. `sensors`: those of the machine say it. Undefined: it cannot be told. */
  origin(task: Task, path: string): Promise<Signal | 'sensors' | undefined>;
}
/** How far a log was read: what the driver that reads it keeps. Another driver may have written it. */
export type LogPosition = JsonObject;
export interface LogReading {
  /** What the entries say that are newer than the positions, the oldest first. */
  readonly signals: readonly Signal[];
  /** By the path or the name of the log. */
  readonly positions: Readonly<Record<string, LogPosition>>;
  /** A log was cleared: what it said before is over. */
  readonly wasCleared: boolean;
}
export interface ManagementInterface extends Interface {
  /** Possible boot devices: pxe, disk, cdrom, bios, safe, wanboot, … */
  readonly bootDevices: readonly string[];
  getBootDevice(task: Task): Promise<BootDevice>;
  setBootDevice(task: Task, device: string, persistent: boolean): Promise<void>;
  /** Each of the following members may be absent: then the feature is not supported, and requests for it are refused. */
  readonly bootMode?: {
    get(task: Task): Promise<'bios' | 'uefi' | null>;
    set(task: Task, mode: 'bios' | 'uefi'): Promise<void>;
    /** The modes that the BMC offers; undefined: the BMC does not list them. Absent: the BMC has no such list. */
    supported?(task: Task): Promise<readonly ('bios' | 'uefi')[] | undefined>;
  };
  readonly secureBoot?: {
    get(task: Task): Promise<boolean | null>;
    set(task: Task, on: boolean): Promise<void>;
  };
  /** The manufacturer that the BMC reports, if any. */
  detectVendor?(task: Task): Promise<string | undefined>;
  /** MAC addresses, in lower case, of the network interfaces that are enabled and healthy. Absent: not available from this BMC. */
  macAddresses?(task: Task): Promise<readonly string[]>;
  /** The ports of the network adapters with their modes. */
  networkPorts?(task: Task): Promise<readonly NetworkPort[]>;
  injectNmi?(task: Task): Promise<void>;
  readonly indicators?: Indicators;
  /** Sensor kind → sensor → fields. `isWanted` selects the kinds; absent: all. */
  sensors?(task: Task, isWanted?: (kind: string) => boolean, notes?: SensorNotes): Promise<JsonObject>;
  readonly events?: EventSubscriptions;
  /** Reads the entries of the logs since the positions. */
  logs?(task: Task, positions: Readonly<Record<string, LogPosition>>): Promise<LogReading>;
  readonly virtualMedia?: {
    get(task: Task): Promise<readonly JsonObject[]>;
    /** `source`: with `http` the BMC gets this URL; with `local` it gets a URL of ours, and we forward the image. */
    attach(task: Task, deviceType: VirtualMediaType, imageUrl: string, source: 'http' | 'local'): Promise<void>;
    /** Without types: detaches all media. */
    detach(task: Task, deviceTypes?: readonly VirtualMediaType[]): Promise<void>;
  };
}
export type VirtualMediaType = 'cdrom' | 'disk' | 'floppy';

/** Indicators: component (`chassis`, `system`, …) → name → its states. */
export type IndicatorTable = Readonly<Record<string, Readonly<Record<string, Indicator>>>>;
interface Indicator {
  readonly readonly: boolean;
  readonly states: readonly string[];
}
export interface Indicators {
  supported(task: Task): Promise<IndicatorTable>;
  get(task: Task, component: string, indicator: string): Promise<string>;
  /** Absent: all indicators are read-only. */
  set?(task: Task, component: string, indicator: string, state: string): Promise<void>;
}
/** What a machine boots that installs its system by itself. */
export interface Installer {
  /** As BootRecord.files: `kernel`, `ramdisk`, and what the installer fetches. */
  readonly files: Readonly<Record<string, string>>;
  /** @param folder the URL below which the files are served, and the kickstart file as `ks.cfg` */
  at(folder: string, agentToken: string): Promise<{ readonly kernelArgs: string; readonly kickstart: string }>;
}
export interface BootInterface extends Interface {
  /** The machine boots over its network interfaces: only ports with pxe_enabled need a network. */
  readonly bootsFromNetwork?: true;
  /** Can boot instances that run from memory (DeployInterface.inMemory). */
  readonly bootsInMemory?: true;
  /** Boots iSCSI volumes (StorageInterface). */
  readonly bootsVolumes?: true;
  /** Attaches the config drive of instances that run from memory. */
  readonly attachesConfigdrive?: true;
  /** Whether it can boot the inspection ramdisk, with or without ports; throws as `validate`. Absent: it cannot. */
  validateInspection?(task: Task): Promise<void>;
  /** Whether it can boot the rescue ramdisk; throws as `validate`. Absent: it cannot. */
  validateRescue?(task: Task): Promise<void>;
  /** `kernelArgs` are added to the boot interface's own (ipa-api-url, …). The caller powers the machine on. */
  prepareRamdisk(task: Task, kernelArgs: Readonly<Record<string, string>>): Promise<void>;
  cleanUpRamdisk(task: Task): Promise<void>;
  /** Boots a machine once more that has not started the prepared ramdisk. Absent: it boots what is prepared each time. */
  retryRamdisk?(task: Task): Promise<void>;
  /** Prepares the boot of an installer. The caller powers the machine on. Absent: it cannot boot one. */
  prepareInstaller?(task: Task, installer: Installer, agentToken: string): Promise<void>;
  prepareInstance(task: Task): Promise<void>;
  cleanUpInstance(task: Task): Promise<void>;
}
export interface DeployInterface extends Interface {
  /** The instance runs from memory: the machine boots a kernel with ramdisk, or an ISO image, over the network each time. */
  readonly inMemory?: true;
  /** The machine boots an installer, which writes the disk, reports by heartbeats, and cannot be asked (BootInterface.prepareInstaller). */
  readonly installs?: true;
  /** Whether the instance's image is a repository, and so neither a whole disk nor a partition. Absent: it is none. */
  isRepository?(task: Task): Promise<boolean>;
  /** What the boot interface must check for the installer; throws as `validate`. */
  checkInstaller?(task: Task): Promise<void>;
  /** It stands for another one, which the conductor chooses when a flow begins. */
  readonly detects?: true;
  /** Whether it can deploy the instance that instance_info or its image describes. Never throws. Absent: it deploys any instance. */
  supports?(task: Task): Promise<boolean>;
  /** Gets the node ready before the first deploy step runs. */
  prepare?(task: Task): Promise<void>;
  /** Reverts `prepare`: after a failure and at the end of undeploy. */
  cleanUp?(task: Task): Promise<void>;
  /** Ends the instance: the machine is off and has nothing to boot. */
  tearDown(task: Task): Promise<Outcome>;
  /** Boots the ramdisk for cleaning: `wait` until its agent calls; `done`: no ramdisk is needed. */
  prepareCleaning(task: Task): Promise<Outcome>;
  tearDownCleaning(task: Task): Promise<void>;
  /** Boots the ramdisk for servicing, as `prepareCleaning`. Absent: servicing needs no ramdisk. */
  prepareService?(task: Task): Promise<Outcome>;
  /** Boots the instance again. */
  tearDownService?(task: Task): Promise<void>;
  /**
   * The steps that the agent offers, requested at the first heartbeat. The result is cached in driver_internal_info as in Ironic
   * (`agent_cached_KIND_steps`); an empty list is a valid result. Undefined: the agent is busy, so try again at the next heartbeat.
   */
  agentSteps?(task: Task, kind: SavedKind): Promise<readonly PlannedStep[] | undefined>;
  /** `interface.step` → name → argument of an agent's step, beside those that the agent offers. */
  readonly agentArguments?: Readonly<Record<string, Readonly<Record<string, StepArgument>>>>;
  /** What is wrong with the node's settings for an agent's step, as far as the server can tell. */
  agentStepProblem?(
    node: Pick<NodeRecord, 'driver_info' | 'driver_internal_info' | 'properties'>,
    step: Pick<PlannedStep, 'interface' | 'step' | 'args'>,
  ): string | undefined;
  /** Runs a step of `agentSteps`. */
  runAgentStep?(task: Task, kind: SavedKind, step: PlannedStep): Promise<Outcome>;
  /**
   * Handles a heartbeat while `step` runs (for `deploy.deploy` it means that the ramdisk is up, so the step is over). `wait`: nothing new;
   * `done`: the step has succeeded; `failed`: it has failed, and the reason is a whole sentence that names the step.
   */
  onHeartbeat?(task: Task, kind: SavedKind, step: PlannedStep): Promise<Outcome>;
  /** Asks the agent after a failure, for a short time. */
  agentReport?(task: Task): Promise<AgentReport>;
}
/** What the node's agent says after a failure. Its texts are bounded, and not checked otherwise. */
export interface AgentReport {
  /** Why it did not answer; absent: it did. */
  readonly silence?: string;
  /** Why it gave no logs, although it answered. */
  readonly noLogs?: string;
  /** The last command that it got. */
  readonly command?: {
    readonly name: string;
    readonly status: string;
    /** How much of it is done. */
    readonly percent?: number;
    /** The disk or network interface that its error concerns. Only our agent tells it. */
    readonly subject?: string;
  };
  /** Its logs: a gzipped tar archive. */
  readonly logs?: Buffer;
}
/** Options that select inspection hooks. */
export type HooksOption = 'inspector.hooks' | 'redfish.inspection_hooks';
export interface InspectInterface extends Interface {
  /** The machine boots a ramdisk that describes it. The ports that its BMC reports are created before ([inspector]pre_create_ports). */
  readonly inBand?: true;
  /** The option with the hooks of its inspections. Absent: [inspector]hooks. */
  readonly hooksOption?: HooksOption;
  /** An external service inspects the node, and gets the callbacks of its ramdisk. A callback that arrives here is not for this node. */
  readonly byService?: true;
  /** In band: boots the ramdisk, then `wait`. Out of band: the findings. */
  inspect(task: Task): Promise<Outcome | InspectionFindings>;
  /** Called when the inventory has arrived and its hooks have run: cleans up. */
  finish?(task: Task): Promise<void>;
  /** Reverts `inspect` after a failure, an abort or a timeout. */
  abort?(task: Task): Promise<void>;
}
/** A machine as its BMC describes it. Only the hooks are left to run. */
export interface InspectionFindings {
  readonly kind: 'found';
  readonly inventory: Inventory;
  readonly pluginData: JsonObject;
  /** For the node's properties; hooks may override them. */
  readonly properties: JsonObject;
  /** For capabilities that the node does not have yet. */
  readonly capabilities: Readonly<Record<string, string>>;
  /** The inspection fails without these properties. */
  readonly essential: readonly string[];
  readonly hooks: readonly string[];
}
export interface NetworkInterface extends Interface {
  /** The ramdisk and instances have the same network, so that the switch from one to the other needs no reboot. */
  readonly sharesNetwork?: true | undefined;
  /** Whether the network for the operation is known; throws as `validate`. Absent: the operation needs none. */
  validateInspection?(task: Task): Promise<void>;
  validateRescue?(task: Task): Promise<void>;
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
  /** network_data.json for the ramdisk of virtual media. Absent: the node's own. */
  networkData?(task: Task): Promise<JsonObject>;
  /** Adds the network data that the parts of an instance's config drive lack. Absent: the parts stay as they are. */
  completeConfigdrive?(task: Task, parts: JsonObject): Promise<JsonObject>;
  /** VIFs: the virtual ports that tenants attach to a node. For the rules see network/vifs.ts. */
  vifList(task: Task): Promise<readonly Vif[]>;
  /** Throws VifAlreadyAttached, NoFreePhysicalPorts. */
  vifAttach(task: Task, vif: Vif): Promise<void>;
  /** Throws VifNotAttached. */
  vifDetach(task: Task, id: string): Promise<void>;
  /** The VIF that a port or portgroup carries now. Such a port cannot be deleted. */
  currentVif(record: PortRecord | PortgroupRecord): string | undefined;
  /** Throws Conflict when the change is not allowed. */
  portChanged?(task: Task, change: PortChange): Promise<void>;
  portgroupChanged?(task: Task, change: PortgroupChange): Promise<void>;
}
/** A change before it is saved. `portgroup` is the one that the port belongs to after the change. */
export interface PortChange {
  readonly before: PortRecord;
  readonly after: PortRecord;
  readonly portgroup?: PortgroupRecord | undefined;
}
export interface PortgroupChange {
  readonly before: PortgroupRecord;
  readonly after: PortgroupRecord;
  readonly members: readonly PortRecord[];
}
export interface RescueInterface extends Interface {
  /** Boots the rescue ramdisk: `wait` until its agent calls; `done`: it is up. */
  rescue(task: Task): Promise<Outcome>;
  /** Boots the instance again. */
  unrescue(task: Task): Promise<Outcome>;
  /** Called when the rescue agent has called: sets the password and the tenant's network. */
  finish?(task: Task): Promise<void>;
  /** Reverts `rescue`: after a failure, and when the rescue ramdisk is up. */
  cleanUp?(task: Task): Promise<void>;
}
export interface ConsoleInterface extends Interface {
  start(task: Task): Promise<void>;
  stop(task: Task): Promise<void>;
  /** How to reach it: `{type, url}`. */
  get(task: Task): Promise<JsonObject>;
  /** Connects to the machine's screen for a viewer, whose departure the signal tells. Absent: the console is not graphical. */
  screen?(task: Task, signal: AbortSignal): Promise<Screen>;
}
export type Screen =
  /** A connection to an RFB server (RFC 6143), before its handshake. Whoever gets it destroys it. */
  | { readonly kind: 'rfb'; readonly stream: Duplex; readonly password: string }
  /** A page of the BMC, which may have temporary credentials in its URL. */
  | { readonly kind: 'page'; readonly url: string };
export interface RaidInterface extends Interface {
  /** Checks beyond the common schema. Throws InvalidParameterValue for a configuration that is impossible, UnsupportedDriverExtension. */
  validateConfig?(task: Task, config: JsonObject): Promise<void>;
  /** The volumes of the machine now, as `raid_config`. Absent: they are known after RAID steps only. */
  currentConfig?(task: Task): Promise<JsonObject>;
}
export interface StorageInterface extends Interface {
  /** Makes the node's volumes available to its machine, unless they already are. Throws StorageError. Absent: the operator does it. */
  attachVolumes?(task: Task): Promise<void>;
  /** Reverts `attachVolumes`, also one that was interrupted. Throws StorageError. */
  detachVolumes?(task: Task): Promise<void>;
  /** False: the instance boots from a volume. */
  shouldWriteImage(task: Task): Promise<boolean>;
}

export type HttpMethod = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
/** A vendor's method that clients call by its name: `…/vendor_passthru?method=NAME`. */
export interface VendorMethod<Subject> {
  readonly http: readonly HttpMethod[];
  readonly description: string;
  /** True (default): the client gets 202 before the method has run. False: the client gets the method's result. */
  readonly async?: boolean;
  /** Whether the method needs the node's reservation. Default: true. */
  readonly exclusive?: boolean;
  /** The arguments that it accepts; absent: any. */
  readonly args?: readonly string[];
  /** Throws MissingParameterValue, InvalidParameterValue. */
  validate?(subject: Subject, args: JsonObject): Promise<void>;
  run(subject: Subject, args: JsonObject, http: HttpMethod): Promise<unknown>;
  /** What the result, a whole event log, says about the health of the machine; undefined: nothing. */
  readonly signals?: (result: unknown) => readonly Signal[] | undefined;
}
export interface VendorInterface extends Interface {
  readonly methods?: Readonly<Record<string, VendorMethod<Task>>>;
  /** Without a node: `/v1/drivers/X/vendor_passthru`. */
  readonly driverMethods?: Readonly<Record<string, VendorMethod<undefined>>>;
}

export interface BiosInterface extends Interface {
  /** The current settings. Throws UnsupportedDriverExtension when the machine has none. */
  settings?(task: Task): Promise<readonly BiosSetting[]>;
}
export interface FirmwareInterface extends Interface {
  /** The current firmware. Throws UnsupportedDriverExtension when the machine reports none. */
  components?(task: Task): Promise<readonly FirmwareComponent[]>;
}

/** The interfaces of one node. */
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
/** In a hardware type: nodes may also have interfaces that the type does not list. */
export const ANY = '*';
/** A hardware type is data: for each kind the names it offers, the best first. The first enabled one is the default. */
export interface HardwareType extends Readonly<Record<InterfaceKind, readonly string[]>> {
  /** Ironic's name of the class, which its messages use. */
  readonly className: string;
  /** The same text for all nodes of one BMC, by their driver_info. Undefined: the node does not name its BMC. Absent: there is none. */
  bmcOf?(info: JsonObject): string | undefined;
  /** Options for work whose client waits for the answer: requests to BMCs are not repeated. */
  readonly impatient?: Partial<Options>;
}
/** Name in the API → implementation. */
export type Interfaces = { readonly [Kind in InterfaceKind]: Readonly<Record<string, Driver[Kind]>> };
