/**
 * The installation of the embedded PostgreSQL: its folder under the state directory, its user, and the creation of its data. Changes
 * nothing else on the host, except for a copy of the binaries if they cannot be used in place.
 */
import type { ChildProcess } from 'node:child_process';
import { closeSync, openSync } from 'node:fs';
import { chmod, chown, mkdir, mkdtemp, readFile, readdir, realpath, rename, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, dirname, join, relative } from 'node:path';
import type { Log } from '../../model/log';
import { startProgram } from '../../wire/child-processes';
import { chooseUsers, findBinaries, handOver, ownerOf, reachable } from './binaries';
import type { Binaries, User } from './binaries';
import { messageOf } from '../sql/faults';
import { describeProcess } from './postmaster';

export interface Installation {
  /** The folder of this database. It contains `data` and `run` (the socket). */
  readonly base: string;
  readonly data: string;
  /** The folder of the Unix socket. */
  readonly sockets: string;
  readonly binaries: Binaries;
  /** The user that runs PostgreSQL, if this process is root; undefined otherwise. */
  readonly user: User | undefined;
  /** The user that runs initdb, if this process is root; undefined otherwise. */
  readonly initdbUser: User | undefined;
  /** The user cannot access the path of `base`, so the process gets an open file descriptor of the folder (Linux). */
  readonly byHandle: boolean;
}

const BINARY_CACHE = '/var/cache/bloomery';
/** In bytes. sun_path, with its terminating zero, has 108 bytes on Linux and 104 on macOS. */
const MAX_SOCKET = 103;
export const SOCKET_NAME = '.s.PGSQL.5432';
/** The prefix of a socket folder outside the state directory. */
const SHORT_FOLDER = 'bloomery-postgres-';
const INITDB_TIMEOUT_MS = 120_000;
/** The file descriptor of the folder in the child. */
const HANDLE = '/proc/self/fd/3';

/** Throws an Error of one line with the reason why PostgreSQL cannot run under `stateDir`. */
export async function prepareInstallation(stateDir: string): Promise<Installation> {
  const base = join(await realpath(stateDir), 'postgres');
  const data = join(base, 'data');
  const owner = await ownerOf(base);
  const self = process.getuid?.();
  if (self !== 0 && owner !== undefined && owner.uid !== self)
    throw new Error(`${base} belongs to user ID ${owner.uid}: start as that user or as root, or choose another state directory`);
  const users = self === 0 ? await chooseUsers(await ownerOf(data)) : undefined;
  const user = users?.server;
  // If this process is root, root owns the folder and the user may only search it, so that no link of the user redirects root's writes.
  await mkdir(base, { recursive: true });
  await chmod(base, user ? 0o711 : 0o700);
  const byHandle = user !== undefined && !(await reachable(base, user));
  if (byHandle && process.platform !== 'linux')
    throw new Error(`the user ${user.name} that runs PostgreSQL cannot access ${base}: choose another state directory`);
  const binaries = await findBinaries(user, user ? BINARY_CACHE : join(base, 'binaries'));
  return { base, data, sockets: await socketFolder(base, user), binaries, user, initdbUser: users?.initdb, byHandle };
}

/** Creates the data if it is missing. Refuses data of another major version and leaves it unchanged. */
export async function ensureData(place: Installation, durable: boolean, log: Log, signal: AbortSignal): Promise<void> {
  const { base, data } = place;
  const found = (await readFile(join(data, 'PG_VERSION'), 'utf8').catch(() => undefined))?.trim();
  if (found !== undefined) {
    if (found === place.binaries.major) return;
    throw new Error(
      `${data} was made by PostgreSQL ${found}, and this program brings PostgreSQL ${place.binaries.major}; nothing was changed. ` +
        `Bring the data over with pg_dump of version ${found} into an empty state directory, or use a server of your own ([database]connection)`,
    );
  }
  if ((await readdir(data).catch(() => [])).length > 0)
    throw new Error(
      `${data} is not empty and no whole database (PG_VERSION is missing); nothing was changed. Move it away, then restore a backup`,
    );
  log.info(`Creating the embedded database in ${base}`);
  // The data has a temporary name until it is complete. Of two concurrent processes, the second fails to rename, and uses the first one's.
  for (const name of await readdir(base)) {
    const maker = /^data\.new-(\d+)-/.exec(name)?.[1];
    if (maker !== undefined && !(await describeProcess(Number(maker)))) await rm(join(base, name), { recursive: true, force: true });
  }
  const unfinished = await mkdtemp(join(base, `data.new-${process.pid}-`));
  try {
    if (place.initdbUser) await chown(unfinished, place.initdbUser.uid, place.initdbUser.gid);
    const words = ['-U', 'bloomery', '-A', 'trust', '-E', 'UTF8', '--locale=C', '-D', serverPath(place, unfinished)];
    await runInitdb(place, [...words, ...(durable ? [] : ['--no-sync', '--wal-segsize=1'])], signal);
    if (place.user) await handOver(unfinished, place.user);
    await rename(unfinished, data);
  } catch (error) {
    await rm(unfinished, { recursive: true, force: true });
    signal.throwIfAborted();
    if (await ownerOf(join(data, 'PG_VERSION'))) return;
    throw new Error(`the embedded database cannot be created in ${base}: ${messageOf(error)}`, { cause: error });
  }
}

/** Runs initdb, and ends its whole process group at a timeout or abort, because its children write too. */
async function runInitdb(place: Installation, words: readonly string[], signal: AbortSignal): Promise<void> {
  signal.throwIfAborted();
  const child = spawnIn(place, 'initdb', words, 'pipe', place.initdbUser);
  let output = '';
  child.stderr?.setEncoding('utf8').on('data', (text: string) => (output = (output + text).slice(-2000)));
  child.stdout?.resume();
  const kill = (): void => {
    try {
      process.kill(-child.pid!, 'SIGKILL');
    } catch {
      // The process has not started or has ended.
    }
  };
  const late = setTimeout(kill, INITDB_TIMEOUT_MS);
  signal.addEventListener('abort', kill, { once: true });
  try {
    const code = await new Promise<number | null>((done, fail) => child.once('error', fail).once('close', done));
    const reason = output.split('\n').findLast((line) => /error|fatal/i.test(line));
    if (code !== 0)
      throw new Error(reason?.replace(/^.*(?:FATAL|ERROR|error): */i, '').trim() ?? `initdb ended with ${code ?? child.signalCode}`);
  } finally {
    clearTimeout(late);
    signal.removeEventListener('abort', kill);
  }
}

/** Changes the owner of data that an earlier version created for a shared user. No server may run. */
export async function ensureOwner({ data, user }: Installation, log: Log): Promise<void> {
  if (!user || (await ownerOf(data))?.uid === user.uid) return;
  log.info(`Giving the embedded database in ${data} to a user of its own (${user.name})`);
  await handOver(data, user);
}

/** Starts a binary as the user of the installation, in its folder, with a fixed environment. */
export function spawnIn(
  place: Installation,
  name: string,
  words: readonly string[],
  output: 'pipe' | number,
  user: User | undefined = place.user,
): ChildProcess {
  const { byHandle } = place;
  const handle = byHandle ? openSync(place.base, 'r') : undefined;
  try {
    return startProgram('postgres', join(place.binaries.folder, 'bin', name), words, {
      uid: user?.uid,
      gid: user?.gid,
      // The working directory is set before the user changes, so the user needs no access to the path.
      cwd: place.base,
      // A session of its own: Ctrl-C must not reach the server, which this process stops itself.
      detached: true,
      stdio: ['ignore', output, output, ...(handle === undefined ? [] : [handle])],
    });
  } finally {
    if (handle !== undefined) closeSync(handle);
  }
}

/** The path as PostgreSQL sees it: below the file descriptor, if there is one. */
export const serverPath = (place: Installation, path: string): string =>
  place.byHandle && path.startsWith(`${place.base}/`) ? join(HANDLE, relative(place.base, path)) : path;

/** The path on the host for a path of the server. */
export const hostPath = (base: string, path: string): string => (path.startsWith(`${HANDLE}/`) ? join(base, relative(HANDLE, path)) : path);

/** A folder in the base. If its path is too long for a socket: a temporary folder that only the user may access. */
async function socketFolder(base: string, user: User | undefined): Promise<string> {
  const inside = join(base, 'run');
  const folder = Buffer.byteLength(join(inside, SOCKET_NAME)) <= MAX_SOCKET ? inside : await mkdtemp(join(shortTmp(user), SHORT_FOLDER));
  await mkdir(folder, { recursive: true, mode: 0o700 });
  if (user) await chown(folder, user.uid, user.gid);
  return folder;
}
/** A short path. Another user may be unable to enter the temporary folder of this process, which PAM may have made for it alone. */
const shortTmp = (user: User | undefined): string => (user === undefined && tmpdir().length < 60 ? tmpdir() : '/tmp');
/** Removes a socket folder outside the state directory. */
export async function removeShortFolder(folder: string): Promise<void> {
  if ([tmpdir(), '/tmp'].includes(dirname(folder)) && basename(folder).startsWith(SHORT_FOLDER))
    await rm(folder, { recursive: true, force: true });
}
