import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { POLICIES } from '../../policy/rules';

/**
 * The rules of Ironic 39.0.0 (list_policies of ironic.common.policy): name, default, scopes, and the former rule with its default.
 * Tabs are between them.
 */
const ironics = readFileSync(join(__dirname, 'ironic-rules.txt'), 'utf8').replace(/\n$/, '').split('\n');

it("has Ironic's rules with their defaults, scopes and former rules, in the same order", () => {
  const rows = POLICIES.filter(({ ours }) => !ours).map(({ name, check, scopes, former }) =>
    [name, check, scopes.join(','), former ? (former.name ?? name) : '', former?.check ?? ''].join('\t'),
  );
  expect(rows).toEqual(ironics);
});

it('each rule has a unique name and a unique description', () => {
  const names = POLICIES.map(({ name }) => name);
  expect(new Set(names).size).toBe(names.length);
  const helps = POLICIES.map(({ help }) => help);
  expect(new Set(helps).size).toBe(helps.length);
  expect(helps.filter((help) => !/^[A-Z].*\.$/.test(help))).toEqual([]);
});
