import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Command } from 'commander';
import { addPolicyCommands } from '../../commands/policy';
import { parsePolicyFile } from '../../policy/files';
import { POLICIES } from '../../policy/rules';

const folder = mkdtempSync(join(tmpdir(), 'bloomery-policy-command-'));
afterAll(() => rmSync(folder, { recursive: true }));
const [config, file] = [join(folder, 'ironic.conf'), join(folder, 'policy.yaml')];
writeFileSync(config, '[DEFAULT]\nmy_ip = 127.0.0.1\nauth_strategy = keystone\n');
const RULES = '"baremetal:node:get": "rule:mine or role:auditor"\n"mine": "project_id:%(node.owner)s and not role:guest"\n';

interface Ended {
  readonly output: string;
  readonly errors: string;
  readonly status: number;
}
async function run(text: string, ...words: readonly string[]): Promise<Ended> {
  writeFileSync(file, text);
  const program = new Command().exitOverride().configureOutput({ writeErr: () => {} });
  addPolicyCommands(program);
  for (const command of program.commands[0]!.commands) command.exitOverride().configureOutput({ writeErr: () => {} });
  let [output, errors] = ['', ''];
  const written = jest.spyOn(process.stdout, 'write').mockImplementation((item) => {
    output += String(item);
    return true;
  });
  const failed = jest.spyOn(process.stderr, 'write').mockImplementation((item) => {
    errors += String(item).replace(/\n$/, '');
    return true;
  });
  const before = process.exitCode;
  process.exitCode = 0;
  try {
    const config_ = words[0] === 'sample' ? [] : ['--config-file', config];
    await program.parseAsync(['policy', ...words, ...config_], { from: 'user' });
    return { output, errors, status: process.exitCode };
  } finally {
    process.exitCode = before;
    written.mockRestore();
    failed.mockRestore();
  }
}

it('`policy list` lists all effective rules, and with --changed only those of files', async () => {
  expect(await run(RULES, 'list', '--changed')).toEqual({
    output: [
      `baremetal:node:get (${file} line 1)\n    (rule:mine or role:auditor)\n`,
      `mine (${file} line 2)\n    (project_id:%(node.owner)s and not role:guest)\n`,
    ].join(''),
    errors: '',
    status: 0,
  });
  const all = JSON.parse((await run(RULES, 'list', '--json')).output) as readonly Readonly<Record<string, unknown>>[];
  expect(all).toHaveLength(POLICIES.length + 1);
  expect(all.find(({ name }) => name === 'show_password')).toEqual({ name: 'show_password', scopes: [], check: '!' });
});

it('`policy show` prints the default, the former and the effective rule', async () => {
  expect((await run('', 'show', 'node:list')).output).toBe(
    [
      'baremetal:node:list',
      '  List the nodes that the own project owns or leases.',
      '  scopes:  system, project',
      '  default: (role:reader) or (role:service)',
      '  former:  rule:baremetal:node:get',
      '  counts:  (role:reader or role:service)',
      '  from:    the default',
      '',
    ].join('\n'),
  );
  expect((await run('', 'show', 'node:update:name')).output).toContain('former:  rule:is_admin (as baremetal:node:update)');
  expect((await run('', 'show', 'node:ipa_heartbeat')).output).toContain('default: "" (everybody)');
  expect((await run(RULES, 'show', 'mine')).output).toBe(
    `mine\n  counts:  (project_id:%(node.owner)s and not role:guest)\n  from:    ${file} line 2\n`,
  );
  expect(await run('', 'show', 'node:gett')).toEqual({
    output: '',
    errors: 'bloomery: there is no rule node:gett; did you mean baremetal:node:get?',
    status: 2,
  });
});

it.each([
  [['--as', 'owner-member'], 0, /allowed\n.*\n {2}✓ rule:mine\n {6}passed: rule:mine → project_id:%\(node.owner\)s and not role:guest\n$/],
  [['--as', 'lessee-admin'], 1, /denied\n.*\n {2}✗ rule:mine\n {6}failed: rule:mine → project_id:%\(node.owner\)s\n {2}✗ role:auditor\n$/],
  [['--as', 'other-admin'], 1, /denied/],
  [['--as', 'system-admin'], 1, /denied/],
  [['--as', 'owner-reader', '--owner', 'p'], 0, /allowed/],
  [['--roles', 'Auditor,x', '--system'], 0, /✓ role:auditor/],
  [['--roles', 'x', '--project', 'p', '--owner', 'p', '--lessee', 'l'], 0, /allowed/],
  [['--roles', 'guest', '--project', 'p', '--owner', 'p'], 1, /not role:guest/],
])('`policy check` with %j says whether the caller is allowed, and why', async (words, status, page) => {
  const ended = await run(RULES, 'check', '--rule', 'node:get', ...words);
  expect(ended).toEqual({ output: expect.stringMatching(page) as string, errors: '', status });
});

it('`policy check` notes that policies have no effect with auth_strategy = noauth', async () => {
  const words = ['check', '--rule', 'node:get', '--as', 'owner-member'];
  const note = / {2}note: policies have no effect: everybody may do everything, since \[DEFAULT\]auth_strategy is noauth\n$/;
  writeFileSync(config, '[DEFAULT]\nmy_ip = 127.0.0.1\nauth_strategy = noauth\n');
  const [page, json, step, always] = [
    await run(RULES, ...words),
    await run(RULES, ...words, '--json'),
    await run('', 'check', '--rule', 'step:execute:bios.reset', '--as', 'owner-member'),
    await run('', 'check', '--rule', 'show_password', '--as', 'system-admin'),
  ];
  writeFileSync(config, '[DEFAULT]\nmy_ip = 127.0.0.1\nauth_strategy = keystone\n');
  expect(page).toMatchObject({ output: expect.stringMatching(note) as string, status: 0 });
  expect(JSON.parse(json.output)).toMatchObject({ note: expect.stringMatching(/^policies have no effect/) as string });
  expect(step.output).toMatch(note);
  expect(always.output).not.toContain('note:');
});

it('`policy check` allows steps that no rule names', async () => {
  const words = ['check', '--rule', 'step:execute:bios.reset', '--as', 'other-member'];
  expect(await run('', ...words)).toMatchObject({ output: expect.stringMatching(/no file has a rule/) as string, status: 0 });
  expect(await run('"baremetal:step:execute:bios.reset": "role:admin"', ...words)).toMatchObject({ status: 1 });
});

it('`policy check` refuses personas that do not exist', async () => {
  for (const persona of ['owner', 'owner-x', 'x-admin', 'owner-constructor'])
    await expect(run('', 'check', '--rule', 'node:get', '--as', persona)).rejects.toThrow(/is invalid\. It must be SCOPE-ROLE/);
  expect((await run('', 'check', '--rule', 'node:get', '--as', 'lessee-admin', '--owner', 'o')).errors).toMatch(/has no lessee/);
});

it('`policy check --node` asks the server for the owner and the lessee of a node', async () => {
  let body: unknown = { owner: 'o', lessee: null };
  const server = createServer((request, response) => {
    expect(request.url).toBe('/v1/nodes/n%2F1');
    response.end(JSON.stringify(body));
  });
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  try {
    const words = ['check', '--rule', 'node:get', '--as', 'owner-member', '--node', 'n/1', '--url', url, '--json'];
    const { output, status } = await run(RULES, ...words);
    expect(JSON.parse(output)).toMatchObject({ allowed: true, target: { owner: 'o', lessee: null }, caller: { project: 'o' } });
    expect(status).toBe(0);
    body = { owner: 1 };
    expect(await run(RULES, ...words)).toMatchObject({ status: 2, errors: expect.stringMatching(/not Bloomery/) as string });
  } finally {
    server.close();
  }
});

it('`policy sample` writes all rules as comments, which the parser accepts once uncommented', async () => {
  const { output } = await run('', 'sample');
  expect(parsePolicyFile('sample', output).rules.size).toBe(0);
  const uncommented = output.replace(/^#"/gm, '"');
  expect([...parsePolicyFile('sample', uncommented).rules.keys()]).toEqual(POLICIES.map(({ name }) => name));
});

it('`policy validate` counts rules and warnings, and names the line of an error', async () => {
  expect(await run(RULES, 'validate')).toEqual({ output: '2 rules in 1 files, 0 warnings\n', errors: '', status: 0 });
  expect(await run('"baremetal:node:gte": "@"', 'validate', file)).toEqual({
    output: `${file} line 1: rule "baremetal:node:gte": nothing uses it; did you mean baremetal:node:get?\n1 rules in 1 files, 1 warnings\n`,
    errors: '',
    status: 1,
  });
  expect(await run('"a": !', 'validate')).toMatchObject({
    status: 2,
    errors: expect.stringMatching(/line 1: rule "a": it has the YAML tag/) as string,
  });
  expect(await run('', 'validate', join(folder, 'none'))).toMatchObject({
    status: 2,
    errors: `bloomery: there is no file ${join(folder, 'none')}`,
  });
});

it('`policy list` escapes control characters in its output', async () => {
  const { output } = await run('"\\e[2J": "role:\\u00e9"', 'list', '--changed');
  expect(output).toBe(`\\u001b[2J (${file} line 1)\n    role:é\n`);
});
