/**
 * Options of Ironic 39 and its libraries, and of earlier versions of Ironic, that have no effect here, and why: for `bloomery check` and the
 * warnings of the start. Those that are security options are in `guards.ts`.
 */
interface WithoutEffectRow {
  readonly section: string;
  /** Absent: every option of the section. */
  readonly names?: readonly string[];
  readonly because: string;
}

const CACHES = 'temporary files are in the state directory';
const ONE_CACHE = 'there is one cache, that of the HTTP boot service';
const CONVERSION = 'agents convert images, while they write them';
const SCRIPTS = 'the server generates boot scripts without templates';
const QUEUE = 'there is no message queue: processes call each other by signed JSON-RPC';
const LOG = 'the format and the rotation of the log are fixed: see [DEFAULT]log_file, use_json and debug';
const POOL = 'the connections to PostgreSQL are made again as needed; [database]max_pool_size limits them';
const NO_TRACING = 'the server has no profiler and no tracing: its metrics are at /metrics';
const OWN_CACHE = 'each process caches in its memory';
const OWN_HTTP = 'the limits of HTTP listeners are [api]max_connections, request_timeout and max_json_body_size';
const NO_DRIVER = 'this driver is neither here nor in Ironic 39: use redfish or ipmi';
/** An option that Ironic has removed. */
const renamed = (to: string): string => `Ironic 39 does not have this option either: write ${to}`;
const SIGNED = 'calls between processes are signed with a key from the database';

// One row per line, so that the columns are easy to read.
// prettier-ignore
const WITHOUT_EFFECT: readonly WithoutEffectRow[] = [
  { section: 'DEFAULT', names: ['use_stderr'], because: 'the log goes to standard error, unless a file is named' },
  { section: 'DEFAULT', names: ['hash_ring_algorithm', 'hash_partition_exponent', 'hash_ring_reset_interval'], because: 'the ring has one algorithm' },
  { section: 'DEFAULT', names: ['tempdir'], because: CACHES },
  { section: 'DEFAULT', names: ['pybasedir', 'bindir'], because: 'this program is not written in Python' },
  { section: 'DEFAULT', names: ['force_raw_images', 'raw_image_growth_factor'], because: CONVERSION },
  { section: 'DEFAULT', names: ['isolinux_config_template', 'grub_config_template'], because: SCRIPTS },
  { section: 'DEFAULT', names: ['minimum_memory_warning_only', 'minimum_required_memory', 'minimum_memory_wait_time', 'minimum_memory_wait_retries'], because: CONVERSION },
  { section: 'DEFAULT', names: ['pin_release_version', 'use_rpc_for_database'], because: 'processes can be upgraded one after the other without it' },
  { section: 'DEFAULT', names: ['allow_image_access_via_auth_token'], because: 'the token of a caller is never sent to Glance' },
  { section: 'DEFAULT', names: ['config_file', 'config_dir', 'config_source', 'shell_completion'], because: 'write --config-file or --config-dir in the command' },
  { section: 'DEFAULT', names: ['transport_url', 'control_exchange', 'executor_thread_pool_size', 'rpc_response_timeout', 'rpc_ping_enabled', 'rpc_conn_pool_size', 'conn_pool_min_size', 'conn_pool_ttl', 'rpc_backend', 'rpc_cast_timeout', 'rpc_poll_timeout', 'rpc_thread_pool_size', 'notification_driver', 'notification_topics', 'notification_transport_url', 'matchmaker_heartbeat_freq', 'matchmaker_heartbeat_ttl'], because: QUEUE },
  { section: 'DEFAULT', names: ['log_config_append', 'log_date_format', 'log_format', 'use_syslog', 'use_syslog_rfc_format', 'use_journal', 'syslog_log_facility', 'log_color', 'log_rotate_interval', 'log_rotate_interval_type', 'max_logfile_count', 'max_logfile_size_mb', 'log_rotation_type', 'logging_context_format_string', 'logging_default_format_string', 'logging_debug_format_suffix', 'logging_exception_prefix', 'logging_user_identity_format', 'publish_errors', 'instance_format', 'instance_uuid_format', 'rate_limit_interval', 'rate_limit_burst', 'rate_limit_except_level', 'log_options', 'watch_log_file', 'fatal_deprecations', 'verbose'], because: LOG },
  { section: 'DEFAULT', names: ['debug_tracebacks_in_api', 'pecan_debug', 'wsgi_server_debug', 'fatal_exception_format_errors'], because: 'answers never have details of the program' },
  { section: 'DEFAULT', names: ['log_in_db_max_size'], because: 'the database has no log' },
  { section: 'DEFAULT', names: ['run_external_periodic_tasks', 'periodic_interval', 'backdoor_port', 'backdoor_socket', 'api_paste_config', 'rootwrap_config', 'hash_distribution_replicas'], because: 'it belongs to a library of Ironic that is not here' },
  { section: 'DEFAULT', names: ['wsgi_log_format', 'tcp_keepidle', 'wsgi_default_pool_size', 'max_header_line', 'wsgi_keep_alive', 'client_socket_timeout'], because: OWN_HTTP },
  { section: 'DEFAULT', names: ['enabled_drivers'], because: renamed('[DEFAULT]enabled_hardware_types') },
  { section: 'DEFAULT', names: ['require_agent_token'], because: 'agents always need their token' },
  { section: 'agent', names: ['manage_agent_boot', 'manage_tftp'], because: 'the server manages the boot of the agent; [DEFAULT]enabled_boot_interfaces says how' },
  { section: 'agent', names: ['agent_api_version', 'heartbeat_timeout'], because: 'the agent itself decides this' },
  { section: 'agent', names: ['agent_pxe_append_params'], because: renamed('[pxe]kernel_append_params') },
  { section: 'agent', names: ['agent_erase_devices_priority', 'agent_erase_devices_iterations'], because: renamed('[deploy]erase_devices_priority and shred_random_overwrite_iterations') },
  { section: 'agent', names: ['agent_pxe_bootfile_name', 'agent_pxe_config_template'], because: SCRIPTS },
  { section: 'amt', because: NO_DRIVER },
  { section: 'audit', names: ['audit_map_file', 'namespace'], because: 'the audit log names each operation as openapi.yaml does' },
  { section: 'audit_middleware_notifications', because: 'the audit log is a file: [audit]log_file' },
  { section: 'cache', because: OWN_CACHE },
  { section: 'cimc', because: NO_DRIVER },
  { section: 'cisco_ucs', because: NO_DRIVER },
  { section: 'cinder', names: ['url'], because: renamed('[cinder]endpoint_override') },
  { section: 'conductor', names: ['sync_local_state_interval'], because: 'a node moves to another conductor when it is next used' },
  { section: 'conductor', names: ['log_step_flows_to_syslog'], because: LOG },
  { section: 'conductor', names: ['disable_kernel_parameter_parsing'], because: 'kernel arguments are not parsed' },
  { section: 'conductor', names: ['api_url'], because: renamed('[service_catalog]endpoint_override') },
  { section: 'conductor', names: ['inspect_timeout'], because: renamed('[conductor]inspect_wait_timeout') },
  { section: 'conductor', names: ['clean_nodes'], because: renamed('[conductor]automated_clean') },
  { section: 'console', names: ['terminal', 'terminal_cert_dir', 'terminal_pid_dir', 'subprocess_checking_interval', 'subprocess_timeout', 'kill_timeout'], because: 'the conductor itself serves consoles, without a program for each' },
  { section: 'database', names: ['backend', 'slave_connection', 'asyncio_connection', 'asyncio_slave_connection', 'synchronous_reader', 'mysql_sql_mode', 'mysql_wsrep_sync_wait', 'mysql_enable_ndb', 'connection_recycle_time', 'idle_timeout', 'min_pool_size', 'max_retries', 'retry_interval', 'max_overflow', 'connection_debug', 'connection_trace', 'pool_timeout', 'use_db_reconnect', 'db_retry_interval', 'db_inc_retry_interval', 'db_max_retry_interval', 'db_max_retries', 'connection_parameters', 'sqlite_db'], because: POOL },
  { section: 'deploy', names: ['erase_devices_iterations'], because: renamed('[deploy]shred_random_overwrite_iterations') },
  { section: 'deploy', names: ['efi_system_partition_size', 'dd_block_size', 'iscsi_verify_attempts', 'object_store_endpoint_type'], because: CONVERSION },
  { section: 'disk_partitioner', because: CONVERSION },
  { section: 'dnsmasq_pxe_filter', because: 'the DHCP service itself filters: [pxe_filter]allow_macs and deny_macs' },
  { section: 'errors', because: 'answers never have details of the program' },
  { section: 'glance', names: ['glance_host', 'glance_port', 'glance_protocol', 'glance_api_servers'], because: renamed('[glance]endpoint_override') },
  { section: 'glance', names: ['glance_api_insecure'], because: renamed('[glance]insecure') },
  { section: 'glance', names: ['glance_cafile'], because: renamed('[glance]cafile') },
  { section: 'glance', names: ['glance_num_retries'], because: renamed('[glance]num_retries') },
  { section: 'glance', names: ['auth_strategy'], because: renamed('[glance]auth_type, which may be none') },
  { section: 'glance', names: ['glance_api_version', 'temp_url_endpoint_type'], because: 'one version of the API is used' },
  { section: 'ibmc', because: NO_DRIVER },
  { section: 'iboot', because: NO_DRIVER },
  { section: 'inspector', names: ['status_check_period', 'enabled', 'service_url', 'auth_url', 'auth_type', 'cafile', 'certfile', 'default_domain_id', 'default_domain_name', 'domain_id', 'domain_name', 'insecure', 'keyfile', 'password', 'project_domain_id', 'project_domain_name', 'project_id', 'project_name', 'tenant_id', 'tenant_name', 'timeout', 'trust_id', 'user_domain_id', 'user_domain_name', 'user_id', 'username', 'endpoint_override', 'max_version', 'min_version', 'region_name', 'service_name', 'service_type', 'valid_interfaces', 'version', 'auth_section', 'system_scope', 'split_loggers', 'collect_timing', 'connect_retries', 'connect_retry_delay', 'status_code_retries', 'status_code_retry_delay'], because: 'the conductor inspects without ironic-inspector; for an external service of its kind see [discoverd]' },
  { section: 'inspector', names: ['callback_endpoint_override'], because: 'agents report to [service_catalog]endpoint_override or [deploy]external_callback_url' },
  { section: 'ipmi', names: ['retry_timeout'], because: renamed('[ipmi]command_retry_timeout') },
  { section: 'ironic_lib', because: 'the server runs no program with other rights' },
  { section: 'iscsi', because: 'there is no deploy interface iscsi: use direct' },
  { section: 'json_rpc', names: ['collect_timing', 'debug_log_request_id_only', 'default_domain_id', 'default_domain_name', 'domain_id', 'domain_name', 'project_domain_id', 'project_id', 'split_loggers', 'system_scope', 'tenant_id', 'tenant_name', 'timeout', 'trust_id', 'user_domain_id', 'user_id', 'http_basic_username', 'http_basic_password', 'auth_section', 'token', 'application_credential_id', 'application_credential_name', 'application_credential_secret', 'user_name', 'user-name', 'tenant-id', 'tenant-name', 'auth_plugin', 'connect_retries', 'connect_retry_delay', 'endpoint', 'endpoint_override', 'interface', 'max_version', 'min_version', 'region_name', 'retriable_status_codes', 'service_name', 'service_type', 'status_code_retries', 'status_code_retry_delay', 'valid_interfaces', 'version'], because: SIGNED },
  { section: 'keystone', names: ['region_name'], because: 'each section of a service has its own region_name' },
  { section: 'keystone_authtoken', names: ['signing_dir', 'revocation_cache_time', 'check_revocations_for_cached', 'hash_algorithms'], because: 'Keystone itself validates each token' },
  { section: 'keystone_authtoken', names: ['auth_admin_prefix', 'auth_host', 'auth_port', 'auth_protocol', 'identity_uri'], because: renamed('[keystone_authtoken]auth_url') },
  { section: 'keystone_authtoken', names: ['admin_token', 'admin_user', 'admin_password', 'admin_tenant_name'], because: renamed('[keystone_authtoken]auth_type = password, with username, password and project_name') },
  { section: 'keystone_authtoken', names: ['endpoint', 'endpoint_override', 'valid_interfaces', 'service_name', 'version', 'min_version', 'max_version', 'timeout', 'connect_retries', 'connect_retry_delay', 'status_code_retries', 'status_code_retry_delay', 'retriable_status_codes'], because: 'the Identity API is at [keystone_authtoken]auth_url, or in the catalog by interface and region_name' },
  { section: 'local_rpc', because: SIGNED },
  { section: 'matchmaker_redis', because: QUEUE },
  { section: 'matchmaker_ring', because: QUEUE },
  { section: 'molds', because: 'there are no configuration molds, as in Ironic 39' },
  { section: 'neutron', names: ['url'], because: renamed('[neutron]endpoint_override') },
  { section: 'neutron', names: ['url_timeout'], because: renamed('[neutron]request_timeout') },
  { section: 'neutron', names: ['auth_strategy'], because: renamed('[neutron]auth_type, which may be none with endpoint_override') },
  { section: 'oneview', because: NO_DRIVER },
  { section: 'oslo_concurrency', because: 'the database and the state directory have their own locks' },
  { section: 'oslo_messaging_amqp', because: QUEUE },
  { section: 'oslo_messaging_kafka', because: QUEUE },
  { section: 'oslo_messaging_notifications', names: ['topics', 'retry'], because: QUEUE },
  { section: 'oslo_messaging_metrics', because: NO_TRACING },
  { section: 'oslo_messaging_tracing', because: NO_TRACING },
  { section: 'oslo_messaging_qpid', because: QUEUE },
  { section: 'oslo_messaging_rabbit', because: QUEUE },
  { section: 'oslo_messaging_zmq', because: QUEUE },
  { section: 'oslo_middleware', names: ['max_request_body_size'], because: OWN_HTTP },
  { section: 'oslo_middleware', names: ['http_basic_auth_user_file'], because: 'the file is [DEFAULT]http_basic_auth_user_file' },
  { section: 'oslo_middleware_tracing', because: NO_TRACING },
  { section: 'oslo_policy', names: ['remote_content_type', 'remote_timeout'], because: 'rules never ask another server' },
  { section: 'oslo_reports', because: NO_TRACING },
  { section: 'oslo_versionedobjects', because: 'answers never have details of the program' },
  { section: 'profiler', because: NO_TRACING },
  { section: 'profiler_jaeger', because: NO_TRACING },
  { section: 'profiler_otlp', because: NO_TRACING },
  { section: 'pxe', names: ['http_url', 'http_root'], because: renamed('the option of this name in [deploy]') },
  { section: 'pxe', names: ['ipxe_enabled'], because: renamed('ipxe in [DEFAULT]enabled_boot_interfaces') },
  { section: 'pxe', names: ['disk_devices'], because: CONVERSION },
  { section: 'pxe_filter', names: ['dhcp_hostsdir', 'sync_period'], because: 'the DHCP service itself filters, by allow_macs and deny_macs; for a dnsmasq see [dnsmasq]dhcp_hostsdir' },
  { section: 'redfish', names: ['file_permission'], because: 'files for BMCs are served without links to them' },
  { section: 'redfish', names: ['firmware_update_bmc_timeout'], because: 'see [redfish]firmware_update_resource_validation_timeout' },
  { section: 'redfish', names: ['raid_config_fail_interval'], because: 'a failed RAID task ends its step at once' },
  { section: 'sample_remote_file_source', because: 'configuration is read from local files only' },
  { section: 'seamicro', because: NO_DRIVER },
  { section: 'snmp', because: NO_DRIVER },
  { section: 'ssh', because: NO_DRIVER },
  { section: 'swift', names: ['swift_max_retries'], because: renamed('[swift]connect_retries') },
  { section: 'virtualbox', because: NO_DRIVER },
  { section: 'xclarity', because: NO_DRIVER },
  { section: 'agent', names: ['certificates_path'], because: 'no certificates of agents are in files' },
  { section: 'ansible', because: 'there is no deploy interface ansible' },
  { section: 'api', names: ['api_workers', 'middleware', 'response_validation'], because: 'one process answers; you start more' },
  { section: 'conductor', names: ['clear_image_cache_on_deploy_failure'], because: 'machines share the files of the image cache' },
  { section: 'conductor', names: ['disable_kernel_parameter_parsing'], because: 'each boot loader needs well-formed kernel arguments' },
  { section: 'conductor', names: ['disable_file_checksum'], because: 'the agent always verifies the checksum' },
  { section: 'database', names: ['sqlite_synchronous', 'sqlite_retries', 'sqlite_max_wait_for_retry', 'mysql_engine'], because: 'there is neither SQLite nor MariaDB' },
  { section: 'deploy', names: ['default_boot_option'], because: 'instances boot from their disk' },
  { section: 'deploy', names: ['iso_master_path', 'iso_cache_size', 'iso_cache_ttl', 'http_image_subdir'], because: ONE_CACHE },
  { section: 'disk_utils', because: CONVERSION },
  { section: 'drac', names: ['query_raid_config_job_status_interval'], because: 'all tasks of RAID have one interval: [redfish]raid_config_status_interval' },
  { section: 'drac', names: ['boot_device_job_status_timeout', 'config_job_max_retries', 'bios_factory_reset_timeout'], because: 'Ironic 39 does not read them either' },
  { section: 'glance', names: ['allowed_direct_url_schemes'], because: "images are read by Glance's API" },
  { section: 'ilo', because: 'there is no hardware type ilo: use redfish' },
  { section: 'irmc', because: 'there is no hardware type irmc: use redfish' },
  { section: 'ironic_networking', names: ['rpc_transport', 'driver_config_dir'], because: 'the conductor itself drives the switches' },
  { section: 'ironic_networking_json_rpc', because: SIGNED },
  { section: 'json_rpc', names: ['auth_strategy', 'auth_type', 'auth_url', 'http_basic_auth_user_file', 'username', 'password', 'allowed_roles', 'project_name', 'project_domain_name', 'user_domain_name'], because: SIGNED },
  { section: 'metrics', names: ['backend', 'prepend_host', 'prepend_host_reverse', 'global_prefix'], because: '/metrics has them' },
  { section: 'metrics_statsd', because: 'the metrics of the server are at /metrics' },
  { section: 'oslo_messaging_notifications', names: ['location', 'transport_url'], because: '/metrics has the sensors' },
  { section: 'pxe', names: ['images_path', 'tftp_master_path'], because: ONE_CACHE },
  { section: 'pxe', names: ['pxe_config_subdir'], because: 'the server generates boot files from the database, and does not write them to disk' },
  { section: 'pxe', names: ['enable_insecure_template_override'], because: 'templates are named by options alone' },
  { section: 'pxe', names: ['ipxe_use_swift'], because: 'machines get the kernels and ramdisks of Glance from the HTTP boot service' },
  { section: 'pxe', names: ['dir_permission', 'file_permission'], because: 'the server generates boot files from the database, and does not write them to disk' },
  { section: 'pxe', names: ['ip_version'], because: 'IPv4 and IPv6 work at the same time' },
  { section: 'vnc', names: ['novnc_web'], because: 'the program contains noVNC' },
  { section: 'vnc', names: ['novnc_auth_schemes'], because: 'the server authenticates itself at VNC servers, and browsers need the token only' },
  { section: 'vnc', names: ['novnc_record'], because: 'screens are not recorded' },
  { section: 'vnc', names: ['container_provider', 'container_executable', 'container_host', 'container_publish_port', 'container_command_template', 'console_image', 'systemd_container_template', 'systemd_container_publish_port', 'kubernetes_container_template', 'kubernetes_pod_timeout', 'wait_for_ready_timeout'], because: 'no container with a browser is needed: this server connects to screens itself' },
];

/** Why an option of Ironic has no effect here. Undefined: the table does not have it. @param key `section.name` */
export function withoutEffect(key: string): string | undefined {
  const at = key.indexOf('.');
  const [section, name] = [key.slice(0, at), key.slice(at + 1)];
  return WITHOUT_EFFECT.find((row) => row.section === section && (row.names?.includes(name) ?? true))?.because;
}
