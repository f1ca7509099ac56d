// What `npm run hostile` prints of a round of attacks that failed.

const SHOWN_LINES = 25;
/** Characters at the end of a program's output. */
export const SHOWN_OUTPUT = 4000;

/**
 * The messages of a round's failed tests; the output, if jest has written no results.
 * @param {import('../testing/jest-results.mjs').JestOutput | undefined} results
 * @param {string} output
 */
export function failuresOf(results, output) {
  const failed = (results?.testResults ?? []).flatMap(({ name, message, assertionResults }) => {
    const tests = assertionResults.filter(({ status }) => status === 'failed');
    if (tests.length === 0 && message) return [`● ${name}`, ...message.split('\n').slice(0, SHOWN_LINES)];
    return tests.flatMap(({ fullName, failureMessages }) => [
      `● ${fullName}`,
      ...failureMessages.join('\n').split('\n').slice(0, SHOWN_LINES),
    ]);
  });
  return failed.length > 0 ? failed.join('\n') : output.slice(-SHOWN_OUTPUT);
}
