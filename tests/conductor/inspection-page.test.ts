/** docs/inspection.md has every hook, collector and option that exists, and no other. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { HOOKS } from '../../conductor/inspection/hooks';
import { OPTIONS } from '../../config/options';
import { COLLECTORS } from '../../ramdisk-agent/collectors';

const page = readFileSync(join(__dirname, '../../docs/inspection.md'), 'utf8');
/** The first cells of the tables of a section. */
function rowsOf(heading: string): readonly string[] {
  const section = page.split(/^## /m).find((part) => part.startsWith(`${heading}\n`)) ?? '';
  return [...section.matchAll(/^\| `([^`]+)` \|/gm)].map((match) => match[1]!);
}

it('docs/inspection.md lists each hook', () => {
  expect([...rowsOf('Hooks')].sort()).toEqual(HOOKS.map(({ name }) => name).sort());
});
it('docs/inspection.md lists each collector of our agent', () => {
  const told = rowsOf('What the agent collects').filter((name) => !name.startsWith('ipa-'));
  expect([...told].sort()).toEqual(['default', 'logs', ...Object.keys(COLLECTORS)].sort());
});
it('docs/inspection.md names each option of [inspector]', () => {
  const names = OPTIONS.filter(({ section }) => section === 'inspector').map(({ name }) => name);
  expect(names.filter((name) => !page.includes(name))).toEqual([]);
});
it('docs/inspection.md names only options that exist', () => {
  const told = [...page.matchAll(/`\[(\w+)\](\w+)/g)].map((match) => `${match[1]}.${match[2]}`);
  const known = new Set(OPTIONS.map(({ section, name }) => `${section}.${name}`));
  expect(told.filter((name) => !known.has(name))).toEqual([]);
});
