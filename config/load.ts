/** Reads options from files and the environment: later files win, and `OS_<SECTION>__<OPTION>` variables win over files. */
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { GUARDED_OPTIONS, refusalsOf, type GivenOption } from './guards';
import { isKernelCommandLine } from '../wire/kernel-arguments';
import { parseIni } from './ini';
import { OPTIONS, type OptionRow, type LoadedOptions } from './options';
import { formatDefault } from './documents';
import { formatOptionName } from './names';
import { suggestionFor } from './suggestion';
import { withoutEffect } from './without-effect';

export interface Loaded {
  readonly options: LoadedOptions;
  /** One line that names the unknown options of the files. */
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
/** A configuration that cannot be used; the message names file and option. */
export class ConfigurationError extends Error {}

const ROWS: readonly OptionRow[] = OPTIONS;
const keyOf = (row: { readonly section: string; readonly name: string }): string => `${row.section}.${row.name}`;
const TRUE = ['true', '1', 'on', 'yes'];
const FALSE = ['false', '0', 'off', 'no'];

const KERNEL_ARGUMENTS =
  'must be kernel arguments: key, key=value or key="a value", in printable ASCII, without #, ;, || and && as words of their own';

function withinLimits({ min = -Infinity, max = Infinity }: OptionRow, value: number, written: (value: number) => string): number {
  if (value < min) throw new Error(`must be at least ${written(min)}`);
  if (value > max) throw new Error(`must be at most ${written(max)}`);
  return value;
}

/** Converts a text to the kind of the option. Throws an Error that says what was expected. */
function convert(row: OptionRow, text: string): LoadedOptions[keyof LoadedOptions] {
  const items = (): string[] =>
    text
      .split(',')
      .map((item) => item.trim())
      .filter((item) => item !== '');
  switch (row.kind) {
    case 'string':
      if (row.choices && !row.choices.includes(text)) throw new Error(`must be one of ${row.choices.join(', ')}`);
      if (row.kernelArguments && !isKernelCommandLine(text)) throw new Error(KERNEL_ARGUMENTS);
      return text;
    case 'integer':
    case 'number': {
      const value = Number(text);
      if (text.trim() === '' || !Number.isFinite(value) || (row.kind === 'integer' && !Number.isInteger(value)))
        throw new Error(`must be ${row.kind === 'integer' ? 'an integer' : 'a number'}`);
      return withinLimits(row, value, String);
    }
    case 'octal':
      if (!/^(?:0o)?[0-7]{1,6}$/.test(text)) throw new Error('must be an octal number');
      return withinLimits(row, parseInt(text.replace(/^0o/, ''), 8), (value) => value.toString(8));
    case 'boolean':
      if (TRUE.includes(text.toLowerCase())) return true;
      if (FALSE.includes(text.toLowerCase())) return false;
      throw new Error('must be true or false');
    case 'list':
      return items();
    case 'dict':
      return Object.fromEntries(
        items().map((item) => {
          const colon = item.indexOf(':');
          if (colon < 1) throw new Error('must be key:value pairs, separated by commas');
          return [item.slice(0, colon).trim(), item.slice(colon + 1).trim()];
        }),
      );
  }
}

/** Replaces `$option`, `${option}` and `$section.option` by values; `$$` is one `$`. Names that are not known stay. */
function substitute(text: string, section: string, raw: ReadonlyMap<string, string>, depth = 0): string {
  if (depth > 10) throw new Error('its $ references are nested more than 10 deep, or form a cycle');
  return text.replace(/\$(?:\$|\{([\w.-]+)\}|(\w+(?:\.\w+)?))/g, (all, braced: string | undefined, bare: string | undefined) => {
    const name = braced ?? bare;
    if (name === undefined) return '$';
    const candidates = name.includes('.') ? [name] : [`${section}.${name}`, `DEFAULT.${name}`];
    for (const key of candidates) {
      const row = ROWS.find((candidate) => keyOf(candidate) === key);
      const given = raw.get(key) ?? (row && row.default !== null ? formatDefault(row) : undefined);
      if (given !== undefined) return substitute(given, key.split('.')[0]!, raw, depth + 1);
    }
    return all;
  });
}

/** Relative paths of options marked `beside` are looked for in the folders of the configuration files, then in this folder. */
const SYSTEM_FOLDER = '/etc/ironic';
/** The first existing path, from the last configuration file's folder on. If none exists, the path in that folder: it may be created. */
function placed(path: string, files: readonly string[]): string {
  const folders = [...files.map((file) => dirname(resolve(file))).reverse(), SYSTEM_FOLDER];
  return resolve(folders.find((folder) => existsSync(join(folder, path))) ?? folders[0]!, path);
}

/** A warning names at most this many options, and counts the others. */
const MOST_NAMED = 50;
/** @param unknown `section.name` → file and line */
function warningsOf(unknown: ReadonlyMap<string, string>): readonly string[] {
  if (unknown.size === 0) return [];
  const known = ROWS.map(keyOf);
  const named = [...unknown].slice(0, MOST_NAMED).map(([key, place]) => {
    const meant = withoutEffect(key) === undefined ? suggestionFor(key, known) : undefined;
    return `${formatOptionName(key)} (${place}${meant === undefined ? '' : `; did you mean ${formatOptionName(meant)}?`})`;
  });
  const more = unknown.size > MOST_NAMED ? [`and ${unknown.size - MOST_NAMED} more`] : [];
  return [`options that are not known here and have no effect: ${[...named, ...more].join(', ')}`];
}

type Environment = Readonly<Record<string, string | undefined>>;
/**
 * @param files paths of configuration files, in order
 * @param environment variables, such as process.env
 * @throws ConfigurationError for an unreadable file or an invalid value
 */
export function loadOptions(files: readonly string[], environment: Environment): Loaded {
  const { options, warnings, refusals, problems } = readConfiguration(files, environment);
  for (const [, problem] of problems) throw new ConfigurationError(problem);
  return { options, warnings, refusals };
}

/** As loadOptions, but invalid values are in `problems` of the result. @throws ConfigurationError for an unreadable file */
export function readConfiguration(files: readonly string[], environment: Environment): ReadConfiguration {
  const raw = new Map<string, string>();
  const from = new Map<string, string>();
  const unknown = new Map<string, string>();
  const repeated = new Set(ROWS.filter((row) => row.repeated).map(keyOf));
  const known = new Set(ROWS.flatMap((row) => [keyOf(row), ...(row.formerly ? [row.formerly] : [])]));
  for (const file of files) {
    let text: string;
    try {
      text = readFileSync(file, 'utf8');
    } catch (error) {
      throw new ConfigurationError(`cannot read the configuration file ${file}: ${(error as Error).message}`);
    }
    let values;
    try {
      values = parseIni(text);
    } catch (error) {
      throw new ConfigurationError(`${file}: ${(error as Error).message}`);
    }
    for (const { section, key, value, line } of values) {
      const name = `${section}.${key}`;
      const before = repeated.has(name) ? raw.get(name) : undefined;
      raw.set(name, before === undefined ? value : `${before},${value}`);
      from.set(name, `${file} line ${line}`);
      if (!known.has(name)) unknown.set(name, `${file} line ${line}`);
    }
  }
  const named = new Set(raw.keys());
  for (const row of ROWS) {
    const former = row.formerly === undefined ? undefined : raw.get(row.formerly);
    if (former === undefined || raw.has(keyOf(row))) continue;
    raw.set(keyOf(row), former);
    from.set(keyOf(row), from.get(row.formerly!)!);
  }
  for (const row of ROWS) {
    const variable = `OS_${row.section.toUpperCase()}__${row.name.toUpperCase()}`;
    const value = environment[variable];
    if (value === undefined) continue;
    raw.set(keyOf(row), value);
    from.set(keyOf(row), variable);
    named.add(keyOf(row));
  }
  const variables = GUARDED_OPTIONS.flatMap((guard) => {
    const variable = `OS_${guard.section.toUpperCase()}__${(guard.name ?? '').toUpperCase()}`;
    const value = guard.name === undefined ? undefined : environment[variable];
    return value === undefined ? [] : [{ key: `${guard.section}.${guard.name!}`, value, from: variable }];
  });
  const all = [...[...raw].map(([key, value]) => ({ key, value, from: from.get(key)! })), ...variables];
  const given = all.filter(({ key, from: place }) => named.has(key) || variables.some((variable) => variable.from === place));
  const refusals = refusalsOf(all);
  const problems = new Map<string, string>();
  for (const { section, name } of GUARDED_OPTIONS) unknown.delete(`${section}.${name ?? ''}`);
  const valueOf = (row: OptionRow): unknown => {
    const text = raw.get(keyOf(row));
    if (text === undefined || (text === '' && row.default === null && !row.emptyIsList)) return row.default;
    try {
      return convert(row, substitute(text, row.section, raw));
    } catch (error) {
      const shown = row.secret ? '' : ` "${text}"`;
      problems.set(keyOf(row), `${from.get(keyOf(row))!}: option [${row.section}]${row.name}${shown} ${(error as Error).message}`);
      return row.default;
    }
  };
  const pathsOf = (value: unknown): unknown =>
    Array.isArray(value) ? value.map((path) => placed(String(path), files)) : placed(String(value), files);
  const values = ROWS.map((row): readonly [string, unknown] => [keyOf(row), row.beside ? pathsOf(valueOf(row)) : valueOf(row)]);
  const options = {
    ...Object.fromEntries(values),
    'configuration.files': files.map((file) => resolve(file)),
  } as unknown as LoadedOptions;
  return { options, warnings: warningsOf(unknown), refusals, given, problems };
}
