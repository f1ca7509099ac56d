/** Starts the store, the API, the conductor and the boot services in one process, and stops them in reverse order. */
import { randomBytes } from 'node:crypto';
import { resolve } from 'node:path';
import { openAudit } from './audit-log';
import type { AuditLog } from '../api/http/audit';
import { watchDelay } from '../api/http/event-loop';
import type { LoginStatus } from '../api/auth/own-login';
import { createHealthcheck } from '../api/http/healthcheck';
import { createProbes, probeListener, type Probes } from '../api/http/probes';
import { createIntrospectionApi } from '../api/introspection/server';
import { createApi, loadDocument, serverOptions } from '../api/server';
import type { Document } from '../api/schema/document';
import { startDhcp } from '../boot/dhcp/service';
import { pxeFilter } from '../boot/discovery';
import { startHttpBoot } from '../boot/http';
import { createBootRequestLog } from '../boot/requests';
import { startTftp } from '../boot/tftp';
import { startConductor, type RunningConductor } from '../conductor/index';
import { createRouter } from '../conductor/rpc/router';
import { createRpcClient, type RpcClient } from '../conductor/rpc/client';
import { startRpcServer, type RpcServer } from '../conductor/rpc/server';
import { listenHosts } from '../config/access';
import type { LoadedOptions, Options } from '../config/options';
import { addressOf } from '../config/host-values';
import { tlsOf } from '../config/tls';
import { withStepLog } from '../drivers/fake/log';
import { discoverdService } from '../drivers/agent/discoverd';
import { createConsoles, type Consoles } from '../drivers/consoles';
import { createIpmiClients } from '../drivers/ipmi/clients';
import { measureConnections } from '../drivers/measured-connections';
import { createRegistryCache } from '../drivers/redfish/steps/bios-registry';
import { HARDWARE_TYPES, INTERFACES } from '../drivers/index';
import { listenHttp, type HttpListener, type ListenAddress } from './http-listener';
import { createMetrics, type MetricsAndScrape, withoutMachines } from './metrics';
import { systemClock, type Clock } from '../model/clock';
import { reasonOf } from '../model/errors';
import type { Log } from '../model/log';
import type { Enforcer } from '../policy/enforcer';
import { startEnforcer } from '../policy/live';
import type { Metrics, Scrape } from '../model/metrics';
import type { Notifier } from '../model/notifications';
import {
  bootHostsOf,
  checkOptions,
  hostInUrls,
  inventoriesOf,
  prepareFolder,
  reportBoots,
  resolveOptions,
  sharesDatabaseOf,
  StartError,
  catalogUrl,
  networkTraitsOf,
  switchesOf,
} from './settings';
import { startEmbedded } from '../store/embedded/embedded';
import { createNotifier } from './notifications';
import { openStore, type OpenStore } from '../store/postgres';
import { completePausedResponses } from '../wire/http/paused-responses';
import { mdnsInterfaces } from '../wire/dns/mdns';
import { announcedAt } from '../wire/dns/mdns-endpoint';
import { announceServices } from '../wire/dns/mdns-responder';
import { API_READ_TIMEOUT_MS, API_UNREAD_BYTES, type ClientLimits } from '../wire/http/client-limits';
import type { UpgradeListener } from '../wire/http/upgrades';
import { createServices, type Services } from '../wire/keystone/services';
import { createRedfishPool } from '../wire/redfish';
import { shareLimits } from '../wire/shares';
import { programVersion } from './version';

export const ROLES = ['api', 'conductor', 'boot', 'inspector'] as const;
export type Role = (typeof ROLES)[number];

interface ServerSetup {
  readonly options: LoadedOptions;
  readonly roles: readonly Role[];
  /** The folder of the embedded database, the image cache and the boot files; created if it does not exist. */
  readonly stateDir: string;
  readonly log: Log;
  readonly clock?: Clock;
  /** Absent: created here, without metrics of the process. */
  readonly measured?: MetricsAndScrape;
  /** A postgresql:// URL with precedence over [database]connection (DATABASE_URL). */
  readonly databaseUrl?: string | undefined;
}
type StopOptions = Parameters<RunningConductor['stop']>[0];
/** @internal */
export interface Server {
  /** The API's URL on this host; undefined without that role, and where it listens on a Unix socket. */
  readonly apiUrl?: string;
  readonly bootUrl?: string;
  /** The introspection service's URL; undefined without that role. */
  readonly inspectorUrl?: string;
  /** The services and the addresses that they are bound to. */
  readonly listening: readonly string[];
  readonly options: Options;
  readonly conductor?: RunningConductor;
  /** `embedded` or `external`. */
  readonly database: string;
  /** Accepts no new work and lets running work end, as RunningConductor.stop does. */
  stop(how?: StopOptions): Promise<void>;
  /** Reads certificates and policy files again. */
  reload(): void;
}

/** The values that all parts of the start need. */
interface StartContext {
  /** The options before values of this host are added. */
  readonly given: LoadedOptions;
  readonly roles: readonly Role[];
  readonly stateDir: string;
  readonly log: Log;
  readonly clock: Clock;
  readonly metrics: Metrics;
  readonly scrape: Scrape;
  /** URL of an external database. */
  readonly databaseUrl: string | undefined;
  /** Whether other processes may use the same database. */
  readonly sharesDatabase: boolean;
  /** Called in reverse order to stop what was started. */
  readonly stops: (() => Promise<void>)[];
  /** Called at SIGHUP. */
  readonly reloads: (() => void)[];
  /** The state of this server's own login at Keystone. */
  readonly loginStatus: LoginStatus;
}
/** The same with the store, and with options completed for this host. */
interface StoreContext extends StartContext {
  readonly store: OpenStore;
  readonly options: Options;
  /** Clients of OpenStack services. */
  readonly services: Services;
}

/** Announces the services (name, URL) by multicast DNS. Returns the function that withdraws them. */
async function announceByMdns(
  options: Options,
  services: readonly (readonly [name: string, url: string])[],
  log: Log,
  clock: Clock,
): Promise<() => Promise<void>> {
  const named = options['mdns.interfaces'];
  const interfaces = mdnsInterfaces(named);
  if (interfaces.length === 0)
    throw new StartError(
      named.length === 0
        ? 'mDNS: no interface has an IPv4 address'
        : `[mdns]interfaces: none of ${named.join(', ')} exists, is up and has an IPv4 address`,
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

/** Whether this process calls conductors. */
const callsConductors = (roles: readonly Role[]): boolean => roles.includes('api') || roles.includes('inspector');

/** Throws StartError if the API and the conductor run in different processes that cannot reach each other. */
function checkRoles({ roles, databaseUrl, sharesDatabase }: StartContext): void {
  if (callsConductors(roles) === roles.includes('conductor') || sharesDatabase) return;
  const caller = roles.includes('inspector') && !roles.includes('api') ? 'inspector' : 'api';
  throw new StartError(
    `with ${databaseUrl ? '[DEFAULT]rpc_transport = none' : 'the embedded database'}, the roles ${caller} and conductor must run in one ` +
      `process: name both or neither, or ${databaseUrl ? 'set [DEFAULT]rpc_transport = json-rpc' : 'name a PostgreSQL server in [database]connection'}`,
  );
}

const clientLimits = (options: LoadedOptions, metrics: Metrics, listener: string): ClientLimits => ({
  connections: shareLimits(options['api.max_connections'], options['api.max_connections_per_source']),
  readTimeoutMs: API_READ_TIMEOUT_MS,
  unreadBytes: API_UNREAD_BYTES,
  onRefused: (limit) => metrics.count('bloomery_connections_refused_total', { listener, limit }),
});
/** Role → name of its listener in metrics. */
const LISTENERS = { api: 'api', inspector: 'introspection' } as const;

interface Listeners {
  readonly api?: HttpListener;
  readonly inspector?: HttpListener;
}
/** Opens the ports of the HTTP services. */
async function openListeners({ given, roles, stops, reloads, metrics, log }: StartContext): Promise<Listeners> {
  const open = async (role: keyof typeof LISTENERS, address: ListenAddress, what: string): Promise<HttpListener | undefined> => {
    if (!roles.includes(role)) return undefined;
    const listener = await listenHttp({
      options: { ...serverOptions(given), expectsProxyHeaders: 'path' in address && given['api.unix_socket_proxy_protocol'] },
      limits: clientLimits(given, metrics, LISTENERS[role]),
      ...{ address, what, tls: tlsOf(given, 'api'), log },
    });
    stops.push(() => listener.close());
    reloads.push(() => listener.reload());
    return listener;
  };
  const hosts = listenHosts(given);
  const path = given['api.unix_socket'];
  const api = await (path === null
    ? open('api', { host: hosts['api.host_ip'], port: given['api.port'] }, 'the API, [api]host_ip and port')
    : open('api', { path, mode: given['api.unix_socket_mode'] }, 'the API, [api]unix_socket'));
  const inspector = await open(
    'inspector',
    { host: hosts['DEFAULT.listen_address'], port: given['DEFAULT.listen_port'] },
    'the introspection service, [DEFAULT]listen_address and listen_port',
  );
  return { ...(api ? { api } : {}), ...(inspector ? { inspector } : {}) };
}

/** Health check and metrics for the API, also on a port of their own if configured. */
async function startProbes(
  { given, log, clock, metrics, scrape, stops, reloads, loginStatus }: StartContext,
  store: OpenStore,
): Promise<Probes> {
  const delay = watchDelay();
  stops.push(async () => delay.stop());
  const healthcheck = createHealthcheck(
    given,
    { isDatabaseUp: () => store.isUp(), lastingDelay: () => delay.lasting(), loginRefusal: () => loginStatus.refusal },
    () => clock.now(),
  );
  const [port, path] = [given['metrics.prometheus_port'], given['metrics.prometheus_unix_socket']];
  if (port !== null || path !== null) {
    const listener = await listenHttp({
      options: { ...serverOptions(given), expectsProxyHeaders: path !== null && given['api.unix_socket_proxy_protocol'] },
      limits: clientLimits(given, metrics, 'metrics'),
      ...(path === null
        ? {
            address: { host: given['metrics.prometheus_host'], port: port! },
            what: 'metrics, [metrics]prometheus_host and prometheus_port',
          }
        : { address: { path, mode: 0o600 }, what: 'metrics, [metrics]prometheus_unix_socket' }),
      tls: tlsOf(given, 'metrics'),
      log,
    });
    reloads.push(() => listener.reload());
    stops.push(() => listener.close());
    const answer = probeListener(createProbes({ scrape, healthcheck }), log);
    listener.answer((request, response) => void answer(request, response));
  }
  return createProbes({
    ...(given['metrics.public'] ? { scrape: withoutMachines(scrape) } : {}),
    ...(given['healthcheck.enabled'] ? { healthcheck } : {}),
  });
}

/** The ports of HTTP boot. `https` is the second port, with TLS; null: there is none. */
interface BootPorts {
  readonly http: number;
  readonly https: number | null;
}
/** The clients of OpenStack services, which all roles share. */
function startServices({ given, clock, stops }: StartContext): Services {
  const ending = new AbortController();
  const services = createServices(given, { clock, signal: ending.signal });
  stops.push(async () => {
    ending.abort();
    for (const service of Object.values(services)) await service.close();
  });
  return services;
}

/** Starts HTTP boot, TFTP and DHCP. Returns the options with the port of HTTP boot, and the URLs that it is bound to. */
async function startBoot(
  { options, store, services, clock, metrics, stops, ...context }: StoreContext,
  resolveWith: (ports: BootPorts) => Options,
): Promise<{ readonly options: Options; readonly bound: readonly string[] }> {
  prepareFolder(options['deploy.http_root'], '[deploy]http_root');
  prepareFolder(options['pxe.tftp_root'], '[pxe]tftp_root');
  const reports = reportBoots(options);
  const filter = pxeFilter(options);
  if (filter.discovers && !reports)
    context.log.warn('unknown machines get nothing to boot: [conductor]deploy_kernel and deploy_ramdisk are not set');
  const log = context.log.child({ component: 'boot' });
  const requests = createBootRequestLog(store.boots, clock, log);
  stops.push(async () => requests.stop());
  const http = await startHttpBoot({
    ...{ options, store, filter, requests, glance: services.glance, log, clock, metrics, hosts: bootHostsOf(options, 'boot.http_host') },
    ...{ tls: tlsOf(options, 'boot'), secondTls: tlsOf(options, 'boot with TLS') },
    ...(reports ? { reports } : {}),
  });
  stops.push(() => http.stop());
  context.reloads.push(() => http.reload());
  const resolved = resolveWith({ http: http.port, https: http.httpsPort });
  if (resolved['boot.tftp']) {
    const tftp = await startTftp({
      options: resolved,
      hosts: bootHostsOf(options, 'boot.tftp_host'),
      boots: http.files,
      log,
      clock,
      metrics,
    });
    stops.push(() => tftp.stop());
  }
  if (resolved['dhcp.dhcp_provider'] === 'builtin') {
    const dhcp = await startDhcp({ options: resolved, store, filter, requests, log, clock, metrics, random: randomBytes });
    stops.push(() => dhcp.stop());
  }
  return { options: resolved, bound: http.bound };
}

/** Calls between the processes that share a database. */
interface Rpc {
  readonly client: RpcClient;
  /** Only with the role conductor. */
  readonly server?: RpcServer;
}
/** Undefined if this process neither calls conductors nor is one, or if no other process shares the database. */
async function startRpc({ roles, given, options, store, clock, metrics, stops, ...context }: StoreContext): Promise<Rpc | undefined> {
  if (!context.sharesDatabase || !(roles.includes('conductor') || callsConductors(roles))) return undefined;
  const secret = await store.secrets.shared('json-rpc', () => randomBytes(32).toString('base64'));
  const common = { options, secret, clock, metrics, log: context.log.child({ component: 'conductor' }) };
  const client = createRpcClient({ ...common, random: randomBytes });
  stops.push(async () => client.close());
  context.reloads.push(() => client.reload());
  if (!roles.includes('conductor')) return { client };
  // The configured address, else the one by which this host reaches the database.
  const configured = given['DEFAULT.my_ip'] ?? addressOf(given['boot.interface']);
  const announced = configured ?? (await store.localAddress()) ?? options['DEFAULT.my_ip'];
  const server = await startRpcServer({ ...common, announced, tls: tlsOf(given, 'json_rpc') });
  context.reloads.push(() => server.reload());
  stops.push(() => server.stop());
  return { client, server };
}

/** @param stopOptions called at the stop; returns the options of the stop */
async function startConductorRole(
  { given, options, store, services, clock, metrics, stops, log }: StoreContext,
  notifier: Notifier,
  rpc: Rpc | undefined,
  tcpConsoles: Consoles,
  stopOptions: () => StopOptions,
): Promise<RunningConductor> {
  const ipmi = createIpmiClients(options, { log, clock, random: randomBytes });
  const consoles = { ...tcpConsoles, openSol: ipmi.openSol };
  const redfish = createRedfishPool({
    maxSessions: options['redfish.connection_cache_size'],
    connectTimeoutMs: options['redfish.connect_timeout'] * 1000,
  });
  const introspection = discoverdService(options);
  const switches = switchesOf(options);
  const networkTraits = networkTraitsOf(options);
  const apiUrl = catalogUrl(given, services);
  const connections = {
    services,
    ...{ ipmi: ipmi.ipmi, sdrCache: ipmi.sdrCache, consoles, redfish, biosRegistries: createRegistryCache() },
    ...(introspection ? { introspection } : {}),
    ...(switches ? { switches } : {}),
    ...(networkTraits ? { networkTraits } : {}),
    ...(apiUrl ? { apiUrl } : {}),
  };
  stops.push(async () => {
    await consoles.closeAll();
    await ipmi.close();
    await redfish.close();
    await introspection?.close();
    await switches?.close();
  });
  const conductor = await startConductor({
    ...{ store, options, clock, metrics, notifier },
    log: log.child({ component: 'conductor', host: options['DEFAULT.host'] }),
    random: randomBytes,
    connections: measureConnections(connections, metrics),
    interfaces: withStepLog(INTERFACES, options['fake.step_log']),
    hardwareTypes: HARDWARE_TYPES,
    ...(rpc?.server ? { address: rpc.server.address, probe: (holder) => rpc.client.probe(holder) } : {}),
  });
  stops.push(() => conductor.stop(stopOptions()));
  rpc?.server?.serve(conductor);
  return conductor;
}

interface ApiParts {
  readonly document: Document;
  readonly listeners: Listeners;
  readonly probes: Probes;
  readonly notifier: Notifier;
  readonly rpc: Rpc | undefined;
  readonly conductor: RunningConductor | undefined;
  /** The consoles of the conductor in this process. */
  readonly consoles: Consoles;
  /** Absent: without the roles `api` and `inspector`. */
  readonly enforcer: Enforcer | undefined;
  /** Aborted when the server stops. */
  readonly stopping: AbortSignal;
}
/** Opens the audit log if it is enabled. Throws an Error for the operator. */
function startAudit({ options, log, clock, metrics, stops, reloads }: StoreContext): AuditLog | undefined {
  if (!options['audit.enabled']) return undefined;
  const audit = openAudit(options, log, clock, metrics);
  stops.push(() => audit.stop());
  reloads.push(() => audit.reopen());
  return audit;
}

/** Throws an Error for the operator if the policy files cannot be used. */
async function startPolicies({ given, log, stops, reloads }: StartContext): Promise<Enforcer> {
  const live = await startEnforcer(given, log.child({ component: 'api' }));
  stops.push(() => live.stop());
  reloads.push(() => live.reload());
  return live.enforcer;
}

/** Sets the handlers of the listeners. At a stop, the APIs end first, because they use all other services. */
function startApis(context: StoreContext, parts: ApiParts): void {
  const { store, options, clock, metrics, log, stops, loginStatus } = context;
  const { listeners, document, probes, notifier, rpc, conductor: localConductor, consoles, enforcer, stopping } = parts;
  const { api, inspector } = listeners;
  const conductor = createRouter({
    ...{ store, clock, log: log.child({ component: 'api' }), options },
    ...(localConductor ? { here: localConductor } : {}),
    ...(rpc ? { client: rpc.client } : {}),
  });
  const audit = startAudit(context);
  const audited = audit ? { audit } : {};
  const policies = enforcer ? { enforcer } : {};
  if (inspector) {
    const introspectionLog = log.child({ component: 'introspection' });
    inspector.answer(
      createIntrospectionApi({
        store,
        conductor,
        options,
        log: introspectionLog,
        clock,
        metrics,
        document,
        loginStatus,
        signal: stopping,
        ...policies,
        ...audited,
      }),
    );
    stops.push(() => inspector.close());
  }
  if (api) {
    const apiLog = log.child({ component: 'api' });
    const services = { store, conductor, options, log: apiLog, clock, metrics, probes, notifier, document, loginStatus };
    const apiConsoles = {
      portOf: (uuid: string): Promise<number | undefined> => consoles.portOf(uuid),
      upgrade: (listener: UpgradeListener): void => api.upgrade(listener),
    };
    api.answer(createApi({ ...services, ...policies, consoles: apiConsoles, signal: stopping, ...audited }));
    stops.push(() => api.close());
  }
}

/** Announces the services for which the options enable mDNS. */
async function announce(
  { given, options, log, clock, stops }: StoreContext,
  hasConductor: boolean,
  inspector: HttpListener | undefined,
): Promise<void> {
  const services: (readonly [string, string])[] = [];
  if (options['conductor.enable_mdns'] && hasConductor) services.push(['baremetal', options['service_catalog.endpoint_override']]);
  if (options['DEFAULT.enable_mdns'] && inspector) {
    const callback = options['inspector_service.callback_url'];
    const own = urlOf(inspector, given, options['DEFAULT.listen_address'])!;
    services.push(['baremetal-introspection', callback === 'mdns' ? own : callback.replace(/\/v1\/continue\/?$/, '')]);
  }
  if (services.length > 0) stops.push(await announceByMdns(options, services, log, clock));
}

/** The URL by which machines and this host reach a listener; undefined for a Unix socket. @param host the address that it listens on */
const urlOf = ({ scheme, port }: HttpListener, given: LoadedOptions, host: string): string | undefined =>
  port === undefined ? undefined : `${scheme}://${hostInUrls(given, host)}:${port}`;

type Started = Omit<Server, 'stop' | 'reload'>;
async function startAll(context: StartContext, stopping: AbortSignal, stopOptions: () => StopOptions): Promise<Started> {
  const { given, roles, stateDir, log, clock, metrics, databaseUrl, stops } = context;
  const services = startServices(context);
  const inventories = inventoriesOf(given, stateDir, services);
  checkRoles(context);
  const enforcer = callsConductors(roles) ? await startPolicies(context) : undefined;
  // The database takes longest to start; meanwhile the ports are opened.
  const starting = databaseUrl ? undefined : startEmbedded({ stateDir, log: log.child({ component: 'database' }), clock });
  starting?.catch(() => {});
  if (starting) stops.push(async () => (await starting.catch(() => undefined))?.stop());
  const listeners = await openListeners(context);
  const { api, inspector } = listeners;
  const document = api || inspector ? loadDocument() : undefined;
  const resolveWith = (ports: BootPorts): Options =>
    resolveOptions(given, stateDir, { ...ports, api: api?.port ?? given['api.port'], inspector: inspector?.port });
  const store = await openStore({
    connection: databaseUrl ?? (await starting!).connection,
    poolSize: given['database.max_pool_size'],
    sizes: {
      field: 1024 * given['database.max_field_size'],
      record: 1024 * given['database.max_record_size'],
      configdrive: 1024 * given['database.max_configdrive_size'],
    },
    ...{ clock, metrics, log: log.child({ component: 'store' }) },
    ...(inventories ? { inventories } : {}),
  });
  stops.push(() => store.close());
  const probes = await startProbes(context, store);

  const initial: StoreContext = {
    ...context,
    ...{ store, services },
    options: resolveWith({ http: given['boot.http_port'], https: given['boot.https_port'] }),
  };
  const { options, bound } = roles.includes('boot') ? await startBoot(initial, resolveWith) : { options: initial.options, bound: [] };
  const complete: StoreContext = { ...initial, options };
  const notifications = createNotifier({
    ...{ options, clock, metrics, random: randomBytes, log: log.child({ component: 'notifications' }) },
    host: options['DEFAULT.host'],
  });
  stops.push(() => notifications.stop());
  const { notifier } = notifications;
  const rpc = await startRpc(complete);
  const consoles = createConsoles(log);
  const conductor = roles.includes('conductor') ? await startConductorRole(complete, notifier, rpc, consoles, stopOptions) : undefined;
  if (document) startApis(complete, { listeners, document, probes, notifier, rpc, conductor, consoles, enforcer, stopping });
  await announce(complete, conductor !== undefined, inspector);
  const apiUrl = api && urlOf(api, given, options['api.host_ip']);
  const inspectorUrl = inspector && urlOf(inspector, given, options['DEFAULT.listen_address']);
  return {
    ...(apiUrl === undefined ? {} : { apiUrl }),
    ...(roles.includes('boot') ? { bootUrl: options['deploy.http_url'] } : {}),
    ...(inspectorUrl === undefined ? {} : { inspectorUrl }),
    listening: [
      ...(api ? [`API ${api.bound}`] : []),
      ...(inspector ? [`introspection ${inspector.bound}`] : []),
      ...bound.map((url) => `boot ${url}`),
    ],
    ...(conductor ? { conductor } : {}),
    options,
    database: databaseUrl ? 'external' : 'embedded',
  };
}

/**
 * Starts the roles. If one cannot start, the started ones are stopped again.
 * @throws StartError, or an Error of a component, with a message for the operator
 */
export async function startServer(setup: ServerSetup): Promise<Server> {
  const { options: given, roles, log, clock = systemClock } = setup;
  const { metrics, scrape } = setup.measured ?? createMetrics();
  metrics.set('bloomery_build_info', { version: programVersion(), node_version: process.version, roles: [...roles].sort().join(',') }, 1);
  const databaseUrl = setup.databaseUrl ?? given['database.connection'] ?? undefined;
  const sharesDatabase = sharesDatabaseOf(given, databaseUrl);
  const stateDir = resolve(setup.stateDir);
  for (const warning of checkOptions(given, roles, sharesDatabase, stateDir)) log.warn(warning);
  await completePausedResponses();
  prepareFolder(stateDir, 'the state directory');
  const stops: StartContext['stops'] = [];
  const reloads: StartContext['reloads'] = [];
  const loginStatus: LoginStatus = { refusal: undefined };
  const stopping = new AbortController();
  let stopOptions: StopOptions;
  const stop = async (): Promise<void> => {
    stopping.abort();
    for (const step of stops.splice(0).reverse())
      await step().catch((error: unknown) => log.error('a part of the server could not be stopped', { error }));
  };
  try {
    const context: StartContext = {
      given,
      roles,
      stateDir,
      log,
      clock,
      metrics,
      scrape,
      databaseUrl,
      sharesDatabase,
      stops,
      reloads,
      loginStatus,
    };
    const started = await startAll(context, stopping.signal, () => stopOptions);
    return {
      ...started,
      stop: (how) => {
        stopOptions = how;
        return stop();
      },
      reload: () => reloads.forEach((reload) => reload()),
    };
  } catch (error) {
    await stop();
    throw error;
  }
}
