// Checks the licences of all packages in our lock files: part of npm run check. Prints each problem, and fails if there is one.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root, toolFolder, TOOLS } from '../install.mjs';

/** SPDX identifiers that any package may have: permissive, and compatible with Apache-2.0. */
const ALLOWED = ['0BSD', 'Apache-2.0', 'BSD-2-Clause', 'BSD-3-Clause', 'BlueOak-1.0.0', 'CC0-1.0', 'ISC', 'MIT'];
/** Package → its licence, and why it may be used. Only packages for development, which the program does not need from npm. */
/** @type {Record<string, { licence: string, why: string }>} */
const EXCEPTIONS = {
  '@novnc/novnc': {
    licence: 'MPL-2.0',
    why: 'bundled into the page, unchanged: THIRD-PARTY-LICENSES and docs/dependencies.md name the source, as its section 3.2 demands',
  },
  'axe-core': { licence: 'MPL-2.0', why: 'runs in the browser of a test; its files are not changed' },
  argparse: { licence: 'PSF-2.0', why: 'permissive; a port of a module of Python' },
  'caniuse-lite': { licence: 'CC-BY-4.0', why: 'data about browsers, not code' },
};

/** @param {string} expression SPDX: identifiers with AND and OR; AND binds more strongly */
const isAllowed = (expression) =>
  expression
    .replace(/^\((.*)\)$/, '$1')
    .split(' OR ')
    .some((choice) => choice.split(' AND ').every((id) => ALLOWED.includes(id)));

/** @param {Record<string, { license?: string, dev?: boolean }>} packages as in the lock file, by path */
function problemsOf(packages) {
  const used = new Set();
  const problems = Object.entries(packages).flatMap(([path, { license = 'no licence', dev = false }]) => {
    if (path === '' || isAllowed(license)) return [];
    const name = path.split('node_modules/').at(-1) ?? '';
    if (dev && EXCEPTIONS[name]?.licence === license) {
      used.add(name);
      return [];
    }
    return [`${name}: ${license} is not allowed${dev ? '' : ' in the program'}`];
  });
  return { problems, used };
}

/** What the check must find, and what it must accept: a check that finds nothing would pass everything. @type {[entry: { license?: string }, right: boolean][]} */
const SAMPLES = [
  [{ license: 'MIT' }, true],
  [{ license: 'Apache-2.0 AND MIT' }, true],
  [{ license: '(MIT OR GPL-3.0-only)' }, true],
  [{ license: 'Apache-2.0 AND LGPL-2.1-only' }, false],
  [{ license: 'GPL-3.0-or-later' }, false],
  [{ license: 'SEE LICENSE IN LICENSE.md' }, false],
  [{}, false],
];
const wrong = SAMPLES.filter(([entry, right]) => (problemsOf({ 'node_modules/a': entry }).problems.length === 0) !== right);
const found = [root, ...TOOLS.map(toolFolder)].map((folder) => {
  const { packages } = JSON.parse(readFileSync(join(folder, 'package-lock.json'), 'utf8'));
  return { ...problemsOf(packages), count: Object.keys(packages).length - 1 };
});
const used = new Set(found.flatMap((item) => [...item.used]));
const unused = Object.keys(EXCEPTIONS).filter((name) => !used.has(name));
const all = [
  ...wrong.map(([entry]) => `sample ${JSON.stringify(entry)} is judged wrongly`),
  ...found.flatMap(({ problems }) => problems),
  ...unused.map((name) => `${name}: the exception applies to nothing`),
];
for (const problem of all) console.log(problem);
console.log(`${found.reduce((sum, { count }) => sum + count, 0)} packages, ${all.length} problems with licences`);
process.exit(all.length === 0 ? 0 : 1);
