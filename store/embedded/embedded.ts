/**
 * Supervises the embedded PostgreSQL: starts it as a child process on a Unix socket, restarts it after a crash, and stops it with this
 * process. A server that a killed supervisor left running is stopped first. See docs/decisions/0002-embedded-postgres.md.
 */
import type { ChildProcess } from 'node:child_process';
import { closeSync, openSync } from 'node:fs';
import { readFile, rm, stat, truncate } from 'node:fs/promises';
import { join } from 'node:path';
import { retry, waitUntil, type Clock } from '../../model/clock';
import type { Log } from '../../model/log';
import {
  ensureData,
  ensureOwner,
  prepareInstallation,
  removeShortFolder,
  hostPath,
  serverPath,
  SOCKET_NAME,
  spawnIn,
} from './installation';
import type { Installation } from './installation';
import { messageOf } from '../sql/faults';
import { ownerOf } from './binaries';
import { connectionTo, setUpRole, superuserConnectionTo } from './roles';
import { clusterName, describeProcess, stopServer, readPidFile, type PidFile } from './postmaster';

interface EmbeddedOptions {
  /** An existing folder. All files are in its sub-folder `postgres`. */
  readonly stateDir: string;
  readonly log: Log;
  readonly clock: Clock;
  /** Aborts the start. After the start, use `stop`. */
  readonly signal?: AbortSignal;
  /** False: faster, but a crash of the host may lose data. For tests. */
  readonly durable?: boolean;
}
interface Embedded {
  /** The connection for openStore. Its role is no superuser. */
  readonly connection: string;
  /** For tests, which create databases. */
  readonly superuserConnection: string;
  /** The process of the server. Changes after a crash. */
  readonly pid: number;
  /** Stops the server and waits for its end. */
  stop(): Promise<void>;
}

const SETTINGS: Readonly<Record<string, string | number>> = {
  listen_addresses: '',
  unix_socket_permissions: '0700',
  port: 5432,
  max_connections: 100,
  // A small server beside a Node process, on hosts of any size.
  shared_buffers: '64MB',
  huge_pages: 'off',
  max_wal_size: '256MB',
  jit: 'off',
  // No replicas and no parallel queries: fewer processes, faster start.
  wal_level: 'minimal',
  max_wal_senders: 0,
  max_replication_slots: 0,
  max_logical_replication_workers: 0,
  max_parallel_workers_per_gather: 0,
  max_worker_processes: 0,
  io_method: 'sync',
  timezone: 'UTC',
  log_timezone: 'UTC',
  // Log starts, stops and crashes only. Failed statements may contain secrets; their senders get the error.
  log_min_messages: 'log',
  log_checkpoints: 'off',
};
const NOT_DURABLE = { fsync: 'off', synchronous_commit: 'off', full_page_writes: 'off', min_wal_size: '32MB' };

const POLL_MS = 10;
/** Recovery after a crash replays about max_wal_size of WAL, which takes seconds. */
const START_TIMEOUT_MS = 120_000;
const START_ATTEMPTS = 5;
const MAX_PAUSE_MS = 5_000;
const MAX_LOG = 1_000_000;

/** Starts the server, and creates the database at the first start. Throws an Error of one line with the reason. */
export async function startEmbedded(options: EmbeddedOptions): Promise<Embedded> {
  const { log, clock, durable = true } = options;
  const stopping = new AbortController();
  const starting = AbortSignal.any([stopping.signal, ...(options.signal ? [options.signal] : [])]);
  starting.throwIfAborted();
  const place = await prepareInstallation(options.stateDir);
  await ensureData(place, durable, log, starting);
  const name = await clusterName(place.data);

  const settings = {
    ...SETTINGS,
    ...(durable ? {} : NOT_DURABLE),
    cluster_name: `${name}-${process.pid}`,
    unix_socket_directories: serverPath(place, place.sockets),
  };
  const words = ['-D', serverPath(place, place.data), ...Object.entries(settings).flatMap(([key, value]) => ['-c', `${key}=${value}`])];
  const start = (signal: AbortSignal): Promise<ChildProcess> => startServer(place, name, words, log, clock, signal);
  let server = await start(starting);
  try {
    await setUpRole(place.sockets);
  } catch (error) {
    await endChild(server, clock);
    throw new Error(`the role of the embedded database cannot be set up: ${messageOf(error)}`, { cause: error });
  }
  // Stop the server whenever this process exits. (If this process is killed, the next start stops the orphan.)
  const onExit = (): void => void server.kill('SIGINT');
  process.once('exit', onExit);

  const watch = async (): Promise<void> => {
    while (!stopping.signal.aborted) {
      await ended(server);
      if (stopping.signal.aborted) return;
      log.error(`The embedded PostgreSQL ended unexpectedly (${server.signalCode ?? server.exitCode}); restarting it`);
      const { signal } = stopping;
      server = await retry(
        { clock, signal },
        () => start(signal),
        (error, attempt) => {
          if (signal.aborted) return undefined;
          log.error(messageOf(error));
          return Math.min(100 * 2 ** (attempt - 1), MAX_PAUSE_MS);
        },
      );
      log.info('The embedded PostgreSQL runs again');
    }
  };
  // Rejected: `stop` was called.
  const watching = watch().catch(() => {});
  const stop = async (): Promise<void> => {
    stopping.abort(new Error('The embedded PostgreSQL is being stopped.'));
    await endChild(server, clock);
    await watching;
    process.removeListener('exit', onExit);
    await removeShortFolder(place.sockets);
  };
  let stopped: Promise<void> | undefined;
  return {
    connection: connectionTo(place.sockets),
    superuserConnection: superuserConnectionTo(place.sockets),
    get pid() {
      return server.pid!;
    },
    stop: () => (stopped ??= stop()),
  };
}

const running = (child: ChildProcess): boolean => child.exitCode === null && child.signalCode === null;
const ended = async (child: ChildProcess): Promise<void> => {
  if (running(child)) await new Promise((done) => child.once('exit', done));
};
const endChild = async (child: ChildProcess, clock: Clock): Promise<void> => {
  if (child.pid !== undefined && running(child)) await stopServer(child.pid, () => !running(child), clock);
};

/** Starts the server and waits until it accepts connections. Retries after transient errors. */
async function startServer(
  place: Installation,
  name: string,
  words: readonly string[],
  log: Log,
  clock: Clock,
  signal: AbortSignal,
): Promise<ChildProcess> {
  const attempt = async (): Promise<ChildProcess> => {
    await endOrphan(place, name, log, clock);
    await ensureOwner(place, log);
    return startOnce(place, words, clock, signal).catch((error: unknown) => {
      signal.throwIfAborted();
      throw error;
    });
  };
  // Sessions of a killed server hold its shared memory for a moment, or another process starts at the same time.
  return retry({ clock, signal }, attempt, (error, attempts) =>
    attempts < START_ATTEMPTS && /still in use|lock file|shared memory/.test(messageOf(error)) ? 200 : undefined,
  );
}

async function startOnce(place: Installation, words: readonly string[], clock: Clock, signal: AbortSignal): Promise<ChildProcess> {
  const logFile = join(place.base, 'postgres.log');
  // A file, not a pipe: the server must not fail if its parent is killed.
  const output = openSync(logFile, 'a', 0o600);
  let child: ChildProcess;
  let begin: number;
  try {
    if ((await stat(logFile)).size > MAX_LOG) await truncate(logFile);
    begin = (await stat(logFile)).size;
    signal.throwIfAborted();
    child = spawnIn(place, 'postgres', words, output);
  } finally {
    closeSync(output);
  }
  let failure: unknown;
  child.once('error', (error) => (failure = error));
  const hasEnded = (): boolean => failure !== undefined || !running(child);
  // The child must not keep this process alive.
  child.unref();
  try {
    const isReady = async (): Promise<boolean> => {
      if (hasEnded()) return false;
      const file = await readPidFile(place.data);
      return file?.pid === child.pid && file?.ready === true;
    };
    const pauseAfter = (polls: number): number | undefined => (hasEnded() || polls * POLL_MS >= START_TIMEOUT_MS ? undefined : POLL_MS);
    if (await waitUntil({ clock, signal }, isReady, pauseAfter)) return child;
  } catch (error) {
    await endChild(child, clock);
    throw error;
  }
  const still = !hasEnded();
  await endChild(child, clock);
  const lines = (await readFile(logFile, 'utf8')).slice(begin).split('\n');
  const reason =
    failure ?? lines.findLast((line) => line.includes('FATAL'))?.replace(/^.*FATAL: */, '') ?? lines.findLast((line) => line !== '');
  throw new Error(
    `The embedded PostgreSQL did not start: ${still ? `not ready after ${START_TIMEOUT_MS / 1000} s` : messageOf(reason ?? 'no reason given')} (log: ${logFile})`,
  );
}

/**
 * What uses the data. `supervisor`: a server with a running supervisor; `orphan`: a server whose supervisor has ended; `foreign`: a server
 * that somebody started manually. Nothing uses it: `stale` if the PID in postmaster.pid belongs to another process, `ended` if to none.
 */
type Holder =
  | { readonly kind: 'supervisor' | 'foreign'; readonly process: string; readonly file: PidFile }
  | { readonly kind: 'orphan' | 'stale' | 'ended'; readonly file: PidFile };
/**
 * Finds out what uses the data. While the supervisor runs, it is the parent of the server, whose command line (cluster_name) names its PID.
 * Undefined: there is no postmaster.pid.
 */
async function holderOf(data: string, name: string): Promise<Holder | undefined> {
  const file = await readPidFile(data);
  if (!file) return undefined;
  const found = await describeProcess(file.pid);
  const supervisor = found && new RegExp(`cluster_name=${name}-(\\d+)`).exec(found.command)?.[1];
  if (found && supervisor !== undefined)
    return found.parent === Number(supervisor) ? { kind: 'supervisor', process: supervisor, file } : { kind: 'orphan', file };
  // Someone has started a PostgreSQL on this data manually.
  if (found?.command.includes(data)) return { kind: 'foreign', process: String(file.pid), file };
  return { kind: exists(file.pid) ? 'stale' : 'ended', file };
}

/**
 * Stops the server of a killed supervisor, and removes a postmaster.pid whose PID belongs to another process now. Throws if the data is in
 * use.
 */
async function endOrphan(place: Installation, name: string, log: Log, clock: Clock): Promise<void> {
  const holder = await holderOf(place.data, name);
  if (!holder) return;
  const { file } = holder;
  if ('process' in holder)
    throw new Error(
      `the embedded database in ${place.base} is in use by process ${holder.process}: stop that, or choose another state directory`,
    );
  if (holder.kind === 'orphan') {
    log.warn(`The embedded PostgreSQL (process ${file.pid}) outlived its supervisor; restarting it`);
    if (!(await stopServer(file.pid, async () => !(await describeProcess(file.pid)), clock)))
      throw new Error(`the PostgreSQL left behind in ${place.base} (process ${file.pid}) does not end`);
  } else if (holder.kind === 'stale') {
    // PostgreSQL would take the process with this PID for a server. Without such a process, it replaces the file and checks for sessions.
    log.warn(`Removing the postmaster.pid of a PostgreSQL that is gone (its PID ${file.pid} belongs to another process)`);
    await rm(join(place.data, 'postmaster.pid'), { force: true });
    await rm(join(place.sockets, `${SOCKET_NAME}.lock`), { force: true });
  }
  // After a crash, the folder is this server's own.
  if (file.sockets !== place.sockets) await removeShortFolder(file.sockets);
}

/** The embedded database of a state directory. */
interface ExistingEmbedded {
  /** The supervisor's process and the connection, if the database is running. */
  readonly running?: { readonly process: string; readonly connection: string };
}
/** Looks for the embedded database and changes nothing. Undefined: `stateDir` has none. */
export async function findEmbedded(stateDir: string): Promise<ExistingEmbedded | undefined> {
  const base = join(stateDir, 'postgres');
  const data = join(base, 'data');
  if (!(await ownerOf(data))) return undefined;
  const holder = await holderOf(data, await clusterName(data));
  if (holder?.kind !== 'supervisor') return {};
  if (!holder.file.ready) throw new Error(`the embedded database in ${base} is not ready (process ${holder.process}): try again`);
  return { running: { process: holder.process, connection: connectionTo(hostPath(base, holder.file.sockets)) } };
}

function exists(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}
