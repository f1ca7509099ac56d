import { AUTH_ROWS, inSection, TLS_ROWS } from './keystoneauth';

/**
 * The table of options. Sections and names are Ironic's, so that an ironic.conf works unchanged. Ironic does not have rows marked `ours`.
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
  /** May occur several times in a file. The values are then joined with commas. */
  readonly repeated?: true;
  /** The former section and name, used if the option itself is not set. */
  readonly formerly?: string;
  /** A relative path is beside a configuration file, or in /etc/ironic. */
  readonly beside?: true;
  /** Not an option of Ironic. */
  readonly ours?: true;
}

// One row per line, so that the columns are easy to read.
// prettier-ignore
export const OPTIONS = [
  // [DEFAULT]
  { section: 'DEFAULT', name: 'my_ip', kind: 'string', default: null, help: 'IP address of this host on the provisioning network, used in URLs and DHCP responses for machines. Default: the address of [boot]interface, else 127.0.0.1.' },
  { section: 'DEFAULT', name: 'host', kind: 'string', default: null, help: 'Name of this conductor, shown in `reservation` and in the conductor list. Default: the host name.' },
  { section: 'DEFAULT', name: 'auth_strategy', kind: 'string', default: null, choices: ['noauth', 'http_basic', 'oidc', 'keystone'], help: 'Authentication of callers of the API and the introspection service; oidc: tokens of [oidc]issuer only. Default: none, and the server listens on loopback addresses and Unix sockets only. (Ironic: keystone.)' },
  { section: 'DEFAULT', name: 'http_basic_auth_user_file', kind: 'string', default: '/etc/ironic/htpasswd', help: 'User file of http_basic: lines of user:digest, bcrypt only, as `htpasswd -B` writes them. Reloaded when it changes.' },
  { section: 'DEFAULT', name: 'http_basic_roles_file', kind: 'string', default: null, ours: true, help: 'File with the roles and projects of the users of http_basic (docs/authentication.md). Policies then count. Reloaded when it changes. Default: every user may do everything.' },
  { section: 'DEFAULT', name: 'debug', kind: 'boolean', default: false, help: 'Log debug messages.' },
  { section: 'DEFAULT', name: 'log_file', kind: 'string', default: null, help: 'Log to this file instead of standard error. SIGHUP reopens it, for logrotate.' },
  { section: 'DEFAULT', name: 'log_dir', kind: 'string', default: null, help: 'Folder of a relative log_file. Without log_file: the folder of bloomery.log.' },
  { section: 'DEFAULT', name: 'use_json', kind: 'boolean', default: true, help: 'Log in JSON. False: text in the format of oslo.log. (Ironic: false.)' },
  { section: 'DEFAULT', name: 'default_log_levels', kind: 'list', default: [], help: 'Log levels of components as name=LEVEL: api, conductor, boot, database, store. Other names, such as those of Python packages, have no effect.' },
  { section: 'DEFAULT', name: 'enabled_hardware_types', kind: 'list', default: ['ipmi', 'redfish'], help: 'Hardware types that nodes may use.' },
  { section: 'DEFAULT', name: 'enabled_bios_interfaces', kind: 'list', default: ['no-bios', 'redfish'], help: 'BIOS interfaces that nodes may use.' },
  { section: 'DEFAULT', name: 'enabled_boot_interfaces', kind: 'list', default: ['ipxe', 'pxe', 'redfish-virtual-media'], help: 'Boot interfaces that nodes may use.' },
  { section: 'DEFAULT', name: 'enabled_console_interfaces', kind: 'list', default: ['no-console'], help: 'Console interfaces that nodes may use.' },
  { section: 'DEFAULT', name: 'enabled_deploy_interfaces', kind: 'list', default: ['autodetect', 'direct', 'ramdisk', 'bootc'], help: 'Deploy interfaces that nodes may use.' },
  { section: 'DEFAULT', name: 'enabled_firmware_interfaces', kind: 'list', default: ['no-firmware'], help: 'Firmware interfaces that nodes may use.' },
  { section: 'DEFAULT', name: 'enabled_inspect_interfaces', kind: 'list', default: ['no-inspect', 'redfish'], help: 'Inspect interfaces that nodes may use.' },
  { section: 'DEFAULT', name: 'enabled_management_interfaces', kind: 'list', default: null, help: 'Management interfaces that nodes may use. Default: the first interface of each enabled hardware type.' },
  { section: 'DEFAULT', name: 'enabled_network_interfaces', kind: 'list', default: ['flat', 'noop'], help: 'Network interfaces that nodes may use.' },
  { section: 'DEFAULT', name: 'enabled_power_interfaces', kind: 'list', default: null, help: 'Power interfaces that nodes may use. Default: the first interface of each enabled hardware type.' },
  { section: 'DEFAULT', name: 'enabled_raid_interfaces', kind: 'list', default: ['agent', 'no-raid', 'redfish'], help: 'RAID interfaces that nodes may use.' },
  { section: 'DEFAULT', name: 'enabled_rescue_interfaces', kind: 'list', default: ['no-rescue'], help: 'Rescue interfaces that nodes may use.' },
  { section: 'DEFAULT', name: 'enabled_storage_interfaces', kind: 'list', default: ['cinder', 'noop'], help: 'Storage interfaces that nodes may use.' },
  { section: 'DEFAULT', name: 'enabled_vendor_interfaces', kind: 'list', default: ['ipmitool', 'redfish', 'no-vendor'], help: 'Vendor interfaces that nodes may use.' },
  { section: 'DEFAULT', name: 'default_bios_interface', kind: 'string', default: null, help: 'BIOS interface of nodes that do not set one.' },
  { section: 'DEFAULT', name: 'default_boot_interface', kind: 'string', default: null, help: 'Boot interface of nodes that do not set one.' },
  { section: 'DEFAULT', name: 'default_console_interface', kind: 'string', default: null, help: 'Console interface of nodes that do not set one.' },
  { section: 'DEFAULT', name: 'default_deploy_interface', kind: 'string', default: null, help: 'Deploy interface of nodes that do not set one.' },
  { section: 'DEFAULT', name: 'default_firmware_interface', kind: 'string', default: null, help: 'Firmware interface of nodes that do not set one.' },
  { section: 'DEFAULT', name: 'default_inspect_interface', kind: 'string', default: null, help: 'Inspect interface of nodes that do not set one.' },
  { section: 'DEFAULT', name: 'default_management_interface', kind: 'string', default: null, help: 'Management interface of nodes that do not set one.' },
  { section: 'DEFAULT', name: 'default_network_interface', kind: 'string', default: null, help: 'Network interface of nodes that do not set one.' },
  { section: 'DEFAULT', name: 'default_power_interface', kind: 'string', default: null, help: 'Power interface of nodes that do not set one.' },
  { section: 'DEFAULT', name: 'default_raid_interface', kind: 'string', default: null, help: 'RAID interface of nodes that do not set one.' },
  { section: 'DEFAULT', name: 'default_rescue_interface', kind: 'string', default: null, help: 'Rescue interface of nodes that do not set one.' },
  { section: 'DEFAULT', name: 'default_storage_interface', kind: 'string', default: 'noop', help: 'Storage interface of nodes that do not set one.' },
  { section: 'DEFAULT', name: 'default_vendor_interface', kind: 'string', default: null, help: 'Vendor interface of nodes that do not set one.' },
  { section: 'DEFAULT', name: 'default_resource_class', kind: 'string', default: null, help: 'Resource class of new nodes that do not set one.' },
  { section: 'DEFAULT', name: 'default_conductor_group', kind: 'string', default: '', help: 'Conductor group of new nodes that do not set one.' },
  { section: 'DEFAULT', name: 'default_portgroup_mode', kind: 'string', default: 'active-backup', help: 'Bonding mode of new portgroups that do not set one.' },
  { section: 'DEFAULT', name: 'drain_shutdown_timeout', kind: 'integer', default: 1800, min: 0, help: 'Seconds that running work may continue after SIGUSR2, which drains the conductor. 0: no limit.' },
  { section: 'DEFAULT', name: 'isolinux_bin', kind: 'string', default: '/usr/lib/syslinux/isolinux.bin', help: 'BIOS boot loader for generated ISO images: ISOLINUX, or a GRUB for El Torito. If it is missing, /usr/lib/ISOLINUX/isolinux.bin is used.' },
  { section: 'DEFAULT', name: 'ldlinux_c32', kind: 'string', default: null, help: 'Library of ISOLINUX 5 and later. Default: the paths of Debian and Red Hat.' },
  { section: 'DEFAULT', name: 'grub_config_path', kind: 'string', default: 'EFI/BOOT/grub.cfg', help: "Additional path of GRUB's configuration in generated ISO images. The usual paths are always present." },
  { section: 'DEFAULT', name: 'esp_image', kind: 'string', default: null, help: 'Path of an image of an EFI system partition, used if no bootloader is set.' },
  { section: 'DEFAULT', name: 'webserver_verify_ca', kind: 'string', default: 'True', help: 'CA certificates for verifying the web servers of images, checksums and config drives: True (those of the system), False (no verification), or a file or folder, which replaces those of the system.' },
  { section: 'DEFAULT', name: 'rpc_transport', kind: 'string', default: 'json-rpc', choices: ['json-rpc', 'oslo', 'none'], help: 'RPC between API and conductors in separate processes: signed JSON-RPC over HTTP. oslo has the same effect as json-rpc; none disables RPC.' },
  { section: 'DEFAULT', name: 'rbac_service_role_elevated_access', kind: 'boolean', default: false, help: 'Callers with the role service in the project of rbac_service_project_name have the rights of the system.' },
  { section: 'DEFAULT', name: 'rbac_service_project_name', kind: 'string', default: 'service', help: 'Name of the project of services (rbac_service_role_elevated_access).' },

  // [keystone_authtoken]
  { section: 'keystone_authtoken', name: 'www_authenticate_uri', kind: 'string', default: null, formerly: 'keystone_authtoken.auth_uri', help: 'URL of the Identity API for callers, in the header WWW-Authenticate of responses with 401. Default: auth_url.' },
  ...inSection('keystone_authtoken', AUTH_ROWS),
  ...inSection('keystone_authtoken', TLS_ROWS),
  { section: 'keystone_authtoken', name: 'interface', kind: 'string', default: 'internal', help: 'Interface of the Identity API in the catalog, for validating tokens: public, internal or admin.' },
  { section: 'keystone_authtoken', name: 'region_name', kind: 'string', default: null, help: 'Region of the Identity API in the catalog.' },
  { section: 'keystone_authtoken', name: 'http_connect_timeout', kind: 'integer', default: 30, min: 1, max: 3600, help: 'Seconds for a request to Keystone, with its retries. (Ironic: no limit.)' },
  { section: 'keystone_authtoken', name: 'http_request_max_retries', kind: 'integer', default: 3, min: 0, max: 20, help: 'Number of retries of a request to Keystone whose connection failed, after 0.5, 1, 2 … seconds.' },
  { section: 'keystone_authtoken', name: 'token_cache_time', kind: 'integer', default: 300, min: -1, help: 'Seconds for which the result of a validation is used. A revoked token is valid for so long. 0 or -1: each request validates its token.' },
  { section: 'keystone_authtoken', name: 'service_token_roles', kind: 'list', default: ['service'], help: 'Roles, one of which the token of a service (X-Service-Token) must have.' },
  { section: 'keystone_authtoken', name: 'service_token_roles_required', kind: 'boolean', default: true, help: 'Refuse requests whose service token has none of service_token_roles. False: such a token only has no effect on an expired token of a user.' },
  { section: 'keystone_authtoken', name: 'service_type', kind: 'string', default: null, help: 'Type of this service in the catalog, for tokens of application credentials with access rules: usually baremetal. Without it, such tokens are refused.' },
  { section: 'keystone_authtoken', name: 'include_service_catalog', kind: 'boolean', default: true, help: 'Ask for the catalog with each validation. Tokens of application credentials with access rules need it.' },
  { section: 'keystone_authtoken', name: 'auth_version', kind: 'string', default: null, help: 'Accepted for compatibility; no effect, because only version 3 is used.' },
  { section: 'keystone_authtoken', name: 'cache', kind: 'string', default: null, help: 'Accepted for compatibility; no effect.' },
  { section: 'keystone_authtoken', name: 'memcached_servers', kind: 'list', default: [], formerly: 'keystone_authtoken.memcache_servers', help: 'Accepted for compatibility; no effect: each process keeps the results of validations in its memory.' },
  { section: 'keystone_authtoken', name: 'memcache_security_strategy', kind: 'string', default: 'None', help: 'Accepted for compatibility; no effect.' },
  { section: 'keystone_authtoken', name: 'memcache_secret_key', kind: 'string', default: null, secret: true, help: 'Accepted for compatibility; no effect.' },
  { section: 'keystone_authtoken', name: 'memcache_pool_dead_retry', kind: 'integer', default: 300, help: 'Accepted for compatibility; no effect.' },
  { section: 'keystone_authtoken', name: 'memcache_pool_maxsize', kind: 'integer', default: 10, help: 'Accepted for compatibility; no effect.' },
  { section: 'keystone_authtoken', name: 'memcache_pool_socket_timeout', kind: 'integer', default: 3, help: 'Accepted for compatibility; no effect.' },
  { section: 'keystone_authtoken', name: 'memcache_pool_unused_timeout', kind: 'integer', default: 60, help: 'Accepted for compatibility; no effect.' },
  { section: 'keystone_authtoken', name: 'memcache_pool_conn_get_timeout', kind: 'integer', default: 10, help: 'Accepted for compatibility; no effect.' },
  { section: 'keystone_authtoken', name: 'memcache_use_advanced_pool', kind: 'boolean', default: true, help: 'Accepted for compatibility; no effect.' },
  { section: 'keystone_authtoken', name: 'memcache_sasl_enabled', kind: 'boolean', default: false, help: 'Accepted for compatibility; no effect.' },
  { section: 'keystone_authtoken', name: 'memcache_username', kind: 'string', default: null, help: 'Accepted for compatibility; no effect.' },
  { section: 'keystone_authtoken', name: 'memcache_password', kind: 'string', default: null, secret: true, help: 'Accepted for compatibility; no effect.' },
  { section: 'keystone_authtoken', name: 'memcache_tls_enabled', kind: 'boolean', default: false, help: 'Accepted for compatibility; no effect.' },
  { section: 'keystone_authtoken', name: 'memcache_tls_cafile', kind: 'string', default: null, help: 'Accepted for compatibility; no effect.' },
  { section: 'keystone_authtoken', name: 'memcache_tls_certfile', kind: 'string', default: null, help: 'Accepted for compatibility; no effect.' },
  { section: 'keystone_authtoken', name: 'memcache_tls_keyfile', kind: 'string', default: null, help: 'Accepted for compatibility; no effect.' },
  { section: 'keystone_authtoken', name: 'memcache_tls_allowed_ciphers', kind: 'string', default: null, help: 'Accepted for compatibility; no effect.' },

  // [json_rpc]
  { section: 'json_rpc', name: 'host_ip', kind: 'string', default: null, help: 'Address on which a conductor listens for RPC. :: and 0.0.0.0 mean all addresses. Default: ::, and 127.0.0.1 without [DEFAULT]auth_strategy.' },
  { section: 'json_rpc', name: 'port', kind: 'integer', default: 0, min: 0, max: 65535, help: 'Port on which a conductor listens for RPC. 0: any free port; the database tells it to other processes.' },
  { section: 'json_rpc', name: 'use_ssl', kind: 'boolean', default: false, help: 'Listen with TLS.' },
  { section: 'json_rpc', name: 'cert_file', kind: 'string', default: null, help: 'Certificate of the listener, PEM. Default: [ssl]cert_file.' },
  { section: 'json_rpc', name: 'key_file', kind: 'string', default: null, help: 'Private key of the certificate, PEM. Default: [ssl]key_file.' },
  { section: 'json_rpc', name: 'server_tls_minimum_version', kind: 'string', default: '1.3', choices: ['1.2', '1.3'], formerly: 'json_rpc.tls_minimum_version', help: 'Lowest TLS version that the listener accepts.' },
  { section: 'json_rpc', name: 'server_tls_ciphers', kind: 'string', default: null, help: 'Ciphers of the listener, in OpenSSL\'s format. Default: those of [ssl]ciphers, else those of Node.' },
  { section: 'json_rpc', name: 'client_use_ssl', kind: 'boolean', default: false, help: 'Other processes connect with TLS although the listener has none: a proxy terminates it.' },
  { section: 'json_rpc', name: 'cafile', kind: 'string', default: null, help: 'CA certificates for verifying other conductors, PEM. Reloaded when the file changes. Default: those of the system.' },
  { section: 'json_rpc', name: 'insecure', kind: 'boolean', default: false, help: 'Do not verify the certificates of other conductors.' },
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
  { section: 'api', name: 'max_limit', kind: 'integer', default: 1000, min: 1, help: 'Maximum number of rows in the response to a list request.' },
  { section: 'api', name: 'public_endpoint', kind: 'string', default: null, help: 'Base URL of links in responses. Default: the host of the request.' },
  { section: 'api', name: 'restrict_lookup', kind: 'boolean', default: true, help: 'Ramdisks can look up their node only in states in which a ramdisk is expected.' },
  { section: 'api', name: 'enable_tokens', kind: 'boolean', default: true, ours: true, help: 'Accept tokens that `bloomery token create` made, beside the strategy of [DEFAULT]auth_strategy.' },
  { section: 'api', name: 'agent_source_check', kind: 'string', default: 'lease', choices: ['lease', 'known', 'networks', 'off'], ours: true, help: "Where lookups, heartbeats and inventories of a node may come from (docs/security.md). lease: if our DHCP service gave addresses to the node's machine, from these. known: also from what the last inspection found and network_data names. networks: from agent_allowed_networks only. off: from anywhere." },
  { section: 'api', name: 'agent_allowed_networks', kind: 'list', default: [], ours: true, help: 'Networks that requests of agents may come from, whatever else agent_source_check asks for: 192.0.2.0/24 for all nodes, name=192.0.2.0/24 for nodes with that provisioning_network (cleaning_network and so on) in driver_info, or in that conductor group.' },
  { section: 'api', name: 'ramdisk_heartbeat_timeout', kind: 'integer', default: 300, min: 1, help: 'Seconds within which a ramdisk must send a heartbeat. The lookup response contains it.' },
  { section: 'api', name: 'enable_ramdisk_endpoints', kind: 'boolean', default: true, help: 'Serve lookup, heartbeat and continue_inspection in this process.' },
  { section: 'api', name: 'fragment_cache_size', kind: 'integer', default: 64, min: 0, ours: true, help: 'Memory of the JSON cache, in MiB. A detailed node takes about 4 KiB for each requested microversion.' },
  { section: 'api', name: 'max_json_body_size', kind: 'integer', default: 1024, min: 1, help: 'Maximum size of a JSON body, in KiB.' },
  { section: 'api', name: 'max_json_body_size_provision', kind: 'integer', default: 65536, min: 1, help: 'Maximum size of the JSON body of a provision request, which may contain a config drive, in KiB.' },
  { section: 'api', name: 'max_json_body_size_inspection', kind: 'integer', default: 16384, min: 1, help: 'Maximum size of the JSON body of continue_inspection, in KiB.' },
  { section: 'api', name: 'max_json_body_depth', kind: 'integer', default: 25, min: 1, help: 'Maximum nesting depth of a JSON body.' },
  { section: 'api', name: 'disallow_clean_steps', kind: 'list', default: ['vendor.send_raw'], help: 'Clean steps (interface.step) that are not allowed: requests for them are refused, and automated cleaning omits them.' },
  { section: 'api', name: 'disallow_deploy_steps', kind: 'list', default: ['vendor.send_raw'], help: 'Deploy steps (interface.step) that are not allowed: requests for them are refused, and deployments omit them.' },
  { section: 'api', name: 'disallow_service_steps', kind: 'list', default: ['vendor.send_raw'], help: 'Service steps (interface.step) that are not allowed.' },
  { section: 'api', name: 'request_timeout', kind: 'integer', default: 120, min: 1, ours: true, help: 'Seconds within which a caller must send its whole request. Then the connection is closed.' },
  { section: 'api', name: 'max_connections', kind: 'integer', default: 4096, min: 1, ours: true, help: 'Maximum number of connections to each of these listeners: the API, the introspection service, JSON-RPC, metrics.' },
  { section: 'api', name: 'max_connections_per_source', kind: 'integer', default: null, min: 1, ours: true, help: 'Maximum number of these from one address (IPv6: one /64). A reverse proxy is one address. Default: half of max_connections.' },
  { section: 'api', name: 'log_requests', kind: 'string', default: 'all', choices: ['all', 'changes', 'failures', 'none'], ours: true, help: 'Requests to log, with method, path, status, duration and caller. changes: all methods except GET; failures: status 400 and above. changes includes failures.' },
  // [oslo_policy]
  { section: 'oslo_policy', name: 'policy_file', kind: 'string', default: 'policy.yaml', beside: true, help: 'Rules that replace defaults, YAML or JSON. A relative path is beside a configuration file, or in /etc/ironic. Reloaded when it changes.' },
  { section: 'oslo_policy', name: 'policy_dirs', kind: 'list', default: ['policy.d'], repeated: true, beside: true, help: 'Folders of such files, which are read after policy_file in the order of their names; hidden files are not. Reloaded when they change.' },
  { section: 'oslo_policy', name: 'enforce_scope', kind: 'boolean', default: true, ours: true, help: 'Policies refuse tokens of a scope that they do not name. (Ironic 39: always.)' },
  { section: 'oslo_policy', name: 'enforce_new_defaults', kind: 'boolean', default: true, help: 'The defaults of policies are those with system scope and project roles only. False: the former ones (rule:is_admin, rule:is_observer) allow requests too.' },
  { section: 'oslo_policy', name: 'policy_default_rule', kind: 'string', default: 'default', help: 'Rule in place of one that another rule names and that does not exist. Without it, nobody passes such a rule.' },
  // [audit]
  { section: 'audit', name: 'enabled', kind: 'boolean', default: false, help: 'Record requests in the audit log: one line of JSON each, for refused ones too.' },
  { section: 'audit', name: 'ignore_req_list', kind: 'list', default: ['GET', 'HEAD', 'OPTIONS'], help: 'HTTP methods that are not recorded. (Ironic: none.)' },
  { section: 'audit', name: 'ignore_path_list', kind: 'list', default: ['/v1/heartbeat/{node_ident}'], ours: true, help: 'Paths of openapi.yaml whose accepted requests are not recorded.' },
  { section: 'audit', name: 'log_file', kind: 'string', default: null, ours: true, help: 'File of the audit log, created with mode 0600. SIGHUP reopens it, for logrotate. Default: standard output.' },
  // [ssl]
  { section: 'ssl', name: 'cert_file', kind: 'string', default: null, help: 'Certificate of listeners with TLS whose own section names none, PEM.' },
  { section: 'ssl', name: 'key_file', kind: 'string', default: null, help: 'Private key of that certificate, PEM.' },
  { section: 'ssl', name: 'ca_file', kind: 'string', default: null, help: 'Authorities of client certificates, PEM: the API with TLS then answers only clients that have one of them.' },
  { section: 'ssl', name: 'version', kind: 'string', default: null, help: 'TLSv1_2: that version only. SSLv23: no limit beside server_tls_minimum_version. Other versions are not secure, and refused.' },
  { section: 'ssl', name: 'ciphers', kind: 'string', default: null, help: 'Ciphers of listeners with TLS whose own section names none, in OpenSSL\'s format.' },
  // [cors]
  { section: 'cors', name: 'allowed_origin', kind: 'list', default: [], help: 'Origins that may call the API from a browser: scheme, host and port. *: all origins.' },
  { section: 'cors', name: 'allow_credentials', kind: 'boolean', default: true, help: 'Allowed origins may send credentials.' },
  { section: 'cors', name: 'expose_headers', kind: 'list', default: [], help: 'Response headers that allowed origins may read.' },
  { section: 'cors', name: 'max_age', kind: 'integer', default: 3600, min: 0, help: 'Seconds that browsers may cache preflight responses.' },
  { section: 'cors', name: 'allow_methods', kind: 'list', default: ['OPTIONS', 'GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'TRACE', 'PATCH'], help: 'Methods that allowed origins may use.' },
  { section: 'cors', name: 'allow_headers', kind: 'list', default: [], help: "Headers that allowed origins may send, in addition to the usual ones and Ironic's." },
  // [healthcheck], [oslo_middleware]
  { section: 'healthcheck', name: 'enabled', kind: 'boolean', default: false, help: 'Serve /healthcheck, without authentication.' },
  { section: 'healthcheck', name: 'backends', kind: 'list', default: [], help: 'Health checks: disable_by_file, disable_by_files_ports, enable_by_files, and (not in Ironic) database and event_loop. The status is 503 if one fails.' },
  { section: 'healthcheck', name: 'max_event_loop_delay', kind: 'integer', default: 250, min: 1, ours: true, help: 'event_loop fails while the delay of the event loop stays above so many milliseconds.' },
  { section: 'healthcheck', name: 'detailed', kind: 'boolean', default: false, help: 'Show details of the checks and of this host, as JSON or HTML.' },
  { section: 'healthcheck', name: 'disable_by_file_path', kind: 'string', default: null, help: 'disable_by_file fails while this file exists. Use it to remove the process from a load balancer.' },
  { section: 'healthcheck', name: 'disable_by_file_paths', kind: 'list', default: [], help: 'Files for disable_by_files_ports, as port:path: the check fails on this port while the file exists.' },
  { section: 'healthcheck', name: 'enable_by_file_paths', kind: 'list', default: [], help: 'enable_by_files fails unless one of these files exists.' },
  { section: 'healthcheck', name: 'allowed_source_ranges', kind: 'list', default: [], help: 'Networks that may request /healthcheck; empty: all. Others get 404.' },
  { section: 'healthcheck', name: 'ignore_proxied_requests', kind: 'boolean', default: false, help: 'Do not serve /healthcheck to requests that a proxy forwarded.' },
  { section: 'oslo_middleware', name: 'enable_proxy_headers_parsing', kind: 'boolean', default: false, help: 'Trust the headers Forwarded, X-Forwarded-For, -Proto, -Host and -Prefix of a proxy. Links in responses and checks of the address of a client use them. Only the proxy must reach the API then.' },
  // [metrics]
  { section: 'metrics', name: 'public', kind: 'boolean', default: true, ours: true, help: 'Serve /metrics on the API port too, without authentication. It contains counts, but no names or UUIDs of machines.' },
  { section: 'metrics', name: 'prometheus_port', kind: 'integer', default: null, min: 0, max: 65535, ours: true, help: 'Separate port for /metrics and /healthcheck, also for processes without the API. Default: none.' },
  { section: 'metrics', name: 'prometheus_host', kind: 'string', default: '0.0.0.0', ours: true, help: 'Address on which prometheus_port listens.' },
  { section: 'metrics', name: 'prometheus_use_ssl', kind: 'boolean', default: false, ours: true, help: 'This port answers with TLS.' },
  { section: 'metrics', name: 'cert_file', kind: 'string', default: null, ours: true, help: 'Certificate of this port, PEM. Default: [ssl]cert_file.' },
  { section: 'metrics', name: 'key_file', kind: 'string', default: null, ours: true, help: 'Private key of the certificate, PEM. Default: [ssl]key_file.' },
  { section: 'metrics', name: 'server_tls_minimum_version', kind: 'string', default: '1.3', choices: ['1.2', '1.3'], ours: true, help: 'Oldest version of TLS that this port takes.' },
  { section: 'metrics', name: 'server_tls_ciphers', kind: 'string', default: null, ours: true, help: 'Ciphers of this port, in OpenSSL\'s format. Default: those of [ssl]ciphers, else those of Node.' },
  { section: 'metrics', name: 'agent_backend', kind: 'string', default: 'noop', help: 'How agents send their own metrics: noop or statsd. The lookup response contains it.' },
  { section: 'metrics', name: 'agent_prepend_host', kind: 'boolean', default: false, help: 'Agents prepend the host name to the names of their metrics.' },
  { section: 'metrics', name: 'agent_prepend_uuid', kind: 'boolean', default: false, help: "Agents prepend the node's UUID to the names of their metrics." },
  { section: 'metrics', name: 'agent_prepend_host_reverse', kind: 'boolean', default: true, help: 'Agents reverse the parts of the prepended host name.' },
  { section: 'metrics', name: 'agent_global_prefix', kind: 'string', default: null, help: 'Prefix of all metrics of agents.' },
  { section: 'metrics_statsd', name: 'agent_statsd_host', kind: 'string', default: 'localhost', help: 'Host to which agents send statsd metrics.' },
  { section: 'metrics_statsd', name: 'agent_statsd_port', kind: 'integer', default: 8125, min: 0, max: 65535, help: 'Port to which agents send statsd metrics.' },

  // [service_catalog]
  { section: 'service_catalog', name: 'endpoint_override', kind: 'string', default: null, help: 'URL of the API for ramdisks. Default: http://my_ip and the API port.' },
  // [database]
  { section: 'database', name: 'connection', kind: 'string', default: null, secret: true, help: 'postgresql:// URL. Empty, and no DATABASE_URL: the embedded PostgreSQL under the state directory.' },
  { section: 'database', name: 'max_pool_size', kind: 'integer', default: 10, min: 1, help: 'Maximum number of connections to the database.' },
  // [conductor]
  { section: 'conductor', name: 'conductor_group', kind: 'string', default: '', help: 'Conductor group of this conductor. It manages the nodes of this group.' },
  { section: 'conductor', name: 'automated_clean', kind: 'boolean', default: true, help: 'Clean nodes before they become available, unless the node overrides it.' },
  { section: 'conductor', name: 'automated_cleaning_step_source', kind: 'string', default: 'autogenerated', choices: ['autogenerated', 'runbook', 'hybrid'], help: 'Source of the steps of automated cleaning. autogenerated: by the priorities of drivers and agent; runbook: a runbook; hybrid: a runbook if the node has one, else autogenerated.' },
  { section: 'conductor', name: 'automated_cleaning_runbook', kind: 'string', default: null, help: 'Runbook (UUID or name) for automated cleaning of nodes without a more specific runbook.' },
  { section: 'conductor', name: 'automated_cleaning_runbook_by_resource_class', kind: 'dict', default: {}, help: 'resource_class:runbook pairs. They override automated_cleaning_runbook.' },
  { section: 'conductor', name: 'automated_cleaning_runbook_from_node', kind: 'boolean', default: false, help: 'Use the runbook in driver_info cleaning_runbook of the node. Everybody who may change driver_info then decides how the node is cleaned.' },
  { section: 'conductor', name: 'automated_cleaning_runbook_validate_traits', kind: 'boolean', default: true, help: 'Automated cleaning uses a runbook only for nodes that have one of its traits.' },
  { section: 'conductor', name: 'heartbeat_interval', kind: 'integer', default: 10, min: 1, help: 'Seconds between heartbeats of this conductor in the database.' },
  { section: 'conductor', name: 'heartbeat_timeout', kind: 'integer', default: 60, min: 1, help: 'Seconds without a heartbeat after which a conductor is considered dead.' },
  { section: 'conductor', name: 'graceful_shutdown_timeout', formerly: 'DEFAULT.graceful_shutdown_timeout', kind: 'integer', default: 60, min: 0, help: 'Seconds that running work may continue after SIGTERM. Another conductor or the next start resumes the rest. 0: no limit.' },
  { section: 'conductor', name: 'conductor_cleanup_interval', kind: 'integer', default: 86400, min: 0, help: 'Seconds between removals of conductors that stay offline; 0: never.' },
  { section: 'conductor', name: 'conductor_cleanup_timeout', kind: 'integer', default: 1209600, min: 60, help: 'Seconds without a heartbeat after which a conductor is removed. At least three times heartbeat_timeout.' },
  { section: 'conductor', name: 'conductor_cleanup_batch_size', kind: 'integer', default: 50, min: 1, help: 'Maximum number of conductors removed at once.' },
  { section: 'conductor', name: 'sync_power_state_interval', kind: 'integer', default: 120, min: 0, help: 'Seconds between synchronizations of power states; 0: never.' },
  { section: 'conductor', name: 'sync_power_state_workers', kind: 'integer', default: 32, min: 1, help: "Number of nodes whose power state is read concurrently. Ironic's default is 8, because each takes a thread there." },
  { section: 'conductor', name: 'force_power_state_during_sync', kind: 'boolean', default: true, help: 'Set a machine back to the recorded power state, instead of recording its actual state.' },
  { section: 'conductor', name: 'power_state_sync_max_retries', kind: 'integer', default: 3, min: 0, help: 'Failed power synchronizations after which a node is set to maintenance.' },
  { section: 'conductor', name: 'power_failure_recovery_interval', kind: 'integer', default: 300, min: 0, help: 'Seconds between attempts to reach the BMCs of nodes with the fault "power failure"; 0: never.' },
  { section: 'conductor', name: 'check_provision_state_interval', kind: 'integer', default: 60, min: 0, help: 'Seconds between timeout checks of the waiting states; 0: never.' },
  { section: 'conductor', name: 'check_rescue_state_interval', kind: 'integer', default: 60, min: 1, help: 'Seconds between timeout checks of rescue wait.' },
  { section: 'conductor', name: 'check_allocations_interval', kind: 'integer', default: 60, min: 0, help: 'Seconds between checks for allocations whose conductor is dead; 0: never.' },
  { section: 'conductor', name: 'deploy_callback_timeout', kind: 'integer', default: 1800, min: 0, help: 'Seconds to wait for the ramdisk in a deployment; 0: no limit.' },
  { section: 'conductor', name: 'clean_callback_timeout', kind: 'integer', default: 1800, min: 0, help: 'Seconds to wait for the ramdisk in cleaning; 0: no limit.' },
  { section: 'conductor', name: 'inspect_wait_timeout', kind: 'integer', default: 1800, min: 0, help: 'Seconds to wait for the ramdisk in inspection; 0: no limit.' },
  { section: 'conductor', name: 'rescue_callback_timeout', kind: 'integer', default: 1800, min: 0, help: 'Seconds to wait for the rescue ramdisk; 0: no limit.' },
  { section: 'conductor', name: 'node_history', kind: 'boolean', default: true, help: 'Record the history of nodes. The power synchronization then clears old errors.' },
  { section: 'conductor', name: 'enable_health_monitoring', kind: 'boolean', default: true, help: 'Record the health that BMCs report on the nodes, with each power synchronization.' },
  { section: 'conductor', name: 'node_history_max_entries', kind: 'integer', default: 300, min: 0, help: 'Maximum number of history entries for each node.' },
  { section: 'conductor', name: 'node_history_cleanup_interval', kind: 'integer', default: 86400, min: 0, help: 'Seconds between removals of old history entries; 0: never.' },
  { section: 'conductor', name: 'node_history_cleanup_batch_count', kind: 'integer', default: 1000, min: 0, help: 'Maximum number of history entries removed at once.' },
  { section: 'conductor', name: 'node_history_minimum_days', kind: 'integer', default: 0, min: 0, help: 'Minimum age of removed history entries, in days.' },
  { section: 'conductor', name: 'record_step_flows_in_history', kind: 'boolean', default: true, help: 'Record the start and the end of cleaning, deployment and servicing, with their steps.' },
  { section: 'conductor', name: 'rescue_password_hash_algorithm', kind: 'string', default: 'sha256', choices: ['sha256', 'sha512'], help: 'Hash algorithm for the rescue password.' },
  { section: 'conductor', name: 'require_rescue_password_hashed', kind: 'boolean', default: true, help: 'Do not send the rescue password to an agent that does not support hashed passwords. False: send the plain password.' },
  { section: 'conductor', name: 'max_conductor_wait_step_seconds', kind: 'integer', default: 30, min: 0, max: 1800, help: 'Maximum duration of the step `power.wait`, in seconds.' },
  { section: 'conductor', name: 'service_callback_timeout', kind: 'integer', default: 1800, min: 0, help: 'Seconds to wait for the ramdisk in servicing; 0: no limit.' },
  { section: 'conductor', name: 'power_state_change_timeout', kind: 'integer', default: 60, min: 1, help: 'Seconds to wait for a machine to reach a power state.' },
  { section: 'conductor', name: 'soft_power_off_timeout', kind: 'integer', default: 600, min: 1, help: 'Seconds to wait for a machine to shut itself down.' },
  { section: 'conductor', name: 'allow_deleting_available_nodes', kind: 'boolean', default: true, help: 'Nodes in the state available may be deleted.' },
  { section: 'conductor', name: 'allow_provisioning_in_maintenance', kind: 'boolean', default: true, help: 'Nodes in maintenance may be cleaned by `provide`.' },
  { section: 'conductor', name: 'workers_pool_size', kind: 'integer', default: 300, min: 3, help: 'Maximum number of concurrent workers.' },
  { section: 'conductor', name: 'reserved_workers_pool_percentage', kind: 'integer', default: 5, min: 0, max: 50, help: 'Percentage of the workers reserved for API requests. Periodic work and heartbeats do not use them.' },
  { section: 'conductor', name: 'periodic_max_workers', kind: 'integer', default: 8, min: 1, help: 'Number of nodes that one periodic task handles concurrently.' },
  { section: 'conductor', name: 'max_concurrent_deploy', kind: 'integer', default: 250, min: 1, help: 'Maximum number of nodes in deployment at once.' },
  { section: 'conductor', name: 'max_concurrent_clean', kind: 'integer', default: 50, min: 1, help: 'Maximum number of nodes in cleaning at once.' },
  { section: 'conductor', name: 'max_concurrent_per_conductor_group', kind: 'boolean', default: false, help: 'The two limits above apply to each conductor group separately.' },
  { section: 'conductor', name: 'node_locked_retry_attempts', kind: 'integer', default: 3, min: 0, help: 'Number of attempts to lock a locked node.' },
  { section: 'conductor', name: 'node_locked_retry_interval', kind: 'integer', default: 1, min: 0, help: 'Seconds between these attempts.' },
  { section: 'conductor', name: 'clean_step_priority_override', kind: 'dict', default: {}, help: 'interface.step:priority pairs that override the priorities of clean steps.' },
  { section: 'conductor', name: 'verify_step_priority_override', kind: 'dict', default: {}, help: 'interface.step:priority pairs that override the priorities of verify steps. 0 disables a step.' },
  { section: 'conductor', name: 'poweroff_in_cleanfail', kind: 'boolean', default: false, help: 'Power off machines whose cleaning failed, except during steps that must not be interrupted, such as firmware updates.' },
  { section: 'conductor', name: 'poweroff_in_servicefail', kind: 'boolean', default: false, help: 'Power off machines whose servicing failed, except during steps that must not be interrupted, such as firmware updates.' },
  { section: 'conductor', name: 'permit_child_node_step_async_result', kind: 'boolean', default: false, help: 'Allow asynchronous steps on child nodes. The conductor does not wait for their result.' },
  { section: 'conductor', name: 'automatic_lessee', kind: 'boolean', default: true, help: 'Set the lessee of a node without one at its deployment, and remove it when the instance ends.' },
  { section: 'conductor', name: 'automatic_lessee_source', kind: 'string', default: 'instance', choices: ['instance', 'request', 'none'], help: "Source of the automatic lessee: instance (instance_info project_id), request (the caller's project), none." },
  { section: 'conductor', name: 'disallowed_deployment_boot_modes', kind: 'list', default: [], help: 'Boot modes for which deployments are refused.' },
  { section: 'conductor', name: 'enable_mdns', kind: 'boolean', default: false, help: 'Announce the API by multicast DNS, for agents without a configured API URL.' },
  { section: 'conductor', name: 'deploy_kernel', kind: 'string', default: null, help: 'Kernel of the agent ramdisk for nodes without driver_info deploy_kernel: path, file:// or http(s):// URL.' },
  { section: 'conductor', name: 'deploy_ramdisk', kind: 'string', default: null, help: 'Initramfs of the agent ramdisk for nodes without driver_info deploy_ramdisk.' },
  { section: 'conductor', name: 'rescue_kernel', kind: 'string', default: null, help: 'Kernel of the rescue ramdisk for nodes without driver_info rescue_kernel: path, file:// or http(s):// URL.' },
  { section: 'conductor', name: 'rescue_ramdisk', kind: 'string', default: null, help: 'Initramfs of the rescue ramdisk for nodes without driver_info rescue_ramdisk.' },
  { section: 'conductor', name: 'bootloader', kind: 'string', default: null, help: "UEFI boot loader of generated ISO images, for nodes without driver_info bootloader: an image of an EFI system partition, or an EFI program such as GRUB's gcdx64.efi. Path, file:// or http(s):// URL." },
  { section: 'conductor', name: 'file_url_allowed_paths', kind: 'list', default: ['/var/lib/ironic'], help: 'Folders from which file:// images are allowed. Links are followed first.' },
  // [deploy]
  { section: 'deploy', name: 'http_url', kind: 'string', default: null, help: 'URL of the HTTP boot service for machines. Default: http://my_ip and [boot]http_port.' },
  { section: 'deploy', name: 'external_http_url', kind: 'string', default: null, help: 'URL of the HTTP boot service for BMCs, if it differs from http_url. driver_info external_http_url overrides it for a node. Default: https://my_ip and [boot]https_port, if that is set.' },
  { section: 'deploy', name: 'external_callback_url', kind: 'string', default: null, help: 'URL of the API for ramdisks that boot from virtual media. Default: the URL for other ramdisks.' },
  { section: 'deploy', name: 'ramdisk_image_download_source', kind: 'string', default: 'local', choices: ['http', 'local', 'swift'], help: 'Where BMCs download the ISO images of nodes. http: from their original URL; local: from the HTTP boot service, which caches them. swift has the same effect as http.' },
  { section: 'deploy', name: 'http_root', kind: 'string', default: null, help: 'Folder with additional files for the HTTP boot service. Default: httpboot under the state directory.' },
  { section: 'deploy', name: 'default_boot_mode', kind: 'string', default: 'uefi', choices: ['uefi', 'bios'], help: 'Boot mode of nodes whose capabilities do not set one.' },
  { section: 'deploy', name: 'fast_track', kind: 'boolean', default: false, help: 'Use agents that already run before a deployment (fast track). driver_info fast_track overrides it for a node. The power interface agent requires it.' },
  { section: 'deploy', name: 'fast_track_timeout', kind: 'integer', default: 300, min: 0, max: 300, help: 'Seconds after the last heartbeat during which such an agent is considered to be running.' },
  { section: 'deploy', name: 'erase_devices_priority', kind: 'integer', default: null, min: 0, help: "Priority of the agent's clean step erase_devices; 0: disabled. Default: the agent's priority." },
  { section: 'deploy', name: 'erase_devices_metadata_priority', kind: 'integer', default: null, min: 0, help: "Priority of the agent's clean step erase_devices_metadata; 0: disabled. Default: the agent's priority." },
  { section: 'deploy', name: 'create_configuration_priority', kind: 'integer', default: null, min: 0, help: "Priority of the agent's clean step that creates RAID volumes; 0: only on request. Default: the agent's priority." },
  { section: 'deploy', name: 'delete_configuration_priority', kind: 'integer', default: null, min: 0, help: "Priority of the agent's clean step that deletes RAID volumes; 0: only on request. Default: the agent's priority." },
  { section: 'deploy', name: 'shred_random_overwrite_iterations', kind: 'integer', default: 1, min: 0, help: 'Passes of random data over disks without an erase command.' },
  { section: 'deploy', name: 'shred_final_overwrite_with_zeros', kind: 'boolean', default: true, help: 'Add a final pass of zeros over these disks.' },
  { section: 'deploy', name: 'continue_if_disk_secure_erase_fails', kind: 'boolean', default: false, help: 'Overwrite a disk whose secure erase fails, instead of failing.' },
  { section: 'deploy', name: 'enable_ata_secure_erase', kind: 'boolean', default: true, help: 'Use ATA secure erase for disks that support it.' },
  { section: 'deploy', name: 'enable_nvme_secure_erase', kind: 'boolean', default: true, help: 'Use NVMe secure erase for disks that support it.' },
  { section: 'deploy', name: 'erase_skip_read_only', kind: 'boolean', default: false, help: 'Skip read-only disks when erasing, instead of failing.' },
  { section: 'deploy', name: 'power_off_after_deploy_failure', kind: 'boolean', default: true, help: 'Power off machines whose deployment failed.' },
  { section: 'deploy', name: 'disk_erasure_concurrency', kind: 'integer', default: 4, min: 1, help: 'Number of disks of a machine that are erased at once.' },
  // [pxe]
  { section: 'pxe', name: 'kernel_append_params', kind: 'string', default: 'nofb vga=normal', help: 'Additional kernel arguments of ramdisks.' },
  { section: 'pxe', name: 'tftp_server', kind: 'string', default: null, help: 'Address of the TFTP service for machines. Default: my_ip.' },
  { section: 'pxe', name: 'tftp_root', kind: 'string', default: null, help: 'Folder that the TFTP service serves. Default: tftpboot under the state directory.' },
  { section: 'pxe', name: 'loader_file_paths', kind: 'dict', default: { 'undionly.kpxe': '/usr/lib/ipxe/undionly.kpxe', 'snponly.efi': '/usr/lib/ipxe/snponly.efi', 'pxelinux.0': '/usr/lib/PXELINUX/pxelinux.0', 'ldlinux.c32': '/usr/lib/syslinux/modules/bios/ldlinux.c32', 'bootx64.efi': '/usr/lib/grub/x86_64-efi/monolithic/grubnetx64.efi' }, help: 'name:path pairs of boot loaders. TFTP and HTTP serve each under its name.' },
  { section: 'pxe', name: 'pxe_bootfile_name', kind: 'string', default: 'pxelinux.0', help: 'Boot file of the boot interface pxe in BIOS mode (PXELINUX).' },
  { section: 'pxe', name: 'uefi_pxe_bootfile_name', kind: 'string', default: 'bootx64.efi', help: 'Boot file of the boot interface pxe in UEFI mode (GRUB).' },
  { section: 'pxe', name: 'pxe_bootfile_name_by_arch', kind: 'dict', default: {}, help: 'Boot files of the boot interface pxe for other architectures, as arch-mode:file or arch:file (aarch64:grubaa64.efi, x86_64-bios:lpxelinux.0).' },
  { section: 'pxe', name: 'ipxe_bootfile_name', kind: 'string', default: 'undionly.kpxe', help: 'iPXE boot file in BIOS mode.' },
  { section: 'pxe', name: 'uefi_ipxe_bootfile_name', kind: 'string', default: 'snponly.efi', help: 'iPXE boot file in UEFI mode.' },
  { section: 'pxe', name: 'ipxe_bootfile_name_by_arch', kind: 'dict', default: {}, help: 'iPXE boot files for other architectures, as arch-mode:file or arch:file (aarch64:ipxe-arm64.efi, x86_64-uefi:ipxe.efi).' },
  { section: 'pxe', name: 'image_cache_size', kind: 'integer', default: 20480, min: 1, help: "Size of the HTTP boot service's cache of kernels, ramdisks and images from other servers, in MiB." },
  // [dhcp]
  { section: 'dhcp', name: 'dhcp_provider', kind: 'string', default: 'none', choices: ['builtin', 'none'], help: 'builtin: this program serves DHCP on [boot]interface. none: another DHCP server does.' },
  // [boot], ours
  { section: 'boot', name: 'interface', kind: 'string', default: null, ours: true, help: 'Network interface of the provisioning network. DHCP listens on this interface only.' },
  { section: 'boot', name: 'dhcp_range', kind: 'string', default: null, ours: true, help: 'Address pool for machines, as FIRST-LAST (10.0.0.100-10.0.0.200).' },
  { section: 'boot', name: 'dhcp_netmask', kind: 'string', default: null, ours: true, help: "Netmask for machines. Default: the interface's netmask." },
  { section: 'boot', name: 'dhcp_gateway', kind: 'string', default: null, ours: true, help: 'Default gateway for machines. Default: none.' },
  { section: 'boot', name: 'dhcp_dns', kind: 'list', default: [], ours: true, help: 'DNS servers for machines.' },
  { section: 'boot', name: 'dhcp_lease_time', kind: 'integer', default: 3600, min: 60, ours: true, help: 'Lease time in seconds.' },
  { section: 'boot', name: 'dhcp_unknown_macs', kind: 'string', default: null, choices: ['ignore', 'discover'], ours: true, help: 'Unknown MAC addresses: ignore them, or boot the agent ramdisk for discovery. Default: discover if [auto_discovery]enabled.' },
  { section: 'boot', name: 'dhcp_max_unknown', kind: 'integer', default: null, min: 0, ours: true, help: 'Maximum number of unknown MAC addresses that get an address within one lease time, so that made-up ones leave addresses for known machines. Default: half of dhcp_range.' },
  { section: 'boot', name: 'router_advertisements', kind: 'boolean', default: true, ours: true, help: 'Send IPv6 router advertisements without a prefix on [boot]interface with builtin DHCP. Otherwise iPXE waits for one.' },
  { section: 'boot', name: 'tftp_host', kind: 'string', default: null, ours: true, help: 'Address that the TFTP service listens on. Default: those of [boot]interface, and my_ip; without an interface 0.0.0.0.' },
  { section: 'boot', name: 'tftp_port', kind: 'integer', default: 69, min: 0, max: 65535, ours: true, help: 'Port that the TFTP service listens on.' },
  { section: 'boot', name: 'tftp', kind: 'boolean', default: true, ours: true, help: 'Run the TFTP service.' },
  { section: 'boot', name: 'http_host', kind: 'string', default: null, ours: true, help: 'Address that the HTTP boot service listens on. Default: those of [boot]interface, and my_ip; without an interface 0.0.0.0.' },
  { section: 'boot', name: 'http_port', kind: 'integer', default: 8080, min: 0, max: 65535, ours: true, help: 'Port that the HTTP boot service listens on.' },
  { section: 'boot', name: 'http_max_connections', kind: 'integer', default: 4096, min: 1, ours: true, help: 'Maximum number of connections to each address of the HTTP boot service.' },
  { section: 'boot', name: 'http_max_connections_per_source', kind: 'integer', default: null, min: 1, ours: true, help: 'Maximum number of these from one address (IPv6: one /64). Default: half of http_max_connections.' },
  { section: 'boot', name: 'http_use_ssl', kind: 'boolean', default: false, ours: true, help: 'The HTTP boot service answers with TLS. Firmware, iPXE, ramdisks and BMCs must trust the certificate.' },
  { section: 'boot', name: 'https_port', kind: 'integer', default: null, min: 0, max: 65535, ours: true, help: 'Port on which the HTTP boot service also answers with TLS, beside http_port. Media for BMCs are served there only, and the URLs that BMCs get begin with https.' },
  { section: 'boot', name: 'cert_file', kind: 'string', default: null, ours: true, help: 'Certificate of the HTTP boot service, PEM. Default: [ssl]cert_file.' },
  { section: 'boot', name: 'key_file', kind: 'string', default: null, ours: true, help: 'Private key of the certificate, PEM. Default: [ssl]key_file.' },
  { section: 'boot', name: 'server_tls_minimum_version', kind: 'string', default: '1.2', choices: ['1.2', '1.3'], ours: true, help: 'Oldest version of TLS that the HTTP boot service takes. Firmware often has no newer one than 1.2.' },
  { section: 'boot', name: 'server_tls_ciphers', kind: 'string', default: null, ours: true, help: 'Ciphers of the HTTP boot service, in OpenSSL\'s format. Default: those of [ssl]ciphers, else those of Node.' },
  // [agent]
  { section: 'agent', name: 'command_timeout', kind: 'integer', default: 60, min: 1, help: "Seconds to wait for an agent's response to a command." },
  { section: 'agent', name: 'max_command_attempts', kind: 'integer', default: 3, min: 1, help: 'Number of attempts to send a command if the connection fails.' },
  { section: 'agent', name: 'command_wait_attempts', kind: 'integer', default: 100, min: 1, help: 'Number of polls for the result of an agent command.' },
  { section: 'agent', name: 'command_wait_interval', kind: 'integer', default: 6, min: 1, help: 'Maximum seconds between these polls. The first polls are earlier, and agents may delay their response until the command ends.' },
  { section: 'agent', name: 'require_tls', kind: 'boolean', default: true, help: "The agent's callback URL must use https." },
  { section: 'agent', name: 'callback_hosts', kind: 'list', default: [], ours: true, help: "Addresses, networks (192.0.2.0/24) and host names that agents may have in callback_url, besides the node's own addresses: where its requests come from, its DHCP lease, and what its last inspection found. For agents behind a proxy or NAT." },
  { section: 'agent', name: 'verify_ca', kind: 'string', default: 'True', help: 'CA certificates for verifying agents without a generated certificate: True (those of the system), False (no verification), or a file.' },
  { section: 'agent', name: 'api_ca_file', kind: 'string', default: null, help: 'File of CA certificates, PEM, that ramdisks verify the API and image servers with. It is added to their images.' },
  { section: 'agent', name: 'post_deploy_get_power_state_retries', kind: 'integer', default: 6, min: 0, help: 'Number of power state polls after the agent was ordered to power off.' },
  { section: 'agent', name: 'post_deploy_get_power_state_retry_interval', kind: 'integer', default: 5, min: 0, help: 'Maximum seconds between these polls. The first polls are earlier.' },
  { section: 'agent', name: 'deploy_logs_collect', kind: 'string', default: 'on_failure', choices: ['always', 'on_failure', 'never'], help: 'Inspections whose ramdisk logs are stored.' },
  { section: 'agent', name: 'deploy_logs_storage_backend', kind: 'string', default: 'local', choices: ['local', 'swift'], help: 'Storage of these logs. swift is not supported and prevents the start.' },
  { section: 'agent', name: 'deploy_logs_local_path', kind: 'string', default: '/var/log/ironic/deploy', help: 'Folder of these logs.' },
  { section: 'agent', name: 'stream_raw_images', kind: 'boolean', default: true, help: 'Write raw images to the disk while they are downloaded.' },
  // [sensor_data]
  { section: 'sensor_data', name: 'send_sensor_data', kind: 'boolean', default: false, help: 'Read the sensors of machines periodically, and send the values as notifications and metrics.' },
  { section: 'sensor_data', name: 'interval', kind: 'integer', default: 600, min: 1, help: 'Seconds between notifications of sensor values, and between readings of sensor kinds without an interval of their own.' },
  { section: 'sensor_data', name: 'interval_power', kind: 'integer', default: 60, min: 1, ours: true, help: 'Seconds between readings of power supplies.' },
  { section: 'sensor_data', name: 'interval_temperature', kind: 'integer', default: 60, min: 1, ours: true, help: 'Seconds between readings of temperatures.' },
  { section: 'sensor_data', name: 'interval_fan', kind: 'integer', default: 300, min: 1, ours: true, help: 'Seconds between readings of fans.' },
  { section: 'sensor_data', name: 'interval_drive', kind: 'integer', default: 1800, min: 1, ours: true, help: 'Seconds between readings of drives.' },
  { section: 'sensor_data', name: 'workers', kind: 'integer', default: 4, min: 1, help: 'Number of machines whose sensors are read concurrently.' },
  { section: 'sensor_data', name: 'wait_timeout', kind: 'integer', default: 300, min: 1, help: 'Seconds after which a collection ends, even if some machines have not been read.' },
  { section: 'sensor_data', name: 'data_types', kind: 'list', default: ['ALL'], help: 'Kinds of sensors to send (Temperature, Fan, …). ALL: every kind.' },
  { section: 'sensor_data', name: 'enable_for_undeployed_nodes', kind: 'boolean', default: false, help: 'Read the sensors of nodes that are not active too.' },
  { section: 'sensor_data', name: 'enable_for_nodes', kind: 'boolean', default: true, help: 'Read the sensors of machines.' },
  { section: 'sensor_data', name: 'enable_for_conductor', kind: 'boolean', default: true, help: "Send the conductor's own metrics too." },
  // [inspector]
  { section: 'inspector', name: 'extra_kernel_params', kind: 'string', default: '', help: 'Additional kernel arguments of ramdisks for inspection.' },
  { section: 'inspector', name: 'require_managed_boot', kind: 'boolean', default: null, help: 'Refuse inspection of nodes whose boot interface cannot boot the ramdisk.' },
  { section: 'inspector', name: 'power_off', kind: 'boolean', default: true, help: 'Power machines off after inspection.' },
  { section: 'inspector', name: 'default_hooks', kind: 'list', default: ['ramdisk-error', 'validate-interfaces', 'ports', 'architecture'], help: 'Hooks that `hooks` can include by reference: "first,$default_hooks,last".' },
  { section: 'inspector', name: 'hooks', kind: 'list', default: ['ramdisk-error', 'validate-interfaces', 'ports', 'architecture'], formerly: 'inspector.default_hooks', help: 'Inspection hooks, in order. Default: default_hooks.' },
  { section: 'inspector', name: 'add_ports', kind: 'string', default: 'pxe', choices: ['all', 'active', 'pxe', 'disabled'], help: 'Interfaces for which inspection creates ports.' },
  { section: 'inspector', name: 'keep_ports', kind: 'string', default: 'all', choices: ['all', 'present', 'added'], help: 'Ports that remain after inspection.' },
  { section: 'inspector', name: 'pre_create_ports', kind: 'boolean', default: true, help: 'Create ports for the MAC addresses that the BMC reports (Redfish), before the machine boots for its inspection.' },
  { section: 'inspector', name: 'update_pxe_enabled', kind: 'boolean', default: true, help: 'Set pxe_enabled of the ports by the interface that the machine booted from.' },
  { section: 'inspector', name: 'overwrite_existing', kind: 'boolean', default: false, ours: true, help: "Replace existing properties, capabilities and port fields by the agent's values. Otherwise only missing values are set. (Ironic replaces them.)" },
  { section: 'inspector', name: 'overwrite_existing_hooks', kind: 'list', default: [], ours: true, help: 'Inspection hooks that always replace existing values.' },
  { section: 'inspector', name: 'disk_partitioning_spacing', kind: 'boolean', default: true, help: 'Set local_gb to one GiB less than the size of the root disk, for partition tables.' },
  { section: 'inspector', name: 'cpu_capabilities', kind: 'dict', default: { vmx: 'cpu_vt', svm: 'cpu_vt', aes: 'cpu_aes', pse: 'cpu_hugepages', pdpe1gb: 'cpu_hugepages_1g', smx: 'cpu_txt' }, help: 'Hook cpu-capabilities: flag:capability pairs. The capability is true if the CPU has the flag.' },
  { section: 'inspector', name: 'extra_hardware_strict', kind: 'boolean', default: false, help: 'Hook extra-hardware: discard all rows if one row is too short.' },
  { section: 'inspector', name: 'known_accelerators', kind: 'string', default: null, help: 'Hook accelerators: YAML file with pci_devices, a list of vendor_id, device_id and further values to report. Default: a list of GPUs.' },
  { section: 'inspector', name: 'pci_device_alias', kind: 'string', default: '', repeated: true, help: 'Hook pci-devices: devices to count in a capability, as {"vendor_id": "1234", "product_id": "5678", "name": "gpu"}. Several with commas or repeated options.' },
  { section: 'inspector', name: 'physical_network_cidr_map', kind: 'list', default: [], help: "Hook physical-network: physical networks of ports by the interface's address, as 10.10.10.0/24:physnet_a." },
  // [inventory]
  { section: 'inventory', name: 'data_backend', kind: 'string', default: 'database', choices: ['none', 'database', 'swift', 'directory'], help: 'Storage of inventories and plugin data. directory is not in Ironic. swift is not supported and prevents the start.' },
  { section: 'inventory', name: 'swift_data_container', kind: 'string', default: 'introspection_data_container', help: 'Swift container. Accepted for compatibility; no effect.' },
  { section: 'inventory', name: 'directory', kind: 'string', default: null, ours: true, help: 'Folder of data_backend = directory, with two files for each node. Processes with a common database must share it. Default: `inventories` in the state directory. Backups of the database do not contain it.' },
  { section: 'inventory', name: 'max_size', kind: 'integer', default: 8192, min: 1, ours: true, help: 'Maximum size of the stored data of one inspection, in KiB of JSON. Larger data makes the inspection fail.' },
  // [mdns]
  { section: 'DEFAULT', name: 'enable_mdns', kind: 'boolean', default: false, ours: true, help: 'Announce the introspection service by multicast DNS (an option of ironic-inspector).' },
  { section: 'mdns', name: 'interfaces', kind: 'list', default: [], help: 'Interfaces for multicast DNS announcements ([conductor]enable_mdns, [DEFAULT]enable_mdns): IPv4 addresses, or (not in Ironic) interface names. Empty: all except loopback.' },
  { section: 'mdns', name: 'params', kind: 'dict', default: {}, help: 'Additional announced parameters, such as ipa_inspection_callback_url.' },
  { section: 'mdns', name: 'registration_attempts', kind: 'integer', default: 5, min: 1, help: 'Number of attempts to register a service name. Then the next attempt follows after a minute.' },
  { section: 'mdns', name: 'lookup_attempts', kind: 'integer', default: 3, min: 1, help: 'Option of agents. Accepted for compatibility; no effect.' },
  // [auto_discovery]
  { section: 'auto_discovery', name: 'enabled', kind: 'boolean', default: false, help: 'Enroll unknown machines when they report their inventory.' },
  { section: 'auto_discovery', name: 'driver', kind: 'string', default: null, help: 'Hardware type of discovered nodes. Required if enabled.' },
  { section: 'auto_discovery', name: 'max_nodes_per_hour', kind: 'integer', default: 500, min: 0, ours: true, help: 'Maximum number of machines that are enrolled within an hour. Reports of further ones get 503, and their agents try again.' },
  { section: 'auto_discovery', name: 'inspection_scope', kind: 'string', default: null, help: 'Value of properties inspection_scope of discovered nodes. Rules of the introspection service use it as their scope. (Ironic accepts the option without effect.)' },
  // [pxe_filter]
  { section: 'pxe_filter', name: 'supported_inspect_interfaces', kind: 'list', default: ['agent'], help: 'Inspect interfaces whose nodes may boot the agent ramdisk from the network during inspection, even if their boot interface does not configure it.' },
  { section: 'pxe_filter', name: 'allow_macs', kind: 'list', default: [], ours: true, help: 'Only unknown machines with these MAC addresses are discovered: whole addresses, prefixes (of a vendor), or * for a byte. Empty: all.' },
  { section: 'pxe_filter', name: 'deny_macs', kind: 'list', default: [], ours: true, help: 'Unknown machines with these MAC addresses are never discovered. Takes precedence over allow_macs.' },
  { section: 'inspection_rules', name: 'built_in_rules', kind: 'string', default: null, help: 'YAML file with built-in inspection rules, in addition to those of the API.' },
  { section: 'inspection_rules', name: 'mask_secrets', kind: 'string', default: 'always', choices: ['always', 'never', 'sensitive'], help: 'Inspection rules that see masked passwords in the inspection data: all, none, or all except sensitive rules.' },

  // The introspection service, by ironic-inspector's names
  { section: 'inspector_service', name: 'enabled', kind: 'boolean', default: false, ours: true, help: "Run the introspection service (ironic-inspector's API) in this process. Not required if `--roles` contains `inspector`." },
  { section: 'inspector_service', name: 'callback_url', kind: 'string', default: null, ours: true, help: 'URL to which machines send their inventory for the introspection service. Default: http://my_ip:listen_port/v1/continue. mdns: machines find the URL by multicast DNS ([DEFAULT]enable_mdns).' },
  { section: 'DEFAULT', name: 'listen_address', kind: 'string', default: null, ours: true, help: 'Address that the introspection service listens on. Default: ::, and 127.0.0.1 without auth_strategy.' },
  { section: 'DEFAULT', name: 'listen_port', kind: 'integer', default: 5050, min: 0, max: 65535, ours: true, help: 'Port of the introspection service.' },
  { section: 'DEFAULT', name: 'timeout', kind: 'integer', default: 3600, max: 315576000, ours: true, help: 'Seconds after which an introspection without a report fails; 0: no limit.' },
  { section: 'DEFAULT', name: 'clean_up_period', kind: 'integer', default: 60, min: 0, ours: true, help: 'Seconds between timeout checks of introspections; 0: never.' },
  { section: 'DEFAULT', name: 'can_manage_boot', kind: 'boolean', default: true, ours: true, help: 'The introspection service may boot machines. Otherwise it accepts only requests with manage_boot=0.' },
  { section: 'processing', name: 'processing_hooks', kind: 'list', default: ['ramdisk_error', 'root_disk_selection', 'scheduler', 'validate_interfaces', 'capabilities', 'pci_devices'], ours: true, help: 'Hooks of the introspection service, by their names in ironic-inspector or in [inspector]hooks.' },
  { section: 'processing', name: 'store_data', kind: 'string', default: 'database', choices: ['none', 'database'], ours: true, help: 'Storage of the data that machines report to the introspection service (ironic-inspector: none).' },
  { section: 'processing', name: 'overwrite_existing', kind: 'boolean', default: false, ours: true, help: 'Replace existing values of nodes by the data of the introspection service (ironic-inspector: true). Otherwise only missing values are set.' },

  // [console]
  { section: 'console', name: 'socat_address', kind: 'string', default: '127.0.0.1', help: 'Address on which consoles listen. They have no password: choose an address that only operators reach. (Ironic: my_ip.)' },
  { section: 'console', name: 'port_range', kind: 'list', default: [], help: 'Ports for consoles of nodes that do not set one, as first:end (end excluded). Several ranges with commas.' },
  { section: 'console', name: 'terminal_timeout', kind: 'integer', default: 600, min: 0, help: 'Seconds without traffic after which a console client is disconnected; 0: never.' },
  { section: 'console', name: 'max_session_time', kind: 'integer', default: 86400, min: 0, ours: true, help: 'Seconds after which a console client is disconnected, also with traffic; 0: never.' },

  // [ipmi]
  { section: 'ipmi', name: 'command_retry_timeout', kind: 'integer', default: 60, min: 1, help: 'Seconds during which a failed IPMI command is retried.' },
  { section: 'ipmi', name: 'min_command_interval', kind: 'integer', default: 5, min: 0, help: 'Seconds between retries of a command while the BMC is busy.' },
  { section: 'ipmi', name: 'disable_boot_timeout', kind: 'boolean', default: true, help: 'Disable the 60 s timeout after which BMCs discard the boot device.' },
  { section: 'ipmi', name: 'additional_retryable_ipmi_errors', kind: 'list', default: [], help: 'Substrings of error messages after which an IPMI command is retried, in addition to those of a busy BMC.' },
  { section: 'ipmi', name: 'cipher_suite_versions', kind: 'list', default: [], help: 'Cipher suites for nodes that do not set one. The last one is tried first. Empty: 17, then 3.' },
  { section: 'ipmi', name: 'client', kind: 'string', default: 'native', choices: ['native', 'ipmitool'], ours: true, help: 'IPMI client. native: sessions of this program; ipmitool: one process for each command. Consoles always use native.' },
  { section: 'ipmi', name: 'max_sessions', kind: 'integer', default: 16384, min: 1, ours: true, help: 'Maximum number of open sessions with BMCs (native client). Beyond it, the least recently used session is closed.' },
  { section: 'ipmi', name: 'session_idle_timeout', kind: 'integer', default: 90, min: 1, ours: true, help: 'Seconds after which an idle session is closed (native client). If this is shorter than the interval of the power synchronization, each synchronization opens a session.' },
  { section: 'ipmi', name: 'store_cred_in_env', kind: 'boolean', default: false, help: 'Pass the password to ipmitool in the environment instead of a private file.' },
  { section: 'ipmi', name: 'use_ipmitool_retries', kind: 'boolean', default: false, help: 'Let ipmitool retry, instead of starting it again.' },
  { section: 'ipmi', name: 'kill_on_timeout', kind: 'boolean', default: true, help: 'Kill an ipmitool process that exceeds command_retry_timeout. Otherwise it keeps running.' },
  { section: 'ipmi', name: 'debug', kind: 'boolean', default: false, help: 'Log the standard error of ipmitool at level debug.' },
  // [discoverd]
  { section: 'discoverd', name: 'enabled', kind: 'boolean', default: false, ours: true, help: 'Enable the inspect interface discoverd, which uses an external introspection service.' },
  { section: 'discoverd', name: 'service_url', kind: 'string', default: null, ours: true, help: "URL of that service, which must implement ironic-inspector's API: http://127.0.0.1:5050/v1. Required if the interface is enabled: without it the conductor does not start." },
  { section: 'discoverd', name: 'status_check_period', kind: 'integer', default: 60, min: 1, ours: true, help: 'Seconds between polls of the service for the state of introspections.' },
  { section: 'discoverd', name: 'timeout', kind: 'number', default: 30, min: 0.1, max: 600, ours: true, help: 'Seconds to wait for a response of the service.' },
  { section: 'discoverd', name: 'auth_type', kind: 'string', default: 'none', choices: ['none', 'http_basic'], ours: true, help: 'Authentication to the service.' },
  { section: 'discoverd', name: 'username', kind: 'string', default: null, ours: true, help: 'User name for http_basic.' },
  { section: 'discoverd', name: 'password', kind: 'string', default: null, secret: true, ours: true, help: 'Password for http_basic.' },
  { section: 'discoverd', name: 'cafile', kind: 'string', default: null, ours: true, help: 'CA certificates for verifying the service, PEM. Default: those of the system.' },
  { section: 'discoverd', name: 'certfile', kind: 'string', default: null, ours: true, help: 'Client certificate for the service, PEM.' },
  { section: 'discoverd', name: 'keyfile', kind: 'string', default: null, ours: true, help: 'Private key of that certificate, PEM.' },
  { section: 'discoverd', name: 'insecure', kind: 'boolean', default: false, ours: true, help: 'Do not verify the certificate of the service.' },
  // [oidc]
  { section: 'oidc', name: 'issuer', kind: 'string', default: null, ours: true, help: 'URL of the OpenID provider, as in the claim iss of its tokens. Its JWTs are then accepted as bearer tokens, also beside another strategy.' },
  { section: 'oidc', name: 'audience', kind: 'list', default: [], ours: true, help: 'Values of the claim aud that are accepted. Needed with issuer.' },
  { section: 'oidc', name: 'roles_claim', kind: 'string', default: 'roles', ours: true, help: 'Claim with the roles or groups of the caller; a.b means the member b of the claim a.' },
  { section: 'oidc', name: 'system_roles', kind: 'dict', default: {}, ours: true, help: 'Values of that claim, and the role that each gives in the whole system, as value:role.' },
  { section: 'oidc', name: 'project_claim', kind: 'string', default: null, ours: true, help: 'Claim with the id of the project of the caller. Default: none, and callers have no project.' },
  { section: 'oidc', name: 'project_roles', kind: 'dict', default: {}, ours: true, help: 'Values of the claim of roles, and the role that each gives in that project, as value:role. They do not count for callers with a role in the system.' },
  { section: 'oidc', name: 'user_claim', kind: 'string', default: 'sub', ours: true, help: 'Claim with the id of the user.' },
  { section: 'oidc', name: 'user_name_claim', kind: 'string', default: 'preferred_username', ours: true, help: 'Claim with the name of the user. Default for tokens without it: the id.' },
  { section: 'oidc', name: 'algorithms', kind: 'list', default: ['RS256', 'PS256', 'ES256', 'EdDSA'], ours: true, help: 'Signature algorithms that are accepted: RS, PS or ES with 256, 384 or 512, EdDSA.' },
  { section: 'oidc', name: 'clock_tolerance', kind: 'integer', default: 30, min: 0, max: 300, ours: true, help: 'Seconds by which the clock of the provider may differ.' },
  { section: 'oidc', name: 'cafile', kind: 'string', default: null, ours: true, help: 'CA certificates for verifying the provider, PEM. Default: those of the system.' },
  { section: 'oidc', name: 'timeout', kind: 'number', default: 10, min: 0.1, max: 60, ours: true, help: 'Seconds to wait for the keys of the provider.' },
  // [redfish]
  { section: 'redfish', name: 'use_swift', kind: 'boolean', default: false, help: 'Images for virtual media in Swift. Not supported: the HTTP boot service serves them.' },
  { section: 'redfish', name: 'kernel_append_params', kind: 'string', default: 'nofb vga=normal', help: 'Kernel arguments of ramdisks that boot from virtual media, for nodes that do not set kernel_append_params.' },
  { section: 'redfish', name: 'enable_vmedia_insert_polling', kind: 'boolean', default: false, help: 'Wait until the BMC reports a medium as inserted.' },
  { section: 'redfish', name: 'vmedia_insert_timeout', kind: 'integer', default: 60, min: 1, help: 'Maximum seconds of this wait.' },
  { section: 'redfish', name: 'vmedia_insert_poll_interval', kind: 'integer', default: 2, min: 1, help: 'Seconds between polls during this wait.' },
  { section: 'redfish', name: 'connection_attempts', kind: 'integer', default: 5, min: 1, help: 'Number of attempts to connect to a Redfish service.' },
  { section: 'redfish', name: 'connection_retry_interval', kind: 'integer', default: 4, min: 0, help: 'Seconds between these attempts.' },
  { section: 'redfish', name: 'connect_timeout', kind: 'integer', default: 30, min: 1, help: 'Seconds to wait for a connection to a Redfish service.' },
  { section: 'redfish', name: 'read_timeout', kind: 'integer', default: 60, min: 1, help: 'Seconds to wait for a response of a Redfish service.' },
  { section: 'redfish', name: 'connection_cache_size', kind: 'integer', default: 1000, min: 0, help: 'Maximum number of open Redfish sessions. Beyond it, the least recently used session is closed. 0: each session is closed after use.' },
  { section: 'redfish', name: 'auth_type', kind: 'string', default: 'auto', choices: ['basic', 'session', 'auto'], help: 'Authentication to Redfish services of nodes that do not set it. auto: sessions, or basic authentication if the service has no sessions.' },
  { section: 'redfish', name: 'verify_ca', kind: 'string', default: null, help: 'File or folder of CA certificates for Redfish services of nodes that do not set one; empty: those of the system.' },
  { section: 'redfish', name: 'tls_minimum_version', kind: 'string', default: null, choices: ['1.1', '1.2', '1.3'], help: 'Lowest TLS version for Redfish services of nodes that do not set one.' },
  { section: 'redfish', name: 'tls_ciphers', kind: 'string', default: null, help: "Ciphers for Redfish services of nodes that do not set them, in OpenSSL's format." },
  { section: 'redfish', name: 'power_on_conflict_retry_attempts', kind: 'integer', default: 6, min: 0, help: 'Number of retries of a power on that the service refuses with 409. Some services do so shortly after a power off.' },
  { section: 'redfish', name: 'power_on_conflict_retry_interval', kind: 'integer', default: 10, min: 1, help: 'Seconds between these retries.' },
  { section: 'redfish', name: 'post_boot_retry_attempts', kind: 'integer', default: 6, min: 1, help: "Number of attempts to set the boot device during the machine's power-on self-test." },
  { section: 'redfish', name: 'post_boot_retry_delay', kind: 'integer', default: 5, min: 1, help: 'Minimum seconds between these attempts. The delay grows up to six times this value.' },
  { section: 'redfish', name: 'boot_mode_config_timeout', kind: 'integer', default: 900, min: 0, help: 'Seconds to wait for a changed boot mode or secure boot state after a reboot; 0: do not wait.' },
  { section: 'redfish', name: 'enable_verify_bmc_clock', kind: 'boolean', default: false, help: "Compare the BMC's clock with the conductor's when a node becomes manageable, and correct it." },
  { section: 'redfish', name: 'inspection_hooks', kind: 'list', default: ['validate-interfaces', 'ports', 'architecture'], help: 'Inspection hooks of the redfish inspect interface, in order.' },
  { section: 'redfish', name: 'firmware_source', kind: 'string', default: 'http', choices: ['http', 'local', 'swift'], help: 'Source of firmware files for BMCs. http: the original http(s) URL, local files from this server; local: everything from this server. swift is not supported.' },
  { section: 'redfish', name: 'firmware_update_status_interval', kind: 'integer', default: 60, min: 0, help: 'Seconds between polls of a firmware update, or of a reboot for BIOS settings.' },
  { section: 'redfish', name: 'firmware_update_fail_interval', kind: 'integer', default: 60, min: 0, help: 'Seconds between checks for firmware updates of failed nodes. The remaining updates are discarded. 0: never.' },
  { section: 'redfish', name: 'firmware_update_wait_unresponsive_bmc', kind: 'integer', default: 0, min: 0, help: 'Seconds to wait before contacting a BMC that updates itself; 0: firmware_update_reboot_delay.' },
  { section: 'redfish', name: 'firmware_update_required_successes', kind: 'integer', default: 3, min: 0, help: 'Consecutive successful responses after which a BMC is available again after a firmware update; 0: no check.' },
  { section: 'redfish', name: 'firmware_update_validation_interval', kind: 'integer', default: 30, min: 0, help: 'Seconds between these checks (at least 1).' },
  { section: 'redfish', name: 'firmware_update_resource_validation_timeout', kind: 'integer', default: 480, min: 0, help: 'Seconds within which these checks must succeed; 0: no check.' },
  { section: 'redfish', name: 'firmware_update_reboot_delay', kind: 'integer', default: 300, min: 0, help: 'Seconds to wait for the new version of a BMC, and for the boot of a machine that is booted for an update.' },
  { section: 'redfish', name: 'firmware_update_bmc_version_check_interval', kind: 'integer', default: 30, min: 0, help: "Seconds between checks of a BMC's version after its update." },
  { section: 'redfish', name: 'firmware_update_nic_starting_wait', kind: 'integer', default: 30, min: 0, help: 'Seconds in the task state Starting after which the machine is booted, for updates of network adapters.' },
  { section: 'redfish', name: 'firmware_update_overall_timeout', kind: 'integer', default: 7200, min: 0, help: 'Maximum seconds of all updates of a step; 0: no limit.' },
  { section: 'redfish', name: 'raid_config_status_interval', kind: 'integer', default: 60, min: 0, help: 'Seconds between polls of tasks that create or delete RAID volumes.' },
  // [fake]
  { section: 'fake', name: 'power_delay', kind: 'string', default: '0', help: 'Seconds (N or N,M; fractions such as 0.05 allowed) that the fake power interface takes.' },
  { section: 'fake', name: 'boot_delay', kind: 'string', default: '0', help: 'Seconds (N or N,M) that the fake boot interface takes.' },
  { section: 'fake', name: 'deploy_delay', kind: 'string', default: '0', help: 'Seconds (N or N,M) that the fake deploy interface takes.' },
  { section: 'fake', name: 'management_delay', kind: 'string', default: '0', help: 'Seconds (N or N,M) that the fake management interface takes.' },
  { section: 'fake', name: 'inspect_delay', kind: 'string', default: '0', help: 'Seconds (N or N,M) that the fake inspect interface takes.' },
  { section: 'fake', name: 'vendor_delay', kind: 'string', default: '0', help: 'Seconds (N or N,M) that the fake vendor interface takes.' },
  { section: 'fake', name: 'bios_delay', kind: 'string', default: '0', help: 'Seconds (N or N,M) that the fake bios interface takes.' },
  { section: 'fake', name: 'raid_delay', kind: 'string', default: '0', help: 'Seconds (N or N,M) that the fake raid interface takes.' },
  { section: 'fake', name: 'storage_delay', kind: 'string', default: '0', help: 'Accepted for compatibility; no effect, because no volumes are attached.' },
  { section: 'fake', name: 'rescue_delay', kind: 'string', default: '0', help: 'Seconds (N or N,M) that the fake rescue interface takes.' },
  { section: 'fake', name: 'firmware_delay', kind: 'string', default: '0', help: 'Seconds (N or N,M) that the fake firmware interface takes.' },
  { section: 'fake', name: 'step_log', kind: 'string', default: null, ours: true, help: 'File to which fake steps and power actions write a line before and after they run. The fake vendor interface then has two additional steps. For tests that kill conductors.' },

  // [events]
  { section: 'events', name: 'poll_interval', kind: 'number', default: 0.5, min: 0.05, max: 60, ours: true, help: 'Seconds between queries for new events while clients listen to /v1/events/stream.' },
  { section: 'events', name: 'keep_alive_interval', kind: 'number', default: 15, min: 1, max: 3600, ours: true, help: 'Seconds without an event after which the stream sends a keep-alive comment.' },
  { section: 'events', name: 'max_listeners', kind: 'integer', default: 200, min: 0, ours: true, help: 'Maximum number of listeners of one API process. Further ones get 503.' },
  { section: 'events', name: 'max_listeners_per_source', kind: 'integer', default: null, min: 0, ours: true, help: 'Maximum number of these from one address (IPv6: one /64). Default: half of max_listeners.' },
  { section: 'events', name: 'max_events', kind: 'integer', default: 100000, min: 0, ours: true, help: 'Maximum number of stored events, for listeners that reconnect.' },
  { section: 'events', name: 'max_age', kind: 'integer', default: 604800, min: 60, ours: true, help: 'Seconds after which events are removed.' },
  { section: 'events', name: 'cleanup_interval', kind: 'integer', default: 300, min: 0, ours: true, help: 'Seconds between removals of old events; 0: never.' },

  // [recorder]
  { section: 'recorder', name: 'enabled', kind: 'boolean', default: false, ours: true, help: 'Accept pushes of recorders on running hosts (docs/recorder.md). Instances whose config drive is built from parts get a token for their recorder.' },
  { section: 'recorder', name: 'interval', kind: 'integer', default: 300, min: 10, ours: true, help: 'Seconds between two pushes. The config drive contains it.' },
  { section: 'recorder', name: 'stale_after', kind: 'integer', default: 900, min: 1, ours: true, help: 'Seconds without a push after which a record is stale.' },
  { section: 'recorder', name: 'check_interval', kind: 'integer', default: 30, min: 0, ours: true, help: 'Seconds between checks for stale records; 0: never.' },
  { section: 'recorder', name: 'max_record_size', kind: 'integer', default: 2048, min: 1, ours: true, help: 'Maximum size of an uncompressed push, in KiB.' },
  { section: 'recorder', name: 'max_pushes_per_minute', kind: 'integer', default: 12, min: 1, ours: true, help: 'Maximum number of pushes of one node per minute and API process. Further ones get 429.' },
  { section: 'recorder', name: 'history_max_entries', kind: 'integer', default: 300, min: 0, ours: true, help: 'Maximum number of stored hardware changes of a node.' },
  { section: 'recorder', name: 'history_max_age', kind: 'integer', default: 365, min: 1, ours: true, help: 'Days after which hardware changes are removed.' },


  // Notifications.
  { section: 'DEFAULT', name: 'notification_level', kind: 'string', default: null, choices: ['debug', 'info', 'warning', 'error', 'critical'], help: 'Lowest level of sent notifications. Not set: no notifications are sent.' },
  { section: 'DEFAULT', name: 'versioned_notifications_topics', kind: 'list', default: ['ironic_versioned_notifications'], help: 'Topics of a message queue. Accepted for compatibility; no effect.' },
  { section: 'oslo_messaging_notifications', name: 'driver', kind: 'list', default: [], help: 'Notification drivers in addition to [notifications]webhook_url: `log`, `noop`. Message queues are not supported: `messaging` and `messagingv2` cause a warning.' },
  { section: 'notifications', name: 'webhook_url', kind: 'string', default: null, ours: true, help: 'http(s) URL to which notifications are posted, in order.' },
  { section: 'notifications', name: 'webhook_secret', kind: 'string', default: null, secret: true, ours: true, help: 'Key for signing posted notifications (docs/events.md).' },
  { section: 'notifications', name: 'webhook_headers', kind: 'dict', default: {}, secret: true, ours: true, help: 'Headers of posted notifications, as name:value pairs separated by commas.' },
  { section: 'notifications', name: 'webhook_timeout', kind: 'number', default: 10, min: 0.1, max: 600, ours: true, help: 'Seconds to wait for the response to a post.' },
  { section: 'notifications', name: 'webhook_retries', kind: 'integer', default: 5, min: 0, max: 100, ours: true, help: 'Number of retries of a failed post, after 1, 2, 4 … seconds (at most 60).' },
  { section: 'notifications', name: 'webhook_queue', kind: 'integer', default: 1000, min: 1, max: 100000, ours: true, help: 'Maximum number of queued notifications. Newer ones are dropped.' },

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
 * `section.name` → value from files and environment. Null only if the default is null.
 * An interface, because the compiler resolves its members only once. A spread of the mapped type takes seconds.
 */
export interface LoadedOptions extends OptionValues {}

/** Options whose default depends on the host, other options or the state directory. `settings.ts` sets them. */
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
/** The options of the running program. Functions that read few of them take a `Pick`. */
export interface Options extends Omit<LoadedOptions, Resolved>, Readonly<Record<Resolved, string>> {
  /** The cache folder for files from other servers. */
  readonly 'boot.cache_root': string;
}
