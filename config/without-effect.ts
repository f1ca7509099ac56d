/** Options of Ironic that have no effect here, and why: for `bloomery check`. Those that are security options are in `guards.ts`. */
interface WithoutEffectRow {
  readonly section: string;
  /** Absent: every option of the section. */
  readonly names?: readonly string[];
  readonly because: string;
}

const CACHES = 'caches are in the state directory';
const CONVERSION = 'the server converts no images';
const SCRIPTS = 'the server generates boot scripts without templates';
const SIGNED = 'calls between processes are signed with a key from the database';

// One row per line, so that the columns are easy to read.
// prettier-ignore
const WITHOUT_EFFECT: readonly WithoutEffectRow[] = [
  { section: 'DEFAULT', names: ['use_stderr'], because: 'the log goes to standard error, unless a file is named' },
  { section: 'DEFAULT', names: ['hash_ring_algorithm', 'hash_partition_exponent', 'hash_ring_reset_interval'], because: 'the ring has one algorithm' },
  { section: 'DEFAULT', names: ['tempdir', 'state_path'], because: CACHES },
  { section: 'DEFAULT', names: ['pybasedir', 'bindir'], because: 'this program is not written in Python' },
  { section: 'DEFAULT', names: ['force_raw_images', 'raw_image_growth_factor', 'parallel_image_downloads', 'image_download_concurrency'], because: CONVERSION },
  { section: 'DEFAULT', names: ['isolinux_config_template', 'grub_config_template'], because: SCRIPTS },
  { section: 'DEFAULT', names: ['minimum_memory_warning_only', 'minimum_required_memory', 'minimum_memory_wait_time', 'minimum_memory_wait_retries'], because: CONVERSION },
  { section: 'DEFAULT', names: ['pin_release_version', 'use_rpc_for_database'], because: 'processes can be upgraded one after the other without it' },
  { section: 'DEFAULT', names: ['allow_image_access_via_auth_token'], because: 'the token of a caller is never sent to Glance' },
  { section: 'DEFAULT', names: ['autodetect_deploy_interfaces'], because: 'there is no deploy interface autodetect' },
  { section: 'agent', names: ['certificates_path'], because: 'no certificates of agents are in files' },
  { section: 'anaconda', because: 'there is no deploy interface anaconda' },
  { section: 'ansible', because: 'there is no deploy interface ansible' },
  { section: 'api', names: ['api_workers'], because: 'one process answers; you start more' },
  { section: 'conductor', names: ['cache_clean_up_interval', 'clear_image_cache_on_deploy_failure'], because: 'the image cache removes the least recently used images' },
  { section: 'conductor', names: ['disable_kernel_parameter_parsing'], because: 'each boot loader needs well-formed kernel arguments' },
  { section: 'conductor', names: ['disable_deep_image_inspection', 'disable_file_checksum', 'disable_zstandard_decompression'], because: 'the agent checks and writes images' },
  { section: 'database', names: ['sqlite_synchronous', 'sqlite_retries', 'sqlite_max_wait_for_retry', 'mysql_engine'], because: 'there is neither SQLite nor MariaDB' },
  { section: 'deploy', names: ['default_boot_option'], because: 'instances boot from their disk' },
  { section: 'deploy', names: ['iso_master_path', 'iso_cache_size', 'iso_cache_ttl', 'http_image_subdir'], because: CACHES },
  { section: 'disk_utils', because: CONVERSION },
  { section: 'drac', because: 'there is no hardware type idrac: use redfish' },
  { section: 'glance', names: ['allowed_direct_url_schemes'], because: "images are read by Glance's API" },
  { section: 'ilo', because: 'there is no hardware type ilo: use redfish' },
  { section: 'irmc', because: 'there is no hardware type irmc: use redfish' },
  { section: 'ironic_networking', names: ['rpc_transport', 'driver_config_dir'], because: 'the conductor itself drives the switches' },
  { section: 'ironic_networking_json_rpc', because: SIGNED },
  { section: 'json_rpc', names: ['auth_strategy', 'auth_type', 'auth_url', 'http_basic_auth_user_file', 'username', 'password', 'allowed_roles', 'project_name', 'project_domain_name', 'user_domain_name'], because: SIGNED },
  { section: 'metrics', names: ['backend', 'prepend_host', 'prepend_host_reverse', 'global_prefix'], because: '/metrics has them' },
  { section: 'metrics_statsd', because: 'the metrics of the server are at /metrics' },
  { section: 'oci', because: 'images at oci:// URLs are not supported' },
  { section: 'oslo_messaging_notifications', names: ['location', 'transport_url'], because: '/metrics has the sensors' },
  { section: 'pxe', names: ['images_path', 'instance_master_path', 'tftp_master_path', 'image_cache_ttl'], because: CACHES },
  { section: 'pxe', names: ['boot_retry_timeout', 'boot_retry_check_interval'], because: 'boots are not repeated' },
  { section: 'pxe', names: ['enable_netboot_fallback', 'ipxe_fallback_script'], because: 'unknown machines get the script of discovery' },
  { section: 'pxe', names: ['pxe_config_template', 'ipxe_config_template', 'uefi_pxe_config_template', 'pxe_config_template_by_arch', 'ipxe_boot_script', 'initial_grub_template', 'pxe_config_subdir', 'enable_insecure_template_override'], because: SCRIPTS },
  { section: 'pxe', names: ['default_ephemeral_format'], because: 'only whole-disk images are written' },
  { section: 'pxe', names: ['ipxe_use_swift'], because: 'machines get the kernels and ramdisks of Glance from the HTTP boot service' },
  { section: 'pxe', names: ['dir_permission', 'file_permission'], because: 'the server generates boot files from the database, and does not write them to disk' },
  { section: 'pxe', names: ['ip_version'], because: 'IPv4 and IPv6 work at the same time' },
  { section: 'vnc', because: 'there is no graphical console' },
];

/** Why an option of Ironic has no effect here. Undefined: the table does not have it. @param key `section.name` */
export function withoutEffect(key: string): string | undefined {
  const at = key.indexOf('.');
  const [section, name] = [key.slice(0, at), key.slice(at + 1)];
  return WITHOUT_EFFECT.find((row) => row.section === section && (row.names?.includes(name) ?? true))?.because;
}
