// The checks of npm test and npm run check: programs of Node that end with a status.
import { join } from 'node:path';
import { root } from './install.mjs';

const program = (path) => join(root, 'node_modules', path);
export const CHECKS = [
  { name: 'types', command: [program('typescript/bin/tsc'), '--noEmit', '--singleThreaded'] },
  { name: 'types of the page', command: [program('typescript/bin/tsc'), '--noEmit', '--singleThreaded', '-p', 'ui'] },
  { name: 'types of its tests', command: [program('typescript/bin/tsc'), '--noEmit', '--singleThreaded', '-p', 'tests/lab/page'] },
  { name: 'lint', command: [program('oxlint/bin/oxlint'), '.'] },
  { name: 'regular expressions', command: [join(root, 'scripts/regexes.mjs')] },
  { name: 'licences', command: [join(root, 'scripts/licences.mjs')] },
  { name: 'exports', command: [program('knip/bin/knip.js'), '--no-config-hints'] },
  { name: 'format', command: [program('oxfmt/bin/oxfmt'), '--check', '.'] },
];
