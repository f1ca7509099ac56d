/** What each option of a configuration does here, for `bloomery check`. */
import { adviceFor, type GivenOption } from './guards';
import type { ReadConfiguration } from './load';
import { formatOptionName } from './names';
import { OPTIONS, type OptionRow } from './options';
import { reasonFor } from './unknown';

/** refused: the server does not start with it. */
type OptionResult = 'works' | 'no effect' | 'refused';
export interface ExaminedOption {
  /** As in a file: [section]name. */
  readonly option: string;
  /** File and line, or variable. */
  readonly from: string;
  readonly result: OptionResult;
  /** Why, and what to write instead; null: there is nothing to say. */
  readonly message: string | null;
  /** No warning is needed: the option's help says that it has no effect, or its value asks for what happens anyway. */
  readonly expected?: true;
}

const ROWS: readonly OptionRow[] = OPTIONS;
const KEYS = ROWS.map(({ section, name }) => `${section}.${name}`);
const INERT = /Accepted for compatibility; no effect(?:[:,] )?(.*)$/;

type Verdict = Omit<ExaminedOption, 'option' | 'from'>;
type Configuration = Pick<ReadConfiguration, 'given' | 'problems'>;
/** Undefined: the rule does not apply to the option. */
type Rule = (given: GivenOption, configuration: Configuration) => Verdict | undefined;
const rowOf = (key: string): OptionRow | undefined => ROWS[KEYS.indexOf(key)];
const successorOf = (key: string): string | undefined => KEYS[ROWS.findIndex(({ formerly }) => formerly?.includes(key))];

/** The first rule that applies decides. */
const RULES: readonly Rule[] = [
  (given) => {
    const instead = adviceFor(given);
    if (instead === undefined) return undefined;
    return instead === null
      ? { result: 'no effect', message: 'its value is what happens anyway', expected: true }
      : { result: 'refused', message: `it is a security option that has no effect here. Instead: ${instead}` };
  },
  ({ key }, { problems }) => {
    const problem = problems.get(key) ?? problems.get(successorOf(key) ?? '');
    return problem === undefined ? undefined : { result: 'refused', message: problem.slice(problem.indexOf(']') + 1).replace(/^\w+ /, '') };
  },
  ({ key }, { given }) => {
    const successor = rowOf(key) ? undefined : successorOf(key);
    if (successor === undefined) return undefined;
    return given.some((other) => other.key === successor)
      ? { result: 'no effect', message: `this name is deprecated, and ${formatOptionName(successor)} is set too` }
      : { result: 'works', message: `this name is deprecated: write ${formatOptionName(successor)}` };
  },
  ({ key }) => {
    if (rowOf(key)) return undefined;
    return { result: 'no effect', message: reasonFor(key) };
  },
  ({ key }) => {
    const inert = INERT.exec(rowOf(key)!.help);
    return inert ? { result: 'no effect', message: inert[1]!.replace(/\.$/, '') || null, expected: true } : undefined;
  },
];

export const examine = (configuration: Configuration): readonly ExaminedOption[] =>
  configuration.given.map((given) => {
    let verdict: Verdict = { result: 'works', message: null };
    for (const rule of RULES) {
      const found = rule(given, configuration);
      if (!found) continue;
      verdict = found;
      break;
    }
    return { option: formatOptionName(given.key), from: given.from, ...verdict };
  });
