/**
 * The keys of a node's driver_internal_info: which part of the program writes each of them, the type of its value, and when it is forgotten.
 * A row for a key is all that its part needs. Keys without a row are compile errors. A database that was imported from Ironic may have values
 * of other types, and keys of drivers that are not here.
 */
import type { EraseChoice } from './agent/erasure';
import type { JsonObject } from './json';
import type { Caller } from './origin';

interface Requester {
  readonly user: string | null;
  readonly project: string | null;
  readonly request_id: string | null;
  readonly requested_at: string;
}
interface EraseRequest extends Requester {
  /** Who released the machine; absent: nobody did since its last cleaning that ended well. */
  readonly released?: Requester;
  readonly instance_uuid: string | null;
  readonly instance_name: string | null;
  readonly lessee: string | null;
}
/** The part of the program that writes the key. `ironic`: only an imported database has it. */
type Owner = 'agent' | 'api' | 'boot' | 'conductor' | 'console' | 'discoverd' | 'dnsmasq' | 'ipmi' | 'ironic' | 'redfish' | 'storage';

/** When keys are forgotten, and which other moments each of them includes. */
const MOMENTS = {
  /** The machine's system ends, and its agent with it. */
  'system end': [],
  /** A flow is done with the agent, or needs another: an agent must look the node up again before its heartbeats count. */
  'agent end': [],
  /** The running step is not polled any more. */
  'poll end': [],
  /** A list of steps ends, whatever its result. */
  'steps end': ['agent end', 'poll end'],
  'clean end': ['steps end'],
  'deploy end': ['steps end'],
  'service end': ['steps end'],
  /** Steps that a client listed failed. The list and its options stay, so that clients can read them. */
  'clean failure': ['steps end'],
  'service failure': ['steps end'],
  'instance end': ['deploy end'],
  'inspect end': [],
} as const satisfies Record<string, readonly string[]>;
type Moment = keyof typeof MOMENTS;

/** Work that must wait while the node has the key, since the machine may restart by itself, or is up. */
type Deferred = 'power sync' | 'fast track' | 'boot retry';

interface Row<Value> {
  readonly owner: Owner;
  readonly forgotten?: readonly Moment[];
  /** The value after that. Absent: the key is removed. */
  readonly becomes?: null;
  readonly defers?: readonly Deferred[];
  /** Only for the type. */
  readonly value?: Value;
}
const row = <Value>(made: Row<Value>): Row<Value> => made;

/** @internal */
export const INTERNAL_INFO = {
  agent_cached_clean_steps: row<object>({ owner: 'agent', forgotten: ['system end', 'clean end'] }),
  agent_cached_clean_steps_refreshed: row<string>({ owner: 'agent' }),
  agent_cached_deploy_steps: row<object>({ owner: 'agent', forgotten: ['system end', 'deploy end'] }),
  agent_cached_deploy_steps_refreshed: row<string>({ owner: 'agent' }),
  agent_cached_service_steps: row<object>({ owner: 'agent', forgotten: ['system end', 'service end'] }),
  agent_cached_service_steps_refreshed: row<string>({ owner: 'agent' }),
  agent_continue_if_ata_erase_failed: row<boolean>({ owner: 'agent' }),
  agent_continue_if_secure_erase_failed: row<boolean>({ owner: 'agent' }),
  agent_enable_ata_secure_erase: row<boolean>({ owner: 'agent' }),
  agent_enable_nvme_secure_erase: row<boolean>({ owner: 'agent' }),
  agent_erase_devices_iterations: row<number>({ owner: 'agent' }),
  agent_erase_devices_zeroize: row<boolean>({ owner: 'agent' }),
  agent_erase_skip_read_only: row<boolean>({ owner: 'agent' }),
  agent_last_heartbeat: row<string>({ owner: 'conductor' }),
  /** interface.step → when it ended, and what the agent said of it: of the last steps that say something. */
  agent_step_results: row<Readonly<Record<string, { readonly at: string; readonly result: unknown }>>>({ owner: 'agent' }),
  agent_secret_token: row<string>({ owner: 'conductor', forgotten: ['system end', 'agent end'], defers: ['boot retry'] }),
  /** The process that gave the token in an answer to a lookup (api/pipeline/agent-tokens.ts). */
  agent_secret_token_giver: row<string>({ owner: 'api', forgotten: ['system end', 'agent end'] }),
  /** The token is part of the boot medium. */
  agent_secret_token_pregenerated: row<boolean>({ owner: 'boot', forgotten: ['agent end'] }),
  /** What an installer said last. It stays, as in Ironic, until the next installer boots. */
  agent_status: row<string>({ owner: 'conductor' }),
  agent_status_message: row<string>({ owner: 'conductor' }),
  agent_url: row<string>({ owner: 'conductor', forgotten: ['system end', 'agent end'] }),
  /** The certificate itself (PEM), not the name of a file. */
  agent_verify_ca: row<string>({ owner: 'conductor', forgotten: ['system end', 'agent end'] }),
  agent_version: row<string>({ owner: 'conductor', forgotten: ['system end'] }),
  hardware_manager_version: row<unknown>({ owner: 'agent' }),
  disk_erasure_concurrency: row<number>({ owner: 'agent' }),
  target_raid_config: row<unknown>({ owner: 'agent' }),

  clean_step_index: row<number>({ owner: 'conductor', forgotten: ['clean end', 'clean failure'] }),
  clean_steps: row<readonly object[] | null>({ owner: 'conductor', forgotten: ['clean end'], becomes: null }),
  cleaning_disable_ramdisk: row<boolean>({ owner: 'conductor', forgotten: ['clean end'] }),
  /** What a request chose for the disks: until an automated cleaning has ended well, so that one that is tried again keeps to it. */
  erase_choice: row<{ readonly erase?: EraseChoice; readonly keep?: readonly JsonObject[] }>({ owner: 'conductor' }),
  /** Who asked for the cleaning, and of which instance: for certificates of erasure. */
  erase_request: row<EraseRequest>({ owner: 'conductor' }),
  /** Cleaning has not begun, because the node is out of service. */
  cleaning_held: row<boolean>({ owner: 'conductor', forgotten: ['clean end', 'clean failure'] }),
  /** The steps come from a client or a runbook, and not from the priorities of the driver and the agent. */
  declarative_cleaning: row<boolean>({ owner: 'conductor', forgotten: ['clean end'] }),
  deploy_step_index: row<number>({ owner: 'conductor', forgotten: ['deploy end'] }),
  deploy_steps: row<readonly object[] | null>({ owner: 'conductor', forgotten: ['deploy end'], becomes: null }),
  /** The first steps of a list run before the ramdisk boots. `later`: it is not prepared yet. `begun`: it may be. Absent: it was booted, or is not needed. */
  ramdisk_boot: row<'later' | 'begun'>({ owner: 'conductor', forgotten: ['steps end'], defers: ['boot retry'] }),
  service_disable_ramdisk: row<boolean>({ owner: 'conductor', forgotten: ['service end'] }),
  service_step_index: row<number>({ owner: 'conductor', forgotten: ['service end', 'service failure'] }),
  service_steps: row<readonly object[] | null>({ owner: 'conductor', forgotten: ['service end'], becomes: null }),
  /** Seconds. */
  step_poll_every: row<number>({ owner: 'conductor', forgotten: ['poll end'], defers: ['boot retry'] }),
  /** The list of deploy steps has the agent's steps. */
  steps_validated: row<boolean>({
    owner: 'conductor',
    forgotten: ['clean end', 'clean failure', 'deploy end', 'service end', 'service failure'],
  }),
  user_deploy_steps: row<readonly object[] | null>({ owner: 'conductor', forgotten: ['deploy end'] }),
  /** The machine reboots into the ramdisk because a step requested it. */
  cleaning_reboot: row<boolean>({ owner: 'agent', forgotten: ['clean end', 'clean failure', 'service failure'] }),
  deployment_reboot: row<boolean>({ owner: 'agent', forgotten: ['deploy end'] }),
  servicing_reboot: row<boolean>({ owner: 'agent', forgotten: ['service end', 'clean failure', 'service failure'] }),

  /** The flow whose abort is not cleaned up yet, with its variant. */
  abort_unfinished: row<string>({ owner: 'conductor' }),
  /** The lessee is that of the instance. */
  automatic_lessee: row<boolean>({ owner: 'conductor', forgotten: ['instance end'] }),
  /** `oci_artifact`: the image is from a container registry. */
  container_image_type: row<string>({ owner: 'agent', forgotten: ['instance end'] }),
  deploy_boot_mode: row<string>({ owner: 'boot', forgotten: ['instance end'] }),
  /** The sizes of a partition image's partitions, as they were deployed. */
  instance: row<JsonObject>({ owner: 'agent', forgotten: ['instance end'] }),
  /** Of an installer, while it is deployed: the template of the kickstart file, and the second stage. */
  ks_template: row<string>({ owner: 'agent', forgotten: ['deploy end'] }),
  stage2: row<string>({ owner: 'agent', forgotten: ['deploy end'] }),
  /** The manifest of an image in a registry, by its digest. */
  image_source: row<string>({ owner: 'agent', forgotten: ['deploy end'] }),
  /** The image of the instance is a repository. */
  is_source_a_path: row<boolean>({ owner: 'conductor', forgotten: ['instance end'] }),
  is_whole_disk_image: row<boolean>({ owner: 'conductor', forgotten: ['instance end'] }),
  /** The agent has loaded the kernel of the instance. `told`: and it was told to start it. */
  kexec: row<{ readonly kernel: string; readonly told?: true }>({
    owner: 'agent',
    forgotten: ['system end', 'deploy end'],
    defers: ['boot retry'],
  }),
  /**
   * The agent in the instance was told to start the ramdisk, at that time in milliseconds: until the first heartbeat of the ramdisk's agent.
   */
  resident_kexec: row<{ readonly at: number; readonly kernel: string }>({
    owner: 'agent',
    forgotten: ['poll end'],
    defers: ['boot retry'],
  }),
  /** Who asked for the flow that runs, and may use images for it. Only where Glance is configured: nothing else asks. */
  flow_requester: row<Caller>({ owner: 'conductor' }),
  /** The deploy interface that was replaced by the one that it chose. */
  original_deploy_interface: row<string>({ owner: 'conductor' }),
  last_power_state_change: row<string>({ owner: 'conductor' }),
  root_uuid_or_disk_id: row<string>({ owner: 'agent', forgotten: ['instance end'] }),

  /** The UUID of the volume target. */
  boot_from_volume: row<string>({ owner: 'storage', forgotten: ['instance end'] }),
  /**
   * The volume whose attachment has begun and is not saved yet. A conductor that finds it knows that a reservation of this volume is its own,
   * and that the target has no connection information.
   */
  attaching_volume: row<string>({ owner: 'storage' }),

  /** `inspection_started_at` of the inspection that the service was asked for. */
  discoverd_asked: row<string | null>({ owner: 'discoverd', forgotten: ['inspect end'] }),
  inspector_manage_boot: row<boolean>({ owner: 'agent', forgotten: ['inspect end'] }),
  lookup_bmc_addresses: row<unknown>({ owner: 'agent', forgotten: ['inspect end'] }),

  /** The token of a graphical console (model/rules/screen-token.ts). */
  novnc_secret_token: row<string>({ owner: 'console' }),
  novnc_secret_token_created: row<string>({ owner: 'console' }),

  dnsmasq_tag: row<string>({ owner: 'dnsmasq' }),
  /** The protocol by which the BMC got the boot ISO. */
  vmedia_transport_protocol: row<string>({ owner: 'boot' }),

  allocated_ipmi_terminal_port: row<number>({ owner: 'ipmi' }),
  is_next_boot_persistent: row<boolean>({ owner: 'ipmi' }),
  persistent_boot_device: row<string>({ owner: 'ipmi' }),

  /** Unfinished images of the management interface. */
  firmware_updates: row<readonly object[] | null>({ owner: 'redfish', defers: ['fast track', 'boot retry'] }),
  /** Unfinished changes of volumes, saved before the first request. */
  raid_configs: row<unknown>({ owner: 'redfish', forgotten: ['steps end'], defers: ['boot retry'] }),
  /** Settings were sent, and take effect when the machine starts. */
  redfish_bios_state: row<object>({ owner: 'redfish', forgotten: ['steps end'] }),
  /** The ports of the network adapters as they were last read, for default configs. */
  network_ports: row<readonly object[]>({ owner: 'redfish' }),
  /** Modes of network ports were sent, and take effect when the machine starts. */
  redfish_network_state: row<object>({ owner: 'redfish', forgotten: ['steps end'] }),
  /** The persistent boot device of a service that keeps none. */
  redfish_boot_device: row<string>({ owner: 'redfish' }),
  /** A reset of the iDRAC was asked for, and its end was not seen. */
  idrac_reset: row<true>({ owner: 'redfish', forgotten: ['steps end'] }),
  redfish_fw_update_start_time: row<string>({ owner: 'redfish' }),
  /** Unfinished updates of the firmware interface. */
  redfish_fw_updates: row<readonly object[] | null>({ owner: 'redfish', defers: ['power sync', 'fast track', 'boot retry'] }),
} as const;

export type InternalKey = keyof typeof INTERNAL_INFO;
/** driver_internal_info of a node. */
export type InternalInfo = {
  readonly [Key in InternalKey]?: (typeof INTERNAL_INFO)[Key] extends Row<infer Value> ? Value : never;
};
/** Keys of driver_internal_info to set; `undefined` removes one. */
export type InternalChanges = { readonly [Key in InternalKey]?: InternalInfo[Key] | undefined };

const rows = Object.entries(INTERNAL_INFO) as readonly (readonly [InternalKey, Row<unknown>])[];

const included = (moment: Moment): readonly Moment[] => [moment, ...MOMENTS[moment].flatMap(included)];
const FORGOTTEN = Object.fromEntries(
  (Object.keys(MOMENTS) as Moment[]).map((moment) => {
    const moments = included(moment);
    const concerned = rows.filter(([, { forgotten = [] }]) => forgotten.some((candidate) => moments.includes(candidate)));
    return [moment, Object.fromEntries(concerned.map(([key, { becomes }]) => [key, becomes]))];
  }),
) as Readonly<Record<Moment, InternalChanges>>;
/** The changes that forget the keys of a moment, and of those that it includes. */
export const forgottenAt = (moment: Moment): InternalChanges => FORGOTTEN[moment];

const deferring = (work: Deferred): readonly InternalKey[] => rows.filter(([, { defers }]) => defers?.includes(work)).map(([key]) => key);
const DEFERRING: Readonly<Record<Deferred, readonly InternalKey[]>> = {
  'power sync': deferring('power sync'),
  'fast track': deferring('fast track'),
  'boot retry': deferring('boot retry'),
};
/** Whether the node has a key that defers this work. */
export const isDeferred = (work: Deferred, info: InternalInfo): boolean => DEFERRING[work].some((key) => info[key] !== undefined);

/** A change of one key, which may be computed. */
export const setting = <Key extends InternalKey>(key: Key, value: InternalChanges[Key]): InternalChanges => ({ [key]: value });
