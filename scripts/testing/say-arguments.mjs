// For tests/scripts.test.ts: imports scripts with their arguments, one after the other in this process, because each takes much longer to
// start than to read its arguments. They must end at `process.exit`, before their work. The argument is a list of [script, …words] in JSON,
// and so is the output: what each call said, and its exit status.
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

class Exit extends Error {
  /** @param {unknown} code */
  constructor(code) {
    super('exit');
    this.code = code;
  }
}
/** @type {string[]} */
const written = [];
/** @type {string[]} */
const failed = [];
console.log = (text) => written.push(`${text}\n`);
console.error = (text) => failed.push(`${text}\n`);
process.exit = (code) => {
  throw new Exit(code);
};
/** @type {string[][]} */
const calls = JSON.parse(process.argv[2] ?? '');
/** @type {{ code: unknown, output: string, errors: string }[]} */
const said = [];
for (const [at, [script, ...words]] of calls.entries()) {
  const file = join(import.meta.dirname, '..', `${script}.mjs`);
  process.argv = [process.execPath, file, ...words];
  try {
    // By another URL, a module that was imported before runs again.
    await import(`${pathToFileURL(file).href}?${at}`);
    throw new Error(`${script} ${words.join(' ')} did not end at its arguments`);
  } catch (error) {
    if (!(error instanceof Exit)) throw error;
    said.push({ code: error.code, output: written.splice(0).join(''), errors: failed.splice(0).join('') });
  }
}
process.stdout.write(JSON.stringify(said));
