/** The only file that knows every room: opens the store, starts api, conductor and boot services, and stops them in reverse. */
import { randomBytes } from 'node:crypto';
import { accessSync, constants, existsSync, mkdirSync } from 'node:fs';
import { createServer, type Server as HttpServer } from 'node:http';
import { hostname, networkInterfaces } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import type { AddressInfo } from 'node:net';
import { createHealthcheck } from './api/healthcheck';
import { createProbes, probeListener } from './api/probes';
import { createIntrospectionApi } from './api/introspection/server';
import { createApi, loadDocument, serverOptions } from './api/server';
import { startDhcp } from './boot/dhcp-service';
import { pxeFilter, type ReportBoots } from './boot/discovery';
import { startHttpBoot } from './boot/http';
import { startTftp } from './boot/tftp';
import { startConductor, type RunningConductor } from './conductor/index';
import { createRouter } from './conductor/router';
import { createRpcClient, type RpcClient } from './conductor/rpc-client';
import { startRpcServer, type RpcServer } from './conductor/rpc-server';
import type { Options } from './config/options';
import { withStepLog } from './drivers/fake-log';
import { discoverdService } from './drivers/discoverd';
import { createConsoles } from './drivers/consoles';
import { createIpmiClients } from './drivers/ipmi-clients';
import { measureConnections } from './drivers/measured-connections';
import { createRegistryCache } from './drivers/redfish-bios-registry';
import { HARDWARE_TYPES, INTERFACES } from './drivers/index';
import { createMetrics, type Measured, withoutMachines } from './metrics';
import { systemClock, type Clock } from './model/clock';
import { reasonOf } from './model/errors';
import type { Log } from './model/log';
import type { Metrics } from './model/metrics';
import type { BootRecord } from './model/records';
import { startEmbedded } from './store/embedded';
import { createNotifier } from './notifications';
import { inventoriesIn, noInventories } from './store/inventory-folder';
import { openStore, type OpenStore } from './store/postgres';
import type { Inventories } from './store/store';
import { mdnsInterfaces } from './wire/mdns';
import { announcedAt } from './wire/mdns-endpoint';
import { announceServices } from './wire/mdns-responder';
import { createRedfishPool } from './wire/redfish';
import { programVersion } from './version';

export const ROLES = ['api', 'conductor', 'boot', 'inspector'] as const;
export type Role = (typeof ROLES)[number];

/** The options, with those filled in whose default depends on this host or on other options. */
export type ResolvedOptions = Options & {
  readonly [
    Key in
      | 'DEFAULT.host'
      | 'DEFAULT.my_ip'
      | 'service_catalog.endpoint_override'
      | 'deploy.http_url'
      | 'deploy.http_root'
      | 'pxe.tftp_server'
      | 'pxe.tftp_root'
      | 'inspector_service.callback_url'
  ]: string;
} & { readonly 'boot.cache_root': string };

export interface Setup {
  readonly options: Options;
  readonly roles: readonly Role[];
  /** Where the embedded database, the image cache and the boot files are; made when it does not exist. */
  readonly stateDir: string;
  readonly log: Log;
  readonly clock?: Clock;
  /** Absent: made here, without those of the process. */
  readonly measured?: Measured;
  /** postgresql:// URL that wins over [database]connection (DATABASE_URL). */
  readonly databaseUrl?: string | undefined;
}
export interface Server {
  /** Where the API answers on this host; undefined without that role. */
  readonly apiUrl?: string;
  readonly bootUrl?: string;
  /** Where the introspection service answers; undefined without that role. */
  readonly inspectorUrl?: string;
  readonly options: ResolvedOptions;
  readonly conductor?: RunningConductor;
  /** `embedded` or `external`. */
  readonly database: string;
  /** Takes nothing new and lets what runs end, as RunningConductor.stop says. */
  stop(how?: Parameters<RunningConductor['stop']>[0]): Promise<void>;
}
/** The program cannot start as it was asked to; the message is for the operator. */
export class StartError extends Error {}

/** The first IPv4 address of an interface. */
const addressOf = (name: string | null): string | undefined =>
  name === null ? undefined : networkInterfaces()[name]?.find(({ family }) => family === 'IPv4')?.address;

/** Fills in what depends on this host, the ports that were taken and the state directory. */
export function resolveOptions(
  options: Options,
  stateDir: string,
  ports: { readonly api: number; readonly http: number; readonly inspector?: number },
): ResolvedOptions {
  const ip = options['DEFAULT.my_ip'] ?? addressOf(options['boot.interface']) ?? '127.0.0.1';
  const bare = (url: string): string => url.replace(/\/+$/, '');
  return {
    ...options,
    'DEFAULT.my_ip': ip,
    'DEFAULT.host': options['DEFAULT.host'] ?? hostname(),
    'service_catalog.endpoint_override': bare(options['service_catalog.endpoint_override'] ?? `http://${ip}:${ports.api}`),
    'deploy.http_url': bare(options['deploy.http_url'] ?? `http://${ip}:${ports.http}`),
    'deploy.http_root': options['deploy.http_root'] ?? join(stateDir, 'httpboot'),
    'pxe.tftp_server': options['pxe.tftp_server'] ?? ip,
    'pxe.tftp_root': options['pxe.tftp_root'] ?? join(stateDir, 'tftpboot'),
    'boot.cache_root': join(stateDir, 'cache'),
    'inspector_service.callback_url':
      options['inspector_service.callback_url'] ?? `http://${ip}:${ports.inspector ?? options['DEFAULT.listen_port']}/v1/continue`,
  };
}

/** What machines boot that the PXE filter lets in without a boot of their own: the agent, which reports their inventory. */
function reportBoots(options: ResolvedOptions): ReportBoots | undefined {
  const { 'conductor.deploy_kernel': kernel, 'conductor.deploy_ramdisk': ramdisk, 'service_catalog.endpoint_override': api } = options;
  if (kernel === null || ramdisk === null) return undefined;
  const append = [options['pxe.kernel_append_params'], options['inspector.extra_kernel_params']].filter((part) => part !== '').join(' ');
  const reporting = (uuid: string, callback: string): BootRecord => ({
    node_uuid: uuid,
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

/** Options that may name Swift, and what they may name here. */
const NO_SWIFT = {
  'inventory.data_backend': 'database, directory and none are',
  'agent.deploy_logs_storage_backend': 'local is',
} as const;
function refuseSwift(options: Options): void {
  for (const [key, instead] of Object.entries(NO_SWIFT)) {
    if (options[key as keyof typeof NO_SWIFT] !== 'swift') continue;
    const [section, name] = key.split('.');
    throw new StartError(`[${section}]${name} = swift: there is no Swift here; ${instead} what can be used`);
  }
}

/** Where inventories are kept; undefined: in the database. Throws StartError. */
function inventoriesOf(options: Options, stateDir: string): Inventories | undefined {
  const backend = options['inventory.data_backend'];
  if (backend === 'none') return noInventories;
  if (backend === 'database') return undefined;
  return inventoriesIn(prepareFolder(options['inventory.directory'] ?? join(stateDir, 'inventories'), '[inventory]directory'));
}

/** Not mkdir's own `recursive`: that never ends where a file system makes no folders (/proc). */
function makeFolder(path: string): void {
  if (existsSync(path)) return;
  makeFolder(dirname(path));
  mkdirSync(path, { mode: 0o755 });
}

function prepareFolder(path: string, what: string): string {
  try {
    makeFolder(path);
    accessSync(path, constants.W_OK | constants.X_OK);
  } catch (error) {
    throw new StartError(`cannot write ${what} ${path}: ${(error as Error).message}`);
  }
  return path;
}

/** Takes the port at once, so that one in use stops the start with a clear line. */
async function listen(server: HttpServer, host: string, port: number, what: string): Promise<number> {
  await new Promise<void>((done, fail) => {
    server.once('error', (error: NodeJS.ErrnoException) =>
      fail(
        new StartError(
          `cannot listen on ${host} port ${port} (${what}): ${error.code === 'EADDRINUSE' ? 'the port is in use' : error.message}`,
        ),
      ),
    );
    server.listen(port, host, done);
  });
  return (server.address() as AddressInfo).port;
}

async function close(server: HttpServer): Promise<void> {
  const closed = new Promise<void>((done) => server.close(() => done()));
  server.closeIdleConnections();
  const late = setTimeout(() => server.closeAllConnections(), 2000);
  await closed;
  clearTimeout(late);
}

/**
 * Tells by multicast DNS where these services are. Answers how to withdraw it.
 * @param services name → URL
 */
async function announceByMdns(
  options: ResolvedOptions,
  services: readonly (readonly [name: string, url: string])[],
  log: Log,
  clock: Clock,
): Promise<() => Promise<void>> {
  const named = options['mdns.interfaces'];
  const interfaces = mdnsInterfaces(named);
  if (interfaces.length === 0)
    throw new StartError(
      named.length === 0 ? 'mDNS: no interface has an IPv4 address' : `[mdns]interfaces: none of ${named.join(', ')} is here`,
    );
  const params = { ...options['mdns.params'], ...(options['DEFAULT.debug'] ? { ipa_debug: 'True' } : {}) };
  try {
    const responder = await announceServices({
      services: await Promise.all(services.map(([name, url]) => announcedAt(name, url, params))),
      interfaces,
      attempts: options['mdns.registration_attempts'],
      clock,
      random: Math.random,
      warn: (message, fields) => log.warn(message, fields),
    });
    return () => responder.stop();
  } catch (error) {
    throw new StartError(`mDNS: ${reasonOf(error)}`);
  }
}

/** How processes that share a database speak to each other. */
interface Rpc {
  readonly client: RpcClient;
  readonly server?: RpcServer;
}
/** Of a conductor, its listener too: its port is taken before its row says where it is. */
async function startRpc(
  roles: readonly Role[],
  {
    store,
    given,
    options,
    ...common
  }: { store: OpenStore; given: Options; options: ResolvedOptions; clock: Clock; log: Log; metrics: Metrics },
): Promise<Rpc> {
  const secret = await store.secrets.shared('json-rpc', () => randomBytes(32).toString('base64'));
  const client = createRpcClient({ ...common, options, secret, random: randomBytes });
  if (!roles.includes('conductor')) return { client };
  // As the operator says, else what this host is called by where the database is.
  const said = given['DEFAULT.my_ip'] ?? addressOf(given['boot.interface']);
  const announced = said ?? (await store.localAddress()) ?? options['DEFAULT.my_ip'];
  try {
    return { client, server: await startRpcServer({ ...common, options, announced, secret }) };
  } catch (error) {
    await client.close();
    throw error;
  }
}

/**
 * Starts the roles asked for; when one cannot start, those before it are stopped again.
 * @throws StartError, or an Error of a room, with a message for the operator
 */
export async function startServer(setup: Setup): Promise<Server> {
  const { options: given, roles, log } = setup;
  const clock = setup.clock ?? systemClock;
  const { metrics, scrape } = setup.measured ?? createMetrics();
  metrics.set('bloomery_build_info', { version: programVersion(), node_version: process.version, roles: [...roles].sort().join(',') }, 1);
  if (given['auto_discovery.enabled'] && !given['auto_discovery.driver'])
    throw new StartError('[auto_discovery]enabled needs [auto_discovery]driver: the hardware type of machines that are discovered');
  const stateDir = prepareFolder(resolve(setup.stateDir), 'the state directory');
  const stops: (() => Promise<void>)[] = [];
  const stopping = new AbortController();
  let how: Parameters<Server['stop']>[0];
  let conductor: RunningConductor | undefined;
  const stop = async (): Promise<void> => {
    stopping.abort();
    for (const undo of stops.splice(0).reverse()) await undo().catch((error: unknown) => log.error('stopping', { error }));
  };
  try {
    refuseSwift(given);
    const inventories = inventoriesOf(given, stateDir);
    const url = setup.databaseUrl ?? given['database.connection'];
    const shares = Boolean(url) && given['DEFAULT.rpc_transport'] !== 'none';
    const calls = roles.includes('api') || roles.includes('inspector');
    if (calls !== roles.includes('conductor') && !shares)
      throw new StartError(
        `the roles ${roles.includes('inspector') && !roles.includes('api') ? 'inspector' : 'api'} and conductor run in one process with ${url ? '[DEFAULT]rpc_transport = none' : 'the embedded database'}: name both or neither, ` +
          `or ${url ? 'leave json-rpc' : 'name a PostgreSQL server in [database]connection'}`,
      );
    // The database takes longest to start: the ports are taken meanwhile.
    const starting = url ? undefined : startEmbedded({ stateDir, log: log.child({ room: 'database' }), clock });
    starting?.catch(() => {});
    let handler: ReturnType<typeof createApi> | undefined;
    let apiPort = given['api.port'];
    let endApi: (() => Promise<void>) | undefined;
    if (starting) stops.push(async () => (await starting.catch(() => undefined))?.stop());
    if (roles.includes('api')) {
      const server = createServer(serverOptions(given), (request, response) => {
        if (handler) handler(request, response);
        else response.writeHead(503).end();
      });
      apiPort = await listen(server, given['api.host_ip'], given['api.port'], 'the API, [api]port');
      let closed: Promise<void> | undefined;
      endApi = () => (closed ??= close(server));
      stops.push(endApi);
    }
    let inspector: ReturnType<typeof createIntrospectionApi> | undefined;
    let inspectorPort: number | undefined;
    let endInspector: (() => Promise<void>) | undefined;
    if (roles.includes('inspector')) {
      const server = createServer(serverOptions(given), (request, response) => {
        if (inspector) inspector(request, response);
        else response.writeHead(503).end();
      });
      const { 'DEFAULT.listen_address': address, 'DEFAULT.listen_port': port } = given;
      inspectorPort = await listen(server, address, port, 'the introspection service, [DEFAULT]listen_port');
      let closed: Promise<void> | undefined;
      endInspector = () => (closed ??= close(server));
      stops.push(endInspector);
    }
    const document = roles.includes('api') ? loadDocument() : undefined;
    const service = inspectorPort === undefined ? {} : { inspector: inspectorPort };
    const early = resolveOptions(given, stateDir, { api: apiPort, http: given['boot.http_port'], ...service });
    const connection = url ?? (await starting!).connection;
    const store = await openStore({
      connection,
      poolSize: given['database.max_pool_size'],
      clock,
      log: log.child({ room: 'store' }),
      metrics,
      ...(inventories ? { inventories } : {}),
    });
    stops.push(() => store.close());

    const healthcheck = createHealthcheck(
      given,
      () => store.isUp(),
      () => clock.now(),
    );
    const probes = createProbes({
      ...(given['metrics.public'] ? { scrape: withoutMachines(scrape) } : {}),
      ...(given['healthcheck.enabled'] ? { healthcheck } : {}),
    });
    const probePort = given['metrics.prometheus_port'];
    if (probePort !== null) {
      const server = createServer(serverOptions(given), (request, response) => {
        void probeListener(createProbes({ scrape, healthcheck }), log)(request, response);
      });
      await listen(server, given['metrics.prometheus_host'], probePort, 'metrics, [metrics]prometheus_port');
      stops.push(() => close(server));
    }

    let options = early;
    if (roles.includes('boot')) {
      prepareFolder(early['deploy.http_root'], '[deploy]http_root');
      prepareFolder(early['pxe.tftp_root'], '[pxe]tftp_root');
      const reports = reportBoots(early);
      const filter = pxeFilter(early);
      if (filter.discovers && !reports)
        log.warn('unknown machines get nothing to boot: [conductor]deploy_kernel and deploy_ramdisk are not set');
      const http = await startHttpBoot({
        options: early,
        store,
        filter,
        log: log.child({ room: 'boot' }),
        clock,
        metrics,
        ...(reports ? { reports } : {}),
      });
      stops.push(() => http.stop());
      options = resolveOptions(given, stateDir, { api: apiPort, http: http.port, ...service });
      if (options['boot.tftp']) {
        const tftp = await startTftp({ options, boots: http.files, log: log.child({ room: 'boot' }), clock, metrics });
        stops.push(() => tftp.stop());
      }
      if (options['dhcp.dhcp_provider'] === 'builtin') {
        const dhcp = await startDhcp({ options, store, filter, log: log.child({ room: 'boot' }), clock, metrics, random: randomBytes });
        stops.push(() => dhcp.stop());
      }
    }

    const notifications = createNotifier({
      ...{ options, log: log.child({ room: 'notifications' }), clock, metrics, random: randomBytes },
      host: options['DEFAULT.host'],
    });
    stops.push(() => notifications.stop());

    let rpc: Rpc | undefined;
    if (shares && (roles.includes('conductor') || calls)) {
      rpc = await startRpc(roles, { store, given, options, clock, metrics, log: log.child({ room: 'conductor' }) });
      const { client, server } = rpc;
      stops.push(async () => client.close());
      if (server) stops.push(() => server.stop());
    }
    if (roles.includes('conductor')) {
      const ipmi = createIpmiClients(options, { log, clock, random: randomBytes });
      const consoles = { ...createConsoles(log), openSol: ipmi.openSol };
      const redfish = createRedfishPool({
        maxSessions: options['redfish.connection_cache_size'],
        connectTimeoutMs: options['redfish.connect_timeout'] * 1000,
      });
      const introspection = discoverdService(options);
      const pools = {
        ...{ ipmi: ipmi.ipmi, sdrCache: ipmi.sdrCache, consoles, redfish, biosRegistries: createRegistryCache() },
        ...(introspection ? { introspection } : {}),
      };
      stops.push(async () => {
        await consoles.closeAll();
        await ipmi.close();
        await redfish.close();
        await introspection?.close();
      });
      conductor = await startConductor({
        store,
        options,
        log: log.child({ room: 'conductor', host: options['DEFAULT.host'] }),
        clock,
        metrics,
        notifier: notifications.notifier,
        random: randomBytes,
        connections: measureConnections(pools, metrics),
        interfaces: withStepLog(INTERFACES, options['fake.step_log']),
        hardwareTypes: HARDWARE_TYPES,
        ...(rpc?.server ? { address: rpc.server.address, probe: (holder) => rpc.client.probe(holder) } : {}),
      });
      const running = conductor;
      stops.push(() => running.stop(how));
      rpc?.server?.serve(running);
    }
    const router = createRouter({
      ...{ store, clock, log: log.child({ room: 'api' }), options },
      ...(conductor ? { here: conductor } : {}),
      ...(rpc ? { client: rpc.client } : {}),
    });
    if (roles.includes('inspector')) {
      inspector = createIntrospectionApi({ store, conductor: router, options, log: log.child({ room: 'introspection' }), clock, metrics });
      stops.push(endInspector!);
    }
    if (roles.includes('api')) {
      handler = createApi({
        ...{ store, conductor: router, options, log: log.child({ room: 'api' }), clock, metrics, probes, signal: stopping.signal },
        notifier: notifications.notifier,
        ...(document ? { document } : {}),
      });
      // Ends first: what it asks of the others must still be there.
      stops.push(endApi!);
    }
    const announced: (readonly [string, string])[] = [];
    if (options['conductor.enable_mdns'] && conductor) announced.push(['baremetal', options['service_catalog.endpoint_override']]);
    if (options['DEFAULT.enable_mdns'] && inspector)
      announced.push(['baremetal-introspection', options['inspector_service.callback_url'].replace(/\/v1\/continue\/?$/, '')]);
    if (announced.length > 0) stops.push(await announceByMdns(options, announced, log, clock));
    return {
      ...(roles.includes('api') ? { apiUrl: `http://${options['DEFAULT.my_ip']}:${apiPort}` } : {}),
      ...(roles.includes('boot') ? { bootUrl: options['deploy.http_url'] } : {}),
      ...(inspectorPort === undefined ? {} : { inspectorUrl: `http://${options['DEFAULT.my_ip']}:${inspectorPort}` }),
      ...(conductor ? { conductor } : {}),
      options,
      database: url ? 'external' : 'embedded',
      stop: (given) => {
        how = given;
        return stop();
      },
    };
  } catch (error) {
    await stop();
    throw error;
  }
}
