// npm test: checks, then all tests of three levels (unit, flows, lab); npm run test:reference: those beside the real Ironic.
// The lab takes half an hour: it is not begun when something before it failed, unless --keep-going is said.
// Ends with where the time went, what failed, and one line of counts over everything that ran.
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readFileSync, rmSync } from 'node:fs';
import { join, relative } from 'node:path';
import { build, installPackages, root } from './install.mjs';
import { words } from './words.mjs';

const { word: level = 'all', 'keep-going': keepGoing } = words({
  command: 'npm test',
  takes: '[--keep-going]',
  about: 'Types, lint, format, and all tests (docs/contributing.md); `npm run test:reference`: those beside the real Ironic.',
  options: { 'keep-going': { help: 'begin the lab (half an hour) although something before it failed' } },
  positional: { name: 'LEVEL', choices: ['all', 'reference'] },
});
const scratch = join(root, '.cache/test');
let passed = 0;
/** What failed, by name. */
const failed = [];
/** Where the time went: a line for each part. */
const times = [];
const secondsSince = (started) => `${((performance.now() - started) / 1000).toFixed(1)} s`;

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

/** One check that is no jest test counts as one; it says what it has to say when it has ended, since others run beside it. */
async function check(name, ...words) {
  const started = performance.now();
  const child = spawn(process.execPath, words, { cwd: root, stdio: ['ignore', 'pipe', 'pipe'] });
  const said = [];
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (data) => said.push(data));
  const [status] = await once(child, 'close');
  if (status === 0) passed++;
  else failed.push(name);
  times.push(`${name}: ${secondsSince(started)}`);
  console.log(`${Buffer.concat(said).toString()}${status === 0 ? 'ok' : 'FAILED'}: ${times.at(-1)}`);
}

/** The files that took longest, of a run's result. */
function slowest({ testResults }) {
  const taken = testResults.map(({ name, startTime, endTime }) => ({ name: relative(root, name), seconds: (endTime - startTime) / 1000 }));
  taken.sort((one, other) => other.seconds - one.seconds);
  return taken.slice(0, 5).map(({ name, seconds }) => `    ${name}: ${seconds.toFixed(1)} s`);
}

/** Runs jest projects and adds up their tests; a file that cannot run, and a test that is skipped, count as failed tests. */
function jest(projects, ...more) {
  const started = performance.now();
  const name = projects.join(', ');
  const file = join(scratch, `${projects.join('-')}.json`);
  rmSync(file, { force: true });
  const words = [join(root, 'node_modules/jest/bin/jest.js'), '--selectProjects', ...projects, '--json', `--outputFile=${file}`, ...more];
  const { status } = spawnSync(process.execPath, words, { cwd: root, stdio: ['ignore', 'ignore', 'inherit'] });
  times.push(`${name}: ${secondsSince(started)}`);
  const before = failed.length;
  try {
    const result = JSON.parse(readFileSync(file, 'utf8'));
    passed += result.numPassedTests;
    times.push(...slowest(result));
    for (const { name: path, message, assertionResults } of result.testResults) {
      const wrong = assertionResults.filter(({ status }) => status !== 'passed').map(({ fullName }) => fullName);
      if (wrong.length === 0 && message !== '') wrong.push('cannot run');
      failed.push(...wrong.map((title) => `${relative(root, path)}: ${title}`));
    }
    if (result.numPassedTests === 0) failed.push(`${name}: no tests`);
  } catch {
    failed.push(`${name}: no result`);
  }
  if (status !== 0 && failed.length === before) failed.push(`${name}: jest ended with ${status}`);
}
/** For long runs: what runs now, and how what ran ended. */
const oneAfterTheOther = ['--runInBand', `--reporters=${join(root, 'scripts/test-progress.mjs')}`];

installPackages();
mkdirSync(scratch, { recursive: true });
debianPackages();
build();
if (level === 'reference') {
  jest(['reference'], ...oneAfterTheOther);
} else {
  const bin = (name) => join(root, 'node_modules', name);
  const types = async () => {
    await check('types', bin('typescript/bin/tsc'), '--noEmit');
    await check('format', bin('prettier/bin/prettier.cjs'), '--check', '--log-level', 'warn', '.');
  };
  await Promise.all([types(), check('lint', bin('eslint/bin/eslint.js'), '.')]);
  jest(['unit', 'flows']);
  if (failed.length === 0 || keepGoing) jest(['lab'], ...oneAfterTheOther);
  else failed.push('lab: not begun, since what is before it failed');
}
console.log(['', ...times, ...failed.map((what) => `FAILED: ${what}`), `${passed} passed, ${failed.length} failed`].join('\n'));
process.exit(failed.length === 0 ? 0 : 1);
