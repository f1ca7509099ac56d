// Prepares a fresh clone: installs the npm packages that the lock files name, and builds the program.
import { execFileSync } from 'node:child_process';
import { existsSync, statSync } from 'node:fs';
import { join } from 'node:path';

export const root = join(import.meta.dirname, '..');

/** Runs `npm ci` in a folder, unless its node_modules is as new as its lock file. @param what the subject of the progress line */
function install(folder, what) {
  const done = join(folder, 'node_modules/.package-lock.json');
  if (existsSync(done) && statSync(done).mtimeMs >= statSync(join(folder, 'package-lock.json')).mtimeMs) return;
  console.log(`installing ${what} (npm ci) …`);
  execFileSync('npm', ['ci', '--no-audit', '--no-fund', '--loglevel=error'], { cwd: folder, stdio: 'inherit' });
}

export const installPackages = () => install(root, 'packages');

/** Tools of a few commands, each with packages and a lock file of its own below scripts/tools. `npm test` does not install them. */
export const TOOLS = ['exports', 'mutate'];
export const toolFolder = (name) => join(root, 'scripts/tools', name);
export const installTool = (name) => install(toolFolder(name), `the packages of scripts/tools/${name}`);

export function build() {
  execFileSync(process.execPath, [join(root, 'scripts/build.mjs')], { cwd: root, stdio: 'inherit' });
}
