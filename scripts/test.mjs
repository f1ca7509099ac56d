// npm test: types, lint, format, and the unit, flow and hostile tests but for the long ones. Needs Node and npm only.
// A test file that fails runs once more by itself. The output ends with durations, what failed, what was flaky, and counts.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { CHECKS } from './checks/checks.mjs';
import { cliArguments } from './cli-arguments.mjs';
import { summary } from './testing/flaky.mjs';
import { build, installPackages, root } from './install.mjs';
import { repeatFailedFiles, runAlone, runJest } from './testing/jest-results.mjs';

cliArguments({
  command: 'npm test',
  usage: '',
  about:
    'Types, lint, format, unit, flow and hostile tests. `npm run test:long` has those that take long, `npm run test:lab` has the real counterparts, `npm run test:reference` the real Ironic.',
});
const scratch = join(root, '.cache/test');
/** @param {number} milliseconds */
const seconds = (milliseconds) => `${(milliseconds / 1000).toFixed(1)} s`;
/** @type {import('./testing/flaky.mjs').Result} */
const checked = { passed: 0, failed: [] };
/** The durations of the parts, for the summary. @type {string[]} */
const times = [];

/**
 * Resolves to the result of `work`, and notes how long it took.
 * @template Done
 * @param {string} name
 * @param {() => Promise<Done>} work
 */
async function timed(name, work) {
  const started = performance.now();
  const result = await work();
  times.push(`${name}: ${seconds(performance.now() - started)}`);
  return result;
}
/** Runs a command. Its output is returned when it has ended, because others run beside it. @param {string[]} command */
async function run(command) {
  const [program = '', ...words] = command;
  const child = spawn(program, words, { cwd: root, stdio: ['ignore', 'pipe', 'pipe'] });
  /** @type {Buffer[]} */
  const output = [];
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (data) => output.push(data));
  const end = () => child.kill();
  process.once('exit', end);
  const [status] = await once(child, 'close');
  process.off('exit', end);
  return { status, output: Buffer.concat(output).toString() };
}
/** Runs a check that is not a jest test, and counts it as one test. @param {string} name @param {string[]} command */
async function check(name, ...command) {
  const { status, output } = await timed(name, () => run([process.execPath, ...command]));
  if (status === 0) checked.passed++;
  else checked.failed.push(name);
  console.log(`${output}${status === 0 ? 'ok' : 'FAILED'}: ${name}`);
}
const projects = ['unit', 'flows', 'hostile'];
/** @type {import('./testing/jest-results.mjs').Suite} */
const suite = {
  name: projects.join(', '),
  projects,
  file: join(scratch, 'result.json'),
  run: async (command) => timed(suite.name, () => runAlone(command)),
};
async function tests() {
  const results = await runJest(suite);
  const slowest = [...results.files].sort(([, file], [, other]) => other.seconds - file.seconds).slice(0, 5);
  times.push(...slowest.map(([name, item]) => `    ${name}: ${item.seconds.toFixed(1)} s`));
  return results;
}

installPackages();
mkdirSync(scratch, { recursive: true });
build();
const checks = async () => {
  for (const { name, command } of CHECKS) await check(name, ...command);
};
const [results] = await Promise.all([tests(), checks()]);
const { passed, failed, flaky } = await repeatFailedFiles(suite, results);
const all = { passed: passed + checked.passed, failed: [...checked.failed, ...failed], flaky };
console.log(['', ...times, ...summary(all)].join('\n'));
process.exit(all.failed.length === 0 ? 0 : 1);
