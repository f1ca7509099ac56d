/**
 * The HTTP boot service: iPXE scripts, files of boot records, boot loaders, media, and files below [deploy]http_root. GET and HEAD only.
 */
import type { IncomingMessage, RequestListener, Server, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Options } from '../config/options';
import type { Clock } from '../model/clock';
import { reasonOf } from '../model/errors';
import { createBoundedLog, type Log } from '../model/log';
import { silentMetrics, type Metrics } from '../model/metrics';
import { isDatabaseDown, retryingStore, retryWhileDatabaseDown } from '../store/database-retry';
import type { Store } from '../store/store';
import { volumesOf, type VolumeStore } from '../store/volumes';
import { canonicalAddress, canonicalHost } from '../model/idents';
import { urlHost, withHost } from '../wire/addresses';
import type { ClientLimits } from '../wire/http/client-limits';
import { createHttpServer, type HttpServer, type TlsSettings } from '../wire/http/listener-tls';
import { iscsiBoot, type IscsiBoot } from '../wire/iscsi';
import type { ServiceClient } from '../wire/keystone/services';
import type { RegistryOptions } from '../wire/oci/registry';
import { shareLimits } from '../wire/shares';
import { listenError } from '../wire/sockets/listen-errors';
import { listenOnSocket, removeStaleSocket } from '../wire/sockets/unix-socket';
import { createBootFiles, openSource, readerOf, type BootFiles, type LocalFiles, type NodeStore } from './boot-files';
import { NO_TEMPLATES, type BootTemplates } from './boot-templates';
import { openCache, UpstreamError, type Cache, type CachedFile } from './cache';
import { sendContent } from './content';
import type { BootChoiceStore, PxeFilter, ReportBoots } from './discovery';
import { openServedFile, type ServedFiles } from './files';
import type { OpenFile } from '../wire/local-files';
import { byArchitecture } from './architectures';
import { askingScript, BUILD_QUERY, fallbackUrl, ipxeScript, nothingScript, refusingScript, START_QUERY, startScript } from './ipxe';
import { openMedium } from './media';
import { readable } from './composed-files';
import { GRUB_START, grubConfig, pxeName } from './pxe';
import { silentBootRequests, type BootRequestLog } from './requests';

type HttpBootOptions = Pick<
  Options,
  | 'boot.http_port'
  | 'boot.https_port'
  | 'api.unix_socket_proxy_protocol'
  | 'boot.http_unix_socket'
  | 'boot.http_max_connections'
  | 'boot.http_max_connections_per_source'
  | 'DEFAULT.my_ip'
  | 'deploy.http_url'
  | 'deploy.http_root'
  | 'pxe.loader_file_paths'
  | 'pxe.image_cache_size'
  | 'pxe.image_cache_ttl'
  | 'conductor.cache_clean_up_interval'
  | 'DEFAULT.parallel_image_downloads'
  | 'DEFAULT.image_download_concurrency'
  | 'boot.cache_root'
  | 'files.own'
  | 'files.boot'
  | 'snapshot.directory'
  | keyof RegistryOptions
  | 'pxe.ipxe_timeout'
  | 'pxe.ipxe_fallback_script'
  | 'agent.api_ca_file'
>;
interface HttpBootSetup {
  readonly options: HttpBootOptions;
  /** The addresses to listen on. */
  readonly hosts: readonly string[];
  /** Absent: http_port is without TLS. */
  readonly tls?: TlsSettings | undefined;
  /** TLS of https_port. Absent: there is no such port. */
  readonly secondTls?: TlsSettings | undefined;
  readonly store: BootChoiceStore & Pick<Store, 'boots' | 'media'> & VolumeStore & NodeStore;
  readonly filter: PxeFilter;
  readonly glance: ServiceClient;
  readonly log: Log;
  readonly clock: Clock;
  readonly random: (bytes: number) => Buffer;
  /** Absent: no metrics. */
  readonly metrics?: Metrics;
  readonly reports?: ReportBoots | undefined;
  /** Absent: the server's own scripts. */
  readonly templates?: BootTemplates;
  /** Absent: the requests are not recorded. */
  readonly requests?: Pick<BootRequestLog, 'note'>;
}
interface HttpBootService {
  readonly port: number;
  /** The second port, with TLS; null: there is none. */
  readonly httpsPort: number | null;
  /** The URLs of the addresses that it listens on. */
  readonly bound: readonly string[];
  /** Usable until the service is stopped. */
  readonly files: BootFiles;
  /** Reads the files of TLS again. */
  reload(): void;
  stop(): Promise<void>;
}

/** Milliseconds until a client is disconnected that does not send its request, or that does not read the response. */
const REQUEST_TIMEOUT_MS = 10_000;
const READ_TIMEOUT_MS = 120_000;
/**
 * Milliseconds for which a request waits for a database that is unreachable. iPXE and firmware ask once for a script, and a machine that
 * gets none does not boot again by itself.
 */
const DATABASE_WAIT_MS = 10_000;
const RETRY_AFTER_SECONDS = 5;
/** Permissions of the Unix socket. Its clients get media without TLS, so only the owner may connect. */
const OWNER_ONLY = 0o600;
const IPXE = /^\/ipxe\/([0-9a-f]{2}(?:-[0-9a-f]{2}){5})$/i;
/** This script is the same for all machines: iPXE fills in the address of its boot interface. Other DHCP servers can name this path. */
const START_SCRIPT = '/boot.ipxe';
/** In the paths of boot files and of media, the first part is the secret token. */
const BOOT = /^\/boot\/([0-9a-f-]{32,36})\/([^/]+|LiveOS\/squashfs\.img)$/i;
const MEDIUM = /^\/media\/([\w-]{20,64})\/[\w.-]+$/;

interface Sources {
  readonly cache: Cache;
  readonly local: LocalFiles;
  readonly files: BootFiles;
  readonly served: ServedFiles;
  readonly store: HttpBootSetup['store'];
  readonly log: Log;
  /** Known once the service listens. */
  readonly httpUrl: () => string;
  readonly myIp: string;
  /** [pxe]ipxe_timeout */
  readonly ipxeTimeout: number;
  /** [pxe]ipxe_fallback_script */
  readonly fallback: string | null;
  readonly templates: BootTemplates;
}
/**
 * Returns the number of bytes sent, or undefined if the request was refused.
 * @param servesMedia whether BMCs get their media on this port
 */
type AnswerRequest = (
  request: IncomingMessage,
  response: ServerResponse,
  path: string | undefined,
  servesMedia: boolean,
) => Promise<number | undefined>;

/** Reads the volumes that the node's machine boots from. A string is the reason why it cannot boot from them. */
async function iscsiBootOf(store: VolumeStore, node: string): Promise<IscsiBoot | string> {
  const volumes = volumesOf(store);
  const [connectors, targets] = await Promise.all([volumes.connectors(node), volumes.targets(node)]);
  try {
    return iscsiBoot(connectors, targets) ?? 'the node has no iSCSI volume target with boot index 0';
  } catch (error) {
    return reasonOf(error);
  }
}

const queryOf = ({ url = '' }: IncomingMessage): URLSearchParams => new URLSearchParams(url.replace(/^[^?]*/, ''));

function createAnswer(sources: Sources): AnswerRequest {
  const { cache, local, files, served, store, log, httpUrl, myIp, ipxeTimeout, fallback, templates } = sources;
  /** Makes the script's URLs reachable: if the request names another address of this host than my_ip, they name that address too. */
  const reachable = ({ headers, socket }: IncomingMessage, script: string): string => {
    const local = canonicalAddress(socket.localAddress ?? '');
    const named = canonicalHost((headers.host ?? '').slice(0, 300));
    return local !== undefined && named === local ? withHost(script, myIp, local) : script;
  };

  const nothing = (request: IncomingMessage, response: ServerResponse, mac: string): number | undefined => {
    const asksForScript = queryOf(request).has(START_QUERY);
    if (fallback !== null || asksForScript) {
      const other = fallback === null ? null : fallbackUrl(fallback, httpUrl());
      return sendScript(response, reachable(request, nothingScript(other)));
    }
    refuse(response, 404, `Nothing to boot for ${mac}`);
    return undefined;
  };

  const script = async (request: IncomingMessage, response: ServerResponse, mac: string): Promise<number | undefined> => {
    const boot = await files.recordFor(mac, 'HTTP');
    if (!boot) return nothing(request, response, mac);
    const choice = byArchitecture(boot, queryOf(request).get(BUILD_QUERY) ?? undefined);
    if (choice.kind === 'asks') return sendScript(response, reachable(request, askingScript(httpUrl())));
    if (choice.kind === 'refuses') {
      log.warn('HTTP boot: a machine of another architecture', { node: boot.node_uuid, mac, reason: choice.why });
      return sendScript(response, refusingScript(choice.why));
    }
    const iscsi = boot.purpose === 'volume' ? await iscsiBootOf(store, boot.node_uuid) : undefined;
    if (typeof iscsi === 'string') {
      log.warn('HTTP boot: the volumes of a node cannot be booted', { node: boot.node_uuid, reason: iscsi });
      refuse(response, 404, `Nothing to boot for ${mac}`);
      return;
    }
    const own = (): string => ipxeScript(choice.boot, httpUrl(), { iscsi, timeoutSeconds: ipxeTimeout });
    return sendScript(response, reachable(request, templates.ipxe(choice.boot, httpUrl()) ?? own()));
  };

  const grub = async (request: IncomingMessage, response: ServerResponse, mac: string): Promise<number | undefined> => {
    const boot = await files.recordFor(mac, 'HTTP');
    if (boot) return sendScript(response, reachable(request, (await templates.pxe('grub', boot)) ?? grubConfig(boot)));
    refuse(response, 404, `Nothing to boot for ${mac}`);
    return undefined;
  };

  const bootFile = async (request: IncomingMessage, response: ServerResponse, token: string, name: string): Promise<number | undefined> => {
    const opened = await files.open(token, name, 'HTTP');
    if (!opened) {
      refuse(response, 404, 'Not found');
      return;
    }
    return opened.kind === 'local' ? sendLocal(request, response, opened.file) : sendAndRelease(request, response, opened.file, name);
  };

  const medium = async (request: IncomingMessage, response: ServerResponse, token: string, path: string): Promise<number | undefined> => {
    const record = await store.media.byToken(token);
    if (!record) {
      refuse(response, 404, 'Not found');
      return;
    }
    const opened = await openMedium(record, async (source) => {
      const found = await openSource({ cache, local }, source, readerOf(store, record.node_uuid, 'medium'));
      if (!found) throw new UpstreamError('a file of the medium does not exist');
      return found.kind === 'remote' ? found.file : readable(found.file);
    });
    return sendAndRelease(request, response, opened, path);
  };

  return async (request, response, path, servesMedia) => {
    if (path === undefined) {
      refuse(response, 400, 'Not a path');
      return;
    }
    if (path === START_SCRIPT) return sendScript(response, reachable(request, templates.ipxeStart(httpUrl()) ?? startScript(httpUrl())));
    const mac = IPXE.exec(path)?.[1];
    if (mac !== undefined) return script(request, response, mac.toLowerCase().replaceAll('-', ':'));
    const [, secret, name] = BOOT.exec(path) ?? [];
    if (secret !== undefined) return bootFile(request, response, secret.toLowerCase(), name!);
    const asked = pxeName(path);
    if (asked?.kind === 'grub') return grub(request, response, asked.mac);
    const token = MEDIUM.exec(path)?.[1];
    if (token !== undefined && !servesMedia) {
      refuse(response, 403, 'Media are served with TLS only');
      return;
    }
    if (token !== undefined) return medium(request, response, token, path);
    const file = await openServedFile(served, path);
    if (file) return sendLocal(request, response, file);
    if (asked?.kind === 'grub start') return sendScript(response, templates.grubStart() ?? GRUB_START);
    refuse(response, 404, 'Not found');
  };
}

/** Answers, logs and counts a request; never rejects. */
function createHandler(
  answer: AnswerRequest,
  { log, clock, metrics }: Pick<Required<HttpBootSetup>, 'log' | 'clock' | 'metrics'>,
): (request: IncomingMessage, response: ServerResponse, servesMedia: boolean) => Promise<void> {
  return async (request, response, servesMedia) => {
    const started = clock.now();
    const where = {
      client: request.socket.remoteAddress,
      path: (request.url ?? '').slice(0, 200).replace(/(\/(?:boot|media)\/)[^/]+/, '$1***'),
    };
    try {
      if (request.method !== 'GET' && request.method !== 'HEAD') {
        refuse(response, 405, 'Only GET and HEAD', { allow: 'GET, HEAD' });
        return;
      }
      const bytes = await answer(request, response, pathOf(request.url), servesMedia);
      if (bytes === undefined) return;
      metrics.count('bloomery_http_boot_bytes_total', {}, bytes);
      log.info('HTTP boot: sent', { ...where, bytes, ms: clock.now() - started });
    } catch (error) {
      if (response.headersSent) {
        log.info('HTTP boot: ended early', { ...where, error: reasonOf(error) });
        response.destroy();
      } else if (error instanceof UpstreamError) {
        log.warn('HTTP boot: download failed', { ...where, error: error.detail });
        refuse(response, 502, error.message);
      } else if (isDatabaseDown(error)) {
        refuse(response, 503, reasonOf(error), { 'retry-after': String(RETRY_AFTER_SECONDS) });
      } else {
        log.error('HTTP boot: failed', { ...where, error: reasonOf(error) });
        refuse(response, 500, 'Internal server error');
      }
    } finally {
      const kind = IPXE.test((request.url ?? '').split('?', 1)[0]!) ? 'script' : 'file';
      metrics.count('bloomery_http_boot_answers_total', { kind, status: `${Math.floor(response.statusCode / 100)}xx` });
    }
  };
}

function createBootServer(
  { tls, expectsProxyHeaders }: { readonly tls: TlsSettings | undefined; readonly expectsProxyHeaders: boolean },
  limits: ClientLimits,
  log: Log,
  listener: RequestListener,
): HttpServer {
  const given = {
    expectsProxyHeaders,
    headersTimeout: REQUEST_TIMEOUT_MS,
    requestTimeout: REQUEST_TIMEOUT_MS,
    keepAliveTimeout: REQUEST_TIMEOUT_MS,
    connectionsCheckingInterval: REQUEST_TIMEOUT_MS / 4,
  };
  return createHttpServer(given, tls, limits, log, listener);
}

/** Resolves with the port. */
const listen = (server: Server, host: string, port: number, what: string): Promise<number> =>
  new Promise((done, fail) => {
    const refuse = (error: Error): void => fail(listenError(error, `${host} port ${port}`, what));
    server.once('error', refuse);
    server.listen(port, host, () => {
      server.off('error', refuse);
      done((server.address() as AddressInfo).port);
    });
  });

/** Rejects if a port cannot be opened. */
export async function startHttpBoot(setup: HttpBootSetup): Promise<HttpBootService> {
  const {
    options,
    hosts,
    tls,
    secondTls,
    filter,
    glance,
    clock,
    metrics = silentMetrics,
    reports,
    requests = silentBootRequests,
    templates = NO_TEMPLATES,
  } = setup;
  const stopping = new AbortController();
  const log = createBoundedLog(setup.log, clock);
  const store = retryingStore(setup.store, (work) => {
    const end = clock.now() + DATABASE_WAIT_MS;
    const waits = (error: unknown): boolean => isDatabaseDown(error) && clock.now() < end;
    return retryWhileDatabaseDown({ clock, log, signal: stopping.signal }, work, waits);
  });
  const cache = await openCache({
    folder: options['boot.cache_root'],
    maxBytes: options['pxe.image_cache_size'] * 1024 * 1024,
    maxAgeMs: options['pxe.image_cache_ttl'] * 60_000,
    cleanUpMs: options['conductor.cache_clean_up_interval'] * 1000,
    downloads: options['DEFAULT.parallel_image_downloads'] ? options['DEFAULT.image_download_concurrency'] : 1,
    options,
    glance,
    log,
    clock,
    random: setup.random,
    metrics,
  });
  const local = { own: options['files.own'], byOptions: options['files.boot'], snapshots: options['snapshot.directory'] };
  const files = createBootFiles({ store, filter, cache, local, log, requests, reports, apiCaFile: options['agent.api_ca_file'] });
  const served = { named: options['pxe.loader_file_paths'], root: options['deploy.http_root'], own: options['files.own'] };
  let httpUrl = options['deploy.http_url'];
  const { 'DEFAULT.my_ip': myIp, 'pxe.ipxe_timeout': ipxeTimeout, 'pxe.ipxe_fallback_script': fallback } = options;
  const answer = createAnswer({ cache, local, files, served, store, log, httpUrl: () => httpUrl, myIp, ipxeTimeout, fallback, templates });
  const handle = createHandler(answer, { log, clock, metrics });
  const limits: ClientLimits = {
    connections: shareLimits(options['boot.http_max_connections'], options['boot.http_max_connections_per_source']),
    readTimeoutMs: READ_TIMEOUT_MS,
    onRefused: (limit) => metrics.count('bloomery_connections_refused_total', { listener: 'boot', limit }),
  };
  const servers: HttpServer[] = [];
  const stop = async (): Promise<void> => {
    stopping.abort();
    await Promise.all(servers.map((http) => http.close(0)));
    await cache.close();
    log.stop();
  };
  const bound: string[] = [];
  /** Listens on each address. If the configured port is 0, the first address decides. */
  const listenOn = async (option: 'http_port' | 'https_port', given: number, security: TlsSettings | undefined): Promise<number> => {
    const servesMedia = option === 'https_port' || !secondTls;
    let port = given;
    for (const host of hosts) {
      const started = createBootServer(
        { tls: security, expectsProxyHeaders: false },
        limits,
        log,
        (request, response) => void handle(request, response, servesMedia),
      );
      servers.push(started);
      port = await listen(started.server, host, port, `HTTP boot, [boot]http_host and ${option}`);
      bound.push(`${security ? 'https' : 'http'}://${urlHost(host)}:${port}`);
    }
    return port;
  };
  /** Opens no TCP port: the URLs name the ports of the proxy in front of the socket. */
  const listenAtSocket = async (path: string): Promise<void> => {
    const what = 'HTTP boot, [boot]http_unix_socket';
    await removeStaleSocket(path, what);
    const security = { tls: undefined, expectsProxyHeaders: options['api.unix_socket_proxy_protocol'] };
    const started = createBootServer(security, limits, log, (request, response) => void handle(request, response, true));
    servers.push(started);
    await new Promise<void>((done, fail) => {
      started.server.once('error', (error) => fail(new Error(`cannot listen on ${path} (${what}): ${error.message}`)));
      listenOnSocket(started.server, path, OWNER_ONLY, done);
    });
    bound.push(`unix:${path}`);
  };
  const socket = options['boot.http_unix_socket'];
  let port = options['boot.http_port'];
  let httpsPort: number | null = null;
  try {
    if (socket !== null) await listenAtSocket(socket);
    else port = await listenOn('http_port', options['boot.http_port'], tls);
    if (socket === null && secondTls) httpsPort = await listenOn('https_port', options['boot.https_port'] ?? 0, secondTls);
  } catch (error) {
    await stop();
    throw error;
  }
  // If the configured port is 0, the URL is known only now.
  httpUrl = httpUrl.replace(/:0$/, `:${port}`);
  for (const address of bound) log.info('listening', { address, for: 'HTTP boot' });
  return { port, httpsPort, bound, files, reload: () => servers.forEach((http) => http.reload()), stop };
}

/** Content-Length has these capitals: without them GRUB 2.06 does not see the size, and waits for the end of the connection. */
function sendScript(response: ServerResponse, script: string): number {
  const text = Buffer.from(script);
  response.writeHead(200, { 'content-type': 'text/plain', 'Content-Length': text.length, 'cache-control': 'no-store' }).end(text);
  return text.length;
}

/** Sends an opened file and closes it. */
export const sendLocal = (request: IncomingMessage, response: ServerResponse, file: OpenFile): Promise<number> =>
  sendAndRelease(request, response, readable(file), file.path);

async function sendAndRelease(request: IncomingMessage, response: ServerResponse, file: CachedFile, name: string): Promise<number> {
  try {
    return await sendContent(request, response, { ...file, type: typeOf(name) });
  } finally {
    await file.release();
  }
}

/** Firmware checks the content type (UEFI 2.10 §24.7.3.2, §24.7.4.2). */
const TYPES: Readonly<Record<string, string>> = { efi: 'application/efi', iso: 'application/vnd.efi-iso', img: 'application/vnd.efi-img' };
const typeOf = (name: string): string => TYPES[/\.(\w+)$/.exec(name)?.[1] ?? ''] ?? 'application/octet-stream';

/** Slashes that name no folder between them, in a decoded path: an encoded slash or dot is none before the path is decoded. */
const EMPTY_SEGMENTS = /\/(?:\.?\/)+/g;
/** The decoded path with dot segments resolved and one slash between names; undefined if it is malformed. */
export function pathOf(url: string | undefined): string | undefined {
  try {
    return decodeURIComponent(new URL((url ?? '').replace(/^\/+/, '/'), 'http://boot').pathname).replace(EMPTY_SEGMENTS, '/');
  } catch {
    return undefined;
  }
}

export function refuse(response: ServerResponse, status: number, text: string, headers: Readonly<Record<string, string>> = {}): void {
  const body = `${text}\n`;
  const length = { 'content-type': 'text/plain', 'Content-Length': Buffer.byteLength(body) };
  // After a refusal, GRUB waits for the end of the connection.
  response.writeHead(status, { ...length, connection: 'close', ...headers }).end(body);
}
