/** Reads options from files and the environment. */
import { existsSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { convert, textOf, type OptionValue } from './convert';
import { withDerivedDefaults } from './derived';
import { chosen, ConfigurationError, occurrencesIn, variableOf, type Environment, type Occurrence } from './given';
import { GUARDED_OPTIONS, refusalsOf, type GivenOption } from './guards';
import { HOST_VALUES, NEEDS_START } from './host-values';
import { formatOptionName } from './names';
import { OPTIONS, type OptionRow, type LoadedOptions } from './options';
import { meantBy, replaceReferences, withoutCycles } from './references';
import { warningsOf } from './unknown';

export { ConfigurationError } from './given';

export interface Loaded {
  readonly options: LoadedOptions;
  /** One line for each section that has unknown options in the files. */
  readonly warnings: readonly string[];
  /** Options that the server refuses to start with, one line each. */
  readonly refusals: readonly string[];
}
/** A configuration with its errors. */
export interface ReadConfiguration extends Loaded {
  /** The options that files and variables set, by the names used there. */
  readonly given: readonly GivenOption[];
  /** `section.name` → why its value cannot be used. The option then has its default. */
  readonly problems: ReadonlyMap<string, string>;
}

const ROWS: readonly OptionRow[] = OPTIONS;
const keyOf = (row: { readonly section: string; readonly name: string }): string => `${row.section}.${row.name}`;
const ROW_OF: ReadonlyMap<string, OptionRow> = new Map([
  ...ROWS.flatMap((row) => (row.formerly ?? []).map((former) => [former, row] as const)),
  ...ROWS.map((row) => [keyOf(row), row] as const),
]);

/** Relative paths of options marked `beside` are looked for in the folders of the configuration files, then in this folder. */
const SYSTEM_FOLDER = '/etc/ironic';
/** The first existing path, from the last configuration file's folder on. If none exists, the path in that folder: it may be created. */
function placed(path: string, files: readonly string[]): string {
  const folders = [...files.map((file) => dirname(resolve(file))).reverse(), SYSTEM_FOLDER];
  return resolve(folders.find((folder) => existsSync(join(folder, path))) ?? folders[0]!, path);
}

/** The default of a list as in a file, if it refers to another option. */
const referringDefault = ({ default: value }: OptionRow): readonly string[] | undefined =>
  Array.isArray(value) && value.some((item) => String(item).includes('$')) ? [value.join(',')] : undefined;

interface Reading {
  readonly values: ReadonlyMap<string, OptionValue>;
  readonly problems: ReadonlyMap<string, string>;
}
/** @param others the occurrences of options without a row, which references may name */
function readValues(
  occurrencesOf: (row: OptionRow) => readonly Occurrence[],
  others: ReadonlyMap<string, Occurrence>,
  stateDir: string | undefined,
): Reading {
  const values = new Map<string, OptionValue>();
  const problems = new Map<string, string>();
  const valueOf = (row: OptionRow): OptionValue => {
    const key = keyOf(row);
    if (!values.has(key)) values.set(key, read(key));
    return values.get(key)!;
  };
  /** The value of a reference. Throws an Error. */
  const textFor = (name: string, section: string): string => {
    const key = meantBy(name, section).find((candidate) => ROW_OF.has(candidate) || others.has(candidate));
    if (key === undefined) throw new Error(`refers to $${name}, which is not an option here: write the value itself, or $$ for a dollar`);
    const row = ROW_OF.get(key);
    if (!row) return otherText(key);
    const value = valueOf(row);
    if (problems.has(keyOf(row))) throw new Error(`refers to $${name}, whose value cannot be used`);
    if (value !== null) return textOf(value);
    const own = HOST_VALUES[keyOf(row)]?.((needed) => textFor(needed, 'DEFAULT'), stateDir);
    if (own === undefined && NEEDS_START.has(keyOf(row)))
      throw new Error(`refers to $${name}, which has no value before the start: set ${formatOptionName(keyOf(row))}`);
    return own ?? '';
  };
  const otherText = withoutCycles((key): string => replaceReferences(others.get(key)!.value, (name) => textFor(name, key.split('.')[0]!)));
  const read = withoutCycles((key): OptionValue => {
    const row = ROW_OF.get(key)!;
    const occurrences = occurrencesOf(row);
    const written = occurrences.length > 0 ? occurrences.map(({ value }) => value) : referringDefault(row);
    if (written === undefined) return row.default;
    // An empty value means that the option is not set, unless its default is another value. So does a file of Ironic's own program.
    if (row.default === null && !row.emptyIsList && written.every((value) => value === '' || value.startsWith('$pybasedir/drivers/')))
      return null;
    try {
      return convert(
        row,
        written.map((value) => replaceReferences(value, (name) => textFor(name, row.section))),
      );
    } catch (error) {
      const last = occurrences.at(-1);
      const shown = row.secret || !last ? '' : ` "${last.value}"`;
      problems.set(key, `${last?.from ?? 'its default'}: option ${formatOptionName(key)}${shown} ${(error as Error).message}`);
      return row.default;
    }
  });
  for (const row of ROWS) valueOf(row);
  return { values, problems };
}

function byKeyOf(occurrences: readonly Occurrence[]): ReadonlyMap<string, readonly Occurrence[]> {
  const found = new Map<string, Occurrence[]>();
  for (const occurrence of occurrences) {
    const same = found.get(occurrence.key);
    if (same) same.push(occurrence);
    else found.set(occurrence.key, [occurrence]);
  }
  return found;
}

/** What the options of a process need of its host. */
interface LoadingHost {
  /** `$state_path`, if the files do not set it. */
  readonly stateDir?: string;
}
/**
 * @param files paths of configuration files, in order
 * @param environment variables, such as process.env
 * @throws ConfigurationError for an unreadable file or an invalid value; its message has a line for each
 */
export function loadOptions(files: readonly string[], environment: Environment, host: LoadingHost = {}): Loaded {
  const { options, warnings, refusals, problems } = readConfiguration(files, environment, host);
  if (problems.size > 0) throw new ConfigurationError([...problems.values()].join('\n'));
  return { options, warnings, refusals };
}

/** As loadOptions, but invalid values are in `problems` of the result. @throws ConfigurationError for an unreadable file */
export function readConfiguration(files: readonly string[], environment: Environment, { stateDir }: LoadingHost = {}): ReadConfiguration {
  const read = files.map((file) => occurrencesIn(file));
  const byKey = read.map(byKeyOf);
  const last = new Map(read.flat().map((occurrence) => [occurrence.key, occurrence]));
  const occurrences = new Map(ROWS.map((row) => [row, chosen(row, byKey, environment)]));
  const guards = GUARDED_OPTIONS.flatMap(({ section, name }): readonly Occurrence[] => {
    const value = name === undefined ? undefined : environment[variableOf(section, name)];
    return value === undefined ? [] : [{ key: `${section}.${name!}`, value, from: variableOf(section, name!) }];
  });
  const variables = [...occurrences.values()].flatMap((of) => of.slice(-1)).filter(({ key, from }) => from !== last.get(key)?.from);
  const given = [...new Map([...last.values(), ...variables, ...guards].map((occurrence) => [occurrence.key, occurrence])).values()];
  const others = new Map([...last].filter(([key]) => !ROW_OF.has(key)));
  const { values, problems } = readValues((row) => occurrences.get(row)!, others, stateDir);
  const pathsOf = (value: unknown): unknown =>
    Array.isArray(value) ? value.map((path) => placed(String(path), files)) : placed(String(value), files);
  const converted = ROWS.map((row): readonly [string, unknown] => {
    const value = values.get(keyOf(row));
    return [keyOf(row), row.beside ? pathsOf(value) : value];
  });
  const options = withDerivedDefaults({
    ...Object.fromEntries(converted),
    'configuration.files': files.map((file) => resolve(file)),
  } as unknown as LoadedOptions);
  const guarded = new Set(GUARDED_OPTIONS.map(({ section, name }) => `${section}.${name ?? ''}`));
  const unknown = [...others.values()].filter(({ key }) => !guarded.has(key));
  return { options, warnings: warningsOf(unknown), refusals: refusalsOf(given), given, problems };
}
