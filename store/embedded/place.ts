/**
 * Where the embedded PostgreSQL lives: its folder under the state directory, the user that it runs as, and the first making of its
 * data. Nothing of the host is changed but that folder (and a copy of the binaries where they cannot be used in place).
 */
import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { closeSync, openSync } from 'node:fs';
import { chmod, chown, mkdir, mkdtemp, readFile, readdir, realpath, rename, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, dirname, join, relative } from 'node:path';
import type { Log } from '../../model/log';
import { chooseUsers, findBinaries, handOver, ownerOf, reachable } from './binaries';
import type { Binaries, User } from './binaries';
import { messageOf } from '../sql/faults';
import { describe } from './postmaster';

export interface Place {
  /** The folder with everything of this database; `data` and `run` (its socket) are in it. */
  readonly base: string;
  readonly data: string;
  /** The folder of the Unix socket. */
  readonly sockets: string;
  readonly binaries: Binaries;
  /** Whom PostgreSQL runs as, when not as ourselves: it refuses to run as root. */
  readonly user: User | undefined;
  /** Whom initdb runs as then. */
  readonly initdbUser: User | undefined;
  /** The user cannot come to `base` by its path, so the folder is handed to the process open (Linux). */
  readonly byHandle: boolean;
}

const BINARY_CACHE = '/var/cache/bloomery';
/** sun_path holds 108 bytes with the zero on Linux, 104 on macOS. */
const LONGEST_SOCKET = 103;
export const SOCKET_NAME = '.s.PGSQL.5432';
/** Prefix of a socket's folder that is not in the state directory. */
const SHORT_FOLDER = 'bloomery-postgres-';
const INITDB_TIMEOUT_MS = 120_000;
/** The folder that is handed over open is the child's file descriptor 3. */
const HANDLE = '/proc/self/fd/3';

/** Throws an Error of one line that says why no PostgreSQL can live under `stateDir`. */
export async function findPlace(stateDir: string): Promise<Place> {
  const base = join(await realpath(stateDir), 'postgres');
  const data = join(base, 'data');
  const owner = await ownerOf(base);
  const self = process.getuid?.();
  if (self !== 0 && owner !== undefined && owner.uid !== self)
    throw new Error(
      `${base} belongs to the user with number ${owner.uid}: start as that user or as root, or choose another state directory`,
    );
  const users = self === 0 ? await chooseUsers(await ownerOf(data)) : undefined;
  const user = users?.server;
  // As root the folder stays root's, and the user may only pass through it: what root writes there, nobody can put elsewhere by a link.
  await mkdir(base, { recursive: true });
  await chmod(base, user ? 0o711 : 0o700);
  const byHandle = user !== undefined && !(await reachable(base, user));
  if (byHandle && process.platform !== 'linux')
    throw new Error(`the user ${user.name}, whom PostgreSQL runs as, has no access to ${base}: choose another state directory`);
  const binaries = await findBinaries(user, user ? BINARY_CACHE : join(base, 'binaries'));
  return { base, data, sockets: await socketFolder(base, user), binaries, user, initdbUser: users?.initdb, byHandle };
}

/** Makes the data where there is none. A folder of data made by another major version is refused and left as it is. */
export async function ensureData(place: Place, durable: boolean, log: Log, signal: AbortSignal): Promise<void> {
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
  log.info(`Making the embedded database in ${base}`);
  // Under another name until it is whole. Two processes at once: the later rename fails, and the earlier one's data counts.
  for (const name of await readdir(base)) {
    const maker = /^data\.new-(\d+)-/.exec(name)?.[1];
    if (maker !== undefined && !(await describe(Number(maker)))) await rm(join(base, name), { recursive: true, force: true });
  }
  const unfinished = await mkdtemp(join(base, `data.new-${process.pid}-`));
  try {
    if (place.initdbUser) await chown(unfinished, place.initdbUser.uid, place.initdbUser.gid);
    const words = ['-U', 'bloomery', '-A', 'trust', '-E', 'UTF8', '--locale=C', '-D', seenFrom(place, unfinished)];
    await runInitdb(place, [...words, ...(durable ? [] : ['--no-sync', '--wal-segsize=1'])], signal);
    if (place.user) await handOver(unfinished, place.user);
    await rename(unfinished, data);
  } catch (error) {
    await rm(unfinished, { recursive: true, force: true });
    signal.throwIfAborted();
    if (await ownerOf(join(data, 'PG_VERSION'))) return;
    throw new Error(`the embedded database cannot be made in ${base}: ${messageOf(error)}`, { cause: error });
  }
}

/** initdb has children of its own that write: all of them are gone when this is, whatever comes of it. */
async function runInitdb(place: Place, words: readonly string[], signal: AbortSignal): Promise<void> {
  signal.throwIfAborted();
  const child = spawnIn(place, 'initdb', words, 'pipe', place.initdbUser);
  let said = '';
  child.stderr?.setEncoding('utf8').on('data', (text: string) => (said = (said + text).slice(-2000)));
  child.stdout?.resume();
  const kill = (): void => {
    try {
      process.kill(-child.pid!, 'SIGKILL');
    } catch {
      // It never ran, or has ended.
    }
  };
  const late = setTimeout(kill, INITDB_TIMEOUT_MS);
  signal.addEventListener('abort', kill, { once: true });
  try {
    const code = await new Promise<number | null>((done, fail) => child.once('error', fail).once('close', done));
    const reason = said.split('\n').findLast((line) => /error|fatal/i.test(line));
    if (code !== 0)
      throw new Error(reason?.replace(/^.*(?:FATAL|ERROR|error): */i, '').trim() ?? `initdb ended with ${code ?? child.signalCode}`);
  } finally {
    clearTimeout(late);
    signal.removeEventListener('abort', kill);
  }
}

/** Data that was made when PostgreSQL ran as a user whom other programs may share. No server may run. */
export async function ensureOwner({ data, user }: Place, log: Log): Promise<void> {
  if (!user || (await ownerOf(data))?.uid === user.uid) return;
  log.info(`Giving the embedded database in ${data} to a user of its own (${user.name})`);
  await handOver(data, user);
}

/** Starts one of the binaries as the place's user, in the place's folder, with an environment that depends on nothing outside. */
export function spawnIn(
  place: Place,
  name: string,
  words: readonly string[],
  output: 'pipe' | number,
  user: User | undefined = place.user,
): ChildProcess {
  const { byHandle } = place;
  const handle = byHandle ? openSync(place.base, 'r') : undefined;
  try {
    return spawn(join(place.binaries.folder, 'bin', name), words, {
      ...(user ? { uid: user.uid, gid: user.gid } : {}),
      // The folder is entered before the user is changed, so it need not be accessible by its path.
      cwd: place.base,
      env: { PATH: '/usr/bin:/bin', LC_ALL: 'C', TZ: 'UTC' },
      // In a session of its own: Ctrl-C at the terminal is for us, and we end it when nobody needs it any more.
      detached: true,
      stdio: ['ignore', output, output, ...(handle === undefined ? [] : [handle])],
    });
  } finally {
    if (handle !== undefined) closeSync(handle);
  }
}

/** How PostgreSQL calls a path: one inside the base goes by the handle where there is one. */
export const seenFrom = (place: Place, path: string): string =>
  place.byHandle && path.startsWith(`${place.base}/`) ? join(HANDLE, relative(place.base, path)) : path;

/** The other way round: the server's own name for a path, as everybody else calls it. */
export const seenByAll = (base: string, path: string): string =>
  path.startsWith(`${HANDLE}/`) ? join(base, relative(HANDLE, path)) : path;

/** In the base; where that makes too long a name, in a folder of its own that only the user may enter. */
async function socketFolder(base: string, user: User | undefined): Promise<string> {
  const inside = join(base, 'run');
  const folder = Buffer.byteLength(join(inside, SOCKET_NAME)) <= LONGEST_SOCKET ? inside : await mkdtemp(join(shortTmp(), SHORT_FOLDER));
  await mkdir(folder, { recursive: true, mode: 0o700 });
  if (user) await chown(folder, user.uid, user.gid);
  return folder;
}
const shortTmp = (): string => (tmpdir().length < 60 ? tmpdir() : '/tmp');
/** Removes a socket's folder if it is one that was made elsewhere. */
export async function removeShortFolder(folder: string): Promise<void> {
  if (dirname(folder) === shortTmp() && basename(folder).startsWith(SHORT_FOLDER)) await rm(folder, { recursive: true, force: true });
}
