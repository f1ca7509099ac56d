// npm test: checks, then all tests of three levels (unit, flows, lab); npm run test:reference: those beside the real Ironic.
// Ends with one line of counts over everything that ran.
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { build, installPackages, root } from './install.mjs';

const level = process.argv[2] === 'reference' ? 'reference' : 'all';
const scratch = join(root, '.cache/test');
let passed = 0;
let failed = 0;

/** The Debian packages that the lab's tests need: installed when we are root, else named. */
function debianPackages() {
  const wanted = readFileSync(join(root, 'tests/lab/packages.txt'), 'utf8')
    .split('\n')
    .map((line) => line.replace(/#.*/, '').trim())
    .filter((line) => line !== '');
  const status = spawnSync('dpkg-query', ['-W', '-f', '${Package} ${db:Status-Status}\n', ...wanted], { encoding: 'utf8' });
  const installed = new Set(
    (status.stdout ?? '')
      .split('\n')
      .filter((line) => line.endsWith(' installed'))
      .map((line) => line.split(' ')[0]),
  );
  // Some come otherwise than from Debian, as cargo does with rustup: then the program of that name is there.
  const isThere = (name) => spawnSync('sh', ['-c', 'command -v "$0"', name]).status === 0;
  const missing = wanted.filter((name) => !installed.has(name) && !isThere(name));
  if (missing.length === 0) return;
  if (process.getuid() !== 0) {
    console.error(`The tests need Debian packages that are not installed: ${missing.join(' ')}\nInstall them, or run the tests as root.`);
    process.exit(1);
  }
  console.log(`installing Debian packages: ${missing.join(' ')} …`);
  const environment = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' };
  const quiet = { stdio: ['ignore', 'ignore', 'inherit'], env: environment };
  execFileSync('apt-get', ['-qq', 'update'], quiet);
  execFileSync('apt-get', ['-qq', 'install', '-y', '--no-install-recommends', '-o', 'Dpkg::Use-Pty=0', ...missing], quiet);
}

/** One check that is no jest test counts as one. */
function check(name, command, args) {
  const started = performance.now();
  const { status } = spawnSync(command, args, { cwd: root, stdio: 'inherit' });
  console.log(`${status === 0 ? 'ok' : 'FAILED'}: ${name} (${((performance.now() - started) / 1000).toFixed(1)} s)`);
  if (status === 0) passed++;
  else failed++;
}

/** Runs jest projects and adds up their tests; a file that cannot run counts as a failed test. */
function jest(projects, ...more) {
  const started = performance.now();
  const file = join(scratch, `${projects.join('-')}.json`);
  rmSync(file, { force: true });
  const args = [join(root, 'node_modules/jest/bin/jest.js'), '--selectProjects', ...projects, '--json', `--outputFile=${file}`, ...more];
  const { status } = spawnSync(process.execPath, args, { cwd: root, stdio: ['ignore', 'ignore', 'inherit'] });
  try {
    const result = JSON.parse(readFileSync(file, 'utf8'));
    passed += result.numPassedTests;
    failed += result.numFailedTests + result.numRuntimeErrorTestSuites + result.numPendingTests;
    if (result.numPassedTests === 0 || (status !== 0 && result.success)) failed++;
  } catch {
    failed++;
  }
  console.log(`${projects.join(', ')}: ${((performance.now() - started) / 1000).toFixed(1)} s`);
}

installPackages();
mkdirSync(scratch, { recursive: true });
debianPackages();
build();
if (level === 'reference') {
  jest(['reference'], '--runInBand');
} else {
  const bin = (name) => join(root, 'node_modules', name);
  check('types', process.execPath, [bin('typescript/bin/tsc'), '--noEmit']);
  check('lint', process.execPath, [bin('eslint/bin/eslint.js'), '.']);
  check('format', process.execPath, [bin('prettier/bin/prettier.cjs'), '--check', '--log-level', 'warn', '.']);
  jest(['unit', 'flows']);
  jest(['lab'], '--runInBand');
}
console.log(`${passed} passed, ${failed} failed`);
process.exit(failed === 0 ? 0 : 1);
