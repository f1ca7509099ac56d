// npm run mutate -- PATH …: changes the code below these paths in small ways, and lists the changes that no unit test notices.
import { writeFileSync, mkdirSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { spawnSync } from 'node:child_process';
import { cliArguments } from './cli-arguments.mjs';
import { installPackages, root } from './install.mjs';

/** Components whose tests need no database. */
const WITHOUT_DATABASE = new Set(['config', 'model', 'wire']);
const { positionals, jobs } = cliArguments({
  command: 'npm run mutate',
  usage: 'PATH[:LINE-LINE] … [--jobs N]',
  about: 'Mutation tests: which small changes of these files no unit test of the same component notices. A folder: all files below it.',
  options: {
    jobs: { value: 'N', least: 1, most: 64, default: availableParallelism(), help: 'so many at once (as many as processors)' },
  },
  positional: { name: 'PATH', choices: undefined, several: true, needed: true },
});
installPackages();
const folder = join(root, '.cache/mutate');
mkdirSync(folder, { recursive: true });
const config = join(folder, 'stryker.config.json');
const components = [...new Set(positionals.map((path) => path.split(/[/:]/)[0]))];
const testMatch = components.map((name) => `<rootDir>/tests/${name}/**/*.test.ts`);
// Stryker runs jest once for each change: a database server for each would take most of the time.
const database = components.every((name) => WITHOUT_DATABASE.has(name)) ? { globalSetup: null, globalTeardown: null } : {};
const settings = {
  mutate: positionals.map((path) => (/\.ts(:[\d-]+)?$/.test(path) ? path : `${path.replace(/\/$/, '')}/**/*.ts`)),
  testRunner: 'jest',
  // The unit tests of the same components that import a mutated file, and of those the ones that run it.
  jest: {
    projectType: 'custom',
    configFile: 'scripts/jest-unit.config.js',
    config: { testMatch, ...database },
    enableFindRelatedTests: true,
  },
  coverageAnalysis: 'perTest',
  concurrency: jobs,
  tempDirName: '.cache/mutate/sandbox',
  ignorePatterns: ['dist', '.cache'],
  // None: Stryker would rewrite it with the JavaScript API of typescript, which version 7 has no more.
  tsconfigFile: '.cache/mutate/no-tsconfig.json',
  reporters: ['clear-text', 'progress'],
  clearTextReporter: { allowColor: false, logTests: false, reportTests: false },
  disableTypeChecks: false,
  timeoutMS: 60_000,
};
writeFileSync(config, JSON.stringify(settings, null, 2));
const { status } = spawnSync(process.execPath, [join(root, 'node_modules/@stryker-mutator/core/bin/stryker.js'), 'run', config], {
  cwd: root,
  stdio: 'inherit',
});
process.exit(status ?? 1);
