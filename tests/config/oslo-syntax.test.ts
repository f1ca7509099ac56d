/** Files and variables are read as oslo.config reads them. Its results are recorded in tests/reference/oslo-config (read.py). */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { readConfiguration } from '../../config/load';
import type { LoadedOptions } from '../../config/options';
import { CASES, type Result, type SyntaxCase } from '../reference/oslo-config/cases';

const folder = mkdtempSync(join(tmpdir(), 'bloomery-syntax-'));
afterAll(() => rmSync(folder, { recursive: true }));
const recorded = JSON.parse(readFileSync(join(__dirname, '../reference/oslo-config/syntax.json'), 'utf8')) as Readonly<
  Record<string, Result>
>;

/** What every case has: the values of the host that recorded the results. */
const HOST = '[DEFAULT]\nmy_ip = 192.0.2.7\nhost = here\n';
function read({ files, variables = {}, latin, options: asked }: SyntaxCase): Result {
  const paths = [HOST, ...files].map((text, index) => {
    const path = join(folder, `${index}.conf`);
    writeFileSync(path, text, index > 0 && latin ? 'latin1' : 'utf8');
    return path;
  });
  try {
    const { options, problems } = readConfiguration(paths, variables);
    return Object.fromEntries(
      asked.map((key) => [key, problems.has(key) ? ('error' as const) : { value: options[key as keyof LoadedOptions] as string }]),
    );
  } catch {
    return 'error';
  }
}
/** Pairs that several lines give are one dict here, and a list of dicts there. */
const merged = (result: Result): Result =>
  typeof result === 'string'
    ? result
    : Object.fromEntries(
        Object.entries(result).map(([key, entry]) => [
          key,
          typeof entry === 'object' && key.endsWith('_priority_override')
            ? { value: Object.assign({}, ...(entry.value as object[])) as Record<string, string> }
            : entry,
        ]),
      );

it('there are at least 100 cases, each with a name and a recorded result', () => {
  expect(CASES.length).toBeGreaterThan(100);
  expect(CASES.map(({ name }) => name)).toEqual(Object.keys(recorded));
});
it.each(CASES.map((row) => [row.name, row] as const))('%s', (name, value) => {
  const theirs = merged(recorded[name]!);
  const ours = read(value);
  expect(ours).toEqual(value.ours ?? theirs);
  // A difference that has gone must not stay in the list.
  if (value.ours) expect(ours).not.toEqual(theirs);
});
