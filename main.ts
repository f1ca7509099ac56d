/** The only file that knows every room: opens the store, starts api, conductor and boot services, and stops them in reverse. */
import { randomBytes } from 'node:crypto';
import { resolve } from 'node:path';
import { createHealthcheck } from './api/http/healthcheck';
import { createProbes, probeListener } from './api/http/probes';
import { createIntrospectionApi } from './api/introspection/server';
import { createApi, loadDocument, serverOptions } from './api/server';
import { startDhcp } from './boot/dhcp-service';
import { pxeFilter } from './boot/discovery';
import { startHttpBoot } from './boot/http';
import { startTftp } from './boot/tftp';
import { startConductor, type RunningConductor } from './conductor/index';
import { createRouter } from './conductor/rpc/router';
import { createRpcClient, type RpcClient } from './conductor/rpc/client';
import { startRpcServer, type RpcServer } from './conductor/rpc/server';
import type { Options } from './config/options';
import { withStepLog } from './drivers/fake/log';
import { discoverdService } from './drivers/agent/discoverd';
import { createConsoles } from './drivers/consoles';
import { createIpmiClients } from './drivers/ipmi/clients';
import { measureConnections } from './drivers/measured-connections';
import { createRegistryCache } from './drivers/redfish/steps/bios-registry';
import { HARDWARE_TYPES, INTERFACES } from './drivers/index';
import { listenHttp, type HttpListener } from './listeners';
import { createMetrics, type MetricsAndScrape, withoutMachines } from './metrics';
import { systemClock, type Clock } from './model/clock';
import { reasonOf } from './model/errors';
import type { Log } from './model/log';
import type { Metrics } from './model/metrics';
import {
  addressOf,
  checkOptions,
  inventoriesOf,
  prepareFolder,
  reportBoots,
  resolveOptions,
  StartError,
  type ResolvedOptions,
} from './settings';
import { startEmbedded } from './store/embedded/embedded';
import { createNotifier } from './notifications';
import { openStore, type OpenStore } from './store/postgres';
import { mdnsInterfaces } from './wire/dns/mdns';
import { announcedAt } from './wire/dns/mdns-endpoint';
import { announceServices } from './wire/dns/mdns-responder';
import { createRedfishPool } from './wire/redfish';
import { programVersion } from './version';

export const ROLES = ['api', 'conductor', 'boot', 'inspector'] as const;
export type Role = (typeof ROLES)[number];

export interface Setup {
  readonly options: Options;
  readonly roles: readonly Role[];
  /** Where the embedded database, the image cache and the boot files are; made when it does not exist. */
  readonly stateDir: string;
  readonly log: Log;
  readonly clock?: Clock;
  /** Absent: made here, without those of the process. */
  readonly measured?: MetricsAndScrape;
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
      named.length === 0
        ? 'mDNS: no interface has an IPv4 address'
        : `[mdns]interfaces: none of ${named.join(', ')} is here, up and with an IPv4 address`,
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
  checkOptions(given);
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
    if (starting) stops.push(async () => (await starting.catch(() => undefined))?.stop());
    const http = serverOptions(given);
    const open = async (role: Role, host: string, port: number, what: string): Promise<HttpListener | undefined> => {
      if (!roles.includes(role)) return undefined;
      const door = await listenHttp(http, host, port, what);
      stops.push(() => door.close());
      return door;
    };
    const apiDoor = await open('api', given['api.host_ip'], given['api.port'], 'the API, [api]port');
    const inspectorDoor = await open(
      'inspector',
      given['DEFAULT.listen_address'],
      given['DEFAULT.listen_port'],
      'the introspection service, [DEFAULT]listen_port',
    );
    const ports = { api: apiDoor?.port ?? given['api.port'], ...(inspectorDoor ? { inspector: inspectorDoor.port } : {}) };
    const document = roles.includes('api') || inspectorDoor ? loadDocument() : undefined;
    const early = resolveOptions(given, stateDir, { ...ports, http: given['boot.http_port'] });
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
      const door = await listenHttp(http, given['metrics.prometheus_host'], probePort, 'metrics, [metrics]prometheus_port');
      stops.push(() => door.close());
      const listener = probeListener(createProbes({ scrape, healthcheck }), log);
      door.answer((request, response) => void listener(request, response));
    }

    let options = early;
    if (roles.includes('boot')) {
      prepareFolder(early['deploy.http_root'], '[deploy]http_root');
      prepareFolder(early['pxe.tftp_root'], '[pxe]tftp_root');
      const reports = reportBoots(early);
      const filter = pxeFilter(early);
      if (filter.discovers && !reports)
        log.warn('unknown machines get nothing to boot: [conductor]deploy_kernel and deploy_ramdisk are not set');
      const files = await startHttpBoot({
        options: early,
        store,
        filter,
        log: log.child({ room: 'boot' }),
        clock,
        metrics,
        ...(reports ? { reports } : {}),
      });
      stops.push(() => files.stop());
      options = resolveOptions(given, stateDir, { ...ports, http: files.port });
      if (options['boot.tftp']) {
        const tftp = await startTftp({ options, boots: files.files, log: log.child({ room: 'boot' }), clock, metrics });
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
    // What answers ends first: what it asks of the others must still be there.
    if (inspectorDoor) {
      inspectorDoor.answer(
        createIntrospectionApi({
          ...{ store, conductor: router, options, log: log.child({ room: 'introspection' }), clock, metrics },
          ...(document ? { document } : {}),
        }),
      );
      stops.push(() => inspectorDoor.close());
    }
    if (apiDoor) {
      const api = createApi({
        ...{ store, conductor: router, options, log: log.child({ room: 'api' }), clock, metrics, probes, signal: stopping.signal },
        notifier: notifications.notifier,
        ...(document ? { document } : {}),
      });
      apiDoor.answer(api);
      stops.push(() => apiDoor.close());
    }
    const announced: (readonly [string, string])[] = [];
    if (options['conductor.enable_mdns'] && conductor) announced.push(['baremetal', options['service_catalog.endpoint_override']]);
    if (options['DEFAULT.enable_mdns'] && inspectorDoor) {
      const callback = options['inspector_service.callback_url'];
      const own = `http://${options['DEFAULT.my_ip']}:${inspectorDoor.port}`;
      announced.push(['baremetal-introspection', callback === 'mdns' ? own : callback.replace(/\/v1\/continue\/?$/, '')]);
    }
    if (announced.length > 0) stops.push(await announceByMdns(options, announced, log, clock));
    return {
      ...(apiDoor ? { apiUrl: `http://${options['DEFAULT.my_ip']}:${apiDoor.port}` } : {}),
      ...(roles.includes('boot') ? { bootUrl: options['deploy.http_url'] } : {}),
      ...(inspectorDoor ? { inspectorUrl: `http://${options['DEFAULT.my_ip']}:${inspectorDoor.port}` } : {}),
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
