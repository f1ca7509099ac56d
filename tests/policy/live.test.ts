import { mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startServer } from '../../server/server';
import type { Log } from '../../model/log';
import { NOBODY } from '../../policy/caller';
import { startEnforcer } from '../../policy/live';
import { optionsOf } from '../support/options';

const CHECK_MS = 100;
type LiveEnforcer = Awaited<ReturnType<typeof startEnforcer>>;
const folder = mkdtempSync(join(tmpdir(), 'bloomery-live-'));
afterAll(() => rmSync(folder, { recursive: true }));
const [file, more] = [join(folder, 'policy.yaml'), join(folder, 'policy.d')];
const places = { 'oslo_policy.policy_file': file, 'oslo_policy.policy_dirs': [more] };
const options = optionsOf({ ...places, 'DEFAULT.auth_strategy': 'oidc' });

let lines: string[] = [];
let wake: (() => void) | undefined;
const note =
  (level: string) =>
  (message: string, fields: { error?: string; rules?: number } = {}): void => {
    lines.push(`${level}: ${message}${fields.error === undefined ? '' : `: ${fields.error}`}`);
    wake?.();
  };
const log: Log = { debug: note('debug'), info: note('info'), warn: note('warn'), error: note('error'), child: () => log };
/** Waits until a line fits. @returns all lines so far */
async function logged(pattern: RegExp): Promise<readonly string[]> {
  while (!lines.some((line) => pattern.test(line)))
    await new Promise<void>((resolve) => {
      wake = resolve;
    });
  return lines.splice(0);
}

let live: LiveEnforcer | undefined;
afterEach(async () => {
  await live?.stop();
  live = undefined;
  lines = [];
});
const chassis = (): boolean => live!.enforcer.allowed({ ...NOBODY, system: true, roles: ['guest'] }, 'chassis:get');

it('starts without policy files, and follows files that are added, changed or removed', async () => {
  live = await startEnforcer(options, log, CHECK_MS);
  expect(lines).toEqual([]);
  expect(chassis()).toBe(false);
  writeFileSync(file, '"baremetal:chassis:gte": "@"\n"baremetal:chassis:get": "role:guest"');
  expect(await logged(/read/)).toEqual([
    `warn: policy: ${file} line 1: rule "baremetal:chassis:gte": nothing uses it; did you mean baremetal:chassis:get?`,
    'info: policy files read',
  ]);
  expect(chassis()).toBe(true);
  mkdirSync(more);
  writeFileSync(join(more, 'strict.yaml'), '"baremetal:chassis:get": "!"');
  await logged(/read/);
  expect(chassis()).toBe(false);
  writeFileSync(join(more, 'strict.yaml'), '"baremetal:chassis:get": "role:guest"');
  await logged(/read/);
  expect(chassis()).toBe(true);
  rmSync(more, { recursive: true });
  expect(await logged(/a policy file was removed/)).toContain('warn: a policy file was removed: the defaults of its rules apply');
  rmSync(file);
  expect(await logged(/^error/)).toContain(
    `error: the policy files cannot be used: the previous rules still apply: ${file} was removed: send SIGHUP to apply the defaults`,
  );
  expect(chassis()).toBe(true);
  live.reload();
  expect(await logged(/a policy file was removed/)).toContain('warn: a policy file was removed: the defaults of its rules apply');
  expect(chassis()).toBe(false);
});

it('keeps its rules when a file becomes invalid', async () => {
  writeFileSync(file, '"baremetal:chassis:get": "role:guest"');
  live = await startEnforcer(options, log, CHECK_MS);
  lines = [];
  for (const [text, reason] of [
    ['"baremetal:chassis:get": "role guest"', 'line 1: rule "baremetal:chassis:get": "role" is not a check: it has no colon'],
    ['\n"baremetal:chassis:get": "rule:baremetal:chassis:get"', 'line 2: rule "baremetal:chassis:get": it refers to itself'],
    ['rubbish', 'line 1: a policy file has rules by name'],
  ] as const) {
    writeFileSync(file, text);
    live.reload();
    expect((await logged(/^error/))[0]).toContain(
      `error: the policy files cannot be used: the previous rules still apply: ${file} ${reason}`,
    );
    expect(chassis()).toBe(true);
  }
  writeFileSync(file, '"baremetal:chassis:get": "!"');
  live.reload();
  await logged(/^info/);
  expect(chassis()).toBe(false);
});

it('skips a dangling link in a folder with a warning, and reads its target once it exists', async () => {
  writeFileSync(file, '');
  mkdirSync(more);
  const target = join(folder, 'elsewhere.yaml');
  symlinkSync(target, join(more, '1-link.yaml'));
  writeFileSync(join(more, '2-strict.yaml'), '"baremetal:chassis:get": "role:guest"');
  live = await startEnforcer(options, log, CHECK_MS);
  expect(await logged(/^info/)).toContain('warn: a policy file is skipped: it is a symbolic link to a file that does not exist');
  expect(chassis()).toBe(true);
  writeFileSync(join(more, '2-strict.yaml'), '"baremetal:chassis:get": "!"');
  await logged(/^info/);
  expect(chassis()).toBe(false);
  writeFileSync(join(more, '2-strict.yaml'), '');
  writeFileSync(target, '"baremetal:chassis:get": "role:guest"');
  await logged(/^info/);
  live.reload();
  await logged(/^info/);
  expect(chassis()).toBe(true);
  rmSync(more, { recursive: true });
});

it('does not start with an invalid or a missing policy file', async () => {
  writeFileSync(file, '"baremetal:chassis:get": "role guest"');
  await expect(startEnforcer(options, log)).rejects.toThrow(`${file} line 1: rule "baremetal:chassis:get": "role" is not a check`);
  // The server starts nothing else before it reports the error.
  const stateDir = join(folder, 'state');
  const starting = startServer({
    options: { ...optionsOf(places), 'erasure.signing_key': null },
    roles: ['api', 'conductor'],
    stateDir,
    log,
  });
  await expect(starting).rejects.toThrow(`${file} line 1: rule "baremetal:chassis:get"`);
  expect(readdirSync(stateDir)).toEqual([]);
  const typo = { ...options, 'oslo_policy.policy_file': join(folder, 'polcy.yaml') };
  await expect(startEnforcer(typo, log)).rejects.toThrow(`[oslo_policy]policy_file: there is no file ${join(folder, 'polcy.yaml')}`);
});

it('warns about roles of [oidc] that no rule names', async () => {
  writeFileSync(file, '"baremetal:chassis:get": "role:Auditor"');
  const granted = { 'oidc.issuer': 'https://id.example', 'oidc.system_roles': { a: 'Admin', b: 'raeder', c: 'auditor' } };
  live = await startEnforcer({ ...options, ...granted, 'oidc.project_roles': { d: 'operator' } }, log, CHECK_MS);
  expect(lines.filter((line) => line.startsWith('warn'))).toEqual([
    'warn: [oidc]system_roles: no rule names the role raeder; did you mean reader?',
    'warn: [oidc]project_roles: no rule names the role operator',
  ]);
});

it.each([
  [null, null, 'warn: policy files: policies have no effect: everybody may do everything, since [DEFAULT]auth_strategy is not set'],
  ['noauth', null, 'warn: policy files: policies have no effect: everybody may do everything, since [DEFAULT]auth_strategy is noauth'],
  [
    'http_basic',
    null,
    'warn: policy files: policies limit tokens only: without [DEFAULT]http_basic_roles_file, every user of http_basic may do everything',
  ],
  ['http_basic', '/roles', undefined],
  ['keystone', null, undefined],
] as const)('warns if policies do not limit all callers: auth_strategy %p, http_basic_roles_file %p', async (strategy, roles, warning) => {
  writeFileSync(file, '"baremetal:chassis:get": "!"');
  const given = optionsOf({ ...places, 'DEFAULT.auth_strategy': strategy, 'DEFAULT.http_basic_roles_file': roles });
  live = await startEnforcer(given, log, CHECK_MS);
  expect(lines.filter((line) => line.startsWith('warn'))).toEqual(warning === undefined ? [] : [warning]);
});
