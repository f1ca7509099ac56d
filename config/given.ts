/** What files and variables say, before it is converted: later files win, and `OS_<SECTION>__<OPTION>` variables win over files. */
import { readFileSync } from 'node:fs';
import { parseIni } from './ini';
import type { OptionRow } from './options';

/** A configuration that cannot be used; the message names file and option. */
export class ConfigurationError extends Error {}

export interface Occurrence {
  /** `section.name`. Sections have small letters, except DEFAULT. */
  readonly key: string;
  readonly value: string;
  /** File and line, or variable. */
  readonly from: string;
}
export type Environment = Readonly<Record<string, string | undefined>>;
export const variableOf = (section: string, name: string): string => `OS_${section.toUpperCase()}__${name.toUpperCase()}`;

/** As in oslo.config, the case of a section does not matter, except for DEFAULT. */
const sectionOf = (name: string): string => (name === 'DEFAULT' ? name : name.toLowerCase());

/** @throws ConfigurationError for a file that cannot be read */
export function occurrencesIn(file: string): readonly Occurrence[] {
  let text: string;
  try {
    text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(readFileSync(file));
  } catch (error) {
    const why = error instanceof TypeError ? 'it is not UTF-8 text' : (error as Error).message;
    throw new ConfigurationError(`cannot read the configuration file ${file}: ${why}`);
  }
  try {
    return parseIni(text).map(({ section, key, value, line }) => ({
      key: `${sectionOf(section)}.${key}`,
      value,
      from: `${file} line ${line}`,
    }));
  } catch (error) {
    throw new ConfigurationError(`${file}: ${(error as Error).message}`);
  }
}

/**
 * The occurrences that count for an option: its variable; else all of an option that may occur several times; else the last one in the last
 * file that has the option by one of its names.
 * @param files the occurrences of each file, by key
 */
export function chosen(
  row: OptionRow,
  files: readonly ReadonlyMap<string, readonly Occurrence[]>[],
  environment: Environment,
): readonly Occurrence[] {
  const { section, name, formerly = [], repeated = false } = row;
  const variable = variableOf(section, name);
  const key = `${section}.${name}`;
  const value = environment[variable];
  if (value !== undefined) {
    const values = row.kind === 'texts' ? value.split('\n') : [value];
    return values.map((text) => ({ key, value: text, from: variable }));
  }
  const names = [key, ...formerly];
  if (repeated) return files.flatMap((file) => names.toReversed().flatMap((item) => file.get(item) ?? []));
  const file = files.findLast((candidate) => names.some((alias) => candidate.has(alias)));
  return file?.get(names.find((alias) => file.has(alias))!)?.slice(-1) ?? [];
}
