// npm run test:lab [-- NAME …]: the tests beside real counterparts (tests/lab) and the rounds of killed processes (tests/chaos). Needs root
// and Debian. Parts run side by side, each contained (contained.mjs). A part that fails runs once more by itself. The output ends with the
// parts that did not run, what failed, what was flaky, and one line of counts.
import { availableParallelism } from 'node:os';
import { mkdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { cliArguments } from './cli-arguments.mjs';
import { prepareContained, startContained } from './testing/contained.mjs';
import { installDebianPackages, packageGroups } from './testing/debian-packages.mjs';
import { judge, repeatFailed, summary } from './testing/flaky.mjs';
import { build, installPackages, root } from './install.mjs';
import { jestCommand, jestResults } from './testing/jest-results.mjs';
import { PARTS, fileOf } from './testing/lab-parts.mjs';

const folders = [...new Set(Object.keys(PARTS).flatMap((part) => part.split('/', 1)))];
const {
  positionals,
  all: isAll,
  list,
  jobs,
} = cliArguments({
  command: 'npm run test:lab',
  usage: '[NAME … | --all] [--list] [--jobs N]',
  about: 'The tests beside real counterparts: a part, a folder of parts, or (without a name) all parts that are not rare. Root, Debian.',
  options: {
    all: { isAlone: true, help: 'run the rare parts too, which --list marks' },
    list: { help: 'print what each part needs, and run nothing' },
    jobs: {
      value: 'N',
      least: 1,
      most: 64,
      // A part waits for a fifth of its time. With one part for each of two processors, these are idle for six minutes of half an hour.
      default: Math.ceil(availableParallelism() * 1.5),
      help: 'number of parts that run in parallel (three for each two processors)',
    },
  },
  positional: { name: 'NAME', choices: [...folders, ...Object.keys(PARTS)], several: true },
});
/** @param {string} name */
const partOf = (name) => {
  const part = PARTS[name];
  if (!part) throw new Error(`no part is named ${name}`);
  return part;
};
// Without names: --list shows all parts, a run leaves the rare ones out.
const isWithRare = list || isAll;
const chosen = Object.keys(PARTS).filter((part) =>
  positionals.length === 0 ? isWithRare || !PARTS[part]?.rare : positionals.some((name) => part === name || part.startsWith(`${name}/`)),
);
const leftOut = positionals.length === 0 ? Object.keys(PARTS).filter((part) => !chosen.includes(part)) : [];
if (list) {
  const width = Math.max(...chosen.map((part) => part.length));
  for (const part of chosen) {
    const { groups, seconds, namespaces, pypi, rare } = partOf(part);
    const needs = [
      namespaces && 'network namespaces',
      pypi && 'PyPI',
      rare && 'rare',
      groups.length > 0 && `packages: ${groups.join(', ')}`,
    ];
    console.log(`${part.padEnd(width)}  ${String(seconds).padStart(4)} s  ${['root', ...needs.filter(Boolean)].join('; ')}`);
  }
  console.log('\nThe groups of Debian packages (tests/lab/packages.txt), which are installed when they are missing:');
  for (const [group, packages] of Object.entries(packageGroups())) console.log(`${group}: ${packages.join(' ')}`);
  process.exit(0);
}
if (process.getuid?.() !== 0) {
  console.error('npm run test:lab needs root: it makes namespaces, mounts and machines');
  process.exit(1);
}

installPackages();
installDebianPackages([...new Set(chosen.flatMap((part) => partOf(part).groups))]);
build();
const scratch = join(root, '.cache/test/lab');
mkdirSync(scratch, { recursive: true });
const folder = prepareContained('lab');

const started = performance.now();
/** @param {string} what */
const say = (what) => console.error(`[${((performance.now() - started) / 1000).toFixed(0)} s] ${what}`);
/** How long each part took. @type {Map<string, string>} */
const times = new Map();
/** Runs a part. @param {string} part @param {number} place the number of the lane that runs it @returns its results */
async function run(part, place = 0) {
  const name = part.replaceAll('/', '-');
  const file = join(scratch, `${name}.json`);
  const log = join(scratch, `${name}.log`);
  rmSync(file, { force: true });
  say(`${part} …`);
  const begun = performance.now();
  // A cache for each lane: Jest names its temporary files by process IDs, which are the same in every PID namespace.
  const cache = join(root, `.cache/jest/lab-${place}`);
  const command = jestCommand(file, ['lab'], '--runInBand', `--cacheDirectory=${cache}`, '--runTestsByPath', fileOf(part));
  const { code, cpuSeconds = 0 } = await startContained(command, { folder: join(folder, name), log, cwd: root }).ended;
  const { files, broken } = jestResults(file, part, code);
  const { passed, failed: failedTests } = judge(files);
  const failed = [...failedTests, ...broken];
  const time = `${((performance.now() - begun) / 1000).toFixed(0)} s, processor ${cpuSeconds.toFixed(0)} s`;
  say(`${part}: ${failed.length === 0 ? 'ok' : 'FAILED'} after ${time}`);
  if (failed.length > 0) console.error(readFileSync(log, 'utf8').slice(-20_000));
  times.set(part, `${part}: ${time}`);
  return { passed, failed };
}

const queue = chosen.toSorted((left, right) => partOf(right).seconds - partOf(left).seconds);
/** @type {Map<string, import('./testing/flaky.mjs').Result>} */
const results = new Map();
/** @param {number} place */
const next = async (place) => {
  for (let part = queue.shift(); part !== undefined; part = queue.shift()) results.set(part, await run(part, place));
};
await Promise.all(Array.from({ length: jobs }, (_, place) => next(place)));
const all = await repeatFailed(results, async (parts) => {
  const again = new Map();
  for (const part of parts) {
    say(`${part} failed: once more, by itself`);
    again.set(part, await run(part));
  }
  return again;
});
const rare = leftOut.length === 0 ? [] : [`not run, because they are rare (--all runs them): ${leftOut.join(', ')}`];
const duration = `in all: ${((performance.now() - started) / 1000).toFixed(0)} s`;
console.log(['', ...times.values(), duration, ...rare, ...summary(all)].join('\n'));
process.exit(all.failed.length === 0 ? 0 : 1);
