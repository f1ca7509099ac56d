// A test that fails beside others, and passes when it runs once more by itself, is flaky: it is reported by name, and the run is green.

/**
 * Judges results by name of a test file or a part of the lab. Each has `passed` (how many tests) and `failed` (the names of tests).
 * @param first a Map of all results
 * @param again a Map of the results of those that ran once more. Names that did not run keep their first result.
 * @returns `passed`, `failed` and `flaky` of all
 */
export function judge(first, again = new Map()) {
  const ran = [...again].filter(([, { passed, failed }]) => passed + failed.length > 0);
  const all = [...new Map([...first, ...ran]).values()];
  return {
    passed: all.reduce((sum, { passed }) => sum + passed, 0),
    failed: all.flatMap(({ failed }) => failed),
    flaky: ran.filter(([, { failed }]) => failed.length === 0).flatMap(([name]) => first.get(name).failed),
  };
}

/** @param repeat runs these names once more, and resolves to a Map of their results. It is not called if nothing failed. */
export async function repeatFailed(first, repeat) {
  const names = [...first].filter(([, { failed }]) => failed.length > 0).map(([name]) => name);
  return judge(first, names.length === 0 ? undefined : await repeat(names));
}

/** The last lines of a run. */
export const summary = ({ passed, failed, flaky }) => [
  ...failed.map((what) => `FAILED: ${what}`),
  ...flaky.map((what) => `flaky: ${what} (failed, then passed by itself)`),
  `${passed} passed, ${failed.length} failed`,
];
