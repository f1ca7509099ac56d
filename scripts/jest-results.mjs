// Runs jest and reads what came of it: for npm test and its sisters.
import { readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { root } from './install.mjs';

/** The command line of a run whose results go to `file`. */
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
 * @param name of the run, for what failed without a test
 * @returns `passed` (how many tests), `failed` (by name), `files` (each with its seconds, the slowest first)
 */
export function jestResults(file, name, status) {
  let result;
  try {
    result = JSON.parse(readFileSync(file, 'utf8'));
  } catch {
    return { passed: 0, failed: [`${name}: no result`], files: [] };
  }
  const failed = result.testResults.flatMap(({ name: path, message, assertionResults }) => {
    const titles = assertionResults.filter(({ status }) => status !== 'passed').map(({ fullName }) => fullName);
    if (titles.length === 0 && message !== '') titles.push('cannot run');
    return titles.map((title) => `${relative(root, path)}: ${title}`);
  });
  if (result.numPassedTests === 0 && failed.length === 0) failed.push(`${name}: no tests`);
  if (status !== 0 && failed.length === 0) failed.push(`${name}: jest ended with ${status}`);
  const files = result.testResults
    .map(({ name: path, startTime, endTime }) => ({ name: relative(root, path), seconds: (endTime - startTime) / 1000 }))
    .sort((one, other) => other.seconds - one.seconds);
  return { passed: result.numPassedTests, failed, files };
}
