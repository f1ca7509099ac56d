// Generated from openapi.yaml by `npm run types`: do not edit.
import type { JsonObject } from './records';

export interface Link {
  readonly href: string;
  readonly rel: string;
  readonly type?: string;
}
export interface NodeFields {
  readonly uuid: string | null;
  readonly created_at: string;
  readonly updated_at: string | null;
  readonly automated_clean: boolean | null; // 1.47
  readonly bios_interface: string | null; // 1.40
  readonly boot_interface: string | null; // 1.31
  readonly boot_mode: string | null; // 1.75
  readonly clean_step: JsonObject; // 1.7
  readonly conductor_group: string | null; // 1.46
  readonly console_enabled: boolean | null;
  readonly console_interface: string | null; // 1.31
  readonly disable_power_off: boolean | null; // 1.95
  readonly deploy_interface: string | null; // 1.31
  readonly deploy_step: JsonObject; // 1.44
  readonly description: string | null; // 1.51
  readonly driver: string;
  readonly driver_info: JsonObject | null;
  readonly driver_internal_info: JsonObject; // 1.3
  readonly extra: JsonObject | null;
  readonly fault: string | null; // 1.42
  readonly firmware_interface: string | null; // 1.86
  readonly health: string | null; // 1.109
  readonly inspection_finished_at: string | null; // 1.6
  readonly inspection_started_at: string | null; // 1.6
  readonly inspect_interface: string | null; // 1.31
  readonly instance_info: JsonObject | null;
  readonly instance_name: string | null; // 1.104
  readonly instance_uuid: string | null;
  readonly last_error: string | null;
  readonly lessee: string | null; // 1.65
  readonly maintenance: boolean | null;
  readonly maintenance_reason: string | null;
  readonly management_interface: string | null; // 1.31
  readonly name: string | null; // 1.5
  readonly network_data: JsonObject | null; // 1.66
  readonly network_interface: string | null; // 1.20
  readonly owner: string | null; // 1.50
  readonly parent_node: string | null; // 1.83
  readonly power_interface: string | null; // 1.31
  readonly power_state: string | null;
  readonly properties: JsonObject | null;
  readonly protected: boolean | null; // 1.48
  readonly protected_reason: string | null; // 1.48
  readonly provision_state: string | null;
  readonly provision_updated_at: string | null;
  readonly raid_config: JsonObject; // 1.12
  readonly raid_interface: string | null; // 1.31
  readonly rescue_interface: string | null; // 1.38
  readonly reservation: string | null;
  readonly resource_class: string | null; // 1.21
  readonly retired: boolean | null; // 1.61
  readonly retired_reason: string | null; // 1.61
  readonly secure_boot: boolean | null; // 1.75
  readonly service_step: JsonObject; // 1.87
  readonly shard: string | null; // 1.82
  readonly storage_interface: string | null; // 1.33
  readonly target_power_state: string | null;
  readonly target_provision_state: string | null;
  readonly target_raid_config: JsonObject; // 1.12
  readonly traits: readonly string[]; // 1.37
  readonly vendor_interface: string | null; // 1.31
  readonly links: readonly Link[];
  readonly conductor: string | null; // 1.49
  readonly allocation_uuid: string | null; // 1.52
  readonly chassis_uuid: string | null;
  readonly ports: readonly Link[];
  readonly states: readonly Link[]; // 1.14
  readonly portgroups: readonly Link[]; // 1.24
  readonly volume: readonly Link[]; // 1.32
}
export type NodeColumn =
  | 'uuid'
  | 'created_at'
  | 'updated_at'
  | 'automated_clean'
  | 'bios_interface'
  | 'boot_interface'
  | 'boot_mode'
  | 'clean_step'
  | 'conductor_group'
  | 'console_enabled'
  | 'console_interface'
  | 'disable_power_off'
  | 'deploy_interface'
  | 'deploy_step'
  | 'description'
  | 'driver'
  | 'driver_info'
  | 'driver_internal_info'
  | 'extra'
  | 'fault'
  | 'firmware_interface'
  | 'health'
  | 'inspection_finished_at'
  | 'inspection_started_at'
  | 'inspect_interface'
  | 'instance_info'
  | 'instance_name'
  | 'instance_uuid'
  | 'last_error'
  | 'lessee'
  | 'maintenance'
  | 'maintenance_reason'
  | 'management_interface'
  | 'name'
  | 'network_data'
  | 'network_interface'
  | 'owner'
  | 'parent_node'
  | 'power_interface'
  | 'power_state'
  | 'properties'
  | 'protected'
  | 'protected_reason'
  | 'provision_state'
  | 'provision_updated_at'
  | 'raid_config'
  | 'raid_interface'
  | 'rescue_interface'
  | 'reservation'
  | 'resource_class'
  | 'retired'
  | 'retired_reason'
  | 'secure_boot'
  | 'service_step'
  | 'shard'
  | 'storage_interface'
  | 'target_power_state'
  | 'target_provision_state'
  | 'target_raid_config'
  | 'traits'
  | 'vendor_interface'
  | 'allocation_uuid'
  | 'chassis_uuid';

export interface PortFields {
  readonly uuid: string | null;
  readonly created_at: string;
  readonly updated_at: string | null;
  readonly address: string;
  readonly extra: JsonObject | null;
  readonly internal_info: JsonObject; // 1.18
  readonly is_smartnic: boolean | null; // 1.53
  readonly local_link_connection: JsonObject | null; // 1.19
  readonly physical_network: string | null; // 1.34
  readonly pxe_enabled: boolean | null; // 1.19
  readonly node_uuid: string;
  readonly name: string | null; // 1.88
  readonly description: string | null; // 1.97
  readonly vendor: string | null; // 1.100
  readonly category: string | null; // 1.101
  readonly available_for_dynamic_portgroup: boolean; // 1.111
  readonly links: readonly Link[];
  readonly portgroup_uuid: string | null; // 1.24
}
export type PortColumn =
  | 'uuid'
  | 'created_at'
  | 'updated_at'
  | 'address'
  | 'extra'
  | 'internal_info'
  | 'is_smartnic'
  | 'local_link_connection'
  | 'physical_network'
  | 'pxe_enabled'
  | 'node_uuid'
  | 'name'
  | 'description'
  | 'vendor'
  | 'category'
  | 'available_for_dynamic_portgroup'
  | 'portgroup_uuid';

export interface DriverFields {
  readonly name: string;
  readonly hosts: readonly string[];
  readonly links: readonly Link[];
  readonly properties: readonly Link[]; // 1.14
  readonly type: string; // 1.30
  readonly default_bios_interface: string | null; // 1.40
  readonly default_boot_interface: string | null; // 1.30
  readonly default_console_interface: string | null; // 1.30
  readonly default_deploy_interface: string | null; // 1.30
  readonly default_firmware_interface: string | null; // 1.86
  readonly default_inspect_interface: string | null; // 1.30
  readonly default_management_interface: string | null; // 1.30
  readonly default_network_interface: string | null; // 1.30
  readonly default_power_interface: string | null; // 1.30
  readonly default_raid_interface: string | null; // 1.30
  readonly default_rescue_interface: string | null; // 1.38
  readonly default_storage_interface: string | null; // 1.33
  readonly default_vendor_interface: string | null; // 1.30
  readonly enabled_bios_interfaces: readonly string[]; // 1.40
  readonly enabled_boot_interfaces: readonly string[]; // 1.30
  readonly enabled_console_interfaces: readonly string[]; // 1.30
  readonly enabled_deploy_interfaces: readonly string[]; // 1.30
  readonly enabled_firmware_interfaces: readonly string[]; // 1.86
  readonly enabled_inspect_interfaces: readonly string[]; // 1.30
  readonly enabled_management_interfaces: readonly string[]; // 1.30
  readonly enabled_network_interfaces: readonly string[]; // 1.30
  readonly enabled_power_interfaces: readonly string[]; // 1.30
  readonly enabled_raid_interfaces: readonly string[]; // 1.30
  readonly enabled_rescue_interfaces: readonly string[]; // 1.38
  readonly enabled_storage_interfaces: readonly string[]; // 1.33
  readonly enabled_vendor_interfaces: readonly string[]; // 1.30
}
export type DriverColumn =
  | 'name'
  | 'hosts'
  | 'type'
  | 'default_bios_interface'
  | 'default_boot_interface'
  | 'default_console_interface'
  | 'default_deploy_interface'
  | 'default_firmware_interface'
  | 'default_inspect_interface'
  | 'default_management_interface'
  | 'default_network_interface'
  | 'default_power_interface'
  | 'default_raid_interface'
  | 'default_rescue_interface'
  | 'default_storage_interface'
  | 'default_vendor_interface'
  | 'enabled_bios_interfaces'
  | 'enabled_boot_interfaces'
  | 'enabled_console_interfaces'
  | 'enabled_deploy_interfaces'
  | 'enabled_firmware_interfaces'
  | 'enabled_inspect_interfaces'
  | 'enabled_management_interfaces'
  | 'enabled_network_interfaces'
  | 'enabled_power_interfaces'
  | 'enabled_raid_interfaces'
  | 'enabled_rescue_interfaces'
  | 'enabled_storage_interfaces'
  | 'enabled_vendor_interfaces';

export interface ConductorFields {
  readonly created_at: string;
  readonly updated_at: string | null;
  readonly hostname: string;
  readonly conductor_group: string;
  readonly drivers: readonly string[];
  readonly links: readonly Link[];
  readonly alive: boolean;
}
export type ConductorColumn =
  | 'created_at'
  | 'updated_at'
  | 'hostname'
  | 'conductor_group'
  | 'drivers'
  | 'alive';
