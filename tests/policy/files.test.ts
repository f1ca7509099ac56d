import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { compileFiles, parsePolicyFile, policyFilePaths, readPolicyFiles, warningsOf, type PolicyFiles } from '../../policy/files';
import { formatRule } from '../../policy/language';
import { optionsOf } from '../support/options';

const rulesOf = (text: string): Readonly<Record<string, string>> =>
  Object.fromEntries([...parsePolicyFile('p.yaml', text).rules].map(([name, rule]) => [name, formatRule(rule)]));
const filesOf = (text: string): PolicyFiles => ({ ...parsePolicyFile('p.yaml', text), files: ['p.yaml'] });

it.each<[string, Readonly<Record<string, string>>]>([
  ['', {}],
  ['# "a": "@"\n', {}],
  ['{}', {}],
  ['a: role:x # y\n"b": "!"\nc: ""\n', { a: 'role:x', b: '!', c: '@' }],
  ['{"a": "role:x",\n\t"b": [["role:x", "@"], "!"], "c": []}', { a: 'role:x', b: '((role:x and @) or !)', c: '@' }],
  ['a:\n- role:x\n- - role:y\n  - role:z\n', { a: '(role:x or (role:y and role:z))' }],
  ['a: >\n  role:x\n  or role:y\n', { a: '(role:x or role:y)' }],
  ['a: &x role:x\nb: *x\n', { a: 'role:x', b: 'role:x' }],
])('reads %j', (text, rules) => {
  expect(rulesOf(text)).toEqual(rules);
});

const REFUSED: readonly (readonly [string, string])[] = [
  ['a: "@"\nb: "admin"', 'p.yaml line 2: rule "b": "admin" is not a check: it has no colon'],
  // oslo.policy lets everybody pass these.
  ['a: !', 'p.yaml line 1: rule "a": it has the YAML tag !: put the rule in quotes'],
  ['a:', 'p.yaml line 1: rule "a": it is neither a text nor a list'],
  ['a: false', 'p.yaml line 1: rule "a": it is neither a text nor a list'],
  ['a: {}', 'p.yaml line 1: rule "a": it is neither a text nor a list'],
  ['a: !!str "@"', 'p.yaml line 1: rule "a": it has the YAML tag tag:yaml.org,2002:str: put the rule in quotes'],
  ['a: [!x "@"]', 'p.yaml line 1: rule "a": it has the YAML tag !x: put the rule in quotes'],
  ['a: &l ["@"]\nb: *l', 'p.yaml line 2: rule "b": it is neither a text nor a list'],
  ['a: *none', 'p.yaml line 1: rule "a": it is neither a text nor a list'],
  ['a: &l [*l]', 'p.yaml line 1: rule "a": a list of checks has a member that is not a text'],
  ['a: 1\n\na: 2', 'p.yaml line 1: rule "a": it is neither a text nor a list'],
  ['a: "@"\n\na: "!"', 'p.yaml line 3: rule "a": it is in line 1 too'],
  ['a: @', 'p.yaml line 1: Plain value cannot start with reserved character @'],
  ['a: "@"\nb: "', 'p.yaml line 2: Missing closing "quote'],
  ['- a', 'p.yaml line 1: a policy file has rules by name, as name: rule'],
  ['\nrole:admin', 'p.yaml line 2: a policy file has rules by name, as name: rule'],
  ['1: "@"', 'p.yaml line 1: the name of the rule is not a text'],
  ['"": "@"', 'p.yaml line 1: the name of the rule is not a text'],
  ['? [a]\n: "@"', 'p.yaml line 1: the name of the rule is not a text'],
  ['a: "@"\n---\nb: "@"', 'p.yaml line 2: a second document begins'],
  ['a: "roles.name:x"', 'p.yaml line 1: rule "a": "roles.name": roles has no members'],
  [`a: "@"\nb: ${'['.repeat(100_000)}`, 'p.yaml line 2: this is nested too deeply for a policy file'],
  [`- `.repeat(100_000), 'p.yaml line 1: this is nested too deeply for a policy file'],
  ['a:\n'.repeat(80_000), 'p.yaml line 2501: the file is too long for a policy file'],
  [`${'x'.repeat(200)}: "admin"`, `p.yaml line 1: rule "${'x'.repeat(100)}…": "admin" is not a check: it has no colon`],
];
it.each(REFUSED.map(([text, message]) => [text.slice(0, 40), text, message] as const))('refuses %j', (_, text, message) => {
  expect(() => parsePolicyFile('p.yaml', text)).toThrow(message);
});

it('names the file and the rule that close a circular reference', () => {
  const compile = (text: string) => (): unknown => compileFiles(optionsOf(), filesOf(text));
  expect(compile('"x": "@"\n"is_admin": "rule:is_admin"')).toThrow(
    'p.yaml line 2: rule "is_admin": it refers to itself: is_admin → is_admin',
  );
  expect(compile('"is_member": "rule:is_admin"')).toThrow(
    'p.yaml line 1: rule "is_member": it refers to itself: is_member → is_admin → is_member',
  );
});

it('warns about rules and checks that have no effect', () => {
  const text = [
    '"baremetal:node:gte": "rule:my_rule"',
    '"my_rule": "role:x or rule:is_amdin"',
    '"default": "!"',
    '"baremetal:node:get": "tenant:%(node.project)s or user_id:%(node.owner)s"',
    '"baremetal:step:execute:bios.reset": "@"',
    '"baremetal:node:get_nothing": "@"',
  ].join('\n');
  expect(warningsOf(optionsOf(), filesOf(text))).toEqual([
    'p.yaml line 1: rule "baremetal:node:gte": nothing uses it; did you mean baremetal:node:get?',
    'p.yaml line 2: rule "my_rule": rule:is_amdin does not exist; did you mean is_admin?',
    'p.yaml line 4: rule "baremetal:node:get": tenant has no value here, so that its check is never true',
    'p.yaml line 4: rule "baremetal:node:get": %(node.project)s has no value here, so that its check is never true',
    'p.yaml line 6: rule "baremetal:node:get_nothing": nothing uses it',
  ]);
});

describe('policy files', () => {
  const folder = mkdtempSync(join(tmpdir(), 'bloomery-policy-'));
  afterAll(() => rmSync(folder, { recursive: true }));
  const [file, more] = [join(folder, 'policy.yaml'), join(folder, 'policy.d')];
  const places = { 'oslo_policy.policy_file': file, 'oslo_policy.policy_dirs': [more, join(folder, 'none.d')] };
  const read = async (): Promise<PolicyFiles> => readPolicyFiles((await policyFilePaths(places)).paths);

  it('may be missing', async () => {
    expect(await read()).toEqual({ rules: new Map(), places: new Map(), files: [] });
  });

  it('are read in the order of their names, and the last definition of a rule counts', async () => {
    mkdirSync(join(more, 'sub'), { recursive: true });
    writeFileSync(file, 'a: "role:0"\nb: "role:0"\nc: "role:0"');
    writeFileSync(join(more, '20.json'), '{"b": "role:20"}');
    writeFileSync(join(more, '10.yaml'), '\na: "role:10"\nb: "role:10"');
    writeFileSync(join(more, '.hidden'), 'rubbish');
    const { rules, places: found, files } = await read();
    expect([...rules].map(([name, rule]) => `${name}=${formatRule(rule)}`)).toEqual(['a=role:10', 'b=role:20', 'c=role:0']);
    expect(found.get('a')).toEqual({ file: join(more, '10.yaml'), line: 2 });
    expect(files).toEqual([file, join(more, '10.yaml'), join(more, '20.json')]);
  });

  it('must be regular files within the limits of size and number', async () => {
    rmSync(file);
    execFileSync('mkfifo', [file]);
    await expect(read()).rejects.toThrow(`cannot read the policy file ${file}: ${file} is not a regular file`);
    rmSync(file);
    writeFileSync(file, '#'.repeat(256 * 1024 + 1));
    await expect(read()).rejects.toThrow(/is larger than 262144 bytes/);
    rmSync(file);
    for (let index = 0; index < 100; index++) writeFileSync(join(more, `x${index}`), '');
    await expect(read()).rejects.toThrow(`[oslo_policy]policy_dirs: cannot read ${more}: it has more than 100 files`);
    rmSync(more, { recursive: true });
    writeFileSync(more, '');
    await expect(read()).rejects.toThrow(`cannot read ${more}: it is not a folder`);
    rmSync(more);
    symlinkSync(join(folder, 'gone'), file);
    expect((await read()).files).toEqual([]);
  });
});
