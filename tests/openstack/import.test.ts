/** `bloomery import --api` from a real Ironic 39 that a real Keystone guards, with a password and with a token. */
import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { startRealIronic, type RealIronic } from '../lab/inspection/real-ironic';
import { root } from '../lab/support/venv';
import { freePort } from '../support/free-port';
import { startKeystone, type RealKeystone } from './services/keystone';
import { callerOf, PASSWORD, REGION, tokenSection } from './services/service';

const run = promisify(execFile);
const folder = mkdtempSync(join(tmpdir(), 'bloomery-import-keystone-'));
const secrets = join(folder, 'secrets.yaml');
let keystone: RealKeystone;
let ironic: RealIronic;
/** A user with the scope of the system. */
let operator: string;

beforeAll(async () => {
  mkdirSync(join(folder, 'keystone'));
  keystone = await startKeystone(join(folder, 'keystone'));
  const { identity } = keystone;
  await identity.user('ironic', { [await identity.project('service')]: ['admin', 'service'] });
  operator = await identity.user('operator', { system: ['admin'] });
  const port = await freePort();
  // With /v1, as some catalogs have it.
  await identity.service('baremetal', `http://127.0.0.1:${port}/v1`);
  ironic = await startRealIronic(join(folder, 'ironic'), '127.0.0.1', port, {
    DEFAULT: { auth_strategy: 'keystone' },
    keystone_authtoken: tokenSection(keystone, 'ironic', 'baremetal'),
  });
  const system = await identity.token(operator, { system: { all: true } });
  const call = callerOf(`${ironic.url}/v1`, () => system, { 'x-openstack-ironic-api-version': '1.95' });
  for (const name of ['one', 'two'])
    await call('POST', '/nodes', { name, driver: 'fake-hardware', driver_info: { ipmi_password: `hidden ${name}` } });
  writeFileSync(secrets, JSON.stringify({ '*': { driver_info: { ipmi_password: 'hidden' } } }));
}, 900_000);
afterAll(async () => {
  await ironic?.stop();
  await keystone?.close();
  rmSync(folder, { recursive: true, force: true });
}, 120_000);

interface Outcome {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}
/** Runs the import. @param given the variables of the openstack command, and no others */
async function importWith(given: Readonly<Record<string, string>>, ...words: readonly string[]): Promise<Outcome> {
  const own = Object.entries(process.env).filter(([name]) => !name.startsWith('OS_') && name !== 'DATABASE_URL');
  const env = { ...Object.fromEntries(own), ...given };
  const all = [join(root, 'bin/bloomery'), 'import', '--state-dir', join(folder, 'state'), '--secrets', secrets, ...words];
  return run(process.execPath, all, { env }).then(
    ({ stdout, stderr }) => ({ code: 0, stdout, stderr }),
    (error: unknown) => error as Outcome,
  );
}
const password = (name: string): Readonly<Record<string, string>> => ({
  OS_AUTH_URL: keystone.url,
  OS_USERNAME: name,
  OS_PASSWORD: PASSWORD,
  OS_USER_DOMAIN_NAME: 'Default',
});
const ofTheSystem = (): Readonly<Record<string, string>> => ({ ...password('operator'), OS_SYSTEM_SCOPE: 'all' });
const nodes = (count: number): RegExp => new RegExp(`^This would be imported:\\n {7}${count} nodes?$`, 'm');

it('bloomery import finds the API in the catalog by its region', async () => {
  const found = await importWith({ ...ofTheSystem(), OS_REGION_NAME: REGION }, '--api', '--dry-run');
  expect(found).toMatchObject({ code: 0, stdout: expect.stringMatching(nodes(2)) as string });
  const elsewhere = await importWith({ ...ofTheSystem(), OS_REGION_NAME: 'RegionElsewhere' }, '--api', '--dry-run');
  expect(elsewhere).toMatchObject({ code: 1, stdout: '' });
  expect(elsewhere.stderr).toContain('RegionElsewhere');
});

it('bloomery import accepts a token', async () => {
  const token = await keystone.identity.token(operator, { system: { all: true } });
  expect(await importWith({ OS_TOKEN: token }, '--api', ironic.url, '--dry-run')).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(nodes(2)) as string,
  });
});

it('bloomery import reports wrong credentials without showing the password', async () => {
  const wrong = await importWith({ ...ofTheSystem(), OS_PASSWORD: 'a wrong one' }, '--api', '--dry-run');
  expect(wrong).toMatchObject({ code: 1, stdout: '' });
  expect(wrong.stderr).toMatch(/401/);
  expect(wrong.stderr).not.toContain('a wrong one');
  const refused = await importWith({ OS_TOKEN: 'no token' }, '--api', ironic.url, '--dry-run');
  expect(refused).toMatchObject({ code: 1, stdout: '' });
  expect(refused.stderr).toMatch(/401/);
});

it('bloomery import imports the nodes only once', async () => {
  expect(await importWith(ofTheSystem(), '--api')).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/^Imported:\n {7}2 nodes$/m) as string,
  });
  expect(await importWith(ofTheSystem(), '--api')).toMatchObject({
    code: 0,
    stdout: expect.stringContaining('       0 nodes (2 were here already)\n') as string,
  });
});
