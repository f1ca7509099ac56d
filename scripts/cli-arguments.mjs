// The command-line arguments of a script: one table of options, from which its --help and its one-line errors are made.
import { parseArgs } from 'node:util';

const [EXIT_OK, EXIT_USAGE] = [0, 2];

/**
 * @typedef {object} Option
 * @property {string} help
 * @property {string} [value] the name of its value in the help; a flag has none
 * @property {string | number} [default]
 * @property {readonly string[]} [choices]
 * @property {number} [least] of a number
 * @property {number} [most]
 * @property {boolean} [isAlone] positional arguments exclude it
 *
 * @typedef {object} Positional the arguments without a name
 * @property {string} name
 * @property {readonly string[] | undefined} [choices] absent: any
 * @property {boolean} [needed]
 * @property {boolean} [several]
 *
 * @typedef {object} Command
 * @property {string} command as people type it, without its arguments
 * @property {string} usage its arguments, in short
 * @property {string} about what it does, in a sentence
 * @property {Readonly<Record<string, Option>>} [options] by name
 * @property {Positional} [positional]
 */

/**
 * @param {string} name
 * @param {string} text
 * @param {Option} row
 * @returns why the value of an option is refused; undefined: it is not
 */
function problemOf(name, text, { choices, least, most = Number.MAX_SAFE_INTEGER }) {
  if (choices) return choices.includes(text) ? undefined : `--${name} is one of ${choices.join(', ')}, not "${text}"`;
  if (least === undefined) return undefined;
  const value = Number(text);
  // If the minimum is not a whole number, fractions are allowed.
  const isWhole = Number.isInteger(least);
  if (text.trim() !== '' && value >= least && value <= most && (!isWhole || Number.isInteger(value))) return undefined;
  const kind = isWhole ? 'a whole number' : 'a number';
  const range = most === Number.MAX_SAFE_INTEGER ? `${kind}, at least ${least}` : `${kind} from ${least} to ${most}`;
  return `--${name} is ${range}, not "${text}"`;
}

/**
 * Ends the process at --help, and at invalid arguments.
 * @param {Command} row
 * @returns {Record<string, any> & { argument: string | undefined, positionals: string[] }} values by name (numbers as numbers), the first
 *   positional argument, and all of them
 */
export function cliArguments({ command, usage, about, options = {}, positional }) {
  const rows = Object.entries(options).map(
    ([name, { value, help }]) => /** @type {const} */ ([`--${name}${value ? ` ${value}` : ''}`, help]),
  );
  const width = Math.max(...rows.map(([left]) => left.length), '--help'.length);
  const lines = [...rows, /** @type {const} */ (['--help', ''])].map(([left, help]) => `  ${left.padEnd(width)}  ${help}`.trimEnd());
  const choices = positional?.choices ? [`  ${positional.name}: ${positional.choices.join(', ')}`, ''] : [];
  const shown = [`usage: ${command} -- ${usage}`, '', about, '', ...choices, ...lines].join('\n');
  /** @type {(problem: string | undefined) => never} */
  const refuse = (problem) => {
    console.error(`${problem} (${command} -- --help tells more)`);
    process.exit(EXIT_USAGE);
  };
  let given;
  try {
    /** @type {import('node:util').ParseArgsConfig['options']} */
    const kinds = { help: { type: 'boolean' } };
    for (const [name, { value }] of Object.entries(options)) kinds[name] = { type: value ? 'string' : 'boolean' };
    given = parseArgs({ allowPositionals: positional !== undefined, options: kinds });
  } catch (error) {
    // Node's first sentence names the problem; the rest explains the options of parseArgs.
    return refuse(/** @type {Error} */ (error).message.split(/\. |\n/)[0]);
  }
  const { values, positionals } = given;
  if (values['help']) {
    console.log(shown);
    process.exit(EXIT_OK);
  }
  for (const [name, text] of Object.entries(values)) {
    const row = options[name];
    const problem = typeof text === 'string' && row ? problemOf(name, text, row) : undefined;
    if (problem) refuse(problem);
    if (row?.isAlone && positionals.length > 0) refuse(`--${name} and ${positional?.name} exclude each other`);
  }
  if (positionals.length > 1 && !positional?.several) refuse(`Unexpected argument '${positionals[1]}'`);
  const refused = positionals.find((candidate) => positional?.choices?.includes(candidate) === false);
  if (refused !== undefined || (positionals.length === 0 && positional?.needed)) {
    const accepted = positional?.choices ? `one of ${positional.choices.join(', ')}` : 'needed';
    refuse(`${positional?.name} is ${accepted}${refused === undefined ? '' : `, not "${refused}"`}`);
  }
  const result = Object.entries(options).map(([name, row]) => {
    const value = values[name] ?? row.default;
    return [name, typeof value === 'string' && row.least !== undefined ? Number(value) : value];
  });
  return { ...Object.fromEntries(result), argument: positionals[0], positionals };
}
