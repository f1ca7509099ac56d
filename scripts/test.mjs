// npm test: types, lint, unused exports, format, and the unit, flow and hostile tests. Needs Node and npm only.
// Ends with where the time went, what failed, and one line of counts.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { CHECKS } from './checks.mjs';
import { cliArguments } from './cli-arguments.mjs';
import { build, installPackages, root } from './install.mjs';
import { jestCommand, jestResults } from './jest-results.mjs';

cliArguments({
  command: 'npm test',
  usage: '',
  about:
    'Types, lint, format, unit, flow and hostile tests. `npm run test:lab` has the real counterparts, `npm run test:reference` the real Ironic.',
});
const scratch = join(root, '.cache/test');
const seconds = (milliseconds) => `${(milliseconds / 1000).toFixed(1)} s`;
let passed = 0;
const failed = [];
/** Where the time went, by part. */
const times = [];

/** Runs a program of Node; its output is printed when it has ended, since others run beside it. */
async function run(name, command, stdio) {
  const started = performance.now();
  const child = spawn(command[0], command.slice(1), { cwd: root, stdio });
  const output = [];
  for (const stream of [child.stdout, child.stderr]) stream?.on('data', (data) => output.push(data));
  const [status] = await once(child, 'close');
  times.push(`${name}: ${seconds(performance.now() - started)}`);
  return { status, output: Buffer.concat(output).toString() };
}
/** A check that is no jest test counts as one. */
async function check(name, ...command) {
  const { status, output } = await run(name, [process.execPath, ...command], ['ignore', 'pipe', 'pipe']);
  if (status === 0) passed++;
  else failed.push(name);
  console.log(`${output}${status === 0 ? 'ok' : 'FAILED'}: ${name}`);
}
async function tests(...projects) {
  const file = join(scratch, 'result.json');
  rmSync(file, { force: true });
  const name = projects.join(', ');
  const { status } = await run(name, jestCommand(file, projects), ['ignore', 'ignore', 'inherit']);
  const results = jestResults(file, name, status);
  passed += results.passed;
  failed.push(...results.failed);
  times.push(...results.files.slice(0, 5).map((one) => `    ${one.name}: ${one.seconds.toFixed(1)} s`));
}

installPackages();
mkdirSync(scratch, { recursive: true });
build();
const checks = async () => {
  for (const { name, command } of CHECKS) await check(name, ...command);
};
await Promise.all([checks(), tests('unit', 'flows', 'hostile')]);
console.log(['', ...times, ...failed.map((what) => `FAILED: ${what}`), `${passed} passed, ${failed.length} failed`].join('\n'));
process.exit(failed.length === 0 ? 0 : 1);
