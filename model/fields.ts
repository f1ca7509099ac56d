// Generated from openapi.yaml by `npm run types`: do not edit.
import type { JsonObject } from './json';

/** The newest microversion is 1.N. */
export const NEWEST_MINOR = 115;

export const NODE_FIELDS = {
  uuid: 'text',
  created_at: 'time',
  updated_at: 'time',
  automated_clean: 'boolean',
  bios_interface: 'text',
  boot_interface: 'text',
  boot_mode: 'text',
  clean_step: 'json',
  conductor_group: 'text',
  console_enabled: 'boolean',
  console_interface: 'text',
  disable_power_off: 'boolean',
  deploy_interface: 'text',
  deploy_step: 'json',
  description: 'text',
  driver: 'text',
  driver_info: 'json',
  driver_internal_info: 'json',
  extra: 'json',
  fault: 'text',
  firmware_interface: 'text',
  health: 'text',
  inspection_finished_at: 'time',
  inspection_started_at: 'time',
  inspect_interface: 'text',
  instance_info: 'json',
  instance_name: 'text',
  instance_uuid: 'text',
  last_error: 'text',
  lessee: 'text',
  maintenance: 'boolean',
  maintenance_reason: 'text',
  management_interface: 'text',
  name: 'text',
  out_of_service: 'json',
  network_data: 'json',
  network_interface: 'text',
  owner: 'text',
  parent_node: 'text',
  power_interface: 'text',
  power_state: 'text',
  properties: 'json',
  protected: 'boolean',
  protected_reason: 'text',
  provision_state: 'text',
  provision_updated_at: 'time',
  raid_config: 'json',
  raid_interface: 'text',
  rescue_interface: 'text',
  reservation: 'text',
  resource_class: 'text',
  retired: 'boolean',
  retired_reason: 'text',
  secure_boot: 'boolean',
  service_step: 'json',
  shard: 'text',
  storage_interface: 'text',
  target_power_state: 'text',
  target_provision_state: 'text',
  target_raid_config: 'json',
  traits: 'texts',
  vendor_interface: 'text',
  allocation_uuid: 'text',
  chassis_uuid: 'text',
} as const;
export interface NodeFields {
  readonly uuid: string;
  readonly created_at: string;
  readonly updated_at: string | null;
  readonly automated_clean: boolean | null;
  readonly bios_interface: string | null;
  readonly boot_interface: string | null;
  readonly boot_mode: string | null;
  readonly clean_step: JsonObject;
  readonly conductor_group: string;
  readonly console_enabled: boolean;
  readonly console_interface: string | null;
  readonly disable_power_off: boolean | null;
  readonly deploy_interface: string | null;
  readonly deploy_step: JsonObject;
  readonly description: string | null;
  readonly driver: string;
  readonly driver_info: JsonObject;
  readonly driver_internal_info: JsonObject;
  readonly extra: JsonObject;
  readonly fault: string | null;
  readonly firmware_interface: string | null;
  readonly health: string | null;
  readonly inspection_finished_at: string | null;
  readonly inspection_started_at: string | null;
  readonly inspect_interface: string | null;
  readonly instance_info: JsonObject;
  readonly instance_name: string | null;
  readonly instance_uuid: string | null;
  readonly last_error: string | null;
  readonly lessee: string | null;
  readonly maintenance: boolean;
  readonly maintenance_reason: string | null;
  readonly management_interface: string | null;
  readonly name: string | null;
  readonly out_of_service: JsonObject;
  readonly network_data: JsonObject;
  readonly network_interface: string | null;
  readonly owner: string | null;
  readonly parent_node: string | null;
  readonly power_interface: string | null;
  readonly power_state: string | null;
  readonly properties: JsonObject;
  readonly protected: boolean;
  readonly protected_reason: string | null;
  readonly provision_state: string | null;
  readonly provision_updated_at: string | null;
  readonly raid_config: JsonObject;
  readonly raid_interface: string | null;
  readonly rescue_interface: string | null;
  readonly reservation: string | null;
  readonly resource_class: string | null;
  readonly retired: boolean | null;
  readonly retired_reason: string | null;
  readonly secure_boot: boolean | null;
  readonly service_step: JsonObject;
  readonly shard: string | null;
  readonly storage_interface: string | null;
  readonly target_power_state: string | null;
  readonly target_provision_state: string | null;
  readonly target_raid_config: JsonObject;
  readonly traits: readonly string[];
  readonly vendor_interface: string | null;
  readonly allocation_uuid: string | null;
  readonly chassis_uuid: string | null;
}

export const PORT_FIELDS = {
  uuid: 'text',
  created_at: 'time',
  updated_at: 'time',
  address: 'text',
  extra: 'json',
  internal_info: 'json',
  is_smartnic: 'boolean',
  local_link_connection: 'json',
  physical_network: 'text',
  pxe_enabled: 'boolean',
  node_uuid: 'text',
  name: 'text',
  description: 'text',
  vendor: 'text',
  category: 'text',
  available_for_dynamic_portgroup: 'boolean',
  portgroup_uuid: 'text',
} as const;
export interface PortFields {
  readonly uuid: string;
  readonly created_at: string;
  readonly updated_at: string | null;
  readonly address: string;
  readonly extra: JsonObject;
  readonly internal_info: JsonObject;
  readonly is_smartnic: boolean | null;
  readonly local_link_connection: JsonObject;
  readonly physical_network: string | null;
  readonly pxe_enabled: boolean;
  readonly node_uuid: string;
  readonly name: string | null;
  readonly description: string | null;
  readonly vendor: string | null;
  readonly category: string | null;
  readonly available_for_dynamic_portgroup: boolean;
  readonly portgroup_uuid: string | null;
}

export const PORTGROUP_FIELDS = {
  uuid: 'text',
  created_at: 'time',
  updated_at: 'time',
  address: 'text',
  extra: 'json',
  internal_info: 'json',
  mode: 'text',
  name: 'text',
  properties: 'json',
  standalone_ports_supported: 'boolean',
  node_uuid: 'text',
  physical_network: 'text',
  category: 'text',
  dynamic_portgroup: 'boolean',
} as const;
export interface PortgroupFields {
  readonly uuid: string;
  readonly created_at: string;
  readonly updated_at: string | null;
  readonly address: string | null;
  readonly extra: JsonObject;
  readonly internal_info: JsonObject;
  readonly mode: string | null;
  readonly name: string | null;
  readonly properties: JsonObject;
  readonly standalone_ports_supported: boolean;
  readonly node_uuid: string;
  readonly physical_network: string | null;
  readonly category: string | null;
  readonly dynamic_portgroup: boolean;
}

export const HISTORY_ENTRY_FIELDS = {
  uuid: 'text',
  created_at: 'time',
  severity: 'text',
  event_type: 'text',
  event: 'text',
  conductor: 'text',
  user: 'text',
  project: 'text',
  state: 'text',
  target_provision_state: 'text',
  duration_seconds: 'integer',
} as const;
export interface HistoryEntryFields {
  readonly uuid: string;
  readonly created_at: string;
  readonly severity: string | null;
  readonly event_type: string | null;
  readonly event: string | null;
  readonly conductor: string | null;
  readonly user: string | null;
  readonly project: string | null;
  readonly state: string | null;
  readonly target_provision_state: string | null;
  readonly duration_seconds: number | null;
}

export const CHASSIS_FIELDS = {
  uuid: 'text',
  created_at: 'time',
  updated_at: 'time',
  description: 'text',
  extra: 'json',
} as const;
export interface ChassisFields {
  readonly uuid: string;
  readonly created_at: string;
  readonly updated_at: string | null;
  readonly description: string | null;
  readonly extra: JsonObject;
}

export const VOLUME_CONNECTOR_FIELDS = {
  uuid: 'text',
  created_at: 'time',
  updated_at: 'time',
  connector_id: 'text',
  extra: 'json',
  type: 'text',
  node_uuid: 'text',
} as const;
export interface VolumeConnectorFields {
  readonly uuid: string;
  readonly created_at: string;
  readonly updated_at: string | null;
  readonly connector_id: string;
  readonly extra: JsonObject;
  readonly type: string;
  readonly node_uuid: string;
}

export const VOLUME_TARGET_FIELDS = {
  uuid: 'text',
  created_at: 'time',
  updated_at: 'time',
  boot_index: 'integer',
  extra: 'json',
  properties: 'json',
  volume_id: 'text',
  volume_type: 'text',
  node_uuid: 'text',
} as const;
export interface VolumeTargetFields {
  readonly uuid: string;
  readonly created_at: string;
  readonly updated_at: string | null;
  readonly boot_index: number;
  readonly extra: JsonObject;
  readonly properties: JsonObject;
  readonly volume_id: string;
  readonly volume_type: string;
  readonly node_uuid: string;
}

export const ALLOCATION_FIELDS = {
  uuid: 'text',
  created_at: 'time',
  updated_at: 'time',
  candidate_nodes: 'texts',
  extra: 'json',
  last_error: 'text',
  name: 'text',
  owner: 'text',
  resource_class: 'text',
  state: 'text',
  traits: 'texts',
  node_uuid: 'text',
} as const;
export interface AllocationFields {
  readonly uuid: string;
  readonly created_at: string;
  readonly updated_at: string | null;
  readonly candidate_nodes: readonly string[];
  readonly extra: JsonObject;
  readonly last_error: string | null;
  readonly name: string | null;
  readonly owner: string | null;
  readonly resource_class: string | null;
  readonly state: string;
  readonly traits: readonly string[];
  readonly node_uuid: string | null;
}

export const DEPLOY_TEMPLATE_FIELDS = {
  uuid: 'text',
  created_at: 'time',
  updated_at: 'time',
  name: 'text',
  extra: 'json',
  steps: 'json',
} as const;
export interface DeployTemplateFields {
  readonly uuid: string;
  readonly created_at: string;
  readonly updated_at: string | null;
  readonly name: string;
  readonly extra: JsonObject;
  readonly steps: readonly JsonObject[];
}

export const IMAGE_FIELDS = {
  uuid: 'text',
  created_at: 'time',
  updated_at: 'time',
  name: 'text',
  description: 'text',
  image_source: 'text',
  image_checksum: 'text',
  image_os_hash_algo: 'text',
  image_os_hash_value: 'text',
  extra: 'json',
} as const;
export interface ImageFields {
  readonly uuid: string;
  readonly created_at: string;
  readonly updated_at: string | null;
  readonly name: string;
  readonly description: string | null;
  readonly image_source: string;
  readonly image_checksum: string | null;
  readonly image_os_hash_algo: string | null;
  readonly image_os_hash_value: string | null;
  readonly extra: JsonObject;
}

export const DEFAULT_CONFIG_FIELDS = {
  uuid: 'text',
  created_at: 'time',
  updated_at: 'time',
  resource_class: 'text',
  property: 'text',
  value: 'text',
  node_uuid: 'text',
  description: 'text',
  steps: 'json',
} as const;
export interface DefaultConfigFields {
  readonly uuid: string;
  readonly created_at: string;
  readonly updated_at: string | null;
  readonly resource_class: string | null;
  readonly property: string | null;
  readonly value: string | null;
  readonly node_uuid: string | null;
  readonly description: string | null;
  readonly steps: readonly JsonObject[];
}

export const SNAPSHOT_FIELDS = {
  uuid: 'text',
  created_at: 'time',
  updated_at: 'time',
  node_uuid: 'text',
  node_name: 'text',
  owner: 'text',
  description: 'text',
  public: 'boolean',
  root_device: 'json',
  blocks: 'text',
  state: 'text',
  progress: 'integer',
  last_error: 'text',
  storage: 'text',
  image_id: 'text',
  disk: 'text',
  disk_size: 'integer',
  size: 'integer',
  sha256: 'text',
  compression: 'text',
  left_out: 'integer',
  partitions: 'json',
  parts: 'json',
} as const;
export interface SnapshotFields {
  readonly uuid: string;
  readonly created_at: string;
  readonly updated_at: string | null;
  readonly node_uuid: string;
  readonly node_name: string | null;
  readonly owner: string | null;
  readonly description: string | null;
  readonly public: boolean;
  readonly root_device: JsonObject;
  readonly blocks: string;
  readonly state: string;
  readonly progress: number;
  readonly last_error: string | null;
  readonly storage: string | null;
  readonly image_id: string | null;
  readonly disk: string | null;
  readonly disk_size: number | null;
  readonly size: number | null;
  readonly sha256: string | null;
  readonly compression: string | null;
  readonly left_out: number | null;
  readonly partitions: readonly JsonObject[];
  readonly parts: JsonObject;
}

export const ERASURE_FIELDS = {
  uuid: 'text',
  created_at: 'time',
  updated_at: 'time',
  node_uuid: 'text',
  node_name: 'text',
  owner: 'text',
  lessee: 'text',
  instance_uuid: 'text',
  step: 'text',
  erased: 'integer',
  skipped: 'integer',
  serials: 'texts',
  document: 'text',
  signature: 'text',
  public_key: 'text',
  key_fingerprint: 'text',
} as const;
export interface ErasureFields {
  readonly uuid: string;
  readonly created_at: string;
  readonly updated_at: string | null;
  readonly node_uuid: string;
  readonly node_name: string | null;
  readonly owner: string | null;
  readonly lessee: string | null;
  readonly instance_uuid: string | null;
  readonly step: string;
  readonly erased: number;
  readonly skipped: number;
  readonly serials: readonly string[];
  readonly document: string;
  readonly signature: string;
  readonly public_key: string;
  readonly key_fingerprint: string;
}

export const RUNBOOK_FIELDS = {
  uuid: 'text',
  created_at: 'time',
  updated_at: 'time',
  name: 'text',
  description: 'text',
  steps: 'json',
  disable_ramdisk: 'boolean',
  extra: 'json',
  public: 'boolean',
  owner: 'text',
  traits: 'texts',
} as const;
export interface RunbookFields {
  readonly uuid: string;
  readonly created_at: string;
  readonly updated_at: string | null;
  readonly name: string;
  readonly description: string | null;
  readonly steps: readonly JsonObject[];
  readonly disable_ramdisk: boolean;
  readonly extra: JsonObject;
  readonly public: boolean;
  readonly owner: string | null;
  readonly traits: readonly string[];
}

export const INSPECTION_RULE_FIELDS = {
  created_at: 'time',
  updated_at: 'time',
  actions: 'json',
  conditions: 'json',
  description: 'text',
  phase: 'text',
  priority: 'integer',
  sensitive: 'boolean',
  uuid: 'text',
} as const;
export interface InspectionRuleFields {
  readonly created_at: string;
  readonly updated_at: string | null;
  readonly actions: readonly JsonObject[];
  readonly conditions: readonly JsonObject[];
  readonly description: string | null;
  readonly phase: string | null;
  readonly priority: number;
  readonly sensitive: boolean;
  readonly uuid: string;
}
