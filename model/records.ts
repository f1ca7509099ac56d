/** The rows of the store as every room sees them: plain JSON. Times are ISO 8601 strings with offset (see clock.ts: timestamp). */
import type {
  AllocationFields,
  ChassisFields,
  DeployTemplateFields,
  HistoryEntryFields,
  InspectionRuleFields,
  NodeFields,
  PortFields,
  PortgroupFields,
  RunbookFields,
  VolumeConnectorFields,
  VolumeTargetFields,
} from './fields';
import type { Json, JsonObject } from './json';
import type { ProvisionState } from './states';

export type { Json, JsonObject };
export type PowerState = 'power on' | 'power off' | 'error';

/** The kinds of interface that a driver is made of, in the order in which Ironic names them. */
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

/** What the records of every resource share. */
export interface ResourceRecord {
  readonly id: number;
  readonly uuid: string;
  readonly created_at: string;
  readonly updated_at: string | null;
  /** Every write raises it; a cached answer is valid while it is the same. */
  readonly revision: number;
}
interface NodeStates {
  readonly power_state: PowerState | null;
  readonly provision_state: ProvisionState;
  readonly target_provision_state: ProvisionState | null;
}
/** The fields of openapi.yaml, and what the API does not show. */
export interface NodeRecord extends ResourceRecord, NodeStates, Omit<NodeFields, keyof NodeStates> {
  /** Every reservation raises it. The holder of the lock writes only while the row has its number (fencing). */
  readonly lock_fence: number;
}
/** The columns that only the store writes. */
type StoreColumns = 'id' | 'uuid' | 'created_at' | 'updated_at' | 'revision' | 'lock_fence' | 'reservation';
export type NodeChanges = Partial<Omit<NodeRecord, StoreColumns>>;
export type NewNode = NodeChanges & { readonly uuid: string; readonly driver: string };

export interface PortRecord extends ResourceRecord, PortFields {}
export type PortChanges = Partial<Omit<PortRecord, keyof ResourceRecord>>;
export type NewPort = PortChanges & { readonly uuid: string; readonly node_uuid: string; readonly address: string };

/** What may be changed of a record, and what a new one may have; `Needed` are the columns that it must have. */
export type ChangesOf<RecordType> = Partial<Omit<RecordType, keyof ResourceRecord>>;
export type NewOf<RecordType, Needed extends keyof RecordType> = ChangesOf<RecordType> &
  Readonly<Pick<RecordType, Needed>> & { readonly uuid: string };

export interface ChassisRecord extends ResourceRecord, ChassisFields {}
export interface PortgroupRecord extends ResourceRecord, PortgroupFields {}
/** What a client says of a virtual port to plug into a node: where it goes, and whatever else the network interface may know. */
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
/** A step of a deploy template (`priority`) or of a runbook (`order`). */
export interface StepRecord {
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
export interface InspectionRuleRecord extends ResourceRecord, InspectionRuleFields {}
/** A rule of the introspection service, as ironic-inspector has them. */
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

/** What one hardware type offers on one conductor. */
export interface EnabledHardware {
  readonly defaults: Readonly<Record<InterfaceKind, string | null>>;
  readonly enabled: Readonly<Record<InterfaceKind, readonly string[]>>;
}
export interface ConductorRecord {
  readonly id: number;
  readonly hostname: string;
  readonly conductor_group: string;
  /** Hardware type → what is enabled of it there. */
  readonly drivers: Readonly<Record<string, EnabledHardware>>;
  readonly online: boolean;
  /** Online, and heard of lately. */
  readonly alive: boolean;
  /** Its reservations count: it is there, and heard of lately, online or not. */
  readonly locks_valid: boolean;
  /** Where it answers to other processes; null: none can reach it. */
  readonly address: string | null;
  /** Which start of it the row belongs to; null: nobody's. */
  readonly instance: string | null;
  readonly created_at: string;
  /** Its last sign of life. */
  readonly updated_at: string;
  /** Raised when it registers again, since it may offer something else then. */
  readonly revision: number;
}

/**
 * What a machine gets when it boots from the network. A driver writes the row; the boot services render it when the machine asks
 * (one row a node, found by any of its MAC addresses). A known MAC address without a row gets silence: that is the PXE filter.
 */
export interface BootRecord {
  readonly node_uuid: string;
  /**
   * The addresses it is found by. Empty with purpose `ramdisk`: any address that no port has, so that a node without ports can be
   * inspected (the agent's BMC address tells whose it is). Such a row is found only while all such rows serve the same files by the
   * same method: then it does not matter which of them a machine gets.
   */
  readonly macs: readonly string[];
  /**
   * `ipxe`: iPXE by TFTP, then its script, kernel and ramdisk by HTTP; `http-ipxe`: iPXE by HTTP too; `pxe`: PXELINUX or GRUB by TFTP, and
   * all else by TFTP.
   */
  readonly method: 'pxe' | 'ipxe' | 'http-ipxe';
  /** What it boots: the agent, an instance that lives in memory, or the disk, to which it hands over. */
  readonly purpose: 'ramdisk' | 'instance' | 'disk';
  /** The kernel's arguments, without `initrd=` and, for the agent, `BOOTIF=`: these are added. */
  readonly kernel_args: string;
  /**
   * Name under `/boot/<node_uuid>/<name>` → where its bytes are: a path, `file://` or `http(s)://` URL.
   * `kernel` and `ramdisk` are what is booted, or `boot_iso` (an instance, by iPXE); others (`image`) are only served.
   */
  readonly files: Readonly<Record<string, string>>;
}
export interface Boots {
  put(boot: BootRecord): Promise<void>;
  remove(nodeUuid: string): Promise<void>;
  ofNode(nodeUuid: string): Promise<BootRecord | undefined>;
  /** The row that names the address; else, for an address that no port has, the row for unknown machines (see `BootRecord.macs`). */
  forMac(mac: string): Promise<BootRecord | undefined>;
}

/** What a medium is to its node, one row each: what it boots from, what its ramdisk reads, its instance's config drive, and what users attach. */
export type MediumRole = 'boot' | 'parameters' | 'configdrive' | 'cdrom' | 'disk' | 'floppy';
/** What is on it, made when the BMC reads it. Sources are paths, `file://` or `http(s)://` URLs. */
export type MediumContent =
  /** Served as it is. */
  | { readonly kind: 'image'; readonly source: string }
  /** A CD that boots a kernel, with whichever loaders there are. */
  | {
      readonly kind: 'iso';
      readonly kernel: string;
      readonly ramdisk: string;
      /** UEFI: an image of an EFI system partition, or an EFI program. */
      readonly bootloader?: string;
      /** BIOS: ISOLINUX (or a GRUB made for El Torito), and its library. */
      readonly isolinux?: string;
      readonly ldlinux?: string;
      readonly kernel_args: string;
      /** Tells the ramdisk that this CD is its own. */
      readonly publisher: string;
      /** Further files, path → text. */
      readonly files: Readonly<Record<string, string>>;
      /** Where GRUB may look for its configuration beside the usual places. */
      readonly grub_config_path?: string;
    }
  /** A file system with a file of `name=value` lines. */
  | { readonly kind: 'parameters'; readonly parameters: Readonly<Record<string, string>> }
  /** A gzipped image in base64. */
  | { readonly kind: 'packed'; readonly data: string };
/** An image that a node's BMC is given, and the part of its URL that nobody guesses. */
export interface MediumRecord {
  readonly token: string;
  readonly node_uuid: string;
  readonly role: MediumRole;
  readonly content: MediumContent;
  /** Milliseconds since the epoch. */
  readonly made_at: number;
}
export interface Media {
  /** In the place of the one that the node had for this role. */
  put(medium: MediumRecord): Promise<void>;
  byToken(token: string): Promise<MediumRecord | undefined>;
  ofNode(nodeUuid: string, role: MediumRole): Promise<MediumRecord | undefined>;
  remove(nodeUuid: string, role: MediumRole): Promise<void>;
}

/** An address that the DHCP server gave from its pool. */
export interface LeaseRecord {
  readonly mac: string;
  readonly address: string;
  /** Milliseconds since the epoch. */
  readonly expires_at: number;
}

/** A ramdisk's sign of life: POST /v1/heartbeat. */
export interface Heartbeat {
  readonly callbackUrl: string;
  readonly agentVersion?: string;
  readonly agentToken?: string;
  readonly agentVerifyCa?: string;
  readonly agentStatus?: string;
  readonly agentStatusMessage?: string;
}

/** The hardware as an agent reports it (ironic-python-agent's shape). Only what the server reads is named; the rest is kept as it came. */
export interface Inventory {
  readonly interfaces: readonly InventoryInterface[];
  readonly cpu?: JsonObject & { readonly architecture?: string; readonly count?: number };
  readonly memory?: JsonObject & { readonly physical_mb?: number };
  readonly disks?: readonly InventoryDisk[];
  /** Null: there is no BMC. */
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
