/** `bloomery metal3 …`: the programs of metal3's Ironic image (docs/metal3.md). The image has a short script for each. */
import { request as httpRequest } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { connect, type Socket } from 'node:net';
import { systemClock } from '../../model/clock';
import type { Command } from 'commander';
import type { Log } from '../../model/log';
import { loadOptions } from '../../config/load';
import type { Options } from '../../config/options';
import { exporterPort, findContext, httpdPorts, prepareIronic, startDnsmasq, type ContainerPort } from '../../metal3/containers';
import { watchLogs } from '../../metal3/log-watch';
import { Metal3Error, contextOf, type Environment } from '../../metal3/container-context';
import { checkVariables } from '../../metal3/settings';
import { listenHttp } from '../../server/http-listener';
import { createLog } from '../../server/logging';
import { resolveOptions } from '../../server/settings';
import { proxyHeader } from '../../wire/http/proxy-protocol';
import { sync, version } from '../db';
import { addHardwareSync } from './hardware';
import { serve } from '../serve';
import { withConfigFiles, type SetupArguments } from '../setup';
import { print } from '../output';

const environment: Environment = process.env;
const DATA = '/data';

/** Limits of the listeners of metal3's containers. Firmware may stop reading for two minutes. */
const HTTP_LIMITS = { connections: { inAll: 4096, ofSource: 2048 }, readTimeoutMs: 120_000 };
const HTTP_TIMEOUTS = { headersTimeout: 10_000, requestTimeout: 300_000, keepAliveTimeout: 10_000, connectionsCheckingInterval: 2500 };
/** Opens a port. @returns a function that closes it */
async function listen({ host, port, what, tls, listener, upgrade }: ContainerPort, log: Log): Promise<() => Promise<void>> {
  const listening = await listenHttp({ options: HTTP_TIMEOUTS, limits: HTTP_LIMITS, address: { host, port }, what, tls, log });
  listening.answer(listener);
  if (upgrade) listening.upgrade(upgrade);
  return () => listening.close();
}
/** The options without a configuration file, and the log that they configure. */
function defaults(): { readonly options: Options; readonly log: Log; readonly flush: () => void } {
  const { options } = loadOptions([], process.env);
  const { log, flush } = createLog(options);
  return { options: resolveOptions(options, DATA, { api: 0, http: 0, https: null }), log, flush };
}

/** Aborted at the first signal. Without handlers, the first process of a container ignores these signals. */
function interrupted(): { readonly signal: AbortSignal; readonly release: () => void } {
  const controller = new AbortController();
  const end = (): void => controller.abort();
  const names = ['SIGTERM', 'SIGINT'] as const;
  for (const name of names) process.on(name, end);
  return { signal: controller.signal, release: () => names.forEach((name) => process.off(name, end)) };
}
const ended = (signal: AbortSignal): Promise<void> =>
  new Promise((done) => {
    if (signal.aborted) done();
    else signal.addEventListener('abort', () => done(), { once: true });
  });

/** Runs a container until a signal. @param start returns a function that stops it */
async function runContainer(
  name: string,
  start: (signal: AbortSignal, log: Log, options: Options) => Promise<() => Promise<void>>,
): Promise<void> {
  const { signal } = interrupted();
  const { options, log, flush } = defaults();
  try {
    const stop = await start(signal, log, options);
    print(`bloomery: ${name} is ready`);
    await ended(signal);
    await stop();
  } catch (error) {
    if (!signal.aborted) throw error;
  } finally {
    flush();
  }
  process.exit(0);
}

/** Runs a program until it ends or a signal ends it. */
async function runUntilSignal(work: (signal: AbortSignal, log: Log) => Promise<void>): Promise<void> {
  const { signal, release } = interrupted();
  const { log, flush } = defaults();
  try {
    await work(signal, log);
  } finally {
    release();
    flush();
  }
}

async function ironic(): Promise<void> {
  const { signal, release } = interrupted();
  const context = await findContext(environment, signal).catch((error: unknown) => {
    if (signal.aborted) process.exit(0);
    throw error;
  });
  release();
  const { log, flush } = defaults();
  const { file, warnings } = prepareIronic(environment, context);
  for (const warning of warnings) log.warn(warning);
  flush();
  print(`bloomery: ${context.ip} is the address on the provisioning network; the configuration is in ${file}`);
  const roles = ['api', 'conductor', 'boot'] as const;
  await serve({ configFile: [file], configDir: [], stateDir: context.data, roles });
}

const listenOn =
  (portsOf: (signal: AbortSignal, log: Log) => Promise<readonly ContainerPort[]>) =>
  async (signal: AbortSignal, log: Log): Promise<() => Promise<void>> => {
    const closes: (() => Promise<void>)[] = [];
    for (const port of await portsOf(signal, log)) closes.push(await listen(port, log));
    return async () => void (await Promise.all(closes.map((close) => close())));
  };

const connection = (): string | undefined => environment['OS_DATABASE__CONNECTION'] || environment['DATABASE_URL'];
const setup = (given: Partial<SetupArguments> = {}): SetupArguments => ({ configFile: [], configDir: [], stateDir: DATA, ...given });

/** A job that runs before or after an upgrade. It has variables of its own, and needs no address on the provisioning network. */
async function upgradeDatabase(): Promise<void> {
  const context = contextOf(environment, { ip: '127.0.0.1', hasIpv6: false, exists: () => false });
  checkVariables(environment, context);
  if (connection() === undefined) print('bloomery: nothing to do: the server updates its embedded database at its start');
  else await sync(setup());
}

const PROBE_MS = 5000;
function connectToSocket(): Socket {
  const socket = connect('/shared/ironic.sock');
  socket.write(proxyHeader({}));
  return socket;
}
/** Checks that the API responds, on the address or socket that the variables set. */
async function probe(): Promise<void> {
  const { signal } = interrupted();
  const { proxy, get, scheme, ip } = await findContext(environment, signal);
  const onSocket = proxy && get('IRONIC_PRIVATE_PORT', 'unix') === 'unix';
  const port = proxy ? get('IRONIC_PRIVATE_PORT') : get('IRONIC_LISTEN_PORT', get('IRONIC_ACCESS_PORT', '6385'));
  const host = get('LISTEN_ALL_INTERFACES', 'true') === 'true' || proxy ? '127.0.0.1' : ip;
  // The certificate is not verified, because it is not for the address that the probe uses.
  const options = { path: '/v1', timeout: PROBE_MS, ...(onSocket ? { createConnection: connectToSocket } : { host, port }) };
  const answer = await new Promise<number>((done, fail) => {
    const asked = scheme === 'https' && !proxy ? httpsRequest({ ...options, rejectUnauthorized: false }) : httpRequest(options);
    asked.once('timeout', () => asked.destroy(new Error('the API did not answer in time')));
    asked.once('error', fail).once('response', ({ statusCode = 0 }) => done(statusCode));
    asked.end();
  });
  if (answer >= 400) throw new Metal3Error(`the API answers ${answer}`);
  process.exit(0);
}

const DONE = 'bloomery: nothing to do: data is migrated with the schema (ironic-dbsync upgrade)';
type DbsyncArguments = Pick<SetupArguments, 'configFile' | 'configDir'>;
const DBSYNC: Readonly<Record<string, (given: DbsyncArguments) => Promise<void>>> = {
  upgrade: (given) => sync(setup(given)),
  create_schema: (given) => sync(setup(given)),
  version: (given) => version(setup(given)),
  online_data_migrations: async () => print(DONE),
};
async function dbsync(name: string, given: DbsyncArguments): Promise<void> {
  const run = DBSYNC[name];
  if (!run) throw new Metal3Error(`ironic-dbsync ${name} is not supported: choose from ${Object.keys(DBSYNC).join(', ')}`);
  await run(given);
}

export function addMetal3Commands(program: Command): void {
  const metal3 = program.command('metal3').description("Run a program of metal3's Ironic image, with its environment (docs/metal3.md).");
  const add = (name: string, description: string, run: () => Promise<void>): void =>
    void metal3.command(name).description(description).action(run);
  add('ironic', 'Run the API and the conductor (runironic).', ironic);
  add('httpd', 'Serve files and boot scripts, and the API with TLS (runhttpd).', () =>
    runContainer(
      'httpd',
      listenOn(async (signal, log) => httpdPorts(environment, await findContext(environment, signal), log)),
    ),
  );
  add('dnsmasq', 'Serve DHCP and TFTP (rundnsmasq).', () =>
    runContainer('dnsmasq', async (signal, log, options) =>
      startDnsmasq(environment, await findContext(environment, signal), options, log),
    ),
  );
  add('exporter', 'Serve the metrics of the server (runironic-exporter).', () =>
    runContainer(
      'exporter',
      listenOn(async (_, log) => [exporterPort(environment, log)]),
    ),
  );
  add('log-watch', 'Print the logs of ramdisks and delete them (runlogwatch.sh).', () =>
    runContainer('log-watch', async (signal, log) => {
      const watching = watchLogs(signal, print, undefined, systemClock);
      watching.catch((error: unknown) => log.error('the logs cannot be watched', { error }));
      return () => watching;
    }),
  );
  add('probe', 'Check whether the API answers (ironic-readiness, ironic-liveness).', probe);
  add('database-upgrade', 'Update the schema (rundatabase-upgrade).', upgradeDatabase);
  add('online-data-migrations', 'Do nothing: schema updates migrate the data (runonline-data-migrations).', async () => print(DONE));
  add('networking', 'Fail, and tell where to configure switches instead (runironic-networking).', async () => {
    throw new Metal3Error(
      'the networking service is part of the server here: give the container ironic [ironic_networking] by OS_IRONIC_NETWORKING__… variables',
    );
  });
  addHardwareSync(metal3, runUntilSignal);
  withConfigFiles(metal3.command('dbsync <command>').description('ironic-dbsync: upgrade, create_schema, version, online_data_migrations.'))
    .option('--debug', 'accepted for compatibility; no effect')
    .action(dbsync);
}
