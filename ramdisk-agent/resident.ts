/** `bloomery-agent resident`: the agent in a deployed system. It registers, listens, and does a few things that the conductor asks for. */
import { randomBytes, randomUUID } from 'node:crypto';
import { existsSync, writeFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { hostname, machine } from 'node:os';
import { parseArgs } from 'node:util';
import { systemClock } from '../model/clock';
import { ownCertificate } from '../wire/http/certificate';
import { runner } from './commands';
import { identityFrom, readGiven, type Identity } from './drive-settings';
import { kernelCalls } from './kexec/kernel-calls';
import { consoleLog } from './log';
import { createBrake } from './resident/brake';
import { residentCommands, type ResidentHost } from './resident/commands';
import { leaveOf } from './resident/leave';
import { keepRegistered, type Registering } from './resident/registration';
import { serve } from './server';
import { open } from './system/http';
import { run } from './system/run';
import { tree } from './system/tree';
import { routeSource } from './towards';

const HELP = `bloomery-agent resident: lets the bare metal service start its ramdisk on this host, without a reboot by its firmware.

  --url URL            of the service (default: what the config drive says)
  --node UUID          of this host's node; auto (default): what the config drive says
  --token-file FILE    with the token for this node (default: the config drive has it)
  --config-drive PATH  a device, an image, or the folder where it is mounted (default: /dev/disk/by-label/config-2)
  --ca FILE            certificates of the authorities to trust, PEM (default: the usual ones)
  --address ADDRESS    of this host, for the service (default: that of the route to the service)
  --port PORT          to listen at (default: 9998)
  --memory FOLDER      in memory, for the ramdisk (default: /dev/shm)
  --help
`;
const RESIDENT_OPTIONS = {
  url: { type: 'string' },
  node: { type: 'string', default: 'auto' },
  'token-file': { type: 'string' },
  'config-drive': { type: 'string', default: '/dev/disk/by-label/config-2' },
  ca: { type: 'string' },
  address: { type: 'string' },
  port: { type: 'string', default: '9998' },
  memory: { type: 'string', default: '/dev/shm' },
  help: { type: 'boolean', default: false },
} as const;
/** The server's key in the vendor data (conductor/core/recorders.ts). */
const KEY = 'bloomery-resident';
const VERSION = 'bloomery-agent 1';
/** A command names two files; more is not read. */
const MAX_BODY = 64 * 1024;
const MAX_CONNECTIONS = 32;
/** Milliseconds without data until a file is given up. */
const FETCH_MS = 60_000;

/** What `runResident` adds to the host of the commands and of the registration. */
type Ours = 'node' | 'version' | 'port' | 'present' | 'service';
/** @internal */
export type Resident = Omit<ResidentHost & Registering, Ours> & {
  /** Read again whenever it is needed, since the token may be replaced. */
  readonly service: () => Identity;
  readonly listen: { readonly host: string; readonly port: number };
  readonly newUuid: () => string;
};

/** The server's certificate does not matter: the conductor says which SHA-256 the file has. @internal */
export async function fetchFile(url: string, signal: AbortSignal): Promise<AsyncIterable<Buffer>> {
  const { answer } = await open({ method: 'GET', url, timeoutMs: FETCH_MS, trust: { insecure: true }, signal });
  if (answer.statusCode === 200) return answer as AsyncIterable<Buffer>;
  answer.destroy();
  throw new Error(`The boot service answers ${answer.statusCode} to the request for a file of the ramdisk`);
}

/** Runs until the signal is aborted. @internal */
export async function runResident(host: Resident): Promise<void> {
  const { clock, log, signal, service } = host;
  const commands = runner(residentCommands({ ...host, node: service().node, version: VERSION }), host.newUuid, () => {}, log);
  const brake = createBrake(clock);
  const server = await serve({
    ...host.listen,
    // That of the address replaces it, before anybody knows of this agent.
    certificate: ownCertificate('127.0.0.1', host.hostname(), clock.now(), host.random),
    minVersion: 'TLSv1.2',
    token: () => service().token,
    startedAt: clock.now(),
    version: VERSION,
    runner: commands,
    authenticated: () => {},
    refused: () => brake.refused(signal),
    maxBody: MAX_BODY,
    log,
  });
  server.maxConnections = MAX_CONNECTIONS;
  const { port } = server.address() as AddressInfo;
  log.info(`Listening at port ${port}`);
  const present: Registering['present'] = ({ certificate, privateKey }) => server.setSecureContext({ cert: certificate, key: privateKey });
  try {
    await keepRegistered({ ...host, port, version: VERSION, present });
  } finally {
    await new Promise<void>((closed) => {
      server.close(() => closed());
      server.closeAllConnections();
    });
  }
}

/** @param words the command line behind `resident` */
export async function resident(words: readonly string[]): Promise<void> {
  const { values: given } = parseArgs({ args: [...words], options: RESIDENT_OPTIONS });
  if (given.help) {
    process.stdout.write(HELP);
    return;
  }
  const port = Number(given.port);
  if (!Number.isInteger(port) || port < 1 || port > 65_535) throw new Error(`--port is a number from 1 to 65535, not "${given.port}"`);
  const service = (): Identity => identityFrom(given, KEY);
  service();
  const stop = new AbortController();
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => stop.abort());
  const host = tree();
  const calls = kernelCalls(machine());
  const bootId = host.text('/proc/sys/kernel/random/boot_id');
  if (bootId === null) throw new Error('/proc/sys/kernel/random/boot_id cannot be read');
  await runResident({
    service,
    address: async ({ url }) => given.address ?? routeSource(new URL(url).hostname.replace(/^\[|\]$/g, '')),
    hostname,
    bootId,
    listen: { host: '::', port },
    trust: { insecure: false, ca: given.ca === undefined ? undefined : readGiven('ca', given.ca) },
    clock: systemClock,
    random: randomBytes,
    newUuid: randomUUID,
    log: consoleLog((line) => process.stdout.write(line), systemClock, false),
    tree: host,
    machine: machine(),
    kernelCalls: calls,
    temporary: given.memory,
    fetch: (url) => fetchFile(url, stop.signal),
    leave: leaveOf({
      run,
      exists: existsSync,
      write: writeFileSync,
      // Linux leaves out the process that asks.
      endProcesses: () => void process.kill(-1, 'SIGTERM'),
      kernelCalls: calls,
      clock: systemClock,
    }),
    signal: stop.signal,
  });
}
