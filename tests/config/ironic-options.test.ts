/** Every option of Ironic 39 and its libraries, as tests/reference/oslo-config/read.py records them, against the table of options. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { GUARDED_OPTIONS } from '../../config/guards';
import { OPTIONS, type OptionRow } from '../../config/options';
import { withoutEffect } from '../../config/without-effect';
import { DIFFERENCES } from './ironic-differences';

interface IronicOption {
  readonly type: string;
  readonly default: unknown;
  readonly multi?: true;
  readonly min?: number;
  readonly max?: number;
  readonly choices?: readonly string[];
  readonly formerly?: readonly string[];
}
const ironics = JSON.parse(readFileSync(join(__dirname, '../reference/oslo-config/options.json'), 'utf8')) as Readonly<
  Record<string, IronicOption>
>;
const rows: readonly OptionRow[] = OPTIONS;
const keyOf = ({ section, name }: OptionRow): string => `${section}.${name}`;
const shared = rows.filter((row) => !row.ours && ironics[keyOf(row)]);

/** Their types of values. A type that checks more is `string` here: the code that uses the value checks it. */
const KINDS: Readonly<Record<string, OptionRow['kind']>> = {
  String: 'string',
  Integer: 'integer',
  Port: 'integer',
  Octal: 'octal',
  Float: 'number',
  Boolean: 'boolean',
  List: 'list',
  Dict: 'dict',
  MultiString: 'texts',
  URI: 'string',
  HostAddress: 'string',
  IPAddress: 'string',
  KernelParameterString: 'string',
  type: 'string',
};
const sorted = (list: readonly string[] = []): string => [...list].sort().join();
/** Lists, dicts and empty values in the form of a file. */
const text = (value: unknown): string =>
  value === null || value === undefined
    ? ''
    : Array.isArray(value)
      ? value.join(',')
      : typeof value === 'object'
        ? Object.entries(value)
            .map((pair) => pair.join(':'))
            .join(',')
        : JSON.stringify(value).replace(/^"([^]*)"$/, '$1');
/** What differs, as `section.name what`. */
function differences(row: OptionRow): readonly string[] {
  const theirs = ironics[keyOf(row)]!;
  const facts: readonly (readonly [what: string, isSame: boolean])[] = [
    ['type', KINDS[theirs.type] === row.kind],
    ['several values', (theirs.multi ?? false) === (row.repeated ?? false)],
    ['default', text(theirs.default) === text(row.default)],
    ['minimum', theirs.type === 'Port' ? row.min === 0 : theirs.min === row.min],
    ['maximum', theirs.max === row.max],
    ['choices', sorted(theirs.choices?.filter((choice) => choice !== 'None')) === sorted(row.choices)],
    ['former names', sorted(theirs.formerly) === sorted(row.formerly)],
  ];
  return facts.filter(([, isSame]) => !isSame).map(([what]) => `${keyOf(row)} ${what}`);
}

it('each difference between an option and that of Ironic is deliberate', () => {
  const found = shared.flatMap(differences);
  const patterns = DIFFERENCES.flatMap(({ options, what }) => options.map((option) => ({ option, what })));
  const matches = (difference: string, { option, what }: { readonly option: string; readonly what: string }): boolean => {
    const [key, kind] = [difference.slice(0, difference.indexOf(' ')), difference.slice(difference.indexOf(' ') + 1)];
    return what === kind && (option === key || (option.startsWith('*.') && key.endsWith(option.slice(1))));
  };
  expect(found.filter((candidate) => !patterns.some((pattern) => matches(candidate, pattern)))).toEqual([]);
  // A difference that has gone must not stay in the list.
  expect(patterns.filter((pattern) => !found.some((candidate) => matches(candidate, pattern)))).toEqual([]);
});

it('each option that is not marked as ours is an option of Ironic', () => {
  expect(rows.filter((row) => !row.ours && !ironics[keyOf(row)]).map(keyOf)).toEqual([]);
  expect(rows.filter((row) => row.ours && ironics[keyOf(row)]).map(keyOf)).toEqual([]);
});

it('each option of Ironic has an effect, refuses the start, or has a reason for neither', () => {
  const ours = new Set([...rows.map(keyOf), ...rows.flatMap(({ formerly = [] }) => formerly)]);
  const guarded = new Set(GUARDED_OPTIONS.map(({ section, name }) => `${section}.${name ?? ''}`));
  expect(Object.keys(ironics).length).toBeGreaterThan(1000);
  const missing = Object.keys(ironics).filter((key) => !ours.has(key) && !guarded.has(key) && withoutEffect(key) === undefined);
  expect(missing).toEqual([]);
});
