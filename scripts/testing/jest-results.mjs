// Runs jest and reads its results, for npm test and the other test commands.
import { mkdirSync, readFileSync, rmSync } from 'node:fs';
import { join, relative } from 'node:path';
import { prepareContained, startContained } from './contained.mjs';
import { repeatFailed, summary } from './flaky.mjs';
import { root } from '../install.mjs';
import { runInGroup } from './process-group.mjs';

/** @typedef {import('./flaky.mjs').Result} Result */
/** @typedef {{ status: string, fullName: string, failureMessages: string[] }} Assertion */
/**
 * @typedef {{ name: string, message: string, assertionResults: Assertion[], startTime: number, endTime: number }} FileOutput
 * @typedef {{ testResults: FileOutput[] }} JestOutput what jest writes with --json, in part
 * @typedef {{ files: Map<string, Result & { seconds: number }>, broken: string[] }} Results `broken`: what failed without a test
 * @typedef {(command: string[]) => Promise<number | null>} Run runs a command line and resolves to its status
 *
 * @typedef {object} Suite
 * @property {string} name
 * @property {string[]} projects
 * @property {string} file for the results
 * @property {Run} run
 * @property {string[]} [options] of jest for each run
 */

/** The command line of a run whose results go to `file`. @param {string} file @param {string[]} projects @param {string[]} more */
export const jestCommand = (file, projects, ...more) => [
  process.execPath,
  join(root, 'node_modules/jest/bin/jest.js'),
  '--selectProjects',
  ...projects,
  '--json',
  `--outputFile=${file}`,
  ...more,
];

/**
 * The results of a run; a file that cannot run, and a test that is skipped, count as failed tests.
 * @param {string} file
 * @param {string} name of the run, for what failed without a test
 * @param {number | null} status
 * @returns {Results}
 */
export function jestResults(file, name, status) {
  /** @type {JestOutput} */
  let result;
  try {
    result = JSON.parse(readFileSync(file, 'utf8'));
  } catch {
    return { files: new Map(), broken: [`${name}: no result`] };
  }
  const files = new Map(
    result.testResults.map(({ name: path, message, assertionResults, startTime, endTime }) => {
      const titles = assertionResults.filter(({ status }) => status !== 'passed').map(({ fullName }) => fullName);
      if (titles.length === 0 && message !== '') titles.push('cannot run');
      const test = relative(root, path);
      const passed = assertionResults.filter(({ status }) => status === 'passed').length;
      return [test, { passed, failed: titles.map((title) => `${test}: ${title}`), seconds: (endTime - startTime) / 1000 }];
    }),
  );
  const all = [...files.values()];
  const isGood = all.every(({ failed }) => failed.length === 0);
  /** @type {string[]} */
  const broken = [];
  if (isGood && all.every(({ passed }) => passed === 0)) broken.push(`${name}: no tests`);
  else if (isGood && status !== 0) broken.push(`${name}: jest ended with ${status}`);
  return { files, broken };
}

/**
 * Runs tests.
 * @param {Suite} suite
 * @param {string[]} more options of jest
 */
export async function runJest({ name, projects, file, run, options = [] }, ...more) {
  rmSync(file, { force: true });
  return jestResults(file, name, await run(jestCommand(file, projects, ...options, ...more)));
}

/** Runs each test file that failed once more, by itself. @param {Suite} suite @param {Results} results */
export async function repeatFailedFiles(suite, { files, broken }) {
  const judged = await repeatFailed(files, async (paths) => {
    console.error(`once more, by itself: ${paths.join(' ')}`);
    return (await runJest(suite, '--runInBand', '--runTestsByPath', ...paths.map((path) => join(root, path)))).files;
  });
  return { ...judged, failed: [...judged.failed, ...broken] };
}

/** Runs a command line in a process group that a signal ends, and this process with it. @param {string[]} command @returns its status */
export async function runAlone(command) {
  const { status, interrupted } = await runInGroup(command, { cwd: root, stdio: ['ignore', 'ignore', 'inherit'] });
  if (interrupted) process.exit(status);
  return status;
}

/**
 * Runs the files of a project with progress, prints the summary, and ends the process.
 * @param {string} project
 * @param {object} [settings]
 * @param {string[]} [settings.options] of jest
 * @param {Result} [settings.checked] what the checks before it found (checks.mjs); each counts as a test
 * @param {Run} [settings.run]
 */
export async function runProject(project, { options = [], checked = { passed: 0, failed: [] }, run = runAlone } = {}) {
  const folder = join(root, '.cache/test');
  mkdirSync(folder, { recursive: true });
  const suite = {
    name: project,
    projects: [project],
    file: join(folder, `${project}.json`),
    options: [`--reporters=${join(root, 'scripts/testing/test-progress.mjs')}`],
    run,
  };
  const { passed, failed, flaky } = await repeatFailedFiles(suite, await runJest(suite, ...options));
  const all = { passed: passed + checked.passed, failed: [...checked.failed, ...failed], flaky };
  console.log(summary(all).join('\n'));
  process.exit(all.failed.length === 0 ? 0 : 1);
}
/**
 * Runs the files of a project one after the other, as `runProject` does. As root, the run is contained (contained.mjs), so that an
 * interrupted run leaves none of the servers that its tests start.
 * @param {string} project
 * @param {string[]} more options of jest
 */
export async function runSerially(project, ...more) {
  const options = ['--runInBand', ...more];
  if (process.getuid?.() !== 0) return runProject(project, { options });
  const folder = prepareContained(project);
  // A cache of its own: Jest names its temporary files by process IDs, which are the same in every PID namespace.
  const cache = `--cacheDirectory=${join(root, '.cache/jest', project)}`;
  /** @type {Run} */
  const run = async (command) => (await startContained([...command, cache], { folder: join(folder, 'run'), cwd: root }).ended).code;
  return runProject(project, { options, run });
}
