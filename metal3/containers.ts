/** The programs of the containers of metal3's Ironic image, and what each one runs here. */
import { randomBytes } from 'node:crypto';
import { accessSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import { networkInterfaces } from 'node:os';
import { dirname } from 'node:path';
import { httpBasic } from '../api/auth/http-basic';
import { explain } from '../api/http/errors';
import { startDhcp, type DhcpSetup } from '../boot/dhcp/service';
import { refuse } from '../boot/http';
import { startScript } from '../boot/ipxe';
import { startTftp } from '../boot/tftp';
import { systemClock } from '../model/clock';
import type { Log } from '../model/log';
import type { Options } from '../config/options';
import type { LeaseRecord } from '../model/records';
import type { Store } from '../store/store';
import { networkOf } from '../wire/http/client-limits';
import type { TlsSettings } from '../wire/http/listener-tls';
import type { UpgradeListener } from '../wire/http/upgrades';
import { watchFiles } from '../wire/watch-files';
import { waitForAddress } from './address';
import { dhcpOptions, dhcpPlan } from './dhcp';
import { createHttpd, createTunnel, proxyRequest, type Port } from './httpd';
import { Metal3Error, contextOf, type Environment, type ContainerContext } from './container-context';
import { inspectorScript } from './scripts';
import { checkTls, checkVariables, configurationFile, ironicSettings } from './settings';
import { isTrue, leastVersion } from './variables';

const METRICS_SOCKET = '/shared/bloomery-metrics.sock';
const BOOT_SOCKET = '/shared/bloomery-boot.sock';
const API_SOCKET = '/shared/ironic.sock';
const ROOT = '/shared/html';

const exists = (path: string): boolean => {
  try {
    accessSync(path);
    return true;
  } catch {
    return false;
  }
};
const readSmall = (path: string): string => {
  const text = readFileSync(path, 'utf8');
  if (text.length > 4 << 20) throw new Metal3Error(`${path} is too large`);
  return text;
};
function write(path: string, text: string): void {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text, { mode: 0o600 });
}

/** Waits for the address. @throws Metal3Error */
export async function findContext(environment: Environment, signal: AbortSignal): Promise<ContainerContext> {
  const address = await waitForAddress(environment, networkInterfaces, signal);
  const hasIpv6 = Object.values(networkInterfaces()).some((infos) => infos?.some(({ family }) => family === 'IPv6'));
  return contextOf(environment, { ...address, hasIpv6, exists });
}

/** Writes the users of the API. @returns the file */
function writeUsers({ conf, get }: ContainerContext): string {
  const given = '/auth/ironic/htpasswd';
  const users = exists(given) ? readSmall(given) : get('IRONIC_HTPASSWD', get('HTTP_BASIC_HTPASSWD'));
  write(`${conf}/ironic/htpasswd`, `${users.trimEnd()}\n`);
  return `${conf}/ironic/htpasswd`;
}
const writeAuthorities = ({ conf, ramdiskAuthorities }: ContainerContext): void =>
  write(`${conf}/ipa-tls.pem`, ramdiskAuthorities.map(readSmall).join('\n'));

/**
 * Writes the configuration of the server in the container `ironic`.
 * @returns its file, and lines for the log
 * @throws Metal3Error
 */
export function prepareIronic(
  environment: Environment,
  context: ContainerContext,
): { readonly file: string; readonly warnings: readonly string[] } {
  const { settings, warnings } = ironicSettings(environment, context);
  for (const folder of ['/shared/html/images', '/shared/log/ironic/deploy']) mkdirSync(folder, { recursive: true });
  mkdirSync(context.data, { recursive: true });
  if (context.hasUsers) writeUsers(context);
  if (context.ramdiskAuthorities.length > 0) {
    writeAuthorities(context);
    // Kubernetes replaces mounted files; nothing restarts the container.
    watchFiles(context.ramdiskAuthorities, () => writeAuthorities(context));
  }
  const file = `${context.conf}/ironic/ironic.conf`;
  write(file, configurationFile(settings));
  return { file, warnings };
}

/** A port of the container, for the caller to listen on. */
export interface ContainerPort {
  readonly host: string;
  readonly port: number;
  readonly what: string;
  readonly tls?: TlsSettings;
  readonly listener: RequestListener;
  /** Takes over WebSockets. Absent: they are requests like others. */
  readonly upgrade?: UpgradeListener | undefined;
}
function portOf(name: string, text: string): number {
  const port = Number(text);
  if (!/^\d{1,5}$/.test(text) || port < 1 || port > 65_535) throw new Metal3Error(`${name} = ${text} is not a port`);
  return port;
}
const tlsOf = (pair: { readonly cert: string; readonly key: string }, protocols: string, ciphers: string): TlsSettings => ({
  cert: { option: 'the certificate', path: pair.cert },
  key: { option: 'its private key', path: pair.key },
  minVersion: `TLSv${leastVersion(protocols) ?? '1.2'}`,
  maxVersion: 'TLSv1.3',
  ciphers: ciphers === '' ? undefined : ciphers,
});

/**
 * Checks the passwords of requests to the API. The returned function resolves to false after it has sent the refusal.
 * @throws an Error for the operator, if the file of users cannot be used
 */
function passwordCheck(users: string, log: Log): (request: IncomingMessage, response: ServerResponse) => Promise<boolean> {
  const strategy = httpBasic({ users, roles: null }, log, systemClock);
  return async ({ headers, url = '', method = 'GET', socket }, response) => {
    const [raw = ''] = url.split('?', 1);
    // The path as the API itself reads it: without a slash at the end, and with /v1 where that is left out.
    const bare = raw.endsWith('/') ? raw.slice(0, -1) : raw;
    const path = bare === '' || /^\/v1(?:\/|$)/.test(bare) ? bare : `/v1${bare}`;
    try {
      await strategy.identify(headers, path, method, networkOf(socket.remoteAddress ?? ''));
      return true;
    } catch (error) {
      const { status, body, headers: more } = explain(error);
      const text = JSON.stringify(body);
      response.writeHead(status, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text), ...more }).end(text);
      return false;
    }
  };
}

/** The ports of the container `httpd`. @throws Metal3Error */
export function httpdPorts(environment: Environment, context: ContainerContext, log: Log): readonly ContainerPort[] {
  for (const warning of checkVariables(environment, context)) log.warn(warning);
  checkTls(context);
  const { get, host, proxy, mediaTls, certificate, mediaCertificate, tls } = context;
  if (proxy && !context.hasUsers)
    throw new Metal3Error('the API would answer everybody: IRONIC_REVERSE_PROXY_SETUP is true, and there is no IRONIC_HTPASSWD');
  mkdirSync(`${ROOT}/images`, { recursive: true });
  const httpPort = portOf('HTTP_PORT', get('HTTP_PORT', '80'));
  const httpUrl = get('IRONIC_HTTP_URL', `http://${host}${httpPort === 80 ? '' : `:${httpPort}`}`);
  const privatePort = get('IRONIC_PRIVATE_PORT', 'unix');
  const setup = {
    modes: { mediaTls, plainImages: !tls && isTrue(get('HTTPD_SERVE_NODE_IMAGES', 'true')) },
    root: ROOT,
    boot: BOOT_SOCKET,
    api: privatePort === 'unix' ? API_SOCKET : portOf('IRONIC_PRIVATE_PORT', privatePort),
    startScript: startScript(httpUrl),
    inspectorScript: inspectorScript(context, httpUrl),
    admits: proxy ? passwordCheck(writeUsers(context), log) : async () => false,
    log,
  };
  const own = isTrue(get('LISTEN_ALL_INTERFACES', 'true')) ? context.everywhere : context.ip;
  const port = (kind: Port, listening: Omit<ContainerPort, 'listener'>): ContainerPort => ({
    ...listening,
    listener: createHttpd(setup, kind),
    upgrade: kind === 'api' ? createTunnel(setup) : undefined,
  });
  return [
    port('plain', { host: own, port: httpPort, what: 'HTTP, HTTP_PORT' }),
    ...(proxy
      ? [
          port('api', {
            host: own,
            port: portOf('IRONIC_LISTEN_PORT', get('IRONIC_LISTEN_PORT', get('IRONIC_ACCESS_PORT', '6385'))),
            what: 'the API, IRONIC_LISTEN_PORT',
            tls: tlsOf(certificate, get('IRONIC_SSL_PROTOCOL'), get('IRONIC_TLS_12_CIPHERS')),
          }),
        ]
      : []),
    ...(mediaTls
      ? [
          port('media', {
            host: context.everywhere,
            port: portOf('VMEDIA_TLS_PORT', get('VMEDIA_TLS_PORT', '8083')),
            what: 'media, VMEDIA_TLS_PORT',
            tls: tlsOf(mediaCertificate, get('IRONIC_VMEDIA_SSL_PROTOCOL'), get('IRONIC_VMEDIA_TLS_12_CIPHERS')),
          }),
        ]
      : []),
  ];
}

/** The port of the container `ironic-prometheus-exporter`: the metrics of the server, while it has any. @throws Metal3Error */
export function exporterPort(environment: Environment, log: Log): ContainerPort {
  const text = environment['FLASK_RUN_PORT'] || '9608';
  return {
    host: environment['FLASK_RUN_HOST'] || '0.0.0.0',
    port: portOf('FLASK_RUN_PORT', text),
    what: 'metrics, FLASK_RUN_PORT',
    listener: (request, response) => {
      if (!/^\/metrics(?:\?|$)/.test(request.url ?? '')) {
        refuse(response, 404, 'Not found');
        return;
      }
      proxyRequest(METRICS_SOCKET, request, response).catch((error: unknown) => {
        log.debug('the server has no metrics', { error: (error as Error).message });
        if (response.headersSent || response.destroyed) return void response.destroy();
        const down = '# HELP bloomery_up The server in the container ironic answers.\n# TYPE bloomery_up gauge\nbloomery_up 0\n';
        response.writeHead(200, { 'content-type': 'text/plain; version=0.0.4' }).end(down);
      });
    },
  };
}

/** A store without nodes. Leases live as long as the container, as those of dnsmasq in metal3's image. */
function leaseStore(): DhcpSetup['store'] {
  const leases = new Map<string, LeaseRecord>();
  const store = {
    discoveries: { addressStatuses: async () => [] },
    boots: { forMac: async () => undefined },
    leases: {
      list: async () => [...leases.values()],
      ofNode: async () => [],
      put: async (lease: LeaseRecord) => void leases.set(lease.address, lease),
      remove: async (address: string) => void leases.delete(address),
    },
    transaction: async <T>(work: (inner: Store) => Promise<T>): Promise<T> => work(store as unknown as Store),
  };
  return store;
}

/**
 * DHCP and TFTP of the container `dnsmasq`.
 * @param defaults all options as they are without a configuration file
 * @returns what stops both
 * @throws Metal3Error
 */
export async function startDnsmasq(
  environment: Environment,
  context: ContainerContext,
  defaults: Options,
  log: Log,
): Promise<() => Promise<void>> {
  for (const warning of checkVariables(environment, context)) log.warn(warning);
  const plan = dhcpPlan(context);
  const port = context.get('HTTP_PORT', '80');
  const httpUrl = context.get('IRONIC_HTTP_URL', `http://${context.host}${port === '80' ? '' : `:${port}`}`);
  const options: Options = { ...defaults, ...dhcpOptions(context, plan, httpUrl), 'pxe.tftp_server': context.ip } as Options;
  const ignored = new Set(plan.hosts.filter((host) => host.ignored).map(({ mac }) => mac));
  const known = new Set(plan.hosts.map(({ mac }) => mac));
  const lists = { isDenied: (mac: string) => ignored.has(mac), isAllowed: (mac: string) => !plan.onlyHosts || known.has(mac) };
  const tftp = await startTftp({
    options: { ...options, 'pxe.tftp_root': '/tftpboot' },
    hosts: [context.everywhere],
    log,
    clock: systemClock,
  });
  if (options['dhcp.dhcp_provider'] === 'none') return () => tftp.stop();
  const filter = { discovers: true, inspectInterfaces: [], lists, reportsBy: 'ipxe' as const };
  const reservations = plan.hosts.flatMap(({ mac, address }) => (address === undefined ? [] : [{ mac, address }]));
  const setup = { options, reservations, store: leaseStore(), filter, log, clock: systemClock, random: randomBytes };
  const dhcp = await startDhcp(setup).catch(async (error: unknown) => {
    await tftp.stop();
    throw error;
  });
  return async () => {
    await dhcp.stop();
    await tftp.stop();
  };
}
