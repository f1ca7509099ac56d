// The words behind a script's name: what it takes as one table, its --help made of it, and one line of what is wrong.
import { parseArgs } from 'node:util';

const [WELL, WRONG] = [0, 2];

/** What is wrong of the text of an option; undefined: nothing. */
function problemOf(name, text, { choices, least, most = Number.MAX_SAFE_INTEGER }) {
  if (choices) return choices.includes(text) ? undefined : `--${name} is one of ${choices.join(', ')}, not "${text}"`;
  if (least === undefined) return undefined;
  const value = Number(text);
  // Parts are counted where the least is one.
  const isWhole = Number.isInteger(least);
  if (text.trim() !== '' && value >= least && value <= most && (!isWhole || Number.isInteger(value))) return undefined;
  const kind = isWhole ? 'a whole number' : 'a number';
  const range = most === Number.MAX_SAFE_INTEGER ? `${kind}, at least ${least}` : `${kind} from ${least} to ${most}`;
  return `--${name} is ${range}, not "${text}"`;
}

/**
 * Ends the process at --help, and at words that it does not take.
 * @param command as people type it, without what follows
 * @param takes what follows
 * @param about what it does, in a sentence
 * @param options by name: `help`; `value` (what stands behind it, as the help calls it; a flag has none), `default`, `choices`, or `least` and `most` of a number
 * @param positional what may stand without a name: `name`, `choices`, whether it is `needed`
 * @returns values by name (numbers as numbers), and `word`, the positional one
 */
export function words({ command, takes, about, options = {}, positional }) {
  const rows = Object.entries(options).map(([name, { value, help }]) => [`--${name}${value ? ` ${value}` : ''}`, help]);
  const width = Math.max(...rows.map(([left]) => left.length), '--help'.length);
  const lines = [...rows, ['--help', '']].map(([left, help]) => `  ${left.padEnd(width)}  ${help}`.trimEnd());
  const choices = positional ? [`  ${positional.name}: ${positional.choices.join(', ')}`, ''] : [];
  const shown = [`usage: ${command} -- ${takes}`, '', about, '', ...choices, ...lines].join('\n');
  const refuse = (problem) => {
    console.error(`${problem} (${command} -- --help tells more)`);
    process.exit(WRONG);
  };
  let given;
  try {
    const kinds = Object.entries(options).map(([name, { value }]) => [name, { type: value ? 'string' : 'boolean' }]);
    given = parseArgs({
      allowPositionals: positional !== undefined,
      options: { ...Object.fromEntries(kinds), help: { type: 'boolean' } },
    });
  } catch (error) {
    // What follows the first sentence is of JavaScript's ways to write options.
    refuse(error.message.split(/\. |\n/)[0]);
  }
  const { values, positionals } = given;
  if (values.help) {
    console.log(shown);
    process.exit(WELL);
  }
  for (const [name, text] of Object.entries(values)) {
    const problem = typeof text === 'string' ? problemOf(name, text, options[name]) : undefined;
    if (problem) refuse(problem);
  }
  const [word, ...more] = positionals;
  if (more.length > 0) refuse(`Unexpected argument '${more[0]}'`);
  if (word === undefined ? positional?.needed : !positional.choices.includes(word))
    refuse(`${positional.name} is one of ${positional.choices.join(', ')}${word === undefined ? '' : `, not "${word}"`}`);
  const told = Object.entries(options).map(([name, row]) => {
    const said = values[name] ?? row.default;
    return [name, typeof said === 'string' && row.least !== undefined ? Number(said) : said];
  });
  return { ...Object.fromEntries(told), word };
}
