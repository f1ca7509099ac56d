/**
 * The environment variables of metal3's Ironic image, and the options of ironic.conf that each one sets here. docs/metal3.md explains them.
 */
import { IMAGES, type ContainerContext } from './container-context';
import { ramdisksByArch } from './ramdisks';

/** `section.option` → value as in ironic.conf. */
export type Settings = Readonly<Record<string, string>>;
/** The programs of the image that read a variable. */
type Program = 'ironic' | 'httpd' | 'dnsmasq' | 'exporter';

export interface Variable {
  readonly name: string;
  readonly readers: readonly Program[];
  /** Older names. */
  readonly formerly?: readonly string[];
  /** The options, from the variable's value or the default; `''` for a variable that is not set. */
  readonly options?: (value: string, context: ContainerContext) => Settings;
  readonly preset?: string | ((context: ContainerContext) => string);
  /** Why the value cannot be used; undefined: it can be. */
  readonly refusal?: (value: string, context: ContainerContext) => string | undefined;
}

const ironic = ['ironic'] as const;
const httpd = ['httpd'] as const;
const dnsmasq = ['dnsmasq'] as const;
const both = ['ironic', 'httpd'] as const;
const all = ['ironic', 'httpd', 'dnsmasq'] as const;

const TRUE = ['true', '1', 'yes', 'on'];
export const isTrue = (value: string): boolean => TRUE.includes(value.trim().toLowerCase());
const opposite = (value: string): string => String(!isTrue(value));
/** The options where the value is not empty. */
const named = (value: string, options: Settings): Settings => (value === '' ? {} : options);
const byArch = (context: ContainerContext, name: 'kernel' | 'ramdisk', file: 'kernel' | 'initramfs'): Settings => {
  const value = ramdisksByArch(context, file);
  return named(value, { [`conductor.deploy_${name}_by_arch`]: value });
};

/** GRUB for CDs: the boot loader of media for UEFI. */
const LOADER = '/usr/lib/grub/x86_64-efi/monolithic/gcdx64.efi';
const NO_MARIADB =
  'Bloomery has no MariaDB: remove `database` from the Ironic resource, so that Bloomery uses its embedded PostgreSQL, ' +
  'or name a PostgreSQL server in OS_DATABASE__CONNECTION (extraConfig)';
const NO_NETWORKING =
  'the networking service is not a separate process here: set [ironic_networking] in the server itself by OS_IRONIC_NETWORKING__… variables';
const OCI_SECRETS = '/auth/oci.json';
const registrySecrets = (file: string): Settings => named(file, { 'oci.authentication_config': file });
const NO_EFFECT = 'it has no effect here: remove the variable';

export const kernelArguments = ({ get }: ContainerContext): string =>
  [
    'nofb nomodeset vga=normal',
    get('IRONIC_IPA_INSECURE', '1') === '' ? '' : `ipa-insecure=${get('IRONIC_IPA_INSECURE', '1')}`,
    get('IRONIC_RAMDISK_SSH_KEY') === '' ? '' : `sshkey="${get('IRONIC_RAMDISK_SSH_KEY')}"`,
    get('IRONIC_KERNEL_PARAMS'),
    get('IPA_FORWARD_CONSOLE', 'yes') === '' ? '' : `systemd.journald.forward_to_console=${get('IPA_FORWARD_CONSOLE', 'yes')}`,
  ]
    .filter((part) => part !== '')
    .join(' ');
export const inspectionArguments = ({ get }: ContainerContext): string =>
  [
    `ipa-inspection-collectors=${get('IRONIC_IPA_COLLECTORS', 'default,logs')}`,
    `ipa-enable-vlan-interfaces=${get('IRONIC_ENABLE_VLAN_INTERFACES', get('IRONIC_INSPECTOR_VLAN_INTERFACES', 'all'))}`,
    `ipa-inspection-dhcp-all-interfaces=${get('IRONIC_IPA_INSPECTION_DHCP_ALL_INTERFACES', '1')}`,
    `ipa-collect-lldp=${get('IRONIC_IPA_COLLECT_LLDP', '1')}`,
  ].join(' ');

const httpUrl = ({ get, host }: ContainerContext): string =>
  `http://${host}${get('HTTP_PORT', '80') === '80' ? '' : `:${get('HTTP_PORT', '80')}`}`;
const externalHttp = (ip: string, context: ContainerContext): string =>
  context.mediaTls ? `https://${ip}:${context.get('VMEDIA_TLS_PORT', '8083')}` : `http://${ip}:${context.get('HTTP_PORT', '80')}`;
const bracketed = (address: string): string => (address.includes(':') ? `[${address}]` : address);

/** Where the API listens: behind the TLS of httpd, on a Unix socket or on loopback; otherwise on the network. */
const apiBind = (value: string, context: ContainerContext): Settings => {
  if (context.proxy)
    return context.get('IRONIC_PRIVATE_PORT', 'unix') === 'unix'
      ? { 'api.unix_socket': '/shared/ironic.sock', 'api.unix_socket_mode': '666' }
      : { 'api.host_ip': '127.0.0.1', 'api.port': context.get('IRONIC_PRIVATE_PORT') };
  return { 'api.host_ip': isTrue(value) ? context.everywhere : context.ip };
};
const oneTls12 = (value: string): Settings => named(value, { 'api.server_tls_ciphers': value });

// One row a line, however long: a table is read by its columns.
// prettier-ignore
export const VARIABLES: readonly Variable[] = [
  // The address of the provisioning network.
  ...['IRONIC_IP', 'PROVISIONING_IP', 'PROVISIONING_INTERFACE', 'PROVISIONING_MACS', 'IRONIC_IP_WAIT_TIMEOUT', 'IRONIC_IP_WAIT_INTERVAL'].map((name) => ({ name, readers: all })),
  { name: 'IRONIC_CONDUCTOR_HOST', readers: ironic, preset: ({ host }) => host, options: (value, { ip }) => ({ 'DEFAULT.host': value, [ip.includes(':') ? 'DEFAULT.my_ipv6' : 'DEFAULT.my_ip']: ip }) },
  // URLs and ports.
  { name: 'HTTP_PORT', readers: all, preset: '80' },
  { name: 'IRONIC_HTTP_URL', readers: all, preset: httpUrl, options: (value) => ({ 'deploy.http_url': value }) },
  { name: 'IRONIC_ACCESS_PORT', readers: all, preset: '6385' },
  { name: 'IRONIC_LISTEN_PORT', readers: all, preset: ({ get }) => get('IRONIC_ACCESS_PORT', '6385'), options: (value) => ({ 'api.port': value }) },
  { name: 'IRONIC_BASE_URL', readers: both, preset: ({ baseUrl }) => baseUrl, options: (value, { proxy }) => ({ 'service_catalog.endpoint_override': value, ...(proxy ? { 'api.public_endpoint': value } : {}) }) },
  { name: 'LISTEN_ALL_INTERFACES', readers: both, preset: 'true', options: (value, context) => ({ 'json_rpc.host_ip': isTrue(value) ? context.everywhere : context.ip, ...apiBind(value, context) }) },
  { name: 'IRONIC_TFTP_URL', readers: dnsmasq, refusal: (value, { host }) => value === '' || value === `tftp://${host}` ? undefined : 'the boot files come from this container: remove the variable' },
  { name: 'IRONIC_IPA_BASE_URL', readers: httpd },
  { name: 'IRONIC_EXTERNAL_IP', readers: ironic, options: (value, context) => named(value, { 'deploy.external_callback_url': `${context.scheme}://${bracketed(value)}:${context.get('IRONIC_ACCESS_PORT', '6385')}`, 'deploy.external_http_url': externalHttp(bracketed(value), context) }) },
  { name: 'IRONIC_EXTERNAL_CALLBACK_URL', readers: ironic, options: (value) => named(value, { 'deploy.external_callback_url': value }) },
  { name: 'IRONIC_EXTERNAL_HTTP_URL', readers: ironic, options: (value, context) => value !== '' ? { 'deploy.external_http_url': value } : context.mediaTls && context.get('IRONIC_EXTERNAL_IP') === '' ? { 'deploy.external_http_url': externalHttp(context.host, context) } : {} },
  { name: 'CUSTOM_CONFIG_DIR', readers: all },
  { name: 'CUSTOM_DATA_DIR', readers: all },
  // Authentication and calls between processes.
  { name: 'IRONIC_REVERSE_PROXY_SETUP', readers: both },
  { name: 'IRONIC_PRIVATE_PORT', readers: both },
  { name: 'IRONIC_HTPASSWD', readers: both, formerly: ['HTTP_BASIC_HTPASSWD'], options: (_, context) => context.proxy || !context.hasUsers ? { 'DEFAULT.auth_strategy': 'noauth' } : { 'DEFAULT.auth_strategy': 'http_basic', 'DEFAULT.http_basic_auth_user_file': `${context.conf}/ironic/htpasswd` } },
  { name: 'IRONIC_RPC_HTPASSWD', readers: ironic },
  { name: 'IRONIC_DEPLOYMENT', readers: ironic, refusal: (value) => value === '' || value === 'Conductor' ? undefined : 'it must be Conductor or empty' },
  { name: 'IRONIC_JSON_RPC_PORT', readers: ironic, preset: '6189', options: (value) => ({ 'json_rpc.port': value }) },
  { name: 'IRONIC_EXPOSE_JSON_RPC', readers: ironic, preset: ({ get }) => String(get('IRONIC_DEPLOYMENT') === 'Conductor'), options: (value, { tls, certificate }) => ({ 'DEFAULT.rpc_transport': isTrue(value) ? 'json-rpc' : 'none', ...(isTrue(value) && tls ? { 'json_rpc.use_ssl': 'true', 'json_rpc.cert_file': certificate.cert, 'json_rpc.key_file': certificate.key, 'json_rpc.cafile': certificate.authority } : {}) }),
    refusal: (value, { get }) => isTrue(value) && get('OS_DATABASE__CONNECTION') === '' ? NO_MARIADB : undefined },
  { name: 'IRONIC_USE_MARIADB', readers: ironic, refusal: (value, { get }) => isTrue(value) && !/^postgres(?:ql)?:/.test(get('OS_DATABASE__CONNECTION')) ? NO_MARIADB : undefined },
  ...['MARIADB_HOST', 'MARIADB_DATABASE', 'MARIADB_USER', 'MARIADB_PASSWORD', 'IRONIC_SKIP_DBSYNC', 'IRONIC_DBSYNC_TIMEOUT', 'IRONIC_DBSYNC_INTERVAL', 'NUMWORKERS'].map((name) => ({ name, readers: ironic })),
  { name: 'IRONIC_OCI_AUTH_CONFIG', readers: ironic, options: (value, context) => registrySecrets(value === '' && context.exists(OCI_SECRETS) ? OCI_SECRETS : value) },
  // TLS.
  { name: 'IRONIC_CACERT_FILE', readers: both },
  { name: 'WEBSERVER_CACERT_FILE', readers: both, options: (value, context) => ({ ...(value === '' ? isTrue(context.get('IRONIC_INSECURE')) ? { 'DEFAULT.webserver_verify_ca': 'False' } : {} : { 'DEFAULT.webserver_verify_ca': value }), ...(context.ramdiskAuthorities.length > 0 ? { 'agent.api_ca_file': `${context.conf}/ipa-tls.pem` } : {}), ...(context.exists('/certs/ca/bmc') ? { 'redfish.verify_ca': '/certs/ca/bmc' } : {}) }) },
  { name: 'IRONIC_INSECURE', readers: ironic, options: (value) => isTrue(value) ? { 'json_rpc.insecure': 'true' } : {} },
  { name: 'IRONIC_SSL_PROTOCOL', readers: both, options: (value, { tls, proxy, certificate }) => tls && !proxy ? { 'api.enable_ssl_api': 'true', 'api.cert_file': certificate.cert, 'api.key_file': certificate.key, 'api.server_tls_minimum_version': leastVersion(value) ?? '1.2' } : {}, refusal: (value) => leastVersion(value) ? undefined : 'it must allow TLSv1.2 or TLSv1.3' },
  { name: 'IRONIC_VMEDIA_SSL_PROTOCOL', readers: httpd, refusal: (value) => leastVersion(value) ? undefined : 'it must allow TLSv1.2 or TLSv1.3' },
  { name: 'IRONIC_TLS_12_CIPHERS', readers: both, options: (value, { tls, proxy }) => tls && !proxy ? oneTls12(value) : {} },
  { name: 'IRONIC_VMEDIA_TLS_12_CIPHERS', readers: httpd },
  ...['IRONIC_TLS_13_CIPHERS', 'IRONIC_VMEDIA_TLS_13_CIPHERS', 'IRONIC_TLS_CURVES', 'IRONIC_VMEDIA_CURVES', 'IPXE_SSL_PROTOCOL', 'IPXE_TLS_PORT'].map((name) => ({ name, readers: both, refusal: (value: string) => value === '' ? undefined : NO_EFFECT })),
  ...['IRONIC_TLS_ENFORCE_SERVER_CIPHER_ORDER', 'IRONIC_VMEDIA_TLS_ENFORCE_SERVER_CIPHER_ORDER', 'RESTART_CONTAINER_CERTIFICATE_UPDATED'].map((name) => ({ name, readers: both })),
  { name: 'VMEDIA_TLS_PORT', readers: both, preset: '8083' },
  // Ramdisks.
  { name: 'DEPLOY_KERNEL_URL', readers: both, preset: (context) => context.hasRamdisk ? `file://${IMAGES}/ironic-python-agent.kernel` : '', options: (value) => named(value, { 'conductor.deploy_kernel': value }) },
  { name: 'DEPLOY_RAMDISK_URL', readers: both, preset: (context) => context.hasRamdisk ? `file://${IMAGES}/ironic-python-agent.initramfs` : '', options: (value) => named(value, { 'conductor.deploy_ramdisk': value }) },
  { name: 'DEPLOY_KERNEL_BY_ARCH', readers: both, options: (_, context) => byArch(context, 'kernel', 'kernel') },
  { name: 'DEPLOY_RAMDISK_BY_ARCH', readers: both, options: (_, context) => byArch(context, 'ramdisk', 'initramfs') },
  { name: 'BOOTLOADER', readers: ironic, preset: ({ exists }) => exists(LOADER) ? `file://${LOADER}` : '', options: (value) => named(value, { 'conductor.bootloader': value }) },
  { name: 'IRONIC_KERNEL_PARAMS', readers: both, options: (_, context) => ({ 'pxe.kernel_append_params': kernelArguments(context), 'redfish.kernel_append_params': kernelArguments(context) }) },
  ...['IRONIC_RAMDISK_SSH_KEY', 'IRONIC_IPA_INSECURE', 'IPA_FORWARD_CONSOLE'].map((name) => ({ name, readers: both })),
  { name: 'IRONIC_IPA_COLLECTORS', readers: both, options: (_, context) => ({ 'inspector.extra_kernel_params': inspectionArguments(context) }) },
  { name: 'IRONIC_ENABLE_VLAN_INTERFACES', readers: both, formerly: ['IRONIC_INSPECTOR_VLAN_INTERFACES'] },
  { name: 'IRONIC_IPA_COLLECT_LLDP', readers: both, preset: '1', options: (value) => ({ 'inspector.hooks': `$default_hooks${value === '1' ? ',parse-lldp' : ''}` }) },
  ...['IRONIC_IPA_DEBUG', 'IRONIC_IPA_INSPECTION_DHCP_ALL_INTERFACES', 'INSPECTOR_EXTRA_ARGS'].map((name) => ({ name, readers: httpd })),
  { name: 'IRONIC_FAST_TRACK', readers: both, preset: 'true', options: (value) => ({ 'deploy.fast_track': String(isTrue(value)), 'inspector.power_off': opposite(value) }) },
  { name: 'IRONIC_FORCE_DHCP', readers: ironic, preset: 'false', options: (value) => ({ 'inspector.force_dhcp': String(isTrue(value)) }) },
  { name: 'IRONIC_AUTOMATED_CLEAN', readers: ironic, preset: 'true', options: (value) => ({ 'conductor.automated_clean': String(isTrue(value)) }) },
  { name: 'IRONIC_ENABLE_DISCOVERY', readers: ironic, formerly: ['IRONIC_INSPECTOR_ENABLE_DISCOVERY'], preset: 'false', options: (value) => isTrue(value) ? { 'auto_discovery.enabled': 'true', 'auto_discovery.driver': 'ipmi' } : {} },
  { name: 'IRONIC_BOOT_ISO_SOURCE', readers: ironic, options: (value) => named(value, { 'deploy.ramdisk_image_download_source': value }) },
  { name: 'DISABLE_DEEP_IMAGE_INSPECTION', readers: ironic, options: (value) => isTrue(value) ? { 'conductor.disable_deep_image_inspection': 'true' } : {} },
  { name: 'SEND_SENSOR_DATA', readers: ironic, preset: 'false', options: (value) => isTrue(value) ? { 'sensor_data.send_sensor_data': 'true', 'sensor_data.interval': '160', 'metrics.prometheus_unix_socket': '/shared/bloomery-metrics.sock' } : {} },
  { name: 'IRONIC_NETWORKING_ENABLED', readers: ironic, refusal: (value) => isTrue(value) ? NO_NETWORKING : undefined },
  ...['JSON_RPC_HOST', 'JSON_RPC_PORT', 'ENABLED_SWITCH_DRIVERS', 'SWITCH_CONFIGS', 'DRIVER_CONFIG_DIR'].map((name) => ({ name: `IRONIC_NETWORKING_${name}`, readers: ironic })),
  ...['IDLE', 'INSPECTION', 'CLEANING', 'RESCUING', 'SERVICING', 'PROVISIONING'].map((name) => ({ name: `IRONIC_NETWORKING_${name}_NETWORK`, readers: ironic })),
  { name: 'IRONIC_DEFAULT_NETWORK_INTERFACE', readers: ironic },
  // The other containers.
  ...['HTTPD_SERVE_NODE_IMAGES', 'HTTPD_ENABLE_SENDFILE', 'IRONIC_HTTPD_LOGLEVEL'].map((name) => ({ name, readers: httpd })),
  ...['DHCP_RANGE', 'DHCP_OPTIONS', 'DHCP_HOSTS', 'DHCP_IGNORE', 'GATEWAY_IP', 'DNS_IP', 'SNP_BASENAME', 'IPXE_CUSTOM_FIRMWARE_DIR', 'DNSMASQ_EXCEPT_INTERFACE'].map((name) => ({ name, readers: dnsmasq })),
  { name: 'DNS_PORT', readers: dnsmasq, refusal: (value) => value === '' || value === '0' ? undefined : 'there is no DNS server here' },
  ...['FLASK_RUN_HOST', 'FLASK_RUN_PORT'].map((name) => ({ name, readers: ['exporter'] as const })),
];

const MARKED = /(?:^|\s)(?:[+-]?)TLSv1\.([23])(?=\s|$)/g;
/** The oldest version of Apache's SSLProtocol, at least 1.2; undefined: it allows none. */
export function leastVersion(protocols: string): '1.2' | '1.3' | undefined {
  const words = protocols.split(/\s+/).filter((word) => word !== '');
  if (words.length === 0) return '1.2';
  const allowed = new Set<string>();
  for (const word of words) {
    const [, sign = '+', name = ''] = /^([+-]?)(.*)$/.exec(word)!;
    const versions = name.toLowerCase() === 'all' ? ['2', '3'] : [...name.matchAll(MARKED)].map(([, version]) => version!);
    for (const version of versions) {
      if (sign === '-') allowed.delete(version);
      else allowed.add(version);
    }
  }
  return allowed.has('2') ? '1.2' : allowed.has('3') ? '1.3' : undefined;
}

/** The options that are always set, as in metal3's ironic.conf, as far as this program has them. */
export const FIXED_SETTINGS: Settings = {
  'DEFAULT.debug': 'true',
  'DEFAULT.enabled_hardware_types': 'ipmi,idrac,fake-hardware,redfish,manual-management',
  'DEFAULT.enabled_bios_interfaces': 'no-bios,redfish,idrac-redfish',
  'DEFAULT.enabled_boot_interfaces': 'ipxe,pxe,fake,redfish-virtual-media,idrac-redfish-virtual-media,redfish-https',
  'DEFAULT.enabled_deploy_interfaces': 'autodetect,direct,fake,ramdisk,custom-agent,bootc',
  'DEFAULT.autodetect_deploy_interfaces': 'ramdisk,bootc,direct',
  'DEFAULT.enabled_firmware_interfaces': 'no-firmware,fake,redfish',
  'DEFAULT.enabled_inspect_interfaces': 'no-inspect,agent,fake,redfish,idrac-redfish',
  'DEFAULT.enabled_management_interfaces': 'ipmitool,fake,redfish,idrac-redfish,noop',
  'DEFAULT.enabled_network_interfaces': 'noop',
  'DEFAULT.enabled_power_interfaces': 'ipmitool,fake,redfish,idrac-redfish',
  'DEFAULT.enabled_raid_interfaces': 'no-raid,agent,fake,redfish,idrac-redfish',
  'DEFAULT.enabled_vendor_interfaces': 'no-vendor,ipmitool,idrac-redfish,redfish,fake',
  'DEFAULT.default_deploy_interface': 'autodetect',
  'DEFAULT.default_inspect_interface': 'agent',
  'DEFAULT.default_network_interface': 'noop',
  'agent.deploy_logs_collect': 'always',
  'agent.deploy_logs_local_path': '/shared/log/ironic/deploy',
  'agent.max_command_attempts': '30',
  'api.unix_socket_proxy_protocol': 'true',
  'boot.http_unix_socket': '/shared/bloomery-boot.sock',
  'boot.tftp': 'false',
  'conductor.deploy_callback_timeout': '4800',
  'conductor.power_state_change_timeout': '120',
  'conductor.node_history': 'false',
  'conductor.verify_step_priority_override': 'management.clear_job_queue:90',
  'conductor.file_url_allowed_paths': '/shared/html/images,/templates,/usr/lib/grub',
  'deploy.erase_devices_metadata_priority': '10',
  'deploy.erase_devices_priority': '0',
  'deploy.http_root': '/shared/html',
  'dhcp.dhcp_provider': 'none',
  'healthcheck.enabled': 'true',
  'inspector.require_managed_boot': 'false',
  'inspector.add_ports': 'all',
  'inspector.keep_ports': 'present',
  'ipmi.use_ipmitool_retries': 'false',
  'ipmi.min_command_interval': '5',
  'ipmi.command_retry_timeout': '60',
  'ipmi.cipher_suite_versions': '3,17',
  'nova.send_power_notifications': 'false',
  'pxe.boot_retry_timeout': '1200',
  'pxe.enable_netboot_fallback': 'true',
  'pxe.ipxe_fallback_script': 'inspector.ipxe',
  'redfish.use_swift': 'false',
};
