// Prepares a fresh clone: installs the npm packages that the lock files name, and builds the program.
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';

export const root = join(import.meta.dirname, '..');

/** Whether the node_modules of a folder are as new as its lock file, with the packages for development. */
function isInstalled(folder) {
  const done = join(folder, 'node_modules/.package-lock.json');
  if (!existsSync(done) || statSync(done).mtimeMs < statSync(join(folder, 'package-lock.json')).mtimeMs) return false;
  const { dependencies, devDependencies } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
  return Object.keys({ ...dependencies, ...devDependencies }).every((name) => existsSync(join(folder, 'node_modules', name)));
}
/** Runs `npm ci` in a folder, unless that has been done. @param what the subject of the progress line */
function install(folder, what) {
  if (isInstalled(folder)) return;
  console.log(`installing ${what} (npm ci) …`);
  // With NODE_ENV=production, npm leaves out the packages that build and test the program unless they are included.
  const words = ['ci', '--include=dev', '--include=optional', '--no-audit', '--no-fund', '--loglevel=error'];
  const { status } = spawnSync('npm', words, { cwd: folder, stdio: 'inherit' });
  // npm has said why.
  if (status !== 0) process.exit(status ?? 1);
}

export const installPackages = () => install(root, 'packages');

/** Tools of a few commands, each with packages and a lock file of its own below scripts/tools. `npm test` does not install them. */
export const TOOLS = ['exports', 'mutate'];
export const toolFolder = (name) => join(root, 'scripts/tools', name);
export const installTool = (name) => install(toolFolder(name), `the packages of scripts/tools/${name}`);

export function build() {
  const { status } = spawnSync(process.execPath, [join(root, 'scripts/build.mjs')], { cwd: root, stdio: 'inherit' });
  if (status !== 0) process.exit(status ?? 1);
}
