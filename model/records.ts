/** The records of the database: plain JSON. Times are ISO 8601 strings with offset (`timestamp` in clock.ts). */
import type {
  AllocationFields,
  ChassisFields,
  DefaultConfigFields,
  DeployTemplateFields,
  HistoryEntryFields,
  ImageFields,
  InspectionRuleFields,
  NodeFields,
  PortFields,
  PortgroupFields,
  RunbookFields,
  ErasureFields,
  SnapshotFields,
  VolumeConnectorFields,
  VolumeTargetFields,
} from './fields';
import type { InternalInfo } from './internal-info';
import type { Json, JsonObject } from './json';
import type { ProvisionState, SnapshotState } from './states';

export type { Json, JsonObject };
export type PowerState = 'power on' | 'power off' | 'error';

/** The kinds of hardware interfaces, in Ironic's order. */
export const INTERFACE_KINDS = [
  'bios',
  'boot',
  'console',
  'deploy',
  'firmware',
  'inspect',
  'management',
  'network',
  'power',
  'raid',
  'rescue',
  'storage',
  'vendor',
] as const;
export type InterfaceKind = (typeof INTERFACE_KINDS)[number];
export type InterfaceFields = { readonly [Kind in InterfaceKind as `${Kind}_interface`]: string | null };

/** The columns of every resource. */
export interface ResourceRecord {
  readonly id: number;
  readonly uuid: string;
  readonly created_at: string;
  readonly updated_at: string | null;
  /** Every write raises the revision. Cached JSON is valid while the revision is equal. */
  readonly revision: number;
}
/** What a person says who takes a node out of service. */
export interface OutageRequest {
  readonly reason: string;
  /** The URL of a ticket. */
  readonly ticket: string | null;
  readonly until: string;
}
export interface Outage extends OutageRequest {
  /** Null: the caller has no name, since the server authenticates nobody. */
  readonly declared_by: string | null;
  readonly declared_at: string;
  /** When the last reminder was sent that `until` is over; null: none. */
  readonly reminded_at: string | null;
  /** What the node returns to. Changes of its maintenance meanwhile are made here. */
  readonly before: { readonly maintenance: boolean; readonly maintenance_reason: string | null };
}
/** The column of the node. Without members: the node is in service. */
type OutageColumn = Outage | Readonly<Record<string, never>>;

/** Fields whose types openapi.yaml does not say. */
interface NarrowFields {
  readonly driver_internal_info: InternalInfo;
  readonly out_of_service: OutageColumn;
  readonly power_state: PowerState | null;
  readonly provision_state: ProvisionState;
  readonly target_provision_state: ProvisionState | null;
}
/** The fields of openapi.yaml, and columns that the API does not show. */
export interface NodeRecord extends ResourceRecord, NarrowFields, Omit<NodeFields, keyof NarrowFields> {
  /** The fencing number: every reservation raises it. The holder of the lock writes only while the row has its number. */
  readonly lock_fence: number;
}
/** A node that was reserved: what its flow needs to know besides, without a query of its own. Absent: not known. */
export interface HeldNode extends NodeRecord {
  /** Whether there were default configs, of any node, when it was reserved. */
  readonly has_default_configs?: boolean;
}
/** Columns that only the store writes. */
type StoreColumns = 'id' | 'uuid' | 'created_at' | 'updated_at' | 'revision' | 'lock_fence' | 'reservation';
export type NodeChanges = Partial<Omit<NodeRecord, StoreColumns>>;
export type NewNode = NodeChanges & { readonly uuid: string; readonly driver: string };

export interface PortRecord extends ResourceRecord, PortFields {}
export type PortChanges = Partial<Omit<PortRecord, keyof ResourceRecord>>;
export type NewPort = PortChanges & { readonly uuid: string; readonly node_uuid: string; readonly address: string };

/** The writable columns of a record, and those of a new record. A new record must have the columns `Required`. */
export type ChangesOf<RecordType> = Partial<Omit<RecordType, keyof ResourceRecord>>;
export type NewOf<RecordType, Required extends keyof RecordType> = ChangesOf<RecordType> &
  Readonly<Pick<RecordType, Required>> & { readonly uuid: string };

export interface ChassisRecord extends ResourceRecord, ChassisFields {}
export interface PortgroupRecord extends ResourceRecord, PortgroupFields {}
/** A VIF to attach to a node, with optional ports and further fields for the network interface. */
export interface Vif {
  readonly id: string;
  readonly port_uuid?: unknown;
  readonly portgroup_uuid?: unknown;
  readonly [more: string]: unknown;
}
export interface VolumeConnectorRecord extends ResourceRecord, VolumeConnectorFields {}
export interface VolumeTargetRecord extends ResourceRecord, VolumeTargetFields {}
export interface AllocationRecord extends ResourceRecord, Omit<AllocationFields, 'state'> {
  readonly state: 'allocating' | 'active' | 'error';
}
interface StepCondition {
  readonly field: string;
  /** Negated by a leading `!`. */
  readonly op: string;
  readonly value: unknown;
}
/** Controls of a step, as clients write them (docs/steps.md). */
export interface StepControls {
  /** All must hold, or the step is skipped. */
  readonly when?: readonly StepCondition[];
  /** What an operator is asked before the step runs. */
  readonly confirm?: string;
  /** Seconds for one attempt. */
  readonly timeout?: number;
  /** `abort`, `continue`, `retry(N)` or `retry(N, SECONDS)`. Absent: `abort`. */
  readonly on_failure?: string;
}
/** A step of a deploy template (`priority`) or of a runbook (`order`). */
export interface StepRecord extends StepControls {
  readonly interface: string;
  readonly step: string;
  readonly args: JsonObject;
  readonly priority?: number;
  readonly order?: number;
}
interface Steps {
  readonly steps: readonly StepRecord[];
}
export interface DeployTemplateRecord extends ResourceRecord, Steps, Omit<DeployTemplateFields, 'steps'> {}
export interface RunbookRecord extends ResourceRecord, Steps, Omit<RunbookFields, 'steps'> {}
/** Default arguments of steps. One of `resource_class`, `property` (with `value`) and `node_uuid` is not null. */
export interface DefaultConfigRecord extends ResourceRecord, Steps, Omit<DefaultConfigFields, 'steps'> {}
/** An image with a name; its fields are those of instance_info. */
export interface ImageRecord extends ResourceRecord, ImageFields {}
/** An image of a disk of a node (docs/snapshots.md). */
export interface SnapshotRecord
  extends ResourceRecord, Omit<SnapshotFields, 'state' | 'storage' | 'blocks' | 'compression' | 'partitions'> {
  readonly blocks: 'all' | 'used';
  readonly compression: 'zlib' | 'zstd' | null;
  /** What the agent did with each (ramdisk-agent/disk/used-blocks.ts). */
  readonly partitions: readonly JsonObject[];
  readonly state: SnapshotState;
  readonly storage: 'directory' | 'glance' | 's3' | null;
}
/** A certificate of erasure (docs/erase.md). `command`: the command of the agent, of which there is one certificate. */
export interface ErasureRecord extends ResourceRecord, ErasureFields {
  readonly command: string;
}
export type NewErasure = Omit<ErasureRecord, 'id' | 'created_at' | 'updated_at' | 'revision'>;
export interface InspectionRuleRecord extends ResourceRecord, InspectionRuleFields {}
/** A rule of the introspection service, as in ironic-inspector. */
export interface IntrospectionRuleRecord extends ResourceRecord {
  readonly description: string | null;
  readonly scope: string | null;
  readonly conditions: readonly JsonObject[];
  readonly actions: readonly JsonObject[];
}
/** An entry of a node's history. */
export interface HistoryRecord extends ResourceRecord, HistoryEntryFields {
  readonly node_uuid: string;
}
export interface BiosSettingRecord {
  readonly name: string;
  readonly value: string | null;
  readonly attribute_type: string | null;
  readonly allowable_values: readonly Json[] | null;
  readonly lower_bound: number | null;
  readonly upper_bound: number | null;
  readonly min_length: number | null;
  readonly max_length: number | null;
  readonly read_only: boolean | null;
  readonly reset_required: boolean | null;
  readonly unique: boolean | null;
  readonly created_at: string;
  readonly updated_at: string | null;
}
export interface FirmwareComponentRecord {
  readonly component: string;
  readonly initial_version: string;
  readonly current_version: string | null;
  readonly last_version_flashed: string | null;
  readonly vendor: string | null;
  readonly model: string | null;
  readonly serial_number: string | null;
  readonly created_at: string;
  readonly updated_at: string | null;
}

/** The interfaces of a hardware type on a conductor. */
export interface EnabledHardware {
  readonly defaults: Readonly<Record<InterfaceKind, string | null>>;
  readonly enabled: Readonly<Record<InterfaceKind, readonly string[]>>;
}
export interface ConductorRecord {
  readonly id: number;
  readonly hostname: string;
  readonly conductor_group: string;
  /** Hardware type → its enabled interfaces on this conductor. */
  readonly drivers: Readonly<Record<string, EnabledHardware>>;
  readonly online: boolean;
  /** Online, with a recent heartbeat. */
  readonly alive: boolean;
  /** Its reservations are valid: it is registered and has a recent heartbeat, online or not. */
  readonly locks_valid: boolean;
  /** Its RPC URL; null: other processes cannot reach it. */
  readonly address: string | null;
  /** The running instance (one start of the process); null: none. */
  readonly instance: string | null;
  readonly created_at: string;
  /** Its last heartbeat. */
  readonly updated_at: string;
  /** Each registration raises it, because the enabled interfaces may differ. */
  readonly revision: number;
}

/** What an agent in a deployed system says of itself (docs/kexec.md). */
export interface ResidentRegistration {
  /** `https://ADDRESS:PORT`, by an IP address. */
  readonly url: string;
  /** PEM; the only certificate that is accepted there. */
  readonly certificate: string;
  readonly version: string;
  readonly boot_id: string;
}
type Registered = { readonly [Key in keyof ResidentRegistration]: ResidentRegistration[Key] | null };
export interface ResidentAgent extends Registered {
  readonly node_uuid: string;
  /** Secret, known to the server and to this agent: each proves to the other who it is. */
  readonly token: string;
  readonly token_from: 'operator' | 'deployment';
  readonly token_made_at: string;
  /** When it last registered; null, as what it registers: never. */
  readonly seen_at: string | null;
}

/** The ways to boot from the network, by the names of their boot interfaces. */
export const BOOT_METHODS = {
  ipxe: { loader: 'ipxe', byUrl: false },
  pxe: { loader: 'pxe', byUrl: false },
  'http-ipxe': { loader: 'ipxe', byUrl: true },
  http: { loader: 'pxe', byUrl: true },
} as const satisfies Readonly<Record<string, BootWay>>;
export type BootMethod = keyof typeof BOOT_METHODS;
interface BootWay {
  /** The boot loader: iPXE, or PXELINUX and GRUB. */
  readonly loader: 'ipxe' | 'pxe';
  /** Firmware gets the URL of the loader (UEFI HTTP boot) in place of its name on a TFTP server. */
  readonly byUrl: boolean;
}
/**
 * What a machine boots from the network. A driver writes one row for each node. The boot services find it by a MAC address and render it. A
 * known MAC address without a row gets no response: that is the PXE filter.
 */
export interface BootRecord {
  readonly node_uuid: string;
  /**
   * The MAC addresses of the machine. Empty (only for the purpose `ramdisk`): the row is for machines whose address no port has, so that a
   * node without ports can be inspected. The BMC address that the agent reports then identifies the node. If several nodes have such rows,
   * they are used only while all of them boot the same files by the same method.
   */
  readonly macs: readonly string[];
  /**
   * `ipxe`: iPXE by TFTP; script, kernel and ramdisk by HTTP. `http-ipxe`: iPXE by HTTP too. `pxe`: PXELINUX or GRUB and all files by TFTP.
   * `http`: GRUB and all files by HTTP.
   */
  readonly method: BootMethod;
  /** The agent, an instance that runs in memory, an installer, an instance on iSCSI volumes (the node's volume targets), or the local disk. */
  readonly purpose: 'ramdisk' | 'instance' | 'installer' | 'volume' | 'disk';
  /** Kernel arguments. The boot services add `initrd=` and, for the agent, `BOOTIF=`. */
  readonly kernel_args: string;
  /**
   * Name in `/boot/<token>/<name>` → its source: a path, `file://` or `http(s)://` URL. `kernel` and `ramdisk`, or `boot_iso` (an
   * instance, by iPXE), are booted; `kernel.aarch64` and `ramdisk.aarch64` instead by machines of that architecture (boot/architectures.ts).
   * Others (`image`) are only served.
   */
  readonly files: Readonly<Record<string, string>>;
  /** The node's property cpu_arch. Absent or null: it has none, and the machine may have any. */
  readonly cpu_arch?: string | null | undefined;
}
export interface ServedBoot extends BootRecord {
  /** The secret in the URLs of the files. Sources may need credentials, so a node's UUID must not suffice to read their content. */
  readonly token: string;
}
export interface Boots {
  /**
   * The first row of a node gets a token, which it keeps until it is removed.
   * @param kickstart the content of `/boot/<token>/ks.cfg`, which has secrets; absent: there is no such file
   */
  put(boot: BootRecord, kickstart?: string): Promise<ServedBoot>;
  /** The kickstart file of the record with this token. */
  kickstartOf(token: string): Promise<string | undefined>;
  remove(nodeUuid: string): Promise<void>;
  ofNode(nodeUuid: string): Promise<ServedBoot | undefined>;
  byToken(token: string): Promise<ServedBoot | undefined>;
  /** The row with this address. For an address without a port: the row for unknown machines (see `BootRecord.macs`). */
  forMac(mac: string): Promise<ServedBoot | undefined>;
  /** Records requests of machines. Ignores nodes without a row. */
  noteRequests(requests: readonly NodeBootRequests[]): Promise<void>;
  /** Undefined: the node has no row. */
  requestsOf(nodeUuid: string): Promise<BootRequests | undefined>;
}
/** The last request of each protocol that a machine sent to the boot services: ISO 8601 timestamps. */
export type BootRequests = Readonly<Partial<Record<BootProtocol, string>>>;
export type BootProtocol = 'DHCP' | 'TFTP' | 'HTTP';
export interface NodeBootRequests {
  readonly node_uuid: string;
  readonly requests: BootRequests;
}

/** The volume connectors and targets of nodes. */
export interface Volumes {
  /** In the order of their boot index. */
  targets(nodeUuid: string): Promise<readonly VolumeTargetRecord[]>;
  connectors(nodeUuid: string): Promise<readonly VolumeConnectorRecord[]>;
  saveProperties(targetUuid: string, properties: JsonObject): Promise<void>;
  removeTargets(nodeUuid: string): Promise<void>;
}

/** The snapshots of nodes. */
export interface Snapshots {
  /** Throws RecordNotFound. */
  find(uuid: string): Promise<SnapshotRecord>;
  /** A snapshot in another of these states counts as not found. */
  update(
    uuid: string,
    changes: ChangesOf<SnapshotRecord>,
    only?: { readonly state: readonly SnapshotRecord['state'][] },
  ): Promise<SnapshotRecord>;
}

/** What a medium is for: boot image, ramdisk parameters, config drive, or virtual media of users. A node has at most one for each. */
export type MediumRole = 'boot' | 'parameters' | 'configdrive' | 'cdrom' | 'disk' | 'floppy';
/** The content, generated when the BMC reads it. Sources are paths, `file://` or `http(s)://` URLs. */
export type MediumContent =
  /** Served unchanged. */
  | { readonly kind: 'image'; readonly source: string }
  /** A bootable ISO image with a kernel and the available boot loaders. */
  | {
      readonly kind: 'iso';
      readonly kernel: string;
      readonly ramdisk: string;
      /** UEFI: an image of an EFI system partition, or an EFI program. */
      readonly bootloader?: string;
      /** Files beside an EFI program: name → source. */
      readonly bootloader_files?: Readonly<Record<string, string>>;
      /** BIOS: ISOLINUX (or a GRUB for El Torito), and its library. */
      readonly isolinux?: string;
      readonly ldlinux?: string;
      readonly kernel_args: string;
      /** The volume's publisher, by which the ramdisk recognizes its image. */
      readonly publisher: string;
      /** Further files, path → text. */
      readonly files: Readonly<Record<string, string>>;
      /** An additional path of GRUB's configuration. */
      readonly grub_config_path?: string;
    }
  /** A file system with a file of `name=value` lines. */
  | { readonly kind: 'parameters'; readonly parameters: Readonly<Record<string, string>> }
  /** A gzipped image in base64. */
  | { readonly kind: 'packed'; readonly data: string };
/** An image for a node's BMC, and the secret token in its URL. */
export interface MediumRecord {
  readonly token: string;
  readonly node_uuid: string;
  readonly role: MediumRole;
  readonly content: MediumContent;
  /** Milliseconds since the epoch. */
  readonly made_at: number;
  /** Container of Swift with a copy of the image. */
  readonly swift_container: string | null;
}
export interface Media {
  /** Replaces the node's medium of this role. If `swift_container` is null, the stored one stays, so that its copy can still be removed. */
  put(medium: MediumRecord): Promise<void>;
  byToken(token: string): Promise<MediumRecord | undefined>;
  ofNode(nodeUuid: string, role: MediumRole): Promise<MediumRecord | undefined>;
  remove(nodeUuid: string, role: MediumRole): Promise<void>;
}

/** A lease of the DHCP server's address pool. */
export interface LeaseRecord {
  /** The MAC address of the machine. If a DHCPv6 client shows the address only in its DUID, `/` and the IAID follow. */
  readonly mac: string;
  readonly address: string;
  /** Milliseconds since the epoch. */
  readonly expires_at: number;
}

/** A heartbeat of a ramdisk: POST /v1/heartbeat. */
export interface Heartbeat {
  readonly callbackUrl: string;
  readonly agentVersion?: string | undefined;
  readonly agentToken?: string;
  readonly agentVerifyCa?: string | undefined;
  readonly agentStatus?: string | undefined;
  readonly agentStatusMessage?: string | undefined;
}

/** An agent's inventory, in ironic-python-agent's format. Declared are the members that the server reads; others are stored unchanged. */
export interface Inventory {
  readonly interfaces: readonly InventoryInterface[];
  readonly cpu?: JsonObject & { readonly architecture?: string; readonly count?: number };
  readonly memory?: JsonObject & { readonly physical_mb?: number };
  readonly disks?: readonly InventoryDisk[];
  /** Null: the machine has no BMC. */
  readonly bmc_address?: string | null;
  readonly bmc_v6address?: string | null;
  readonly boot?: JsonObject & { readonly current_boot_mode?: string; readonly pxe_interface?: string };
  readonly hostname?: string;
  readonly [more: string]: Json;
}
export interface InventoryInterface {
  readonly name: string;
  readonly mac_address: string;
  readonly ipv4_address?: string | null;
  readonly ipv6_address?: string | null;
  readonly has_carrier?: boolean;
  readonly lldp?: readonly (readonly [number, string])[] | null;
  readonly client_id?: string | null;
  readonly [more: string]: Json;
}
export interface InventoryDisk {
  readonly name: string;
  readonly size: number;
  readonly model?: string | null;
  readonly rotational?: boolean;
  readonly wwn?: string | null;
  readonly serial?: string | null;
  readonly vendor?: string | null;
  readonly wwn_with_extension?: string | null;
  readonly wwn_vendor_extension?: string | null;
  readonly hctl?: string | null;
  readonly by_path?: string | null;
  readonly [more: string]: Json;
}
export interface InventoryRecord {
  readonly inventory: Inventory;
  readonly plugin_data: JsonObject;
}

/** A token of `bloomery token`, without the token itself. */
export interface ApiTokenRecord {
  readonly name: string;
  readonly user_name: string;
  /** Includes implied roles. */
  readonly roles: readonly string[];
  readonly project: string | null;
  readonly domain: string | null;
  readonly system: boolean;
  readonly created_at: string;
  /** Null: never. */
  readonly expires_at: string | null;
  /** Updated at most once an hour. */
  readonly last_used_at: string | null;
}

/** How many nodes were in each provision state at a time. */
export interface StateCounts {
  readonly at: string;
  readonly counts: Readonly<Record<string, number>>;
}
/** State counts are kept for a day. */
export const STATE_COUNTS_KEPT_MS = 86_400_000;
