/** A jest reporter for long runs: reports each test file at its start and at its end, with its duration and the time since the start. */
/**
 * @typedef {{ path: string }} Test what jest says, in part
 * @typedef {{ start: number, end: number }} Times
 * @typedef {{ numFailingTests: number, testExecError?: unknown, perfStats: Times, failureMessage?: string }} Result
 */
/** @param {number} milliseconds */
const seconds = (milliseconds) => `${(milliseconds / 1000).toFixed(0)} s`;

export default class Progress {
  begun = performance.now();
  number = 0;
  total = 0;

  /** @param {{ numTotalTestSuites: number }} run */
  onRunStart({ numTotalTestSuites }) {
    this.total = numTotalTestSuites;
  }

  /** @param {Test} test */
  onTestFileStart(test) {
    this.say(`${test.path.replace(/^.*\/tests\//, '')} …`, ++this.number);
  }

  /** @param {Test} test @param {Result} result */
  onTestFileResult(test, { numFailingTests, testExecError, perfStats, failureMessage }) {
    const name = test.path.replace(/^.*\/tests\//, '');
    const failed = numFailingTests > 0 || testExecError !== undefined;
    this.say(`${name}: ${failed ? 'FAILED' : 'ok'} after ${seconds(perfStats.end - perfStats.start)}`, this.number);
    if (failed) process.stderr.write(`${failureMessage}\n`);
  }

  /** @param {string} what @param {number} number */
  say(what, number) {
    process.stderr.write(`[${number} of ${this.total}, ${seconds(performance.now() - this.begun)}] ${what}\n`);
  }
}
