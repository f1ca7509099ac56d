// A test that fails beside others, and passes when it runs once more by itself, is flaky: it is reported by name, and the run is green.

/**
 * @typedef {{ passed: number, failed: string[] }} Result of a test file or a part of the lab: how many tests, and names of tests
 * @typedef {{ passed: number, failed: string[], flaky: string[] }} Judged
 */

/**
 * Judges results by name.
 * @param {Map<string, Result>} first all results
 * @param {Map<string, Result>} again the results of those that ran once more. Names that did not run keep their first result.
 * @returns {Judged} of all
 */
export function judge(first, again = new Map()) {
  const ran = [...again].filter(([, { passed, failed }]) => passed + failed.length > 0);
  const all = [...new Map([...first, ...ran]).values()];
  return {
    passed: all.reduce((sum, { passed }) => sum + passed, 0),
    failed: all.flatMap(({ failed }) => failed),
    flaky: ran.filter(([, { failed }]) => failed.length === 0).flatMap(([name]) => first.get(name)?.failed ?? []),
  };
}

/**
 * @param {Map<string, Result>} first
 * @param {(names: string[]) => Promise<Map<string, Result>>} repeat runs these names once more. It is not called if nothing failed.
 */
export async function repeatFailed(first, repeat) {
  const names = [...first].filter(([, { failed }]) => failed.length > 0).map(([name]) => name);
  return judge(first, names.length === 0 ? undefined : await repeat(names));
}

/** The last lines of a run. @param {Judged} judged */
export const summary = ({ passed, failed, flaky }) => [
  ...failed.map((what) => `FAILED: ${what}`),
  ...flaky.map((what) => `flaky: ${what} (failed, then passed by itself)`),
  `${passed} passed, ${failed.length} failed`,
];
