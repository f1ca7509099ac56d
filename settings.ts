/** Completes the options at the start: defaults that depend on this host, derived settings, and checks. */
import { accessSync, constants, existsSync, mkdirSync, readFileSync, realpathSync, statSync } from 'node:fs';
import { hostname } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { parseSubnet } from './boot/dhcp/subnets';
import type { ReportBoots } from './boot/discovery';
import { bootHosts } from './boot/listen-hosts';
import { httpBasic } from './api/auth/http-basic';
import { createHardware } from './conductor/core/create-hardware';
import { checkInspectionOptions } from './conductor/index';
import { checkAccess, listenHosts } from './config/access';
import { usesNeutron } from './config/derived';
import { addressOf, bootFolders, ownAddress } from './config/host-values';
import { parseIni } from './config/ini';
import { bootFiles, ownFiles } from './config/local-files';
import { formatOptionName } from './config/names';
import { checkNeeds } from './config/needs';
import type { LoadedOptions, Options } from './config/options';
import { tlsOf } from './config/tls';
import { systemClock } from './model/clock';
import { Fault } from './model/errors';
import { isLoopback } from './model/idents';
import { silentLog, type Log } from './model/log';
import type { ServedBoot } from './model/records';
import { inventoriesIn, noInventories } from './store/inventory-folder';
import { inventoriesAmong } from './store/inventory-objects';
import type { StoreOptions } from './store/postgres';
import { checkImageServerLogin } from './wire/image-servers';
import { contains, refusalOf } from './wire/local-files';
import { verifies } from './wire/authorities';
import { ServiceError, type Services } from './wire/keystone/services';
import { swiftContainer } from './wire/openstack/swift';
import { HARDWARE_TYPES, INTERFACES } from './drivers/index';
import { checkLogFile } from './logging';
import { openNetworkTraits } from './drivers/network/network-traits';
import type { NetworkTraits } from './model/rules/trait-filter';
import { switchesIn } from './wire/switches/config';
import { createSwitches, noopSwitchDriver, type SwitchDrivers, type Switches } from './wire/switches/switches';
import { parseVlans } from './wire/switches/vlans';
import { createSwitchWorker } from './wire/switches/worker';
import { keystoneSettings } from './wire/keystone/settings';
import { withoutCredentials } from './model/urls';
import { urlHost } from './wire/addresses';
import { withoutEndSlashes } from './wire/urls';

/** The program cannot start with these settings. The message is for the operator. */
export class StartError extends Error {}

/** 0.0.0.0 and ::, on which a service listens to every address. */
const isEveryAddress = (host: string): boolean => /^(?:0\.0\.0\.0|::)?$/.test(host);

/**
 * The host of a service in URLs. Without my_ip, a service that listens on one address has that one.
 * @param options before `resolveOptions`
 * @param host the address that the service listens on
 */
export function hostInUrls(options: LoadedOptions, host: string | null): string {
  const given = options['DEFAULT.my_ip'];
  if (given === null && host !== null && !isEveryAddress(host)) return urlHost(host);
  return urlHost(given ?? ownAddress(options['boot.interface'], options['DEFAULT.my_ipv6']));
}

/** Completes the options with values of this host, the opened ports and the state directory. */
export function resolveOptions(
  options: LoadedOptions,
  stateDir: string,
  ports: { readonly api: number; readonly http: number; readonly https: number | null; readonly inspector?: number | undefined },
): Options {
  const scheme = options['api.enable_ssl_api'] ? 'https' : 'http';
  const hosts = listenHosts(options);
  const ipv6 = options['DEFAULT.my_ipv6'] ?? addressOf(options['boot.interface'], 'IPv6') ?? null;
  const ip = options['DEFAULT.my_ip'] ?? ownAddress(options['boot.interface'], options['DEFAULT.my_ipv6']);
  const at = (host: string | null): string => hostInUrls(options, host);
  const boot = at(options['boot.http_host']);
  return {
    ...options,
    ...hosts,
    'DEFAULT.my_ip': ip,
    'DEFAULT.my_ipv6': ipv6,
    'DEFAULT.host': options['DEFAULT.host'] ?? hostname(),
    'DEFAULT.state_path': options['DEFAULT.state_path'] ?? stateDir,
    'service_catalog.endpoint_override': withoutEndSlashes(
      options['service_catalog.endpoint_override'] ?? `${scheme}://${at(hosts['api.host_ip'])}:${ports.api}`,
    ),
    'deploy.http_url': withoutEndSlashes(
      options['deploy.http_url'] ?? `${options['boot.http_use_ssl'] ? 'https' : 'http'}://${boot}:${ports.http}`,
    ),
    'deploy.external_http_url': options['deploy.external_http_url'] ?? (ports.https === null ? null : `https://${boot}:${ports.https}`),
    'deploy.http_root': options['deploy.http_root'] ?? bootFolders(stateDir)['deploy.http_root'],
    'pxe.tftp_root': options['pxe.tftp_root'] ?? bootFolders(stateDir)['pxe.tftp_root'],
    'dhcp.dhcp_provider': options['dhcp.dhcp_provider'] ?? 'none',
    'pxe.tftp_server': options['pxe.tftp_server'] ?? ip,
    'boot.cache_root': join(stateDir, 'cache'),
    'files.own': ownFiles(options, resolve(stateDir)),
    'files.boot': bootFiles(options),
    'inspector_service.callback_url':
      options['inspector_service.callback_url'] ??
      `${scheme}://${at(hosts['DEFAULT.listen_address'])}:${ports.inspector ?? options['DEFAULT.listen_port']}/v1/continue`,
  };
}

/**
 * The API's URL in Keystone's catalog, for ramdisks. Undefined: [service_catalog]endpoint_override sets the URL, or the options do not
 * configure Keystone.
 * @param given the options before `resolveOptions`
 */
export function catalogUrl(given: LoadedOptions, { service_catalog: catalog }: Services): (() => Promise<string>) | undefined {
  const isWanted = given['DEFAULT.auth_strategy'] === 'keystone' && given['service_catalog.endpoint_override'] === null;
  if (!isWanted || !catalog.isConfigured) return undefined;
  return async () => {
    try {
      return withoutEndSlashes(await catalog.endpoint());
    } catch (error) {
      if (!(error instanceof ServiceError)) throw error;
      throw new Fault('InvalidParameterValue', {
        message: `Couldn't get the URL of the Ironic API service from the configuration file or keystone catalog. Keystone error: ${error.reason}`,
      });
    }
  };
}

/**
 * Boot records for machines that the PXE filter admits although no node's boot record has their address. They boot the agent, which reports
 * the inventory. Undefined: no deploy kernel and ramdisk are set.
 */
export function reportBoots(options: Options): ReportBoots | undefined {
  const { 'conductor.deploy_kernel': kernel, 'conductor.deploy_ramdisk': ramdisk, 'service_catalog.endpoint_override': api } = options;
  if (kernel === null || ramdisk === null) return undefined;
  const append = [options['pxe.kernel_append_params'], options['inspector.extra_kernel_params']].filter((part) => part !== '').join(' ');
  const reporting = (uuid: string, callback: string): ServedBoot => ({
    node_uuid: uuid,
    token: uuid,
    macs: [],
    method: 'ipxe',
    purpose: 'ramdisk',
    kernel_args: `selinux=0 troubleshoot=0 text ${append} ipa-api-url=${api} ipa-inspection-callback-url=${callback}`,
    files: { kernel, ramdisk },
  });
  return {
    discovery: reporting('00000000-0000-0000-0000-000000000000', `${api}/v1/continue_inspection`),
    introspection: reporting('00000000-0000-0000-0000-000000000001', options['inspector_service.callback_url']),
  };
}

const isReadable = (path: string): boolean => {
  try {
    accessSync(path, constants.R_OK);
    return true;
  } catch {
    return false;
  }
};

/** Whether other processes may use the same database. */
export const sharesDatabaseOf = (options: LoadedOptions, databaseUrl: string | undefined): boolean =>
  Boolean(databaseUrl) && options['DEFAULT.rpc_transport'] !== 'none';

/** The addresses that a boot service listens on. Throws an Error for the operator. */
export const bootHostsOf = (options: Options, option: 'boot.http_host' | 'boot.tftp_host'): readonly string[] =>
  bootHosts(formatOptionName(option), {
    configured: options[option],
    interfaceName: options['boot.interface'],
    further: options['boot.dhcp_subnet'].flatMap((line) => parseSubnet(line).interface ?? []),
    myIp: options['DEFAULT.my_ip'],
    myIpv6: options['DEFAULT.my_ipv6'],
  });

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
    const refusal = refusalOf(real, { allowed: [real], own: own.map((one) => one.real) });
    const inside = own.find((one) => contains(real, one.real));
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
      for (const key of ['inventory.data_backend', 'agent.deploy_logs_storage_backend', 'deploy.configdrive_use_object_store'] as const) {
        const usesSwift = options[key] === 'swift' || options[key] === true;
        if (!usesSwift || options['swift.auth_type'] || options['swift.auth_section'] || options['swift.endpoint_override']) continue;
        const [section, name] = key.split('.');
        throw new StartError(`[${section}]${name} = ${options[key]} needs Swift: set [swift]auth_type and its options`);
      }
    },
  },
  {
    what: 'certificate authorities',
    check: ({ options }) => {
      const { 'DEFAULT.webserver_verify_ca': webServers, 'agent.api_ca_file': authorities } = options;
      if (webServers.trim() !== '' && verifies(webServers) === undefined && !isReadable(webServers))
        throw new StartError(`[DEFAULT]webserver_verify_ca: cannot read ${webServers}`);
      if (authorities && !(isReadable(authorities) && statSync(authorities).isFile()))
        throw new StartError(`[agent]api_ca_file: cannot read ${authorities}, or it is not a file`);
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
      for (const listener of tlsListeners(roles, hasRpc)) tlsOf(options, listener);
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
/** Before the ports are open, an option's own port stands for them. */
export const resolveConfigured = (options: LoadedOptions, stateDir: string): Options =>
  resolveOptions(options, stateDir, { api: options['api.port'], http: options['boot.http_port'], https: options['boot.https_port'] });

/** Reads the users of http_basic. Throws an Error for the operator. */
export function checkUsers(options: LoadedOptions, log: Log = silentLog): void {
  const files = { users: options['DEFAULT.http_basic_auth_user_file'], roles: options['DEFAULT.http_basic_roles_file'] };
  if (options['DEFAULT.auth_strategy'] === 'http_basic') httpBasic(files, log, systemClock);
}

/** The listeners of these roles that may have TLS. */
export const tlsListeners = (roles: readonly string[], hasRpc: boolean): readonly Parameters<typeof tlsOf>[1][] => [
  'api',
  'metrics',
  ...(roles.includes('boot') ? (['boot', 'boot with TLS'] as const) : []),
  ...(hasRpc && roles.includes('conductor') ? (['json_rpc'] as const) : []),
];

/**
 * @returns warnings
 * @throws StartError with a line for each problem
 */
export function checkOptions(options: LoadedOptions, roles: readonly string[], hasRpc: boolean, stateDir: string): readonly string[] {
  const settings = { options, resolved: resolveConfigured(options, stateDir), roles, hasRpc, stateDir };
  const problems: string[] = [];
  const warnings: string[] = [];
  const warn = (message: string): void => void warnings.push(message);
  for (const { check } of SETTING_CHECKS)
    try {
      check(settings, warn)?.forEach(warn);
    } catch (error) {
      problems.push((error as Error).message);
    }
  if (problems.length > 0) throw new StartError(problems.join('\n'));
  return warnings;
}

/** Where inventories are stored; undefined: in the database. Throws StartError. */
export function inventoriesOf(options: LoadedOptions, stateDir: string, { swift }: Services): StoreOptions['inventories'] {
  const backend = options['inventory.data_backend'];
  if (backend === 'none') return () => noInventories;
  if (backend === 'database') return undefined;
  if (backend === 'swift') return () => inventoriesAmong(swiftContainer(swift, options['inventory.swift_data_container']));
  return inventoriesIn(prepareFolder(options['inventory.directory'] ?? join(stateDir, 'inventories'), '[inventory]directory'));
}

/** Creates a folder and those above it. mkdir's option `recursive` never returns if the file system cannot create folders (/proc). */
function makeFolder(path: string): void {
  if (existsSync(path)) return;
  makeFolder(dirname(path));
  mkdirSync(path, { mode: 0o755 });
}

export function prepareFolder(path: string, what: string): string {
  try {
    makeFolder(path);
    accessSync(path, constants.W_OK | constants.X_OK);
  } catch (error) {
    throw new StartError(`cannot write ${what} ${path}: ${(error as Error).message}`);
  }
  return path;
}

/** The traits of trait-based networking; undefined: it is disabled. @throws StartError */
export function networkTraitsOf(options: Options): NetworkTraits | undefined {
  if (!options['conductor.enable_trait_based_networking']) return undefined;
  const file = options['conductor.trait_based_networking_config_file'];
  try {
    return openNetworkTraits(file);
  } catch (error) {
    throw new StartError(`[conductor]trait_based_networking_config_file: ${file}: ${(error as Error).message}`, { cause: error });
  }
}

/** The switches of [ironic_networking]; undefined: no switch driver is enabled. @throws StartError */
export function switchesOf(options: Options): Switches | undefined {
  const { 'ironic_networking.enabled_switch_drivers': enabled, 'ironic_networking.switch_config_file': file } = options;
  const { 'ironic_networking.generic_switch_python': python, 'ironic_networking.allowed_vlans': vlans } = options;
  if (enabled.length === 0) return undefined;
  try {
    const known = ['generic-switch', 'noop'];
    const unknown = enabled.find((name) => !known.includes(name));
    if (unknown !== undefined) throw new Error(`enabled_switch_drivers: there is no driver ${unknown}; choose from ${known.join(', ')}`);
    if (!file) throw new Error('switch_config_file is not set');
    const settings = switchesIn(parseIni(readFileSync(file, 'utf8')));
    const disabled = settings.find(({ driver }) => !enabled.includes(driver));
    if (disabled)
      throw new Error(`switch_config_file: driver_type ${disabled.driver} of switch ${disabled.name} is not in enabled_switch_drivers`);
    if (enabled.includes('generic-switch') && !python)
      throw new Error('generic_switch_python is not set: it must be a Python that has networking-generic-switch');
    const generic = settings.filter(({ driver }) => driver === 'generic-switch');
    const worker = createSwitchWorker(python, Object.fromEntries(generic.map(({ name, device }) => [name, device])));
    const drivers: SwitchDrivers = { 'generic-switch': worker, noop: noopSwitchDriver };
    return createSwitches(settings, vlans === null ? null : parseVlans(vlans), drivers, () => worker.close());
  } catch (error) {
    throw new StartError(`[ironic_networking]${(error as Error).message}`, { cause: error });
  }
}
