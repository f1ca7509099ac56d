/** Starts the roles of a server in one process, and stops them in reverse order. */
import { randomBytes } from 'node:crypto';
import { resolve } from 'node:path';
import { loadDocument } from '../api/schema/document';
import { readHealthRules, type RunningConductor } from '../conductor/index';
import type { LoadedOptions, Options } from '../config/options';
import { createConsoles } from '../drivers/consoles';
import { createScreens } from '../drivers/screens';
import { systemClock, type Clock } from '../model/clock';
import type { Log } from '../model/log';
import { completePausedResponses } from '../wire/http/paused-responses';
import { createServices, type Services } from '../wire/keystone/services';
import { startApis, startPolicies } from './api';
import { startAudit } from './audit-log';
import { startBoot, type BootPorts } from './boot';
import { startConductorRole } from './conductor';
import type { StartContext, StopOptions, StoreContext } from './context';
import { inventoriesOf, startDatabase } from './database';
import { openListeners, urlOf } from './listeners';
import { announce } from './mdns';
import { createMetrics, type MetricsAndScrape } from './metrics';
import { startScreens } from './screens';
import { createNotifier } from './notifications';
import { startProbes } from './probes';
import { callsConductors, checkRoles, type Role } from './roles';
import { startRpc } from './rpc';
import { checkOptions } from './setting-checks';
import { prepareFolder, resolveOptions, sharesDatabaseOf } from './settings';
import { programVersion } from './version';

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
interface Server {
  /** The API's URL on this host; undefined without that role, and where it listens on a Unix socket. */
  readonly apiUrl?: string | undefined;
  readonly bootUrl?: string | undefined;
  /** The introspection service's URL; undefined without that role. */
  readonly inspectorUrl?: string | undefined;
  /** The services and the addresses that they are bound to. */
  readonly listening: readonly string[];
  readonly options: Options;
  readonly conductor?: RunningConductor | undefined;
  /** `embedded` or `external`. */
  readonly database: string;
  /** Accepts no new work and lets running work end, as RunningConductor.stop does. */
  stop(how?: StopOptions): Promise<void>;
  /** Reads certificates and policy files again. */
  reload(): void;
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

type Started = Omit<Server, 'stop' | 'reload'>;
async function startAll(context: StartContext): Promise<Started> {
  const { given, roles, stateDir, log, clock, metrics, databaseUrl, sharesDatabase, stops } = context;
  const services = startServices(context);
  const inventories = inventoriesOf(given, stateDir, services);
  checkRoles(roles, databaseUrl, sharesDatabase);
  const enforcer = callsConductors(roles) ? await startPolicies(context) : undefined;
  // The database takes longest to start; meanwhile the ports are opened.
  const openDatabase = startDatabase(context, inventories);
  const listeners = await openListeners(context);
  const { api, inspector } = listeners;
  const document = api || inspector ? loadDocument() : undefined;
  const resolveWith = (ports: BootPorts): Options =>
    resolveOptions(given, stateDir, {
      ...ports,
      api: api?.port ?? given['api.port'],
      inspector: inspector?.port,
      vnc: listeners.screens?.port,
    });
  const store = await openDatabase();
  const probes = await startProbes(context, store);

  const initial: StoreContext = {
    ...context,
    store,
    services,
    options: resolveWith({ http: given['boot.http_port'], https: given['boot.https_port'] }),
  };
  const { options, bound } = roles.includes('boot') ? await startBoot(initial, resolveWith) : { options: initial.options, bound: [] };
  const complete: StoreContext = { ...initial, options };
  const notifications = createNotifier({
    options,
    clock,
    metrics,
    random: randomBytes,
    log: log.child({ component: 'notifications' }),
    host: options['DEFAULT.host'],
  });
  stops.push(() => notifications.stop());
  const { notifier } = notifications;
  const rpc = await startRpc(complete);
  const consoles = createConsoles(log);
  const viewers = createScreens({ inAll: given['vnc.max_screens'], ofNode: given['vnc.max_users_per_screen'] });
  const conductor = roles.includes('conductor') ? await startConductorRole(complete, { notifier, rpc, consoles, viewers }) : undefined;
  const audit = document || listeners.screens ? startAudit(complete) : undefined;
  const screens = startScreens(complete, { listener: listeners.screens, viewers, consoles, conductor, rpc, audit });
  const healthRules = await readHealthRules(options['health.rules']);
  const used = { healthRules, listeners, probes, notifier, rpc, conductor, consoles, screens, audit, enforcer };
  if (document) startApis(complete, { ...used, document });
  await announce(complete, conductor !== undefined, inspector);
  const apiUrl = api && urlOf(api, given, options['api.host_ip']);
  const inspectorUrl = inspector && urlOf(inspector, given, options['DEFAULT.listen_address']);
  return {
    apiUrl,
    bootUrl: roles.includes('boot') ? options['deploy.http_url'] : undefined,
    inspectorUrl,
    listening: [
      ...(api ? [`API ${api.bound}`] : []),
      ...(listeners.screens ? [`screens ${listeners.screens.bound}`] : []),
      ...(inspector ? [`introspection ${inspector.bound}`] : []),
      ...bound.map((url) => `boot ${url}`),
    ],
    conductor,
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
  const stopping = new AbortController();
  let stopOptions: StopOptions;
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
    stops: [],
    reloads: [],
    loginStatus: { refusal: undefined },
    stopping: stopping.signal,
    stopOptions: () => stopOptions,
  };
  const stop = async (): Promise<void> => {
    stopping.abort();
    for (const step of context.stops.splice(0).reverse())
      await step().catch((error: unknown) => log.error('a part of the server could not be stopped', { error }));
  };
  try {
    const started = await startAll(context);
    return {
      ...started,
      stop: (how) => {
        stopOptions = how;
        return stop();
      },
      reload: () => context.reloads.forEach((reload) => reload()),
    };
  } catch (error) {
    await stop();
    throw error;
  }
}
