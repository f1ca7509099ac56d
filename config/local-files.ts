/** Which options name local files: those of the server itself, which no user may read, and those that machines boot from. */
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { LoadedOptions } from './options';

/** Files and folders that the server reads for itself, or writes. No `file://` URL of a user may lead there. @internal */
export const OWN_FILES = [
  'DEFAULT.http_basic_auth_user_file',
  'DEFAULT.http_basic_roles_file',
  'DEFAULT.log_file',
  'DEFAULT.log_dir',
  'DEFAULT.webserver_verify_ca',
  'oci.authentication_config',
  'oci.verify_ca',
  'keystone_authtoken.cafile',
  'keystone_authtoken.certfile',
  'keystone_authtoken.keyfile',
  'json_rpc.cert_file',
  'json_rpc.key_file',
  'json_rpc.cafile',
  'api.unix_socket',
  'api.cert_file',
  'api.key_file',
  'api.demo_machines',
  'oslo_policy.policy_file',
  'oslo_policy.policy_dirs',
  'audit.log_file',
  'ssl.cert_file',
  'ssl.key_file',
  'ssl.ca_file',
  'metrics.prometheus_unix_socket',
  'vnc.cert_file',
  'vnc.key_file',
  'vnc.socket_folder',
  'metrics.cert_file',
  'metrics.key_file',
  ...(['service_catalog', 'neutron', 'nova', 'cinder', 'glance', 'swift'] as const).flatMap(
    (section) => [`${section}.cafile`, `${section}.certfile`, `${section}.keyfile`] as const,
  ),
  'conductor.trait_based_networking_config_file',
  'dnsmasq.dhcp_optsdir',
  'dnsmasq.dhcp_hostsdir',
  'boot.http_unix_socket',
  'pxe.ipxe_config_template',
  'anaconda.default_ks_template',
  'pxe.pxe_config_template',
  'pxe.uefi_pxe_config_template',
  'pxe.pxe_config_template_by_arch',
  'pxe.ipxe_boot_script',
  'pxe.initial_grub_template',
  'boot.cert_file',
  'boot.key_file',
  'agent.verify_ca',
  'agent.api_ca_file',
  'agent.deploy_logs_local_path',
  'ironic_networking.switch_config_file',
  'inspector.known_accelerators',
  'inventory.directory',
  'snapshot.directory',
  'pxe.instance_master_path',
  'erasure.signing_key',
  'inspection_rules.built_in_rules',
  'health.rules',
  'discoverd.cafile',
  'discoverd.certfile',
  'discoverd.keyfile',
  'oidc.cafile',
  'redfish.verify_ca',
  'fake.step_log',
] as const;

/** Files from which machines boot: a path, or a dict of them. The operator chose them, so they may be anywhere. @internal */
export const BOOT_FILES = [
  'DEFAULT.isolinux_bin',
  'DEFAULT.ldlinux_c32',
  'DEFAULT.esp_image',
  ...(['deploy', 'rescue'] as const).flatMap(
    (mode) =>
      [
        `conductor.${mode}_kernel`,
        `conductor.${mode}_ramdisk`,
        `conductor.${mode}_kernel_by_arch`,
        `conductor.${mode}_ramdisk_by_arch`,
      ] as const,
  ),
  'conductor.bootloader',
  'conductor.bootloader_by_arch',
  'conductor.bootloader_files',
] as const;

/** The values of options, which are texts, lists or dicts. */
const textsOf = (options: LoadedOptions, names: readonly (keyof LoadedOptions)[]): readonly string[] =>
  names.flatMap((name) => {
    const value: unknown = options[name];
    return typeof value === 'object' && value !== null ? Object.values(value).map(String) : typeof value === 'string' ? [value] : [];
  });

/**
 * The parts of the state directory are there too: a folder of boot files may be in it, or may be the state directory itself.
 * @param stateDir absolute
 */
export const ownFiles = (options: LoadedOptions, stateDir: string): readonly string[] => {
  const named = textsOf(options, OWN_FILES).filter((text) => text.startsWith('/'));
  const state = ['', 'postgres', 'cache', 'inventories'].map((name) => join(stateDir, name));
  return [...new Set([...state, ...(options['configuration.files'] ?? []), ...named])];
};

/** The paths of BOOT_FILES, as boot records have them. URLs of other servers are left out. */
export const bootFiles = (options: LoadedOptions): ReadonlySet<string> =>
  new Set(
    textsOf(options, BOOT_FILES).flatMap((text) => {
      if (!/^\w+:/.test(text)) return [text];
      return /^file:\/\/\//i.test(text) && URL.canParse(text) ? [resolve(fileURLToPath(text))] : [];
    }),
  );
