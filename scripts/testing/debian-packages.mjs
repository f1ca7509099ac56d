// The Debian packages that tests need: tests/lab/packages.txt, in groups by subject.
import { execFileSync, spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../install.mjs';

/** Group → package names. A group begins with a line `[NAME] what it is for`. @returns {Record<string, string[]>} */
export function packageGroups() {
  /** @type {Record<string, string[]>} */
  const groups = {};
  let group = '';
  for (const line of readFileSync(join(root, 'tests/lab/packages.txt'), 'utf8').split('\n')) {
    const text = line.replace(/#.*/, '').trim();
    const heading = /^\[([a-z-]+)\]/.exec(text)?.[1];
    if (heading !== undefined) groups[(group = heading)] = [];
    else if (text !== '') groups[group]?.push(text);
  }
  return groups;
}

/** @param {string[]} wanted @returns those that are missing */
function missingPackages(wanted) {
  const status = spawnSync('dpkg-query', ['-W', '-f', '${Package} ${db:Status-Status}\n', ...wanted], { encoding: 'utf8' });
  const installed = new Set(
    (status.stdout ?? '')
      .split('\n')
      .filter((line) => line.endsWith(' installed'))
      .map((line) => line.split(' ')[0]),
  );
  // Some programs are installed without a package, such as cargo by rustup. Such a program has the package's name.
  /** @param {string} name */
  const isThere = (name) => spawnSync('sh', ['-c', 'command -v "$0"', name]).status === 0;
  return wanted.filter((name) => !installed.has(name) && !isThere(name));
}

/** Installs the missing packages of these groups. Without root, prints their names and ends the process. @param {string[]} groups */
export function installDebianPackages(groups) {
  const all = packageGroups();
  const missing = missingPackages([...new Set(groups.flatMap((group) => all[group] ?? []))]);
  if (missing.length === 0) return;
  if (process.getuid?.() !== 0) {
    console.error(`These tests need Debian packages that are not installed: ${missing.join(' ')}\nInstall them, or run the tests as root.`);
    process.exit(1);
  }
  console.log(`installing Debian packages: ${missing.join(' ')} …`);
  /** @type {import('node:child_process').ExecFileSyncOptions} */
  const quiet = { stdio: ['ignore', 'ignore', 'inherit'], env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' } };
  execFileSync('apt-get', ['-qq', 'update'], quiet);
  // Another run may be installing packages.
  const settings = ['-o', 'Dpkg::Use-Pty=0', '-o', 'DPkg::Lock::Timeout=600'];
  execFileSync('apt-get', ['-qq', 'install', '-y', '--no-install-recommends', ...settings, ...missing], quiet);
}
