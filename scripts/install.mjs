// Prepares a fresh clone: installs the npm packages that the lock files name, and builds the program.
import { spawnSync } from 'node:child_process';
import { accessSync, constants, existsSync, lstatSync, readFileSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';

export const root = join(import.meta.dirname, '..');

/** @param {string} folder @returns whether its node_modules are as new as its lock file, with the packages for development */
function isInstalled(folder) {
  const done = join(folder, 'node_modules/.package-lock.json');
  if (!existsSync(done) || statSync(done).mtimeMs < statSync(join(folder, 'package-lock.json')).mtimeMs) return false;
  const { dependencies, devDependencies } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
  return Object.keys({ ...dependencies, ...devDependencies }).every((name) => existsSync(join(folder, 'node_modules', name)));
}
/** Runs `npm ci` in a folder, unless that has been done. @param {string} folder @param {string} what the subject of the progress line */
function install(folder, what) {
  if (isInstalled(folder)) return;
  console.log(`installing ${what} (npm ci) …`);
  // With NODE_ENV=production, npm leaves out the packages that build and test the program unless they are included.
  const words = ['ci', '--include=dev', '--include=optional', '--no-audit', '--no-fund', '--loglevel=error'];
  const { status } = spawnSync('npm', words, { cwd: folder, stdio: 'inherit' });
  // npm has said why.
  if (status !== 0) process.exit(status ?? 1);
}

/** @param {string} path */
function isWritable(path) {
  try {
    accessSync(path, constants.W_OK);
    return true;
  } catch {
    return false;
  }
}
/**
 * @param {string} path of a file, or of a folder with all that it contains
 * @returns {string | undefined} the first path that this user cannot write; undefined: none
 */
function unwritable(path) {
  const found = lstatSync(path, { throwIfNoEntry: false });
  if (found === undefined || found.isSymbolicLink()) return undefined;
  if (found.uid !== process.getuid?.() && !isWritable(path)) return path;
  if (!found.isDirectory()) return undefined;
  for (const name of readdirSync(path)) {
    // Each user has a folder of this name.
    const refused = name.startsWith('test-database-') ? undefined : unwritable(join(path, name));
    if (refused !== undefined) return refused;
  }
  return undefined;
}
/** Ends the process with one line if it cannot write what the scripts make in the checkout: root has run them, for example. */
function checkAccess() {
  // Only npm changes what is in node_modules, which is much.
  const folders = [root, join(root, 'node_modules')].filter((path) => existsSync(path) && !isWritable(path));
  const refused = folders[0] ?? unwritable(join(root, 'dist')) ?? unwritable(join(root, '.cache'));
  if (refused === undefined) return;
  const [owner, self] = [statSync(refused).uid, process.getuid?.()];
  console.error(
    `${refused} belongs to user ID ${owner}, so user ID ${self} cannot use this checkout: run chown -R ${self} ${root} as root`,
  );
  process.exit(1);
}

export function installPackages() {
  checkAccess();
  install(root, 'packages');
}

/** Tools of a few commands, each with packages and a lock file of its own below scripts/tools. `npm test` does not install them. */
export const TOOLS = ['exports', 'mutate'];
/** @param {string} name */
export const toolFolder = (name) => join(root, 'scripts/tools', name);
/** @param {string} name */
export const installTool = (name) => install(toolFolder(name), `the packages of scripts/tools/${name}`);

export function build() {
  const { status } = spawnSync(process.execPath, [join(root, 'scripts/build.mjs')], { cwd: root, stdio: 'inherit' });
  if (status !== 0) process.exit(status ?? 1);
}
