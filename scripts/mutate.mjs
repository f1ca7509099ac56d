// npm run mutate -- PATH …: changes the code below these paths in small ways, and lists the changes that no unit test notices.
import { createHash } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { spawnSync } from 'node:child_process';
import { cliArguments } from './cli-arguments.mjs';
import { installPackages, installTool, root, toolFolder } from './install.mjs';

/** Tests that need no database. For others, DATABASE_URL_TEST avoids the start of a database server for each change. */
const WITHOUT_DATABASE = new Set(['boot', 'conductor/flows', 'config', 'drivers', 'listeners.test.ts', 'model', 'simulator', 'wire']);
/** Folder → folders and files of its tests, if these are not only the unit tests of its component. The first matching row applies. @type {Record<string, string[]>} */
const TESTS = {
  'conductor/flows': ['conductor/flows'],
  'wire/keystone': ['wire', 'api/auth'],
  wire: ['wire', 'boot', 'drivers', 'simulator/ipmi', 'listeners.test.ts'],
};
const { positionals, jobs, sample } = cliArguments({
  command: 'npm run mutate',
  usage: 'PATH[:LINE-LINE] … [--sample PERCENT] [--jobs N]',
  about: 'Mutation tests: which small changes of these files no unit test of the same component notices. A folder: all files below it.',
  options: {
    sample: { value: 'PERCENT', least: 1, most: 100, default: 100, help: 'try only the changes in this percentage of the lines (all)' },
    jobs: {
      value: 'N',
      least: 1,
      most: 64,
      default: availableParallelism(),
      help: 'number of changes that are tried in parallel (as many as processors)',
    },
  },
  positional: { name: 'PATH', choices: undefined, several: true, needed: true },
});
installPackages();
installTool('mutate');
const packages = join(toolFolder('mutate'), 'node_modules/@stryker-mutator');
const folder = join(root, '.cache/mutate');
mkdirSync(folder, { recursive: true });
const config = join(folder, 'stryker.config.json');
const testFolders = positionals.flatMap(
  (path) => Object.entries(TESTS).find(([folder]) => path.startsWith(folder))?.[1] ?? path.split(/[/:]/, 1),
);
const testMatch = [...new Set(testFolders)].map((name) => `<rootDir>/tests/${name}${name.endsWith('.ts') ? '' : '/**/*.test.ts'}`);
// Stryker runs jest once for each change: a database server for each would take most of the time.
const isWithout = testFolders.every((name) => WITHOUT_DATABASE.has(name) || WITHOUT_DATABASE.has(name.split('/', 1).join()));
const database = isWithout ? { globalSetup: null, globalTeardown: null } : {};
/** @param {string} path */
const isWhole = (path) => /\.ts(:[\d-]+)?$/.test(path);
/** @param {string} path */
const filesBelow = (path) =>
  statSync(join(root, path)).isDirectory()
    ? readdirSync(join(root, path), { encoding: 'utf8', recursive: true }).flatMap((name) =>
        name.endsWith('.ts') ? `${path.replace(/\/$/, '')}/${name}` : [],
      )
    : [path];
/** Selects the same lines in each run, so that unnoticed changes can be tried again after a change of the tests. @param {string} file @param {number} line */
const isSampled = (file, line) => createHash('sha256').update(`${file}:${line}`).digest().readUInt16BE() % 100 < sample;
/** @param {string} file */
const sampled = (file) =>
  readFileSync(join(root, file), 'utf8')
    .split('\n')
    .flatMap((_, index) => (isSampled(file, index + 1) ? `${file}:${index + 1}-${index + 1}` : []));
const settings = {
  mutate:
    sample === 100
      ? positionals.map((path) => (isWhole(path) ? path : `${path.replace(/\/$/, '')}/**/*.ts`))
      : positionals.flatMap(filesBelow).flatMap(sampled),
  testRunner: 'jest',
  plugins: [join(packages, 'jest-runner/dist/src/index.js')],
  // The unit tests of the same components that import a mutated file, and of those the ones that run it.
  jest: {
    projectType: 'custom',
    configFile: 'scripts/testing/jest-unit.config.js',
    config: { testMatch, ...database },
    enableFindRelatedTests: true,
  },
  coverageAnalysis: 'perTest',
  concurrency: jobs,
  tempDirName: '.cache/mutate/sandbox',
  ignorePatterns: ['dist', '.cache'],
  // This file does not exist: Stryker would rewrite it with the JavaScript API of typescript, which version 7 has no more.
  tsconfigFile: '.cache/mutate/no-tsconfig.json',
  reporters: ['clear-text', 'progress'],
  clearTextReporter: { allowColor: false, logTests: false, reportTests: false },
  disableTypeChecks: false,
  timeoutMS: 60_000,
};
writeFileSync(config, JSON.stringify(settings, null, 2));
const { status } = spawnSync(process.execPath, [join(packages, 'core/bin/stryker.js'), 'run', config], {
  cwd: root,
  stdio: 'inherit',
});
process.exit(status ?? 1);
