/**
 * `bloomery token` beside two processes of the server on one database, and users of http_basic with roles. Runs the built program, and most
 * commands in this process.
 */
import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { runCommand } from '../../support/command';
import { useDatabase } from '../../support/database';
import { fakeSettings, openProcesses, type Processes } from '../../support/processes';
import { until } from '../../support/until';
import { NEWEST_VERSION } from '../../support/newest';

const folder = mkdtempSync(join(tmpdir(), 'bloomery-tokens-'));
const [users, roles, log] = ['users', 'roles', 'log'].map((name) => join(folder, name)) as [string, string, string];
/** `secret`, of bcrypt at its lowest cost. */
const DIGEST = '$2b$04$JCYtpV1F4gyrBd50P97aReFpr1INtdnhJUuzUjJeiKJYffB6hR8iK';
const database = useDatabase();
let processes: Processes;
const urls: Record<string, string> = {};

const settings = (also: string): string =>
  fakeSettings(['auth_strategy = http_basic', `http_basic_auth_user_file = ${users}`, `log_file = ${log}`, also].join('\n'));
beforeAll(async () => {
  writeFileSync(users, `admin:${DIGEST}\ntenant:${DIGEST}\nnobody:${DIGEST}\n`);
  writeFileSync(roles, '[admin]\nroles = admin\nsystem = all\n[tenant]\nroles = member\nproject = p1\n');
  processes = openProcesses(() => database.connection());
  for (const [host, also] of [
    ['one', `http_basic_roles_file = ${roles}`],
    ['two', ''],
  ] as const) {
    const url = await processes.start(host, 'api,conductor', settings(`host = ${host}\n${also}`));
    if (typeof url !== 'string') throw new Error(url.errors);
    urls[host] = url;
  }
});
afterAll(async () => {
  await processes.close();
  rmSync(folder, { recursive: true, force: true });
});

type Headers = Readonly<Record<string, string>>;
const basic = (user: string): Headers => ({ authorization: `Basic ${Buffer.from(`${user}:secret`).toString('base64')}` });
const bearer = (token: string): Headers => ({ authorization: `Bearer ${token}` });
const send = (host: string, method: string, path: string, headers: Headers, body?: object): Promise<Response> =>
  fetch(`${urls[host]}${path}`, {
    method,
    headers: { 'X-OpenStack-Ironic-API-Version': NEWEST_VERSION, 'content-type': 'application/json', ...headers },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
const statusOf = async (...request: Parameters<typeof send>): Promise<number> => (await send(...request)).status;
async function namesFor(host: string, headers: Headers): Promise<readonly string[]> {
  const { nodes } = (await (await send(host, 'GET', '/v1/nodes', headers)).json()) as { nodes: { name: string }[] };
  return nodes.map(({ name }) => name).sort();
}

const config = join(folder, 'empty.conf');
interface Ended {
  readonly out: string;
  readonly err: string;
  readonly code: number;
}
/** Runs `bloomery token …` in this process. */
async function token(...words: readonly string[]): Promise<Ended> {
  writeFileSync(config, '');
  const { output, errors, code } = await runCommand(['token', ...words, '--config-file', config], { DATABASE_URL: database.connection() });
  return { out: output, err: errors, code };
}
/** Runs `bloomery token …` of the built program; the exit code of a failure is in the result. */
async function builtToken(...words: readonly string[]): Promise<Ended> {
  writeFileSync(config, '');
  const program = join(__dirname, '../../../bin/bloomery');
  const env = { ...process.env, DATABASE_URL: database.connection() };
  try {
    const { stdout, stderr } = await promisify(execFile)(process.execPath, [program, 'token', ...words, '--config-file', config], { env });
    return { out: stdout, err: stderr, code: 0 };
  } catch (error) {
    const { stdout, stderr, code } = error as { stdout: string; stderr: string; code: number };
    return { out: stdout, err: stderr, code };
  }
}

it('allows users of http_basic what their roles allow', async () => {
  for (const node of [{ name: 'own', owner: 'p1' }, { name: 'foreign' }])
    expect(await statusOf('one', 'POST', '/v1/nodes', basic('admin'), { driver: 'fake-hardware', ...node })).toBe(201);
  expect(await namesFor('one', basic('admin'))).toEqual(['foreign', 'own']);
  expect(await namesFor('one', basic('tenant'))).toEqual(['own']);
  expect(await statusOf('one', 'GET', '/v1/nodes/foreign', basic('tenant'))).toBe(404);
  expect(await statusOf('one', 'GET', '/v1/conductors', basic('admin'))).toBe(200);
  expect(await statusOf('one', 'GET', '/v1/conductors', basic('tenant'))).toBe(403);
  expect(await statusOf('one', 'GET', '/v1/nodes', basic('nobody'))).toBe(403);
  expect(await statusOf('one', 'GET', '/v1', {})).toBe(200);
  // Without the file, every user may do everything.
  expect(await statusOf('two', 'GET', '/v1/conductors', basic('nobody'))).toBe(200);
});

it('creates tokens that work at once in every process, with the rights of their roles only, until they are revoked', async () => {
  const created = await builtToken('create', '--name', 'ci', '--user', 'builder', '--role', 'reader', '--system', '--expires', '90d');
  expect(created).toMatchObject({ code: 0, out: expect.stringMatching(/^blm_[\w-]{48}\n$/) as string });
  expect(created.err).toMatch(/token ci: it expires at .* It is shown only now\./);
  const secret = created.out.trim();
  for (const host of ['one', 'two']) {
    for (const headers of [bearer(secret), { 'x-auth-token': secret }])
      expect(await statusOf(host, 'GET', '/v1/conductors', headers)).toBe(200);
    // This holds also on the host where every user may do everything.
    expect(await statusOf(host, 'POST', '/v1/nodes', bearer(secret), { driver: 'fake-hardware' })).toBe(403);
  }
  const misspelt = await token('create', '--name', 'typo', '--role', 'readr', '--system', '--expires', '1h');
  expect(misspelt).toMatchObject({ code: 0, err: expect.stringContaining('the role readr; did you mean reader?') as string });
  expect((await token('revoke', 'typo')).code).toBe(0);
  // The exit code of an error is 2, because 1 is an answer of other commands.
  expect(await builtToken('create', '--name', 'typo', '--expires', 'soon')).toMatchObject({ code: 2, out: '' });
  const ofTenant = await token('create', '--name', 'tenant', '--role', 'reader', '--project', 'p1', '--expires', '12h');
  for (const host of ['one', 'two']) expect(await namesFor(host, bearer(ofTenant.out.trim()))).toEqual(['own']);

  const forged = `${secret.slice(0, -2)}xx`;
  const refused = await send('one', 'GET', '/v1/nodes', bearer(forged));
  expect(refused.status).toBe(401);
  expect(refused.headers.get('www-authenticate')).toBe('Bearer realm="Baremetal API", error="invalid_token"');
  expect(await refused.json()).toEqual({ error: { message: 'The token is not valid', code: 401 } });

  const [listed] = JSON.parse((await token('list', '--json')).out) as [Record<string, unknown>, unknown];
  expect(listed).toMatchObject({ name: 'ci', user_name: 'builder', roles: ['reader'], system: true, project: null });
  await until(
    'the use of the token is listed',
    async () => (JSON.parse((await token('list', '--json')).out) as [Record<string, unknown>])[0]['last_used_at'] !== null,
  );
  expect((await token('list')).out).toMatch(/^NAME +USER +ROLES +SCOPE +CREATED +EXPIRES +LAST USED\nci +builder +reader +system +/);

  expect(await token('revoke', 'ci')).toMatchObject({ code: 0, err: 'bloomery: token ci is revoked\n' });
  for (const host of ['one', 'two'])
    await until('the token is refused', async () => (await statusOf(host, 'GET', '/v1/conductors', bearer(secret))) === 401);
  expect(await builtToken('revoke', 'ci')).toMatchObject({ code: 1, err: 'bloomery: there is no token ci\n' });

  const lines = await database.query<{ text: string }>("SELECT coalesce(string_agg(api_tokens::text, ' '), '') AS text FROM api_tokens");
  expect(lines[0]!.text).not.toContain(secret);
  const written = readFileSync(log, 'utf8');
  expect(written).toContain('builder');
  expect(written).not.toContain(secret.slice(4));
  expect(written).not.toContain(forged.slice(4));
});

it.each([
  [['--name', 'x', '--role', 'reader'], /--expires <duration>' not specified/, 2],
  [['--name', 'x', '--expires', '5000d'], /must be a duration such as 90d/, 2],
  [['--name', 'x', '--expires', '0d'], /must be a duration such as 90d/, 2],
  [['--name', '', '--expires', '1d'], /must be an id or a name/, 2],
  [['--name', 'a\nb', '--expires', '1d'], /must be an id or a name/, 2],
  [['--name', 'x', '--expires', 'never', '--system', '--project', 'p'], /only one of project, domain and system can be given/, 1],
])('refuses to create a token with %j', async (words, message, code) => {
  expect(await token('create', ...words)).toMatchObject({ code, out: '', err: expect.stringMatching(message) as string });
});
