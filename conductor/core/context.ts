/** What every file of this room gets: the rooms below, the options, and what one running conductor keeps in memory. */
import type { Connections, HardwareType, Interfaces } from '../../drivers/interfaces';
import type { DriverOptions } from '../../drivers/options';
import type { Clock } from '../../model/clock';
import type { Log } from '../../model/log';
import type { MacLists } from '../../model/mac-lists';
import type { Metrics } from '../../model/metrics';
import type { Notifier } from '../../model/notifications';
import type { Origin } from '../../model/origin';
import type { InterfaceKind } from '../../model/records';
import type { FlowName } from '../../model/states';
import type { Store } from '../../store/store';
import type { HeartbeatBuffer } from './heartbeat-buffer';
import type { BmcTurns } from './bmc-turns';
import type { Hardware } from './hardware';
import type { Accelerator } from './accelerator';
import type { InspectionRule } from '../../model/rules/inspection-rules';
import type { Lease, Probed } from './lease';
import type { Locks } from './locks';
import type { Ownership } from './ownership';
import type { Tokens } from './token';
import type { Workers } from './workers';

/** The options that the conductor reads (section.name); main hands them over. */
export type ConductorOptions = DriverOptions & {
  readonly [Kind in InterfaceKind as `DEFAULT.enabled_${Kind}_interfaces`]: readonly string[] | null;
} & { readonly [Kind in InterfaceKind as `DEFAULT.default_${Kind}_interface`]: string | null } & {
  /** Resolved: never empty. */
  readonly 'DEFAULT.host': string;
  readonly 'DEFAULT.enabled_hardware_types': readonly string[];
  readonly 'DEFAULT.default_resource_class': string | null;
  readonly 'DEFAULT.default_conductor_group': string;
  readonly 'conductor.conductor_group': string;
  readonly 'api.disallow_clean_steps': readonly string[];
  readonly 'api.disallow_deploy_steps': readonly string[];
  readonly 'api.disallow_service_steps': readonly string[];
  readonly 'conductor.heartbeat_interval': number;
  readonly 'conductor.heartbeat_timeout': number;
  readonly 'conductor.graceful_shutdown_timeout': number;
  readonly 'DEFAULT.drain_shutdown_timeout': number;
  readonly 'conductor.conductor_cleanup_interval': number;
  readonly 'conductor.conductor_cleanup_timeout': number;
  readonly 'conductor.conductor_cleanup_batch_size': number;
  readonly 'conductor.sync_power_state_interval': number;
  readonly 'conductor.sync_power_state_workers': number;
  readonly 'conductor.force_power_state_during_sync': boolean;
  readonly 'conductor.power_state_sync_max_retries': number;
  readonly 'conductor.power_failure_recovery_interval': number;
  readonly 'conductor.check_provision_state_interval': number;
  readonly 'conductor.check_rescue_state_interval': number;
  readonly 'conductor.check_allocations_interval': number;
  readonly 'conductor.deploy_callback_timeout': number;
  readonly 'conductor.clean_callback_timeout': number;
  readonly 'conductor.inspect_wait_timeout': number;
  readonly 'conductor.service_callback_timeout': number;
  readonly 'conductor.rescue_callback_timeout': number;
  readonly 'conductor.rescue_password_hash_algorithm': string;
  readonly 'conductor.node_history': boolean;
  readonly 'conductor.enable_health_monitoring': boolean;
  readonly 'conductor.node_history_max_entries': number;
  readonly 'conductor.node_history_cleanup_interval': number;
  readonly 'conductor.node_history_cleanup_batch_count': number;
  readonly 'conductor.node_history_minimum_days': number;
  readonly 'conductor.record_step_flows_in_history': boolean;
  readonly 'conductor.allow_deleting_available_nodes': boolean;
  readonly 'conductor.allow_provisioning_in_maintenance': boolean;
  readonly 'conductor.workers_pool_size': number;
  readonly 'conductor.max_concurrent_deploy': number;
  readonly 'conductor.max_concurrent_clean': number;
  readonly 'conductor.node_locked_retry_attempts': number;
  readonly 'conductor.node_locked_retry_interval': number;
  readonly 'conductor.clean_step_priority_override': Readonly<Record<string, string>>;
  readonly 'conductor.verify_step_priority_override': Readonly<Record<string, string>>;

  readonly 'conductor.automated_cleaning_step_source': string;
  readonly 'conductor.automated_cleaning_runbook': string | null;
  readonly 'conductor.automated_cleaning_runbook_by_resource_class': Readonly<Record<string, string>>;
  readonly 'conductor.automated_cleaning_runbook_from_node': boolean;
  readonly 'conductor.automated_cleaning_runbook_validate_traits': boolean;
  readonly 'conductor.poweroff_in_cleanfail': boolean;
  readonly 'conductor.poweroff_in_servicefail': boolean;
  readonly 'conductor.permit_child_node_step_async_result': boolean;
  readonly 'conductor.automatic_lessee': boolean;
  readonly 'conductor.automatic_lessee_source': string;
  readonly 'conductor.disallowed_deployment_boot_modes': readonly string[];
  readonly 'conductor.reserved_workers_pool_percentage': number;
  readonly 'conductor.periodic_max_workers': number;
  readonly 'conductor.max_concurrent_per_conductor_group': boolean;
  readonly 'api.ramdisk_heartbeat_timeout': number;
  readonly 'sensor_data.send_sensor_data': boolean;
  readonly 'sensor_data.interval': number;
  readonly 'sensor_data.interval_power': number;
  readonly 'sensor_data.interval_temperature': number;
  readonly 'sensor_data.interval_fan': number;
  readonly 'sensor_data.interval_drive': number;
  readonly 'sensor_data.workers': number;
  readonly 'sensor_data.wait_timeout': number;
  readonly 'sensor_data.data_types': readonly string[];
  readonly 'sensor_data.enable_for_undeployed_nodes': boolean;
  readonly 'sensor_data.enable_for_nodes': boolean;
  readonly 'sensor_data.enable_for_conductor': boolean;

  readonly 'deploy.power_off_after_deploy_failure': boolean;
  readonly 'agent.deploy_logs_collect': string;
  readonly 'agent.deploy_logs_local_path': string;
  readonly 'inspector.hooks': readonly string[];
  readonly 'redfish.inspection_hooks': readonly string[];
  readonly 'inspector.add_ports': string;
  readonly 'inspector.keep_ports': string;
  readonly 'inspector.pre_create_ports': boolean;
  readonly 'inspector.update_pxe_enabled': boolean;
  readonly 'inspector.cpu_capabilities': Readonly<Record<string, string>>;
  readonly 'inspector.disk_partitioning_spacing': boolean;
  readonly 'inspector.extra_hardware_strict': boolean;
  readonly 'inspector.known_accelerators': string | null;
  readonly 'inspector.pci_device_alias': string;
  readonly 'inspector.physical_network_cidr_map': readonly string[];
  readonly 'inventory.max_size': number;
  readonly 'inspector.overwrite_existing': boolean;
  readonly 'inspector.overwrite_existing_hooks': readonly string[];
  readonly 'auto_discovery.inspection_scope': string | null;
  readonly 'pxe_filter.allow_macs': readonly string[];
  readonly 'pxe_filter.deny_macs': readonly string[];
  readonly 'inspection_rules.built_in_rules': string | null;
  readonly 'inspection_rules.mask_secrets': string;

  readonly 'recorder.enabled': boolean;
  readonly 'recorder.interval': number;
  readonly 'recorder.stale_after': number;
  readonly 'recorder.check_interval': number;
  readonly 'recorder.history_max_age': number;

  // The introspection service.
  /** Resolved: never empty. */
  readonly 'inspector_service.callback_url': string;
  readonly 'DEFAULT.timeout': number;
  readonly 'DEFAULT.clean_up_period': number;
  readonly 'processing.processing_hooks': readonly string[];
  readonly 'processing.store_data': string;
  readonly 'processing.overwrite_existing': boolean;

  readonly 'events.max_events': number;
  readonly 'events.max_age': number;
  readonly 'events.cleanup_interval': number;
};

/** What main (or a test) starts a conductor from. */
export interface ConductorParts {
  readonly store: Store;
  readonly options: ConductorOptions;
  readonly log: Log;
  readonly clock: Clock;
  readonly metrics: Metrics;
  /** Absent: nobody gets notifications. */
  readonly notifier?: Notifier;
  readonly random: (bytes: number) => Buffer;
  readonly connections: Connections;
  readonly interfaces: Interfaces;
  readonly hardwareTypes: Readonly<Record<string, HardwareType>>;
  /** Where this conductor answers to other processes; absent: they do not reach it, and none shares its database. */
  readonly address?: string;
  /** How it stands with the process at this address. */
  readonly probe?: (holder: { readonly hostname: string; readonly address: string }) => Promise<Probed>;
}

export interface Context extends ConductorParts, Ownership {
  readonly host: string;
  readonly notifier: Notifier;
  readonly hardware: Hardware;
  /** The flows, as far as the core needs them: the type of their errors in the node's history. */
  readonly flows: Readonly<Record<FlowName, { readonly errorType: string }>>;
  /** Those of [inspection_rules]built_in_rules. */
  readonly builtInRules: readonly InspectionRule[];
  /** Those of [inspector]known_accelerators. */
  readonly accelerators: readonly Accelerator[];
  /** Which machines may be enrolled that nobody knows. */
  readonly unknownMacs: MacLists;
  readonly workers: Workers;
  readonly locks: Locks;
  readonly heartbeats: HeartbeatBuffer;
  /** When the flow of each node began, as far as it began in this process. */
  readonly flowStarts: Map<string, number>;
  readonly lease: Lease;
  /** Nodes that a periodic looks at without holding them. */
  readonly nodesBeingRead: Set<string>;
  readonly bmcTurns: BmcTurns;
  readonly tokens: Tokens;
  /** Whose request this work follows from; absent: nobody's. */
  readonly origin?: Origin;
  /** Aborted when whoever made the call went away without its answer; absent: that is not known, or nobody waits for one. */
  readonly caller?: AbortSignal | undefined;
  /** Aborted when the conductor stops. */
  readonly signal: AbortSignal;
  /** Asks, after so many seconds, how the running step of a waiting node stands. */
  readonly pollLater: (nodeUuid: string, seconds: number) => void;
  /** Whether it will be. */
  readonly isPolling: (nodeUuid: string) => boolean;
  /** Another conductor asks. */
  readonly stopPolling: (nodeUuid: string) => void;
  /** Counts a round of periodic work while it is under way. */
  readonly track: <T>(work: Promise<T>) => Promise<T>;
}
