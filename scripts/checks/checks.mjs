// The checks of the code that are not jest tests: programs of Node that end with a status.
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { installTool, root, toolFolder } from '../install.mjs';

/** @param {string} path */
const program = (path) => join(root, 'node_modules', path);
/** @typedef {{ name: string, command: string[], tool?: string }} Check */
/** The checks of `npm test`. @type {readonly Check[]} */
export const CHECKS = [
  { name: 'types', command: [program('typescript/bin/tsc'), '--noEmit', '--singleThreaded'] },
  { name: 'types of the page', command: [program('typescript/bin/tsc'), '--noEmit', '--singleThreaded', '-p', 'ui'] },
  { name: 'types of its tests', command: [program('typescript/bin/tsc'), '--noEmit', '--singleThreaded', '-p', 'tests/lab/page'] },
  { name: 'types of the scripts', command: [program('typescript/bin/tsc'), '--noEmit', '--singleThreaded', '-p', 'scripts'] },
  { name: 'lint', command: [program('oxlint/bin/oxlint'), '.'] },
  { name: 'regular expressions', command: [join(root, 'scripts/checks/regexes.mjs')] },
  { name: 'licences', command: [join(root, 'scripts/checks/licences.mjs')] },
  { name: 'format', command: [program('oxfmt/bin/oxfmt'), '--check', '.'] },
];
const knip = [join(toolFolder('exports'), 'node_modules/knip/bin/knip.js'), '--no-config-hints'];
/** The checks that `npm run check` and `npm run test:long` add. A `tool` has packages of its own. @type {readonly Check[]} */
export const LONG_CHECKS = [
  { name: 'exports', tool: 'exports', command: knip },
  // Without the tests as users. What only they use is marked @internal; the mark on anything else is an error.
  { name: 'exports for tests', tool: 'exports', command: [...knip, '--production', '--treat-tag-hints-as-errors'] },
];

/** Runs all checks, even if one fails. @param {readonly Check[]} checks @returns {import('../testing/flaky.mjs').Result} */
export function runChecks(checks) {
  const failed = checks.filter(({ name, tool, command }) => {
    if (tool !== undefined) installTool(tool);
    const { status } = spawnSync(process.execPath, command, { cwd: root, stdio: 'inherit' });
    console.log(`${status === 0 ? 'ok' : 'FAILED'}: ${name}`);
    return status !== 0;
  });
  return { passed: checks.length - failed.length, failed: failed.map(({ name }) => name) };
}
