/** Checks of the settings that involve several options, or files: those of the start, and of `bloomery check`. */
import { accessSync, constants, realpathSync, statSync } from 'node:fs';
import { resolve } from 'node:path';
import { httpBasic } from '../api/auth/http-basic';
import { createHardware } from '../conductor/hardware/create-hardware';
import { checkInspectionOptions } from '../conductor/index';
import { checkAccess } from '../config/access';
import { usesNeutron } from '../config/derived';
import { ownFiles } from '../config/local-files';
import { formatOptionName } from '../config/names';
import { checkNeeds } from '../config/needs';
import type { LoadedOptions, Options } from '../config/options';
import { tlsOf } from '../config/tls';
import { ramdiskWarnings } from '../drivers/common/configured-ramdisk';
import { HARDWARE_TYPES, INTERFACES } from '../drivers/index';
import { systemClock } from '../model/clock';
import { isLoopback } from '../model/idents';
import { silentLog, type Log } from '../model/log';
import { withoutCredentials } from '../model/urls';
import { isFormat } from '../wire/images/inspection';
import { verifies } from '../wire/authorities';
import { checkImageServerLogin } from '../wire/image-servers';
import { keystoneSettings } from '../wire/keystone/settings';
import { contains, refusalOf } from '../wire/local-files';
import { architectureWarnings } from './architecture-names';
import { checkLogFile } from './logging';
import { bootRoleFolders, checkFolder, inventoryFolder, resolveConfigured, StartError, tlsListeners } from './settings';

const isReadable = (path: string): boolean => {
  try {
    accessSync(path, constants.R_OK);
    return true;
  } catch {
    return false;
  }
};

const realPath = (path: string): string => {
  try {
    return realpathSync(path);
  } catch {
    return resolve(path);
  }
};

/** Allowed folders that are, or contain, the server's own: users cannot use all their files, and the operator may not know. */
function allowedFolderWarnings(options: LoadedOptions, stateDir: string): readonly string[] {
  const own = ownFiles(options, resolve(stateDir)).map((path) => ({ path, real: realPath(path) }));
  return options['conductor.file_url_allowed_paths'].flatMap((folder) => {
    const real = realPath(folder);
    const refusal = refusalOf(real, { allowed: [real], own: own.map((item) => item.real) });
    const inside = own.find((candidate) => contains(real, candidate.real));
    const problem =
      refusal?.kind === 'protected'
        ? `is in ${refusal.path}, so that all its files are refused`
        : inside && `contains ${inside.path}, which file:// URLs cannot read`;
    if (problem === undefined) return [];
    return [
      `[conductor]file_url_allowed_paths: ${folder} ${problem}: move the images to a folder with nothing else in it, ` +
        'such as /var/lib/bloomery-images, and name that folder instead',
    ];
  });
}

/** A log that gives its warnings to `warn`, and drops everything else. */
export function warningLog(warn: (message: string) => void): Log {
  const log: Log = { ...silentLog, warn: (message) => warn(message), child: () => log };
  return log;
}

/** Checks all subjects. Throws a StartError with a line for each problem. */
function checkAll<Subject>(subjects: readonly Subject[], check: (subject: Subject) => void): void {
  const problems: string[] = [];
  for (const subject of subjects)
    try {
      check(subject);
    } catch (error) {
      problems.push((error as Error).message);
    }
  if (problems.length > 0) throw new StartError(problems.join('\n'));
}

interface SettingsToCheck {
  readonly options: LoadedOptions;
  /** With the values of this host. */
  readonly resolved: Options;
  readonly roles: readonly string[];
  /** Whether other processes may call this one. */
  readonly hasRpc: boolean;
  readonly stateDir: string;
}

interface SettingCheck {
  /** The subject of the check, for `bloomery check`. */
  readonly what: string;
  /** Returns warnings, or gives them to `warn`. Throws an Error for the operator, with a line for each problem. */
  readonly check: (settings: SettingsToCheck, warn: (message: string) => void) => readonly string[] | void;
}

/** Checks that involve several options, or files: of the start and of `bloomery check`. */
export const SETTING_CHECKS: readonly SettingCheck[] = [
  {
    what: 'discovery',
    check: ({ options }) => {
      if (options['auto_discovery.enabled'] && !options['auto_discovery.driver'])
        throw new StartError('[auto_discovery]enabled needs [auto_discovery]driver: the hardware type of machines that are discovered');
    },
  },
  {
    what: 'object storage',
    check: ({ options }) => {
      if (options['swift.auth_type'] || options['swift.auth_section'] || options['swift.endpoint_override']) return;
      const keys = ['inventory.data_backend', 'agent.deploy_logs_storage_backend', 'deploy.configdrive_use_object_store'] as const;
      const needing = keys.filter((key) => options[key] === 'swift' || options[key] === true);
      const lines = needing.map((key) => `${formatOptionName(key)} = ${options[key]} needs Swift: set [swift]auth_type and its options`);
      if (lines.length > 0) throw new StartError(lines.join('\n'));
    },
  },
  {
    what: 'snapshots',
    check: ({ options }) => {
      const s3 = options['snapshot.s3_endpoint'] !== null;
      const keys = (['snapshot.s3_access_key', 'snapshot.s3_secret_key'] as const).filter((key) => (options[key] !== null) !== s3);
      const lines = keys.map((key) =>
        s3
          ? `[snapshot]s3_endpoint needs ${formatOptionName(key)}`
          : `${formatOptionName(key)} has no effect without [snapshot]s3_endpoint: set that, or remove the option`,
      );
      if (options['snapshot.glance']) {
        if (s3) lines.push('[snapshot]glance and [snapshot]s3_endpoint are both set: snapshots have one target');
        if (!options['glance.auth_type'] && !options['glance.auth_section'] && !options['glance.endpoint_override'])
          lines.push('[snapshot]glance = true needs Glance: set [glance]auth_type and its options');
      }
      if (lines.length > 0) throw new StartError(lines.join('\n'));
    },
  },
  {
    what: 'certificates of erasure',
    check: ({ options, roles }) => {
      const key = options['erasure.signing_key'];
      if (key !== null && roles.includes('conductor') && !isReadable(key))
        throw new StartError(`[erasure]signing_key: cannot read ${key}: make the key with openssl genpkey, or remove the option`);
    },
  },
  {
    what: 'certificate authorities',
    check: ({ options }) => {
      const { 'DEFAULT.webserver_verify_ca': webServers, 'agent.api_ca_file': authorities } = options;
      const lines = [
        ...(webServers.trim() !== '' && verifies(webServers) === undefined && !isReadable(webServers)
          ? [`[DEFAULT]webserver_verify_ca: cannot read ${webServers}`]
          : []),
        ...(authorities && !(isReadable(authorities) && statSync(authorities).isFile())
          ? [`[agent]api_ca_file: cannot read ${authorities}, or it is not a file`]
          : []),
      ];
      if (lines.length > 0) throw new StartError(lines.join('\n'));
    },
  },
  {
    what: 'container registries',
    check: ({ options, roles }) => {
      const { 'oci.authentication_config': secrets, 'oci.verify_ca': authorities } = options;
      if (!roles.includes('conductor')) return [];
      return [
        ...(secrets !== null && !isReadable(secrets)
          ? [`[oci]authentication_config: cannot read ${secrets}: deployments from registries that ask for a login fail`]
          : []),
        ...(authorities !== null && verifies(authorities) === undefined && !isReadable(authorities)
          ? [`[oci]verify_ca: cannot read ${authorities}: deployments from registries fail`]
          : []),
      ];
    },
  },
  {
    what: 'TLS',
    check: ({ options, roles, hasRpc }) => {
      const mediaUrl = options['deploy.external_http_url'];
      if (options['boot.https_port'] !== null && mediaUrl !== null && !/^https:/i.test(mediaUrl))
        throw new StartError(
          `[boot]https_port serves media with TLS only, but [deploy]external_http_url is ${withoutCredentials(mediaUrl)}`,
        );
      checkAll(tlsListeners(roles, hasRpc), (listener) => void tlsOf(options, listener));
    },
  },
  {
    what: 'boot services',
    check: ({ options, roles }) => {
      const { 'deploy.http_url': url, 'boot.http_port': port, 'boot.http_use_ssl': tls, 'boot.http_unix_socket': socket } = options;
      if (!roles.includes('boot') || url === null || socket !== null || port === 0 || !URL.canParse(url)) return [];
      const { protocol, port: named } = new URL(url);
      // A URL with the other scheme must be that of a proxy.
      if (protocol !== (tls ? 'https:' : 'http:') || Number(named || (tls ? 443 : 80)) === port) return [];
      return [
        `machines use [deploy]http_url = ${withoutCredentials(url)}, but the HTTP boot service listens on port ${port}: ` +
          'set [boot]http_port to the port of the URL, unless a proxy listens there',
      ];
    },
  },
  {
    what: 'files of images',
    check: ({ options, roles, stateDir }) => (roles.includes('conductor') ? allowedFolderWarnings(options, stateDir) : []),
  },
  { what: 'login at image servers', check: ({ options, roles }) => (roles.includes('conductor') ? checkImageServerLogin(options) : []) },
  {
    what: 'addresses',
    check: ({ options, resolved, roles }) => {
      const serves = roles.includes('boot') || roles.includes('conductor');
      if (!serves || options['DEFAULT.my_ip'] !== null || !isLoopback(resolved['DEFAULT.my_ip']) || isLoopback(resolved['api.host_ip']))
        return [];
      return [
        `[DEFAULT]my_ip is not set, and this host has no default route: machines get URLs with ${resolved['DEFAULT.my_ip']}, ` +
          'which they cannot reach: set my_ip, or [boot]interface',
      ];
    },
  },
  {
    what: 'DHCP',
    check: ({ options, resolved, roles }) => {
      const named =
        options['DEFAULT.default_network_interface'] === 'neutron' || options['DEFAULT.enabled_network_interfaces'].includes('neutron');
      if (!roles.includes('conductor') || !named || usesNeutron(options)) return [];
      return [
        `the network interface neutron is enabled, but [neutron] has neither auth_type nor endpoint_override: its nodes cannot be deployed, ` +
          `and [dhcp]dhcp_provider is ${resolved['dhcp.dhcp_provider']}`,
      ];
    },
  },
  { what: 'state directory', check: ({ stateDir }) => checkFolder(stateDir, 'the state directory') },
  {
    what: 'folders',
    check: ({ options, resolved, roles, stateDir }) => {
      const folders = [...(roles.includes('boot') ? bootRoleFolders(resolved) : []), inventoryFolder(options, stateDir) ?? []].flat();
      checkAll(folders, ({ what, path }) => checkFolder(path, what));
    },
  },
  { what: 'log', check: ({ options }) => checkLogFile(options) },
  {
    what: 'hardware',
    check: ({ resolved, roles }, warn) => {
      if (roles.includes('conductor')) createHardware(resolved, HARDWARE_TYPES, INTERFACES, warningLog(warn));
    },
  },
  {
    what: 'inspection',
    check: ({ options, roles }) => {
      if (roles.includes('conductor')) checkInspectionOptions(options, INTERFACES.inspect);
    },
  },
  { what: 'ramdisks', check: ({ options, roles }) => (roles.includes('conductor') ? ramdiskWarnings(options) : []) },
  { what: 'architectures', check: ({ options }) => architectureWarnings(options) },
  {
    what: 'formats of images',
    check: ({ options, roles }) => {
      const unknown = options['conductor.permitted_image_formats'].filter((name) => !isFormat(name));
      if (!roles.includes('conductor') || unknown.length === 0) return [];
      return [`[conductor]permitted_image_formats: there is no format ${unknown.join(', ')}`];
    },
  },
  { what: 'options that need others', check: ({ options }) => checkNeeds(options) },
  { what: 'access', check: ({ options, roles, hasRpc }) => checkAccess(options, roles, hasRpc) },
  {
    what: 'Keystone',
    check: ({ options, roles }) => {
      if (options['DEFAULT.auth_strategy'] === 'keystone' && (roles.includes('api') || roles.includes('inspector')))
        keystoneSettings(options, 'keystone_authtoken');
    },
  },
];

/** Reads the users of http_basic. Throws an Error for the operator. */
export function checkUsers(options: LoadedOptions, log: Log = silentLog): void {
  const files = { users: options['DEFAULT.http_basic_auth_user_file'], roles: options['DEFAULT.http_basic_roles_file'] };
  if (options['DEFAULT.auth_strategy'] === 'http_basic') httpBasic(files, log, systemClock);
}

/**
 * @returns warnings
 * @throws StartError with a line for each problem
 */
export function checkOptions(options: LoadedOptions, roles: readonly string[], hasRpc: boolean, stateDir: string): readonly string[] {
  const settings = { options, resolved: resolveConfigured(options, stateDir), roles, hasRpc, stateDir };
  const warnings: string[] = [];
  const warn = (message: string): void => void warnings.push(message);
  checkAll(SETTING_CHECKS, ({ check }) => check(settings, warn)?.forEach(warn));
  return warnings;
}
