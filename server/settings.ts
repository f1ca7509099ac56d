/** Completes the options at the start: defaults that depend on this host, and derived settings. */
import { createHash } from 'node:crypto';
import { accessSync, constants, existsSync, mkdirSync, statSync } from 'node:fs';
import { hostname } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { parseSubnet } from '../boot/dhcp/subnets';
import { bootHosts } from '../boot/listen-hosts';
import { listenHosts } from '../config/access';
import { addressOf, bootFolders, ownAddress } from '../config/host-values';
import { bootFiles, ownFiles } from '../config/local-files';
import { formatOptionName } from '../config/names';
import type { LoadedOptions, Options } from '../config/options';
import type { tlsOf } from '../config/tls';
import { urlHost } from '../wire/addresses';
import { withoutEndSlashes } from '../wire/urls';

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
  ports: {
    readonly api: number;
    readonly http: number;
    readonly https: number | null;
    readonly inspector?: number | undefined;
    readonly vnc?: number | undefined;
  },
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
    'snapshot.directory': resolve(options['snapshot.directory'] ?? join(stateDir, 'snapshots')),
    'erasure.signing_key': resolve(options['erasure.signing_key'] ?? join(stateDir, SIGNING_KEY)),
    'boot.cache_root': cacheFolder(options, stateDir),
    'vnc.public_url':
      options['vnc.public_url'] ??
      `${options['vnc.enable_ssl'] ? 'https' : 'http'}://${at(hosts['vnc.host_ip'])}:${ports.vnc ?? options['vnc.port']}/vnc_auto.html`,
    'files.own': ownFiles(options, resolve(stateDir)),
    'files.boot': bootFiles(options),
    'inspector_service.callback_url':
      options['inspector_service.callback_url'] ??
      `${scheme}://${at(hosts['DEFAULT.listen_address'])}:${ports.inspector ?? options['DEFAULT.listen_port']}/v1/continue`,
  };
}

/** Several processes may name one folder, and each has files of its own in it. */
function cacheFolder({ 'pxe.instance_master_path': folder, 'DEFAULT.host': host }: LoadedOptions, stateDir: string): string {
  if (!folder) return join(stateDir, 'cache');
  const process = createHash('sha256')
    .update(`${host ?? hostname()} ${resolve(stateDir)}`)
    .digest('hex');
  return join(resolve(folder), `bloomery-${process.slice(0, 16)}`);
}

/** The site's key, in the state directory, if no option names another. */
const SIGNING_KEY = 'erasure-key.pem';
/** Before the ports are open, an option's own port stands for them. */
export const resolveConfigured = (options: LoadedOptions, stateDir: string): Options =>
  resolveOptions(options, stateDir, { api: options['api.port'], http: options['boot.http_port'], https: options['boot.https_port'] });

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

/** The listeners of these roles that may have TLS. */
export const tlsListeners = (roles: readonly string[], hasRpc: boolean): readonly Parameters<typeof tlsOf>[1][] => [
  'api',
  'metrics',
  ...(roles.includes('conductor') ? (['vnc'] as const) : []),
  ...(roles.includes('boot') ? (['boot', 'boot with TLS'] as const) : []),
  ...(hasRpc && roles.includes('conductor') ? (['json_rpc'] as const) : []),
];

/** Creates a folder and those above it. mkdir's option `recursive` never returns if the file system cannot create folders (/proc). */
function makeFolder(path: string): void {
  if (existsSync(path)) return;
  makeFolder(dirname(path));
  mkdirSync(path, { mode: 0o755 });
}

const unusable = (path: string, what: string, error: unknown): StartError =>
  new StartError(
    `cannot write ${what} ${path}: ${(error as Error).message}: create the folder for the user of the server, or name another one`,
  );
export function prepareFolder(path: string, what: string): string {
  try {
    makeFolder(path);
    accessSync(path, constants.W_OK | constants.X_OK);
  } catch (error) {
    throw unusable(path, what, error);
  }
  return path;
}
const nearestExisting = (path: string): string => (existsSync(path) || dirname(path) === path ? path : nearestExisting(dirname(path)));
/** Whether `prepareFolder` may work, without a change. Throws a StartError. */
export function checkFolder(path: string, what: string): void {
  const folder = nearestExisting(resolve(path));
  try {
    if (!statSync(folder).isDirectory()) throw new Error(`${folder} is not a folder`);
    accessSync(folder, constants.W_OK | constants.X_OK);
  } catch (error) {
    throw unusable(path, what, error);
  }
}

/** A folder that the server creates and writes. */
interface OwnFolder {
  readonly what: string;
  readonly path: string;
}
/** Those of the boot role. */
export const bootRoleFolders = (options: Options): readonly OwnFolder[] => [
  { what: '[deploy]http_root', path: options['deploy.http_root'] },
  { what: '[pxe]tftp_root', path: options['pxe.tftp_root'] },
  ...(options['pxe.instance_master_path'] ? [{ what: '[pxe]instance_master_path', path: options['boot.cache_root'] }] : []),
];
/** The folder of the inventories; undefined: they are not stored in one. */
export const inventoryFolder = (options: LoadedOptions, stateDir: string): OwnFolder | undefined =>
  options['inventory.data_backend'] === 'directory'
    ? { what: '[inventory]directory', path: options['inventory.directory'] ?? join(stateDir, 'inventories') }
    : undefined;
