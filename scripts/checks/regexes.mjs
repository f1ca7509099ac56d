// Finds regular expressions that can take quadratic or exponential time: part of npm run check.
// Prints each with its file, and fails if there is one.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseSync } from '@swc/core';
import { analyse } from 'scslre';
import { root } from '../install.mjs';
import { sourceFiles } from './sources.js';

/**
 * Files that compose patterns when they run, with the number of places. Each was checked by hand; a new one needs the same.
 * @type {Record<string, number>}
 */
const COMPOSED = {
  'boot/pxe.ts': 3,
  'drivers/redfish/power.ts': 1,
  'wire/mac-lists.ts': 1,
  'model/masks.ts': 5,
  'model/rules/json-path.ts': 1,
  'model/rules/python-regex.ts': 1,
  'ramdisk-agent/managers/nvram.ts': 1,
  'simulator/redfish/table.ts': 1,
  'store/embedded/embedded.ts': 1,
  'wire/redfish/errors.ts': 1,
};
/** What the analysis must find, and what it must accept: an analysis that finds nothing would pass everything. @type {[source: string, flags: string, slow: boolean][]} */
const SAMPLES = [
  ['^(a+)+$', '', true],
  ['/+$', '', true],
  ['^(\\s*)(\\S+)\\s+(\\S.*?)\\s*$', '', true],
  ['(?<!/)/+$', '', false],
  ['^[a-z]+$', 'i', false],
];

/** @param {string} source @param {string} flags */
const isSlow = (source, flags) => analyse({ source, flags }).reports.length > 0;
const problems = SAMPLES.filter(([source, flags, slow]) => isSlow(source, flags) !== slow).map(
  ([source]) => `sample /${source}/ is judged wrongly`,
);

// The demonstration is not part of the server.
const sources = sourceFiles().filter((file) => !file.startsWith('demo/'));

/** @typedef {Record<string, any> & { type: string }} Node */
/** Calls `visit` with each node of a syntax tree. @param {unknown} tree @param {(node: Node) => void} visit */
function walk(tree, visit) {
  if (typeof tree !== 'object' || tree === null) return;
  if (!Array.isArray(tree)) visit(/** @type {Node} */ (tree));
  Object.values(tree).forEach((child) => walk(child, visit));
}
let literals = 0;
/** @type {Record<string, number>} */
const composed = {};
for (const file of sources) {
  /** @type {import('@swc/core').ParseOptions} */
  const syntax = { syntax: 'typescript', tsx: file.endsWith('.tsx'), target: 'es2023' };
  walk(parseSync(readFileSync(join(root, file), 'utf8'), syntax), (node) => {
    if (node.type === 'RegExpLiteral') {
      literals++;
      if (isSlow(node['pattern'], node['flags'])) problems.push(`${file}: /${node['pattern']}/${node['flags']} can take quadratic time`);
    } else if (['NewExpression', 'CallExpression'].includes(node.type) && node['callee'].value === 'RegExp')
      composed[file] = (composed[file] ?? 0) + 1;
  });
}
for (const file of new Set([...Object.keys(composed), ...Object.keys(COMPOSED)])) {
  const [found = 0, known = 0] = [composed[file], COMPOSED[file]];
  if (found !== known) problems.push(`${file}: ${found} composed patterns, ${known} are known`);
}
for (const problem of problems) console.error(problem);
console.log(`${literals} regular expressions in ${sources.length} files, ${problems.length} problems`);
process.exit(problems.length === 0 && literals > 0 ? 0 : 1);
