/**
 * Every option as a row: section and name are Ironic's, so an ironic.conf can be used as it is; rows marked `ours` have no counterpart.
 * docs/configuration.md and `bloomery config --sample` are generated from this table.
 */
export interface OptionRow {
  readonly section: string;
  readonly name: string;
  readonly kind: 'string' | 'integer' | 'octal' | 'number' | 'boolean' | 'list' | 'dict';
  readonly default: string | number | boolean | null | readonly string[] | Readonly<Record<string, string>>;
  readonly help: string;
  readonly choices?: readonly string[];
  readonly min?: number;
  readonly max?: number;
  readonly secret?: true;
  /** May be given several times: with commas between its values then. */
  readonly repeated?: true;
  /** Its former section and name, which count where the option itself is not given. */
  readonly formerly?: string;
  /** Not an option of Ironic's. */
  readonly ours?: true;
}

// One row a line, however long: a table is read by its columns.
// prettier-ignore
export const OPTIONS = [
  // [DEFAULT]
  { section: 'DEFAULT', name: 'my_ip', kind: 'string', default: null, help: 'Address of this host that machines reach: in the URLs and DHCP answers that they get. Default: that of [boot]interface, else 127.0.0.1.' },
  { section: 'DEFAULT', name: 'host', kind: 'string', default: null, help: 'Name of this conductor, as `reservation` and the conductor list show it. Default: the host name.' },
  { section: 'DEFAULT', name: 'auth_strategy', kind: 'string', default: null, choices: ['noauth', 'http_basic', 'keystone'], help: 'How callers of the API, and of the introspection service, prove who they are; keystone is refused. Default: they do not, and the server listens for them on loopback addresses and Unix sockets only. (Ironic: keystone.)' },
  { section: 'DEFAULT', name: 'http_basic_auth_user_file', kind: 'string', default: '/etc/ironic/htpasswd', help: 'Users of http_basic: lines of user:digest, bcrypt only, as `htpasswd -B` writes them. Read again when it changes.' },
  { section: 'DEFAULT', name: 'debug', kind: 'boolean', default: false, help: 'Log debug messages.' },
  { section: 'DEFAULT', name: 'log_file', kind: 'string', default: null, help: 'Log to this file instead of the standard error; SIGHUP opens it anew, for logrotate.' },
  { section: 'DEFAULT', name: 'log_dir', kind: 'string', default: null, help: 'Folder of a relative log_file; without one, of bloomery.log.' },
  { section: 'DEFAULT', name: 'use_json', kind: 'boolean', default: true, help: 'Log lines of JSON; else of text as oslo.log writes them. (Ironic: false.)' },
  { section: 'DEFAULT', name: 'default_log_levels', kind: 'list', default: [], help: 'Levels of parts of the program, as name=LEVEL: api, conductor, boot, database, store. Other names, such as those of Python packages, mean nothing here.' },
  { section: 'DEFAULT', name: 'enabled_hardware_types', kind: 'list', default: ['ipmi', 'redfish'], help: 'Hardware types that nodes may use.' },
  { section: 'DEFAULT', name: 'enabled_bios_interfaces', kind: 'list', default: ['no-bios', 'redfish'], help: 'BIOS interfaces that nodes may use.' },
  { section: 'DEFAULT', name: 'enabled_boot_interfaces', kind: 'list', default: ['ipxe', 'pxe', 'redfish-virtual-media'], help: 'Boot interfaces that nodes may use.' },
  { section: 'DEFAULT', name: 'enabled_console_interfaces', kind: 'list', default: ['no-console'], help: 'Console interfaces that nodes may use.' },
  { section: 'DEFAULT', name: 'enabled_deploy_interfaces', kind: 'list', default: ['autodetect', 'direct', 'ramdisk', 'bootc'], help: 'Deploy interfaces that nodes may use.' },
  { section: 'DEFAULT', name: 'enabled_firmware_interfaces', kind: 'list', default: ['no-firmware'], help: 'Firmware interfaces that nodes may use.' },
  { section: 'DEFAULT', name: 'enabled_inspect_interfaces', kind: 'list', default: ['no-inspect', 'redfish'], help: 'Inspect interfaces that nodes may use.' },
  { section: 'DEFAULT', name: 'enabled_management_interfaces', kind: 'list', default: null, help: 'Management interfaces that nodes may use. Default: what the enabled hardware types put first.' },
  { section: 'DEFAULT', name: 'enabled_network_interfaces', kind: 'list', default: ['flat', 'noop'], help: 'Network interfaces that nodes may use.' },
  { section: 'DEFAULT', name: 'enabled_power_interfaces', kind: 'list', default: null, help: 'Power interfaces that nodes may use. Default: what the enabled hardware types put first.' },
  { section: 'DEFAULT', name: 'enabled_raid_interfaces', kind: 'list', default: ['agent', 'no-raid', 'redfish'], help: 'RAID interfaces that nodes may use.' },
  { section: 'DEFAULT', name: 'enabled_rescue_interfaces', kind: 'list', default: ['no-rescue'], help: 'Rescue interfaces that nodes may use.' },
  { section: 'DEFAULT', name: 'enabled_storage_interfaces', kind: 'list', default: ['cinder', 'noop'], help: 'Storage interfaces that nodes may use.' },
  { section: 'DEFAULT', name: 'enabled_vendor_interfaces', kind: 'list', default: ['ipmitool', 'redfish', 'no-vendor'], help: 'Vendor interfaces that nodes may use.' },
  { section: 'DEFAULT', name: 'default_bios_interface', kind: 'string', default: null, help: 'BIOS interface of nodes that name none.' },
  { section: 'DEFAULT', name: 'default_boot_interface', kind: 'string', default: null, help: 'Boot interface of nodes that name none.' },
  { section: 'DEFAULT', name: 'default_console_interface', kind: 'string', default: null, help: 'Console interface of nodes that name none.' },
  { section: 'DEFAULT', name: 'default_deploy_interface', kind: 'string', default: null, help: 'Deploy interface of nodes that name none.' },
  { section: 'DEFAULT', name: 'default_firmware_interface', kind: 'string', default: null, help: 'Firmware interface of nodes that name none.' },
  { section: 'DEFAULT', name: 'default_inspect_interface', kind: 'string', default: null, help: 'Inspect interface of nodes that name none.' },
  { section: 'DEFAULT', name: 'default_management_interface', kind: 'string', default: null, help: 'Management interface of nodes that name none.' },
  { section: 'DEFAULT', name: 'default_network_interface', kind: 'string', default: null, help: 'Network interface of nodes that name none.' },
  { section: 'DEFAULT', name: 'default_power_interface', kind: 'string', default: null, help: 'Power interface of nodes that name none.' },
  { section: 'DEFAULT', name: 'default_raid_interface', kind: 'string', default: null, help: 'RAID interface of nodes that name none.' },
  { section: 'DEFAULT', name: 'default_rescue_interface', kind: 'string', default: null, help: 'Rescue interface of nodes that name none.' },
  { section: 'DEFAULT', name: 'default_storage_interface', kind: 'string', default: 'noop', help: 'Storage interface of nodes that name none.' },
  { section: 'DEFAULT', name: 'default_vendor_interface', kind: 'string', default: null, help: 'Vendor interface of nodes that name none.' },
  { section: 'DEFAULT', name: 'default_resource_class', kind: 'string', default: null, help: 'Resource class of new nodes that name none.' },
  { section: 'DEFAULT', name: 'default_conductor_group', kind: 'string', default: '', help: 'Conductor group of new nodes that name none.' },
  { section: 'DEFAULT', name: 'default_portgroup_mode', kind: 'string', default: 'active-backup', help: 'Mode of new portgroups that name none (a name that the operating system of the machine knows).' },
  { section: 'DEFAULT', name: 'drain_shutdown_timeout', kind: 'integer', default: 1800, min: 0, help: 'Seconds that work under way may go on after SIGUSR2, which drains a conductor. 0: as long as it takes.' },
  { section: 'DEFAULT', name: 'isolinux_bin', kind: 'string', default: '/usr/lib/syslinux/isolinux.bin', help: 'What boots by BIOS from CD images that are made of kernel and ramdisk: ISOLINUX, or a GRUB made for El Torito. Where it is not, /usr/lib/ISOLINUX/isolinux.bin is looked for.' },
  { section: 'DEFAULT', name: 'ldlinux_c32', kind: 'string', default: null, help: 'The library of ISOLINUX 5 and later. Default: where Debian and Red Hat have it.' },
  { section: 'DEFAULT', name: 'grub_config_path', kind: 'string', default: 'EFI/BOOT/grub.cfg', help: 'Where GRUB looks for its configuration on such CDs; the usual places have it anyway.' },
  { section: 'DEFAULT', name: 'esp_image', kind: 'string', default: null, help: 'Path of an image of an EFI system partition, where no bootloader is named.' },
  { section: 'DEFAULT', name: 'rpc_transport', kind: 'string', default: 'json-rpc', choices: ['json-rpc', 'oslo', 'none'], help: 'How API and conductors that are separate processes speak: signed JSON-RPC over HTTP, also where oslo is named; none: this process speaks to none.' },

  // [json_rpc]
  { section: 'json_rpc', name: 'host_ip', kind: 'string', default: null, help: 'Address that a conductor listens on for other processes; :: and 0.0.0.0 are all of them. Default: ::, and 127.0.0.1 without [DEFAULT]auth_strategy.' },
  { section: 'json_rpc', name: 'port', kind: 'integer', default: 0, min: 0, max: 65535, help: 'Port that a conductor listens on for other processes. 0: any free one, which its row in the database tells them.' },
  { section: 'json_rpc', name: 'use_ssl', kind: 'boolean', default: false, help: 'Listen with TLS.' },
  { section: 'json_rpc', name: 'cert_file', kind: 'string', default: null, help: 'Certificate of the listener, PEM. Default: [ssl]cert_file.' },
  { section: 'json_rpc', name: 'key_file', kind: 'string', default: null, help: 'Private key of the certificate, PEM. Default: [ssl]key_file.' },
  { section: 'json_rpc', name: 'server_tls_minimum_version', kind: 'string', default: '1.3', choices: ['1.2', '1.3'], formerly: 'json_rpc.tls_minimum_version', help: 'Oldest version of TLS that the listener takes.' },
  { section: 'json_rpc', name: 'server_tls_ciphers', kind: 'string', default: null, help: 'Ciphers of the listener, in OpenSSL\'s format. Default: those of [ssl]ciphers, else those of Node.' },
  { section: 'json_rpc', name: 'client_use_ssl', kind: 'boolean', default: false, help: 'Tell others to come with TLS though the listener has none: something in between ends it.' },
  { section: 'json_rpc', name: 'cafile', kind: 'string', default: null, help: 'Certificates that those of other conductors are held against, PEM. Default: those of the system.' },
  { section: 'json_rpc', name: 'insecure', kind: 'boolean', default: false, help: 'Take any certificate of other conductors.' },
  // [api]
  { section: 'api', name: 'host_ip', kind: 'string', default: null, help: 'Address that the API listens on. Default: 0.0.0.0, and 127.0.0.1 without [DEFAULT]auth_strategy.' },
  { section: 'api', name: 'port', kind: 'integer', default: 6385, min: 0, max: 65535, help: 'Port that the API listens on.' },
  { section: 'api', name: 'unix_socket', kind: 'string', default: null, help: 'Unix socket that the API listens on, instead of host_ip and port.' },
  { section: 'api', name: 'unix_socket_mode', kind: 'octal', default: null, min: 0, max: 0o777, help: 'Permissions of the Unix socket. Default: those that the umask leaves.' },
  { section: 'api', name: 'enable_ssl_api', kind: 'boolean', default: false, help: 'The API and the introspection service answer with TLS. The certificate is read again at SIGHUP, and when its file changes.' },
  { section: 'api', name: 'cert_file', kind: 'string', default: null, help: 'Certificate of the API, PEM, with those of the authorities between. Default: [ssl]cert_file.' },
  { section: 'api', name: 'key_file', kind: 'string', default: null, help: 'Private key of the certificate, PEM. Default: [ssl]key_file.' },
  { section: 'api', name: 'server_tls_minimum_version', kind: 'string', default: '1.3', choices: ['1.2', '1.3'], formerly: 'api.tls_minimum_version', help: 'Oldest version of TLS that the API takes.' },
  { section: 'api', name: 'server_tls_ciphers', kind: 'string', default: null, formerly: 'api.tls_ciphers', help: 'Ciphers of the API, in OpenSSL\'s format. Default: those of [ssl]ciphers, else those of Node.' },
  { section: 'api', name: 'max_limit', kind: 'integer', default: 1000, min: 1, help: 'Most rows in one answer to a list.' },
  { section: 'api', name: 'public_endpoint', kind: 'string', default: null, help: 'Base of the links in answers. Default: the host that the caller used.' },
  { section: 'api', name: 'restrict_lookup', kind: 'boolean', default: true, help: 'Ramdisks find their node only in the states in which one is expected.' },
  { section: 'api', name: 'ramdisk_heartbeat_timeout', kind: 'integer', default: 300, min: 1, help: 'Seconds within which a ramdisk shall heartbeat; it is told at lookup.' },
  { section: 'api', name: 'enable_ramdisk_endpoints', kind: 'boolean', default: true, help: 'Answer lookup, heartbeat and continue_inspection here.' },
  { section: 'api', name: 'fragment_cache_size', kind: 'integer', default: 64, min: 0, ours: true, help: 'Memory for answers that are kept, in MiB: a node in detail takes about 4 KiB, once for each version that is asked for.' },
  { section: 'api', name: 'max_json_body_size', kind: 'integer', default: 1024, min: 1, help: 'Largest JSON body, KiB.' },
  { section: 'api', name: 'max_json_body_size_provision', kind: 'integer', default: 65536, min: 1, help: 'Largest JSON body of a provision request (it may carry a config drive), KiB.' },
  { section: 'api', name: 'max_json_body_size_inspection', kind: 'integer', default: 16384, min: 1, help: 'Largest JSON body of continue_inspection, KiB.' },
  { section: 'api', name: 'max_json_body_depth', kind: 'integer', default: 25, min: 1, help: 'Deepest nesting of a JSON body.' },
  { section: 'api', name: 'disallow_clean_steps', kind: 'list', default: ['vendor.send_raw'], help: 'Steps (interface.step) that no cleaning may run: asked for, they are refused; offered by a driver, they are left out.' },
  { section: 'api', name: 'disallow_deploy_steps', kind: 'list', default: ['vendor.send_raw'], help: 'Steps (interface.step) that no deployment may run: asked for, they are refused; offered by a driver, they are left out.' },
  { section: 'api', name: 'disallow_service_steps', kind: 'list', default: ['vendor.send_raw'], help: 'Steps (interface.step) that no servicing may run.' },
  { section: 'api', name: 'request_timeout', kind: 'integer', default: 120, min: 1, ours: true, help: 'Seconds within which a caller must have sent its whole request; then the connection is closed.' },
  { section: 'api', name: 'log_requests', kind: 'string', default: 'all', choices: ['all', 'changes', 'failures', 'none'], ours: true, help: 'Which requests have a line in the log, with method, path, status, milliseconds and who asked: changes are all but GET, failures those with a status of 400 and above (among changes too).' },
  // [ssl]
  { section: 'ssl', name: 'cert_file', kind: 'string', default: null, help: 'Certificate of listeners with TLS whose own section names none, PEM.' },
  { section: 'ssl', name: 'key_file', kind: 'string', default: null, help: 'Private key of that certificate, PEM.' },
  { section: 'ssl', name: 'ca_file', kind: 'string', default: null, help: 'Authorities of client certificates, PEM: the API with TLS then answers only clients that have one of them.' },
  { section: 'ssl', name: 'version', kind: 'string', default: null, help: 'TLSv1_2: that version only. SSLv23: no limit beside server_tls_minimum_version. Other versions are not secure, and refused.' },
  { section: 'ssl', name: 'ciphers', kind: 'string', default: null, help: 'Ciphers of listeners with TLS whose own section names none, in OpenSSL\'s format.' },
  // [cors]
  { section: 'cors', name: 'allowed_origin', kind: 'list', default: [], help: 'Origins whose pages may ask the API: scheme, host and port; * for all.' },
  { section: 'cors', name: 'allow_credentials', kind: 'boolean', default: true, help: 'Such pages may send credentials.' },
  { section: 'cors', name: 'expose_headers', kind: 'list', default: [], help: 'Headers of answers that such pages may read.' },
  { section: 'cors', name: 'max_age', kind: 'integer', default: 3600, min: 0, help: 'Seconds that browsers may remember what such pages may do.' },
  { section: 'cors', name: 'allow_methods', kind: 'list', default: ['OPTIONS', 'GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'TRACE', 'PATCH'], help: 'Methods that such pages may use.' },
  { section: 'cors', name: 'allow_headers', kind: 'list', default: [], help: "Headers that such pages may send, beside the usual ones and Ironic's." },
  // [healthcheck], [oslo_middleware]
  { section: 'healthcheck', name: 'enabled', kind: 'boolean', default: false, help: 'Answer /healthcheck, without authentication.' },
  { section: 'healthcheck', name: 'backends', kind: 'list', default: [], help: 'Checks, of disable_by_file, disable_by_files_ports, enable_by_files, and database (not in Ironic): the answer is 503 when one fails.' },
  { section: 'healthcheck', name: 'detailed', kind: 'boolean', default: false, help: 'Tell details of the checks and this host, as JSON and HTML.' },
  { section: 'healthcheck', name: 'disable_by_file_path', kind: 'string', default: null, help: 'While this file is there, disable_by_file fails: takes the process out of a load balancer.' },
  { section: 'healthcheck', name: 'disable_by_file_paths', kind: 'list', default: [], help: 'The same by the port that was asked, as port:path, for disable_by_files_ports.' },
  { section: 'healthcheck', name: 'enable_by_file_paths', kind: 'list', default: [], help: 'Files without which enable_by_files fails.' },
  { section: 'healthcheck', name: 'allowed_source_ranges', kind: 'list', default: [], help: 'Networks from which /healthcheck is answered; empty: from all. For others there is no such path.' },
  { section: 'healthcheck', name: 'ignore_proxied_requests', kind: 'boolean', default: false, help: 'Do not answer /healthcheck when a proxy passed it on.' },
  { section: 'oslo_middleware', name: 'enable_proxy_headers_parsing', kind: 'boolean', default: false, help: 'Believe Forwarded, X-Forwarded-Proto, -Host and -Prefix of a proxy: links begin with what they say.' },
  // [metrics]
  { section: 'metrics', name: 'public', kind: 'boolean', default: true, ours: true, help: 'Answer /metrics on the port of the API too, without authentication. It tells of work and machines in numbers, of none by name.' },
  { section: 'metrics', name: 'prometheus_port', kind: 'integer', default: null, min: 0, max: 65535, ours: true, help: 'Port of its own for /metrics and /healthcheck, for processes without the API too. Default: none.' },
  { section: 'metrics', name: 'prometheus_host', kind: 'string', default: '0.0.0.0', ours: true, help: 'Address that this port listens on.' },
  { section: 'metrics', name: 'prometheus_use_ssl', kind: 'boolean', default: false, ours: true, help: 'This port answers with TLS.' },
  { section: 'metrics', name: 'cert_file', kind: 'string', default: null, ours: true, help: 'Certificate of this port, PEM. Default: [ssl]cert_file.' },
  { section: 'metrics', name: 'key_file', kind: 'string', default: null, ours: true, help: 'Private key of the certificate, PEM. Default: [ssl]key_file.' },
  { section: 'metrics', name: 'server_tls_minimum_version', kind: 'string', default: '1.3', choices: ['1.2', '1.3'], ours: true, help: 'Oldest version of TLS that this port takes.' },
  { section: 'metrics', name: 'server_tls_ciphers', kind: 'string', default: null, ours: true, help: 'Ciphers of this port, in OpenSSL\'s format. Default: those of [ssl]ciphers, else those of Node.' },
  { section: 'metrics', name: 'agent_backend', kind: 'string', default: 'noop', help: 'How agents send metrics of their own (they are told at lookup): noop or statsd.' },
  { section: 'metrics', name: 'agent_prepend_host', kind: 'boolean', default: false, help: "Agents put the host's name before the names of their metrics." },
  { section: 'metrics', name: 'agent_prepend_uuid', kind: 'boolean', default: false, help: "Agents put the node's UUID before the names of their metrics." },
  { section: 'metrics', name: 'agent_prepend_host_reverse', kind: 'boolean', default: true, help: "Agents reverse the parts of the host's name there." },
  { section: 'metrics', name: 'agent_global_prefix', kind: 'string', default: null, help: 'What agents put before the names of all their metrics.' },
  { section: 'metrics_statsd', name: 'agent_statsd_host', kind: 'string', default: 'localhost', help: 'Where agents send metrics by statsd.' },
  { section: 'metrics_statsd', name: 'agent_statsd_port', kind: 'integer', default: 8125, min: 0, max: 65535, help: 'The port there.' },

  // [service_catalog]
  { section: 'service_catalog', name: 'endpoint_override', kind: 'string', default: null, help: 'URL at which ramdisks reach the API. Default: made of my_ip and the API port.' },
  // [database]
  { section: 'database', name: 'connection', kind: 'string', default: null, secret: true, help: 'postgresql:// URL. Empty (and no DATABASE_URL): the embedded PostgreSQL under the state directory.' },
  { section: 'database', name: 'max_pool_size', kind: 'integer', default: 10, min: 1, help: 'Most connections to the database.' },
  // [conductor]
  { section: 'conductor', name: 'conductor_group', kind: 'string', default: '', help: 'Group of nodes that this conductor serves.' },
  { section: 'conductor', name: 'automated_clean', kind: 'boolean', default: true, help: 'Clean nodes before they become available, unless the node says otherwise.' },
  { section: 'conductor', name: 'automated_cleaning_step_source', kind: 'string', default: 'autogenerated', choices: ['autogenerated', 'runbook', 'hybrid'], help: 'Where the steps of automated cleaning come from: autogenerated (from the priorities that driver and agent give), runbook, hybrid (a runbook where there is one for the node, else autogenerated).' },
  { section: 'conductor', name: 'automated_cleaning_runbook', kind: 'string', default: null, help: 'Runbook (UUID or name) of automated cleaning by runbook, for nodes without one of their own.' },
  { section: 'conductor', name: 'automated_cleaning_runbook_by_resource_class', kind: 'dict', default: {}, help: 'resource_class:runbook pairs, over automated_cleaning_runbook.' },
  { section: 'conductor', name: 'automated_cleaning_runbook_from_node', kind: 'boolean', default: false, help: 'driver_info cleaning_runbook of a node names its runbook: whoever may change driver_info then says how the node is cleaned.' },
  { section: 'conductor', name: 'automated_cleaning_runbook_validate_traits', kind: 'boolean', default: true, help: 'Automated cleaning takes a runbook only for nodes that have one of its traits.' },
  { section: 'conductor', name: 'heartbeat_interval', kind: 'integer', default: 10, min: 1, help: "Seconds between this conductor's signs of life in the database." },
  { section: 'conductor', name: 'heartbeat_timeout', kind: 'integer', default: 60, min: 1, help: 'Seconds without a sign of life after which a conductor counts as dead.' },
  { section: 'conductor', name: 'graceful_shutdown_timeout', formerly: 'DEFAULT.graceful_shutdown_timeout', kind: 'integer', default: 60, min: 0, help: 'Seconds that work under way may go on after SIGTERM; what is left then is resumed by another conductor, or by the next start. 0: as long as it takes.' },
  { section: 'conductor', name: 'conductor_cleanup_interval', kind: 'integer', default: 86400, min: 0, help: 'Seconds between looks for conductors that will not come back; 0: never.' },
  { section: 'conductor', name: 'conductor_cleanup_timeout', kind: 'integer', default: 1209600, min: 60, help: 'Seconds without a sign of life after which a conductor is forgotten; at least three times heartbeat_timeout.' },
  { section: 'conductor', name: 'conductor_cleanup_batch_size', kind: 'integer', default: 50, min: 1, help: 'Most conductors that are forgotten at once.' },
  { section: 'conductor', name: 'sync_power_state_interval', kind: 'integer', default: 120, min: 0, help: 'Seconds between synchronisations of power states; 0: never.' },
  { section: 'conductor', name: 'sync_power_state_workers', kind: 'integer', default: 32, min: 1, help: 'How many nodes are asked for their power state at once. Ironic takes a thread for each, and 8 by default; here one costs little more than the wait for its BMC.' },
  { section: 'conductor', name: 'force_power_state_during_sync', kind: 'boolean', default: true, help: 'Put a machine back to the power state on record, instead of recording what it has.' },
  { section: 'conductor', name: 'power_state_sync_max_retries', kind: 'integer', default: 3, min: 0, help: 'Failed synchronisations after which a node is put in maintenance.' },
  { section: 'conductor', name: 'power_failure_recovery_interval', kind: 'integer', default: 300, min: 0, help: 'Seconds between tries to reach the BMCs of nodes with fault "power failure"; 0: never.' },
  { section: 'conductor', name: 'check_provision_state_interval', kind: 'integer', default: 60, min: 0, help: 'Seconds between checks of the waiting states for their timeouts; 0: never.' },
  { section: 'conductor', name: 'check_rescue_state_interval', kind: 'integer', default: 60, min: 1, help: 'Seconds between checks of rescue wait for its timeout.' },
  { section: 'conductor', name: 'check_allocations_interval', kind: 'integer', default: 60, min: 0, help: 'Seconds between looks for allocations that no conductor goes on with; 0: never.' },
  { section: 'conductor', name: 'deploy_callback_timeout', kind: 'integer', default: 1800, min: 0, help: 'Seconds to wait for the ramdisk in a deployment; 0: for ever.' },
  { section: 'conductor', name: 'clean_callback_timeout', kind: 'integer', default: 1800, min: 0, help: 'Seconds to wait for the ramdisk in cleaning; 0: for ever.' },
  { section: 'conductor', name: 'inspect_wait_timeout', kind: 'integer', default: 1800, min: 0, help: 'Seconds to wait for the ramdisk in inspection; 0: for ever.' },
  { section: 'conductor', name: 'rescue_callback_timeout', kind: 'integer', default: 1800, min: 0, help: 'Seconds to wait for the rescue ramdisk; 0: for ever.' },
  { section: 'conductor', name: 'node_history', kind: 'boolean', default: true, help: 'Keep a history of what happened to nodes; the power synchronisation then clears old errors.' },
  { section: 'conductor', name: 'enable_health_monitoring', kind: 'boolean', default: true, help: 'Keep what BMCs say of the health of their machines on the nodes, as often as power states are synchronised.' },
  { section: 'conductor', name: 'node_history_max_entries', kind: 'integer', default: 300, min: 0, help: 'Entries of history that are kept for a node.' },
  { section: 'conductor', name: 'node_history_cleanup_interval', kind: 'integer', default: 86400, min: 0, help: 'Seconds between removals of old history; 0: never.' },
  { section: 'conductor', name: 'node_history_cleanup_batch_count', kind: 'integer', default: 1000, min: 0, help: 'Entries of history that are removed at a time.' },
  { section: 'conductor', name: 'node_history_minimum_days', kind: 'integer', default: 0, min: 0, help: 'Entries of history stay at least so many days.' },
  { section: 'conductor', name: 'record_step_flows_in_history', kind: 'boolean', default: true, help: 'Record beginning and end of cleaning, deployment and servicing, with their steps.' },
  { section: 'conductor', name: 'rescue_password_hash_algorithm', kind: 'string', default: 'sha256', choices: ['sha256', 'sha512'], help: 'How the password of a rescue system is hashed.' },
  { section: 'conductor', name: 'require_rescue_password_hashed', kind: 'boolean', default: true, help: 'An agent that takes no hashed password gets none. False: it gets the password itself.' },
  { section: 'conductor', name: 'max_conductor_wait_step_seconds', kind: 'integer', default: 30, min: 0, max: 1800, help: 'Longest wait that a step `power.wait` may ask for, in seconds.' },
  { section: 'conductor', name: 'service_callback_timeout', kind: 'integer', default: 1800, min: 0, help: 'Seconds to wait for the ramdisk in servicing; 0: for ever.' },
  { section: 'conductor', name: 'power_state_change_timeout', kind: 'integer', default: 60, min: 1, help: 'Seconds that a machine may take to reach a power state.' },
  { section: 'conductor', name: 'soft_power_off_timeout', kind: 'integer', default: 600, min: 1, help: 'Seconds that a machine may take to shut itself down.' },
  { section: 'conductor', name: 'allow_deleting_available_nodes', kind: 'boolean', default: true, help: 'Nodes in state available may be deleted.' },
  { section: 'conductor', name: 'allow_provisioning_in_maintenance', kind: 'boolean', default: true, help: 'Nodes in maintenance may be cleaned by `provide`.' },
  { section: 'conductor', name: 'workers_pool_size', kind: 'integer', default: 300, min: 3, help: 'Most pieces of work at once.' },
  { section: 'conductor', name: 'reserved_workers_pool_percentage', kind: 'integer', default: 5, min: 0, max: 50, help: 'Percentage of them that is kept for what the API asks: periodic work and heartbeats do not take these places.' },
  { section: 'conductor', name: 'periodic_max_workers', kind: 'integer', default: 8, min: 1, help: 'How many nodes a piece of periodic work looks at at once.' },
  { section: 'conductor', name: 'max_concurrent_deploy', kind: 'integer', default: 250, min: 1, help: 'Most nodes in deployment at once.' },
  { section: 'conductor', name: 'max_concurrent_clean', kind: 'integer', default: 50, min: 1, help: 'Most nodes in cleaning at once.' },
  { section: 'conductor', name: 'max_concurrent_per_conductor_group', kind: 'boolean', default: false, help: 'These two limits hold for each conductor group by itself.' },
  { section: 'conductor', name: 'node_locked_retry_attempts', kind: 'integer', default: 3, min: 0, help: 'Tries to lock a node that is locked.' },
  { section: 'conductor', name: 'node_locked_retry_interval', kind: 'integer', default: 1, min: 0, help: 'Seconds between such tries.' },
  { section: 'conductor', name: 'clean_step_priority_override', kind: 'dict', default: {}, help: 'interface.step:priority pairs over the priorities of clean steps.' },
  { section: 'conductor', name: 'verify_step_priority_override', kind: 'dict', default: {}, help: 'interface.step:priority pairs over the priorities of verify steps; 0: not run.' },
  { section: 'conductor', name: 'poweroff_in_cleanfail', kind: 'boolean', default: false, help: 'Power machines off whose cleaning failed. Not with steps that must not be cut off, such as updates of firmware.' },
  { section: 'conductor', name: 'poweroff_in_servicefail', kind: 'boolean', default: false, help: 'Power machines off whose servicing failed. Not with steps that must not be cut off, such as updates of firmware.' },
  { section: 'conductor', name: 'permit_child_node_step_async_result', kind: 'boolean', default: false, help: 'A step on a child node may answer that it goes on, which nobody waits for.' },
  { section: 'conductor', name: 'automatic_lessee', kind: 'boolean', default: true, help: 'A node without a lessee gets one when it is deployed, and loses it when its instance ends.' },
  { section: 'conductor', name: 'automatic_lessee_source', kind: 'string', default: 'instance', choices: ['instance', 'request', 'none'], help: 'Whose project that is: instance (instance_info project_id), request (of whoever asks), none.' },
  { section: 'conductor', name: 'disallowed_deployment_boot_modes', kind: 'list', default: [], help: 'Nodes whose properties name one of these boot modes are not deployed.' },
  { section: 'conductor', name: 'enable_mdns', kind: 'boolean', default: false, help: 'Announce where the API is by multicast DNS, for agents that are not told.' },
  { section: 'conductor', name: 'deploy_kernel', kind: 'string', default: null, help: 'Kernel of the agent ramdisk, for nodes without driver_info deploy_kernel: path, file:// or http(s):// URL.' },
  { section: 'conductor', name: 'deploy_ramdisk', kind: 'string', default: null, help: 'Initramfs of the agent ramdisk, for nodes without driver_info deploy_ramdisk.' },
  { section: 'conductor', name: 'rescue_kernel', kind: 'string', default: null, help: 'Kernel of the rescue ramdisk, for nodes without driver_info rescue_kernel: path, file:// or http(s):// URL.' },
  { section: 'conductor', name: 'rescue_ramdisk', kind: 'string', default: null, help: 'Initramfs of the rescue ramdisk, for nodes without driver_info rescue_ramdisk.' },
  { section: 'conductor', name: 'bootloader', kind: 'string', default: null, help: 'What boots by UEFI from CD images that are made of kernel and ramdisk, for nodes without driver_info bootloader: an image of an EFI system partition, or an EFI program such as gcdx64.efi of GRUB. Path, file:// or http(s):// URL.' },
  { section: 'conductor', name: 'file_url_allowed_paths', kind: 'list', default: ['/var/lib/ironic'], help: 'Folders from which file:// images may be taken.' },
  // [deploy]
  { section: 'deploy', name: 'http_url', kind: 'string', default: null, help: 'URL of the HTTP boot service as machines reach it. Default: made of my_ip and [boot]http_port.' },
  { section: 'deploy', name: 'external_http_url', kind: 'string', default: null, help: 'URL of the HTTP boot service as BMCs reach it, where that is another one than http_url (driver_info external_http_url: of one node).' },
  { section: 'deploy', name: 'external_callback_url', kind: 'string', default: null, help: 'URL of the API as ramdisks reach it that were booted from virtual media. Default: the one that other ramdisks are told.' },
  { section: 'deploy', name: 'ramdisk_image_download_source', kind: 'string', default: 'local', choices: ['http', 'local', 'swift'], help: 'Where BMCs get ISO images that nodes name: http, from where they are; local, from the HTTP boot service, which fetches and keeps them. swift is as http.' },
  { section: 'deploy', name: 'http_root', kind: 'string', default: null, help: 'Folder whose files the HTTP boot service also serves. Default: httpboot under the state directory.' },
  { section: 'deploy', name: 'default_boot_mode', kind: 'string', default: 'uefi', choices: ['uefi', 'bios'], help: 'Boot mode of nodes whose capabilities name none.' },
  { section: 'deploy', name: 'fast_track', kind: 'boolean', default: false, help: 'Agents that run before a node is deployed may look it up and speak for it (driver_info fast_track: of one node). The power interface agent needs it.' },
  { section: 'deploy', name: 'fast_track_timeout', kind: 'integer', default: 300, min: 0, max: 300, help: 'Seconds after its last heartbeat in which such an agent is taken to run.' },
  { section: 'deploy', name: 'erase_devices_priority', kind: 'integer', default: null, min: 0, help: "Priority of the agent's clean step erase_devices; 0: not run. Default: the agent's." },
  { section: 'deploy', name: 'erase_devices_metadata_priority', kind: 'integer', default: null, min: 0, help: "Priority of the agent's clean step erase_devices_metadata; 0: not run. Default: the agent's." },
  { section: 'deploy', name: 'create_configuration_priority', kind: 'integer', default: null, min: 0, help: "Priority of the clean step that makes RAID by the agent; 0: only when asked for. Default: the agent's." },
  { section: 'deploy', name: 'delete_configuration_priority', kind: 'integer', default: null, min: 0, help: "Priority of the clean step that removes RAID by the agent; 0: only when asked for. Default: the agent's." },
  { section: 'deploy', name: 'shred_random_overwrite_iterations', kind: 'integer', default: 1, min: 0, help: 'Passes of random data over a disk that has no erase command.' },
  { section: 'deploy', name: 'shred_final_overwrite_with_zeros', kind: 'boolean', default: true, help: 'A last pass of zeros over such a disk.' },
  { section: 'deploy', name: 'continue_if_disk_secure_erase_fails', kind: 'boolean', default: false, help: 'Overwrite the disk when its own erase command fails, instead of failing.' },
  { section: 'deploy', name: 'enable_ata_secure_erase', kind: 'boolean', default: true, help: 'ATA disks are erased by their own command where they have one.' },
  { section: 'deploy', name: 'enable_nvme_secure_erase', kind: 'boolean', default: true, help: 'NVMe disks are erased by their own command where they have one.' },
  { section: 'deploy', name: 'erase_skip_read_only', kind: 'boolean', default: false, help: 'Erasing leaves out disks that cannot be written, instead of failing.' },
  { section: 'deploy', name: 'power_off_after_deploy_failure', kind: 'boolean', default: true, help: 'Power machines off whose deployment failed.' },
  { section: 'deploy', name: 'disk_erasure_concurrency', kind: 'integer', default: 4, min: 1, help: 'Disks of a machine erased at once.' },
  // [pxe]
  { section: 'pxe', name: 'kernel_append_params', kind: 'string', default: 'nofb vga=normal', help: "Added to the ramdisk's kernel arguments." },
  { section: 'pxe', name: 'tftp_server', kind: 'string', default: null, help: 'Address of the TFTP service as machines reach it. Default: my_ip.' },
  { section: 'pxe', name: 'tftp_root', kind: 'string', default: null, help: 'Folder that the TFTP service serves. Default: tftpboot under the state directory.' },
  { section: 'pxe', name: 'loader_file_paths', kind: 'dict', default: { 'undionly.kpxe': '/usr/lib/ipxe/undionly.kpxe', 'snponly.efi': '/usr/lib/ipxe/snponly.efi', 'pxelinux.0': '/usr/lib/PXELINUX/pxelinux.0', 'ldlinux.c32': '/usr/lib/syslinux/modules/bios/ldlinux.c32', 'bootx64.efi': '/usr/lib/grub/x86_64-efi/monolithic/grubnetx64.efi' }, help: 'name:path of boot loaders that TFTP and HTTP serve under that name.' },
  { section: 'pxe', name: 'pxe_bootfile_name', kind: 'string', default: 'pxelinux.0', help: 'PXELINUX, for machines of the boot interface pxe that boot in BIOS mode.' },
  { section: 'pxe', name: 'uefi_pxe_bootfile_name', kind: 'string', default: 'bootx64.efi', help: 'GRUB, for machines of the boot interface pxe that boot in UEFI mode.' },
  { section: 'pxe', name: 'pxe_bootfile_name_by_arch', kind: 'dict', default: {}, help: 'arch-mode:file or arch:file of such loaders for other architectures (aarch64:grubaa64.efi, x86_64-bios:lpxelinux.0).' },
  { section: 'pxe', name: 'ipxe_bootfile_name', kind: 'string', default: 'undionly.kpxe', help: 'iPXE for machines that boot in BIOS mode.' },
  { section: 'pxe', name: 'uefi_ipxe_bootfile_name', kind: 'string', default: 'snponly.efi', help: 'iPXE for machines that boot in UEFI mode.' },
  { section: 'pxe', name: 'ipxe_bootfile_name_by_arch', kind: 'dict', default: {}, help: 'arch-mode:file or arch:file of iPXE for other architectures (aarch64:ipxe-arm64.efi, x86_64-uefi:ipxe.efi).' },
  { section: 'pxe', name: 'image_cache_size', kind: 'integer', default: 20480, min: 1, help: 'MiB of files from other servers (kernels, ramdisks, images) that the HTTP boot service keeps.' },
  // [dhcp]
  { section: 'dhcp', name: 'dhcp_provider', kind: 'string', default: 'none', choices: ['builtin', 'none'], help: 'builtin: this program answers DHCP on [boot]interface; none: the site does.' },
  // [boot], ours
  { section: 'boot', name: 'interface', kind: 'string', default: null, ours: true, help: 'Network interface of the provisioning network; DHCP is bound to it and answers nowhere else.' },
  { section: 'boot', name: 'dhcp_range', kind: 'string', default: null, ours: true, help: 'FIRST-LAST addresses for machines (10.0.0.100-10.0.0.200).' },
  { section: 'boot', name: 'dhcp_netmask', kind: 'string', default: null, ours: true, help: "Netmask given to machines. Default: the interface's." },
  { section: 'boot', name: 'dhcp_gateway', kind: 'string', default: null, ours: true, help: 'Default gateway given to machines. Default: none.' },
  { section: 'boot', name: 'dhcp_dns', kind: 'list', default: [], ours: true, help: 'Name servers given to machines.' },
  { section: 'boot', name: 'dhcp_lease_time', kind: 'integer', default: 3600, min: 60, ours: true, help: 'Seconds that an address is given for.' },
  { section: 'boot', name: 'dhcp_unknown_macs', kind: 'string', default: null, choices: ['ignore', 'discover'], ours: true, help: 'What an unknown MAC address gets: silence, or the agent ramdisk for discovery. Default: the ramdisk while [auto_discovery]enabled.' },
  { section: 'boot', name: 'router_advertisements', kind: 'boolean', default: true, ours: true, help: 'Send IPv6 router advertisements without a prefix on [boot]interface with builtin DHCP, so that iPXE does not wait for one.' },
  { section: 'boot', name: 'tftp_host', kind: 'string', default: null, ours: true, help: 'Address that the TFTP service listens on. Default: those of [boot]interface, and my_ip; without an interface 0.0.0.0.' },
  { section: 'boot', name: 'tftp_port', kind: 'integer', default: 69, min: 0, max: 65535, ours: true, help: 'Port that the TFTP service listens on.' },
  { section: 'boot', name: 'tftp', kind: 'boolean', default: true, ours: true, help: 'Run the TFTP service.' },
  { section: 'boot', name: 'http_host', kind: 'string', default: null, ours: true, help: 'Address that the HTTP boot service listens on. Default: those of [boot]interface, and my_ip; without an interface 0.0.0.0.' },
  { section: 'boot', name: 'http_port', kind: 'integer', default: 8080, min: 0, max: 65535, ours: true, help: 'Port that the HTTP boot service listens on.' },
  { section: 'boot', name: 'http_use_ssl', kind: 'boolean', default: false, ours: true, help: 'The HTTP boot service answers with TLS. Firmware, iPXE, ramdisks and BMCs must trust the certificate.' },
  { section: 'boot', name: 'cert_file', kind: 'string', default: null, ours: true, help: 'Certificate of the HTTP boot service, PEM. Default: [ssl]cert_file.' },
  { section: 'boot', name: 'key_file', kind: 'string', default: null, ours: true, help: 'Private key of the certificate, PEM. Default: [ssl]key_file.' },
  { section: 'boot', name: 'server_tls_minimum_version', kind: 'string', default: '1.2', choices: ['1.2', '1.3'], ours: true, help: 'Oldest version of TLS that the HTTP boot service takes. Firmware often has no newer one than 1.2.' },
  { section: 'boot', name: 'server_tls_ciphers', kind: 'string', default: null, ours: true, help: 'Ciphers of the HTTP boot service, in OpenSSL\'s format. Default: those of [ssl]ciphers, else those of Node.' },
  // [agent]
  { section: 'agent', name: 'command_timeout', kind: 'integer', default: 60, min: 1, help: 'Seconds that an agent may take to answer a command.' },
  { section: 'agent', name: 'max_command_attempts', kind: 'integer', default: 3, min: 1, help: 'Tries to send a command when the connection fails.' },
  { section: 'agent', name: 'command_wait_attempts', kind: 'integer', default: 100, min: 1, help: 'Looks at a command of an agent that is waited for.' },
  { section: 'agent', name: 'command_wait_interval', kind: 'integer', default: 6, min: 1, help: 'Seconds between such looks (at most: it looks earlier first, and an agent may hold its answer back until the command is over).' },
  { section: 'agent', name: 'require_tls', kind: 'boolean', default: true, help: "The agent's callback URL must be https." },
  { section: 'agent', name: 'verify_ca', kind: 'string', default: 'True', help: 'Authorities that agents without a certificate of their own are held against: True (the system), False (none), or a file.' },
  { section: 'agent', name: 'post_deploy_get_power_state_retries', kind: 'integer', default: 6, min: 0, help: 'Looks at the power state after the agent was asked to power off.' },
  { section: 'agent', name: 'post_deploy_get_power_state_retry_interval', kind: 'integer', default: 5, min: 0, help: 'Seconds between such looks (at most: it looks earlier first).' },
  { section: 'agent', name: 'deploy_logs_collect', kind: 'string', default: 'on_failure', choices: ['always', 'on_failure', 'never'], help: 'After which inspections the logs that the ramdisk sent with its inventory are kept.' },
  { section: 'agent', name: 'deploy_logs_storage_backend', kind: 'string', default: 'local', choices: ['local', 'swift'], help: 'Where logs are kept. There is no Swift here: it refuses the start.' },
  { section: 'agent', name: 'deploy_logs_local_path', kind: 'string', default: '/var/log/ironic/deploy', help: 'Folder for them.' },
  { section: 'agent', name: 'stream_raw_images', kind: 'boolean', default: true, help: 'Raw images are written to the disk as they arrive.' },
  // [sensor_data]
  { section: 'sensor_data', name: 'send_sensor_data', kind: 'boolean', default: false, help: 'Collect the sensors of machines from time to time, and tell them.' },
  { section: 'sensor_data', name: 'interval', kind: 'integer', default: 600, min: 1, help: 'Seconds between notifications of what the sensors said last, and between readings of kinds without an interval of their own.' },
  { section: 'sensor_data', name: 'interval_power', kind: 'integer', default: 60, min: 1, ours: true, help: 'Seconds between readings of power supplies.' },
  { section: 'sensor_data', name: 'interval_temperature', kind: 'integer', default: 60, min: 1, ours: true, help: 'Seconds between readings of temperatures.' },
  { section: 'sensor_data', name: 'interval_fan', kind: 'integer', default: 300, min: 1, ours: true, help: 'Seconds between readings of fans.' },
  { section: 'sensor_data', name: 'interval_drive', kind: 'integer', default: 1800, min: 1, ours: true, help: 'Seconds between readings of drives.' },
  { section: 'sensor_data', name: 'workers', kind: 'integer', default: 4, min: 1, help: 'How many machines are asked at once.' },
  { section: 'sensor_data', name: 'wait_timeout', kind: 'integer', default: 300, min: 1, help: 'Seconds after which a collection ends, whether or not all machines were asked.' },
  { section: 'sensor_data', name: 'data_types', kind: 'list', default: ['ALL'], help: 'Kinds of sensors that are told (Temperature, Fan, …); ALL: every kind.' },
  { section: 'sensor_data', name: 'enable_for_undeployed_nodes', kind: 'boolean', default: false, help: 'Ask the machines of nodes that are not active too.' },
  { section: 'sensor_data', name: 'enable_for_nodes', kind: 'boolean', default: true, help: 'Ask machines at all.' },
  { section: 'sensor_data', name: 'enable_for_conductor', kind: 'boolean', default: true, help: "Tell the conductor's own counts too." },
  // [inspector]
  { section: 'inspector', name: 'extra_kernel_params', kind: 'string', default: '', help: "Added to the ramdisk's kernel arguments for inspection." },
  { section: 'inspector', name: 'require_managed_boot', kind: 'boolean', default: null, help: 'Refuse inspection of nodes whose boot interface cannot boot the ramdisk.' },
  { section: 'inspector', name: 'power_off', kind: 'boolean', default: true, help: 'Power machines off after inspection.' },
  { section: 'inspector', name: 'default_hooks', kind: 'list', default: ['ramdisk-error', 'validate-interfaces', 'ports', 'architecture'], help: 'For `hooks`, which may name it: "first,$default_hooks,last".' },
  { section: 'inspector', name: 'hooks', kind: 'list', default: ['ramdisk-error', 'validate-interfaces', 'ports', 'architecture'], formerly: 'inspector.default_hooks', help: 'Inspection hooks, in order. Default: default_hooks.' },
  { section: 'inspector', name: 'add_ports', kind: 'string', default: 'pxe', choices: ['all', 'active', 'pxe', 'disabled'], help: 'Which interfaces become ports.' },
  { section: 'inspector', name: 'keep_ports', kind: 'string', default: 'all', choices: ['all', 'present', 'added'], help: 'Which ports stay after inspection.' },
  { section: 'inspector', name: 'pre_create_ports', kind: 'boolean', default: true, help: 'Make ports of the MAC addresses that the BMC knows (Redfish) before a machine is booted for its inspection.' },
  { section: 'inspector', name: 'update_pxe_enabled', kind: 'boolean', default: true, help: "Set the ports' pxe_enabled by what the machine booted from." },
  { section: 'inspector', name: 'overwrite_existing', kind: 'boolean', default: false, ours: true, help: 'Let what agents report replace properties, capabilities and fields of ports that are there; otherwise only what is missing is set. Ironic replaces.' },
  { section: 'inspector', name: 'overwrite_existing_hooks', kind: 'list', default: [], ours: true, help: 'Inspection hooks whose findings replace what is there in any case.' },
  { section: 'inspector', name: 'disk_partitioning_spacing', kind: 'boolean', default: true, help: 'local_gb is one GiB less than the root disk, for partition tables and the like.' },
  { section: 'inspector', name: 'cpu_capabilities', kind: 'dict', default: { vmx: 'cpu_vt', svm: 'cpu_vt', aes: 'cpu_aes', pse: 'cpu_hugepages', pdpe1gb: 'cpu_hugepages_1g', smx: 'cpu_txt' }, help: 'Hook cpu-capabilities: which capability is true by which flag of the processor.' },
  { section: 'inspector', name: 'extra_hardware_strict', kind: 'boolean', default: false, help: 'Hook extra-hardware: rows that are too short make all of them worthless, which are dropped then.' },
  { section: 'inspector', name: 'known_accelerators', kind: 'string', default: null, help: 'Hook accelerators: YAML file with pci_devices, a list of vendor_id, device_id and whatever else is to be told. Default: a list of GPUs.' },
  { section: 'inspector', name: 'pci_device_alias', kind: 'string', default: '', repeated: true, help: 'Hook pci-devices: which devices are counted in a capability, {"vendor_id": "1234", "product_id": "5678", "name": "gpu"}, several with commas or by naming the option again.' },
  { section: 'inspector', name: 'physical_network_cidr_map', kind: 'list', default: [], help: 'Hook physical-network: physical networks of ports by the address of the interface, as 10.10.10.0/24:physnet_a.' },
  // [inventory]
  { section: 'inventory', name: 'data_backend', kind: 'string', default: 'database', choices: ['none', 'database', 'swift', 'directory'], help: 'Where inventories and plugin data of inspections are kept; directory is ours. There is no Swift here: it refuses the start.' },
  { section: 'inventory', name: 'swift_data_container', kind: 'string', default: 'introspection_data_container', help: 'Container of Swift: accepted, and of no effect here.' },
  { section: 'inventory', name: 'directory', kind: 'string', default: null, ours: true, help: 'Folder of data_backend = directory, two files a node; processes that share a database share it too. Default: `inventories` in the state directory. Backups of the database do not have it.' },
  { section: 'inventory', name: 'max_size', kind: 'integer', default: 8192, min: 1, ours: true, help: 'Most that is kept of one inspection, KiB of JSON; an inspection that found more fails.' },
  // [mdns]
  { section: 'DEFAULT', name: 'enable_mdns', kind: 'boolean', default: false, ours: true, help: 'Announce where the introspection service is by multicast DNS (an option of ironic-inspector).' },
  { section: 'mdns', name: 'interfaces', kind: 'list', default: [], help: 'Interfaces to announce the services on by multicast DNS ([conductor]enable_mdns, [DEFAULT]enable_mdns): their IPv4 addresses, or (not in Ironic) their names. Empty: all but the loopback.' },
  { section: 'mdns', name: 'params', kind: 'dict', default: {}, help: 'What is announced besides, such as ipa_inspection_callback_url.' },
  { section: 'mdns', name: 'registration_attempts', kind: 'integer', default: 5, min: 1, help: 'Tries to get the name of a service before it is left to whoever has it for a minute.' },
  { section: 'mdns', name: 'lookup_attempts', kind: 'integer', default: 3, min: 1, help: 'Of agents: accepted, and of no effect here.' },
  // [auto_discovery]
  { section: 'auto_discovery', name: 'enabled', kind: 'boolean', default: false, help: 'Enrol machines that nobody knows when they report their inventory.' },
  { section: 'auto_discovery', name: 'driver', kind: 'string', default: null, help: 'Hardware type of nodes that are enrolled so; must be set with enabled.' },
  { section: 'auto_discovery', name: 'inspection_scope', kind: 'string', default: null, help: 'Put into properties of nodes that are enrolled so, as inspection_scope: rules of the introspection service go by it. (Ironic knows the option and does nothing with it.)' },
  // [pxe_filter]
  { section: 'pxe_filter', name: 'supported_inspect_interfaces', kind: 'list', default: ['agent'], help: 'Inspect interfaces whose nodes boot the agent ramdisk from the network while they are inspected, even if their boot interface does not arrange it.' },
  { section: 'pxe_filter', name: 'allow_macs', kind: 'list', default: [], ours: true, help: 'Only unknown machines with these MAC addresses are discovered: whole addresses, their first bytes (a vendor), or * for a byte. Empty: all.' },
  { section: 'pxe_filter', name: 'deny_macs', kind: 'list', default: [], ours: true, help: 'Unknown machines with these MAC addresses are never discovered, even if they are allowed.' },
  { section: 'inspection_rules', name: 'built_in_rules', kind: 'string', default: null, help: 'YAML file with inspection rules that are always there, beside those of clients.' },
  { section: 'inspection_rules', name: 'mask_secrets', kind: 'string', default: 'always', choices: ['always', 'never', 'sensitive'], help: 'From which inspection rules passwords among the found data are hidden: all, none, or all but sensitive ones.' },

  // The introspection service, by ironic-inspector's names
  { section: 'inspector_service', name: 'enabled', kind: 'boolean', default: false, ours: true, help: 'Run the introspection service (the API of ironic-inspector) in this process; not needed where `--roles` names `inspector`.' },
  { section: 'inspector_service', name: 'callback_url', kind: 'string', default: null, ours: true, help: 'URL to which machines post what they found for the introspection service; default: http://my_ip:listen_port/v1/continue. mdns: they find it by multicast DNS ([DEFAULT]enable_mdns).' },
  { section: 'DEFAULT', name: 'listen_address', kind: 'string', default: null, ours: true, help: 'Address that the introspection service listens on. Default: ::, and 127.0.0.1 without auth_strategy.' },
  { section: 'DEFAULT', name: 'listen_port', kind: 'integer', default: 5050, min: 0, max: 65535, ours: true, help: 'Port of the introspection service.' },
  { section: 'DEFAULT', name: 'timeout', kind: 'integer', default: 3600, max: 315576000, ours: true, help: 'Seconds after which an introspection without a report has failed; 0: never.' },
  { section: 'DEFAULT', name: 'clean_up_period', kind: 'integer', default: 60, min: 0, ours: true, help: 'Seconds between looks for such introspections; 0: never.' },
  { section: 'DEFAULT', name: 'can_manage_boot', kind: 'boolean', default: true, ours: true, help: 'Whether the introspection service may boot machines; otherwise it takes only requests with manage_boot=0.' },
  { section: 'processing', name: 'processing_hooks', kind: 'list', default: ['ramdisk_error', 'root_disk_selection', 'scheduler', 'validate_interfaces', 'capabilities', 'pci_devices'], ours: true, help: 'Hooks of the introspection service, by the names of ironic-inspector or of [inspector]hooks.' },
  { section: 'processing', name: 'store_data', kind: 'string', default: 'database', choices: ['none', 'database'], ours: true, help: 'Whether what machines report is kept for the introspection service (ironic-inspector: none).' },
  { section: 'processing', name: 'overwrite_existing', kind: 'boolean', default: false, ours: true, help: 'Let what machines report to the introspection service replace what nodes have (ironic-inspector: true); otherwise only what is missing is set.' },

  // [console]
  { section: 'console', name: 'socat_address', kind: 'string', default: null, help: 'Address that consoles are offered on; empty: [DEFAULT]my_ip.' },
  { section: 'console', name: 'port_range', kind: 'list', default: [], help: 'Ports for consoles of nodes that name none, as first:end (the end not included), several with commas.' },
  { section: 'console', name: 'terminal_timeout', kind: 'integer', default: 600, min: 0, help: 'Seconds without traffic after which the client of a console is sent away; 0: never.' },

  // [ipmi]
  { section: 'ipmi', name: 'command_retry_timeout', kind: 'integer', default: 60, min: 1, help: 'Seconds to try an IPMI command for.' },
  { section: 'ipmi', name: 'min_command_interval', kind: 'integer', default: 5, min: 0, help: 'Seconds between tries of a command that the BMC was too busy for.' },
  { section: 'ipmi', name: 'disable_boot_timeout', kind: 'boolean', default: true, help: 'Switch off the 60 s after which BMCs forget a boot device.' },
  { section: 'ipmi', name: 'additional_retryable_ipmi_errors', kind: 'list', default: [], help: 'Parts of error messages after which an IPMI command is tried again, beside those of a busy BMC.' },
  { section: 'ipmi', name: 'cipher_suite_versions', kind: 'list', default: [], help: 'Cipher suites that are tried with nodes that name none, the last one first; empty: 17, then 3.' },
  { section: 'ipmi', name: 'client', kind: 'string', default: 'native', choices: ['native', 'ipmitool'], ours: true, help: 'Who speaks to BMCs: this program itself in sessions that are kept, or the program ipmitool, a process for each command. Consoles are always native.' },
  { section: 'ipmi', name: 'max_sessions', kind: 'integer', default: 16384, min: 1, ours: true, help: 'Sessions with BMCs that are kept at most (native client); above, the one unused for longest is closed.' },
  { section: 'ipmi', name: 'session_idle_timeout', kind: 'integer', default: 90, min: 1, ours: true, help: 'Seconds after which a session that nobody used is closed (native client). Shorter than the time between two looks at the power, each look opens one.' },
  { section: 'ipmi', name: 'store_cred_in_env', kind: 'boolean', default: false, help: 'Give ipmitool the password in its environment instead of a file that only this user can read.' },
  { section: 'ipmi', name: 'use_ipmitool_retries', kind: 'boolean', default: false, help: 'Let ipmitool itself send again what was not answered, instead of starting it again.' },
  { section: 'ipmi', name: 'kill_on_timeout', kind: 'boolean', default: true, help: 'End an ipmitool that is not done within command_retry_timeout; otherwise it is left to itself.' },
  { section: 'ipmi', name: 'debug', kind: 'boolean', default: false, help: 'Log what ipmitool says beside its answer, at level debug.' },
  // [discoverd]
  { section: 'discoverd', name: 'enabled', kind: 'boolean', default: false, ours: true, help: 'Let the inspect interface discoverd have an introspection service inspect machines.' },
  { section: 'discoverd', name: 'service_url', kind: 'string', default: null, ours: true, help: 'URL of that service, which has the API of ironic-inspector: http://127.0.0.1:5050/v1. No default; without one the enabled interface is not loaded, and the conductor does not start.' },
  { section: 'discoverd', name: 'status_check_period', kind: 'integer', default: 60, min: 1, ours: true, help: 'Seconds between questions to the service how its introspections stand.' },
  { section: 'discoverd', name: 'timeout', kind: 'number', default: 30, min: 0.1, max: 600, ours: true, help: 'Seconds that the service may take to answer.' },
  { section: 'discoverd', name: 'auth_type', kind: 'string', default: 'none', choices: ['none', 'http_basic'], ours: true, help: 'How to log in to the service.' },
  { section: 'discoverd', name: 'username', kind: 'string', default: null, ours: true, help: 'User name for http_basic.' },
  { section: 'discoverd', name: 'password', kind: 'string', default: null, secret: true, ours: true, help: 'Password for http_basic.' },
  { section: 'discoverd', name: 'cafile', kind: 'string', default: null, ours: true, help: 'Certificates that that of the service is held against, PEM. Default: those of the system.' },
  { section: 'discoverd', name: 'certfile', kind: 'string', default: null, ours: true, help: 'Certificate to show to the service, PEM.' },
  { section: 'discoverd', name: 'keyfile', kind: 'string', default: null, ours: true, help: 'Private key of that certificate, PEM.' },
  { section: 'discoverd', name: 'insecure', kind: 'boolean', default: false, ours: true, help: 'Take any certificate of the service.' },
  // [redfish]
  { section: 'redfish', name: 'use_swift', kind: 'boolean', default: false, help: 'Images for virtual media in Swift: refused, since the HTTP boot service serves them.' },
  { section: 'redfish', name: 'kernel_append_params', kind: 'string', default: 'nofb vga=normal', help: 'Kernel arguments of ramdisks that boot from virtual media, for nodes without kernel_append_params of their own.' },
  { section: 'redfish', name: 'enable_vmedia_insert_polling', kind: 'boolean', default: false, help: 'Wait until the BMC shows a medium as inserted.' },
  { section: 'redfish', name: 'vmedia_insert_timeout', kind: 'integer', default: 60, min: 1, help: 'Seconds that this may take.' },
  { section: 'redfish', name: 'vmedia_insert_poll_interval', kind: 'integer', default: 2, min: 1, help: 'Seconds between looks meanwhile.' },
  { section: 'redfish', name: 'connection_attempts', kind: 'integer', default: 5, min: 1, help: 'Tries to connect to a Redfish service.' },
  { section: 'redfish', name: 'connection_retry_interval', kind: 'integer', default: 4, min: 0, help: 'Seconds between such tries.' },
  { section: 'redfish', name: 'connect_timeout', kind: 'integer', default: 30, min: 1, help: 'Seconds that a connection to a Redfish service may take to be made.' },
  { section: 'redfish', name: 'read_timeout', kind: 'integer', default: 60, min: 1, help: 'Seconds that a Redfish service may take to answer.' },
  { section: 'redfish', name: 'connection_cache_size', kind: 'integer', default: 1000, min: 0, help: 'Sessions with Redfish services that are kept; with more services than that, the one that was not used for the longest time is ended. 0: each is ended after its use.' },
  { section: 'redfish', name: 'auth_type', kind: 'string', default: 'auto', choices: ['basic', 'session', 'auto'], help: 'How to log in to Redfish services whose nodes do not say; auto: a session, and basic authentication where there are none.' },
  { section: 'redfish', name: 'verify_ca', kind: 'string', default: null, help: 'File or folder of authorities for the certificates of Redfish services whose nodes name none; empty: those of the system.' },
  { section: 'redfish', name: 'tls_minimum_version', kind: 'string', default: null, choices: ['1.1', '1.2', '1.3'], help: 'Lowest TLS version that is spoken with Redfish services whose nodes do not say.' },
  { section: 'redfish', name: 'tls_ciphers', kind: 'string', default: null, help: 'Ciphers for Redfish services whose nodes do not say, as OpenSSL writes them.' },
  { section: 'redfish', name: 'power_on_conflict_retry_attempts', kind: 'integer', default: 6, min: 0, help: 'Further tries of a power on that the service refuses with 409, as some do shortly after a power off.' },
  { section: 'redfish', name: 'power_on_conflict_retry_interval', kind: 'integer', default: 10, min: 1, help: 'Seconds between such tries.' },
  { section: 'redfish', name: 'post_boot_retry_attempts', kind: 'integer', default: 6, min: 1, help: 'Tries to set the boot device while the machine is in its power-on self-test.' },
  { section: 'redfish', name: 'post_boot_retry_delay', kind: 'integer', default: 5, min: 1, help: 'Seconds between such tries at least; up to six times that after many.' },
  { section: 'redfish', name: 'boot_mode_config_timeout', kind: 'integer', default: 900, min: 0, help: 'Seconds that a changed boot mode or secure boot state may take to be there, after a reboot; 0: not waited for.' },
  { section: 'redfish', name: 'enable_verify_bmc_clock', kind: 'boolean', default: false, help: 'Compare the BMC\'s clock with the conductor\'s when a node becomes manageable, and set it.' },
  { section: 'redfish', name: 'inspection_hooks', kind: 'list', default: ['validate-interfaces', 'ports', 'architecture'], help: 'Inspection hooks of the redfish inspect interface, in order.' },
  { section: 'redfish', name: 'firmware_source', kind: 'string', default: 'http', choices: ['http', 'local', 'swift'], help: 'http: BMCs get firmware from its own http(s) URL, and files from here; local: everything from here. There is no swift.' },
  { section: 'redfish', name: 'firmware_update_status_interval', kind: 'integer', default: 60, min: 0, help: 'Seconds between looks at a firmware update, or at a restart for BIOS settings.' },
  { section: 'redfish', name: 'firmware_update_fail_interval', kind: 'integer', default: 60, min: 0, help: 'Seconds between looks for firmware updates whose node failed; the rest of them is discarded then. 0: never.' },
  { section: 'redfish', name: 'firmware_update_wait_unresponsive_bmc', kind: 'integer', default: 0, min: 0, help: 'Seconds that a BMC is left alone that updates itself; 0: firmware_update_reboot_delay.' },
  { section: 'redfish', name: 'firmware_update_required_successes', kind: 'integer', default: 3, min: 0, help: 'Good answers in a row before a BMC counts as back after a firmware update; 0: it is not asked.' },
  { section: 'redfish', name: 'firmware_update_validation_interval', kind: 'integer', default: 30, min: 0, help: 'Seconds between such questions (1 at least).' },
  { section: 'redfish', name: 'firmware_update_resource_validation_timeout', kind: 'integer', default: 480, min: 0, help: 'Seconds in which a BMC must have answered well so often; 0: it is not asked.' },
  { section: 'redfish', name: 'firmware_update_reboot_delay', kind: 'integer', default: 300, min: 0, help: 'Seconds that a BMC may take to show its new version, and a machine to be started for an update.' },
  { section: 'redfish', name: 'firmware_update_bmc_version_check_interval', kind: 'integer', default: 30, min: 0, help: "Seconds between looks at a BMC's version after its update." },
  { section: 'redfish', name: 'firmware_update_nic_starting_wait', kind: 'integer', default: 30, min: 0, help: 'Seconds after which the machine is started for an update of a network adapter that only starts.' },
  { section: 'redfish', name: 'firmware_update_overall_timeout', kind: 'integer', default: 7200, min: 0, help: 'Seconds that all updates of a step may take together; 0: any time.' },
  { section: 'redfish', name: 'raid_config_status_interval', kind: 'integer', default: 60, min: 0, help: 'Seconds between questions how the making and removing of RAID volumes stands.' },
  // [fake]
  { section: 'fake', name: 'power_delay', kind: 'string', default: '0', help: 'Seconds (N or N,M; parts of one too, such as 0.05) that the fake power interface takes.' },
  { section: 'fake', name: 'boot_delay', kind: 'string', default: '0', help: 'Seconds (N or N,M) that the fake boot interface takes.' },
  { section: 'fake', name: 'deploy_delay', kind: 'string', default: '0', help: 'Seconds (N or N,M) that the fake deploy interface takes.' },
  { section: 'fake', name: 'management_delay', kind: 'string', default: '0', help: 'Seconds (N or N,M) that the fake management interface takes.' },
  { section: 'fake', name: 'inspect_delay', kind: 'string', default: '0', help: 'Seconds (N or N,M) that the fake inspect interface takes.' },
  { section: 'fake', name: 'vendor_delay', kind: 'string', default: '0', help: 'Seconds (N or N,M) that the fake vendor interface takes.' },
  { section: 'fake', name: 'bios_delay', kind: 'string', default: '0', help: 'Seconds (N or N,M) that the fake bios interface takes.' },
  { section: 'fake', name: 'raid_delay', kind: 'string', default: '0', help: 'Seconds (N or N,M) that the fake raid interface takes.' },
  { section: 'fake', name: 'storage_delay', kind: 'string', default: '0', help: 'Accepted, and of no effect here: no volumes are attached.' },
  { section: 'fake', name: 'rescue_delay', kind: 'string', default: '0', help: 'Seconds (N or N,M) that the fake rescue interface takes.' },
  { section: 'fake', name: 'firmware_delay', kind: 'string', default: '0', help: 'Seconds (N or N,M) that the fake firmware interface takes.' },
  { section: 'fake', name: 'step_log', kind: 'string', default: null, ours: true, help: 'A file to which fake steps and power orders write a line each before and after, and which makes the fake vendor interface offer two steps more that are counted by it. For tests that kill conductors.' },

  // [events]
  { section: 'events', name: 'poll_interval', kind: 'number', default: 0.5, min: 0.05, max: 60, ours: true, help: 'Seconds between looks for new events, while somebody listens to /v1/events/stream.' },
  { section: 'events', name: 'keep_alive_interval', kind: 'number', default: 15, min: 1, max: 3600, ours: true, help: 'Seconds without an event after which a listener is told that the stream is alive.' },
  { section: 'events', name: 'max_listeners', kind: 'integer', default: 200, min: 0, ours: true, help: 'Listeners to events at one API process; more are answered 503.' },
  { section: 'events', name: 'max_events', kind: 'integer', default: 100000, min: 0, ours: true, help: 'Events that are kept, for listeners who come back.' },
  { section: 'events', name: 'max_age', kind: 'integer', default: 604800, min: 60, ours: true, help: 'Seconds that events are kept.' },
  { section: 'events', name: 'cleanup_interval', kind: 'integer', default: 300, min: 0, ours: true, help: 'Seconds between removals of old events; 0: never.' },

  // [recorder]
  { section: 'recorder', name: 'enabled', kind: 'boolean', default: false, ours: true, help: 'Take what recorders on running hosts push (docs/recorder.md), and give instances whose config drive is made of parts a token for theirs.' },
  { section: 'recorder', name: 'interval', kind: 'integer', default: 300, min: 10, ours: true, help: 'Seconds between two pushes, as recorders are told by the config drive.' },
  { section: 'recorder', name: 'stale_after', kind: 'integer', default: 900, min: 1, ours: true, help: 'Seconds without a push after which a record counts as stale.' },
  { section: 'recorder', name: 'check_interval', kind: 'integer', default: 30, min: 0, ours: true, help: 'Seconds between looks for stale records; 0: none are marked.' },
  { section: 'recorder', name: 'max_record_size', kind: 'integer', default: 2048, min: 1, ours: true, help: 'Most KiB of a push, unpacked.' },
  { section: 'recorder', name: 'max_pushes_per_minute', kind: 'integer', default: 12, min: 1, ours: true, help: 'Pushes of one node that an API process takes in a minute; more are answered 429.' },
  { section: 'recorder', name: 'history_max_entries', kind: 'integer', default: 300, min: 0, ours: true, help: 'Changes of its hardware that are kept of a node.' },
  { section: 'recorder', name: 'history_max_age', kind: 'integer', default: 365, min: 1, ours: true, help: 'Days that they are kept.' },


  // Notifications.
  { section: 'DEFAULT', name: 'notification_level', kind: 'string', default: null, choices: ['debug', 'info', 'warning', 'error', 'critical'], help: 'Lowest level of the notifications that are sent; not set: none are.' },
  { section: 'DEFAULT', name: 'versioned_notifications_topics', kind: 'list', default: ['ironic_versioned_notifications'], help: 'Topics of a message queue: accepted, and of no effect here.' },
  { section: 'oslo_messaging_notifications', name: 'driver', kind: 'list', default: [], help: 'Where notifications go besides [notifications]webhook_url: `log`; `noop`: nowhere. There are no message queues here: for `messaging` and `messagingv2` there is a warning.' },
  { section: 'notifications', name: 'webhook_url', kind: 'string', default: null, ours: true, help: 'http(s) URL that notifications are posted to, in their order.' },
  { section: 'notifications', name: 'webhook_secret', kind: 'string', default: null, secret: true, ours: true, help: 'Key of the signature that posted notifications bear (docs/events.md).' },
  { section: 'notifications', name: 'webhook_headers', kind: 'dict', default: {}, secret: true, ours: true, help: 'Headers of posted notifications: name:value, with commas between them.' },
  { section: 'notifications', name: 'webhook_timeout', kind: 'number', default: 10, min: 0.1, max: 600, ours: true, help: 'Seconds that a post may take.' },
  { section: 'notifications', name: 'webhook_retries', kind: 'integer', default: 5, min: 0, max: 100, ours: true, help: 'How often a post that failed is tried again, after 1, 2, 4 … seconds (60 at most).' },
  { section: 'notifications', name: 'webhook_queue', kind: 'integer', default: 1000, min: 1, max: 100000, ours: true, help: 'Notifications that may wait to be posted; the newest are lost beyond.' },

] as const satisfies readonly OptionRow[];

type TableRow = (typeof OPTIONS)[number];
type ValueOf<R extends TableRow> = R extends { readonly choices: readonly (infer Choice)[] }
  ? Choice
  : R['kind'] extends 'integer' | 'octal' | 'number'
    ? number
    : R['kind'] extends 'boolean'
      ? boolean
      : R['kind'] extends 'list'
        ? readonly string[]
        : R['kind'] extends 'dict'
          ? Readonly<Record<string, string>>
          : string;
type OptionValues = {
  readonly [R in TableRow as `${R['section']}.${R['name']}`]: R['default'] extends null ? ValueOf<R> | null : ValueOf<R>;
};
/**
 * `section.name` → value, as the files and the environment give it. Null only where the default is null.
 * An interface, since the compiler resolves its members once: a spread of the mapped type itself takes seconds.
 */
export interface LoadedOptions extends OptionValues {}

/** Options whose default depends on the host, on other options or on the state directory: `settings.ts` fills them in. */
type Resolved =
  | 'DEFAULT.host'
  | 'DEFAULT.my_ip'
  | 'api.host_ip'
  | 'json_rpc.host_ip'
  | 'DEFAULT.listen_address'
  | 'service_catalog.endpoint_override'
  | 'deploy.http_url'
  | 'deploy.http_root'
  | 'pxe.tftp_server'
  | 'pxe.tftp_root'
  | 'inspector_service.callback_url';
/** The options that every part of the program gets. Where few are read, the reader takes a `Pick` of them. */
export interface Options extends Omit<LoadedOptions, Resolved>, Readonly<Record<Resolved, string>> {
  /** The folder of files that come from other servers. */
  readonly 'boot.cache_root': string;
}
