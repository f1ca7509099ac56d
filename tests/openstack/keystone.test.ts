/**
 * auth_strategy = keystone with a real Keystone: the callers that tokens of each kind identify, and what happens when Keystone is slow or
 * away.
 */
import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { keystone as keystoneStrategy } from '../../api/auth/keystone';
import { Unauthenticated } from '../../api/http/errors';
import type { Strategy } from '../../api/resource/handler';
import { createSpellings } from '../../api/resource/spellings';
import { loadDocument } from '../../api/schema/document';
import type { Options } from '../../config/options';
import { systemClock } from '../../model/clock';
import { silentLog } from '../../model/log';
import { silentMetrics } from '../../model/metrics';
import { startServerProcess, type RunningServer } from '../../demo/lab/server';
import { openstackClient } from '../lab/support/venv';
import { freePort } from '../support/free-port';
import { startHoldingProxy, type HoldingProxy } from '../support/fakes/holding-proxy';
import { optionsOf } from '../support/options';
import { until } from '../support/until';
import { startKeystone, type RealKeystone } from './services/keystone';
import { PASSWORD, REGION } from './services/service';

const run = promisify(execFile);
const folder = mkdtempSync(join(tmpdir(), 'bloomery-keystone-'));
let keystone: RealKeystone;
let proxy: HoldingProxy;
let server: RunningServer;
let apiUrl: string;
/** IDs. */
let project: string;
let member: string;
let service: string;
let serviceProject: string;

/** Milliseconds by which the clock of the strategies is ahead. */
let ahead = 0;
const clock = { ...systemClock, now: () => Date.now() + ahead };

const credentials = (): Readonly<Record<`keystone_authtoken.${string}`, string>> => ({
  'keystone_authtoken.auth_url': keystone.url,
  'keystone_authtoken.auth_type': 'password',
  'keystone_authtoken.username': 'baremetal',
  'keystone_authtoken.password': PASSWORD,
  'keystone_authtoken.user_domain_id': 'default',
  'keystone_authtoken.project_name': 'service',
  'keystone_authtoken.project_domain_id': 'default',
});
const strategyOf = (options: Partial<Options> = credentials()): Strategy =>
  keystoneStrategy({
    options: optionsOf(options),
    log: silentLog,
    metrics: silentMetrics,
    clock,
    serviceType: options['keystone_authtoken.service_type'] ?? null,
    spellings: createSpellings(loadDocument()),
    signal: new AbortController().signal,
  });
const identify = (strategy: Strategy, token: string, headers: Record<string, string> = {}, path = '/v1/nodes') =>
  strategy.identify({ ...headers, 'x-auth-token': token }, path, 'GET', '192.0.2.1');
const refusal = async (identified: Promise<unknown>): Promise<number> => {
  const error: unknown = await identified.then(
    () => undefined,
    (item: unknown) => item,
  );
  if (!(error instanceof Unauthenticated)) throw new Error(`not refused: ${String(error)}`);
  return error.status;
};

beforeAll(async () => {
  mkdirSync(join(folder, 'keystone'));
  keystone = await startKeystone(join(folder, 'keystone'));
  const { identity } = keystone;
  project = await identity.project('tenant');
  serviceProject = await identity.project('service');
  member = await identity.user('Member', { [project]: ['member', 'Own-Role'], domain: ['reader'], system: ['reader'] });
  service = await identity.user('baremetal', { [serviceProject]: ['admin', 'service'], system: ['admin', 'service'], domain: ['admin'] });
  const port = await freePort();
  apiUrl = `http://127.0.0.1:${port}`;
  await identity.service('baremetal', apiUrl);
  const { hostname, port: keystonePort } = new URL(keystone.url);
  proxy = await startHoldingProxy({ host: hostname, port: Number(keystonePort) });
  // The server reaches the Identity API through the proxy, in a region of its own.
  await addIdentityEndpoint('RegionProxy', `http://127.0.0.1:${proxy.port}/v3`);
  const own = Object.entries(credentials()).map(([key, value]) => [key.split('.')[1]!, value] as const);
  server = await startServerProcess(
    join(folder, 'server'),
    {
      DEFAULT: { auth_strategy: 'keystone', my_ip: '127.0.0.1', enabled_hardware_types: 'fake-hardware' },
      api: { host_ip: '127.0.0.1', port },
      keystone_authtoken: {
        ...Object.fromEntries(own),
        region_name: 'RegionProxy',
        www_authenticate_uri: 'http://keystone.example.net/v3',
      },
    },
    undefined,
    ['--roles', 'api,conductor'],
  );
}, 900_000);

afterAll(async () => {
  await server?.stop();
  await proxy?.close();
  await keystone?.close();
  rmSync(folder, { recursive: true, force: true });
}, 120_000);

async function addIdentityEndpoint(region: string, url: string): Promise<void> {
  const { services } = (await keystone.identity.call('GET', '/services?type=identity')) as { services: { id: string }[] };
  await keystone.identity.call('POST', '/regions', { region: { id: region } });
  const endpoint = { service_id: services[0]!.id, interface: 'internal', region_id: region, url };
  await keystone.identity.call('POST', '/endpoints', { endpoint });
}

describe('a token identifies', () => {
  const person = (): object => ({ user: member, userName: 'Member', userDomain: 'default', exempt: false, isAdminProject: true });
  const tenant = (): object => ({ project, projectName: 'tenant', projectDomain: 'default', domain: null, system: false });
  const noProject = { project: null, projectName: null, projectDomain: null };
  const memberRoles = ['member', 'own-role', 'reader'];
  const sorted = async (token: string): Promise<object> => {
    const caller = await identify(strategyOf(), token);
    return { ...caller, roles: [...caller.roles].sort() };
  };

  it('a user in a project, with the implied roles in lower case', async () => {
    const token = await keystone.identity.token(member, { project: { id: project } });
    expect(await sorted(token)).toEqual({ ...person(), ...tenant(), roles: memberRoles });
    // Spaces around it do not count.
    expect(await sorted(` ${token} `)).toEqual({ ...person(), ...tenant(), roles: memberRoles });
  });

  it('a user in the system', async () => {
    const token = await keystone.identity.token(member, { system: { all: true } });
    expect(await sorted(token)).toEqual({ ...person(), ...noProject, domain: null, system: true, roles: ['reader'] });
  });

  it('a user in a domain', async () => {
    const token = await keystone.identity.token(member, { domain: { id: 'default' } });
    expect(await sorted(token)).toEqual({ ...person(), ...noProject, domain: 'default', system: false, roles: ['reader'] });
  });

  it('a user without a scope', async () => {
    const token = await keystone.identity.token(member);
    expect(await sorted(token)).toEqual({ ...person(), ...noProject, domain: null, system: false, roles: [] });
  });

  it('the user of an application credential', async () => {
    const token = await applicationToken('plain', {});
    expect(await sorted(token)).toEqual({ ...person(), ...tenant(), roles: memberRoles });
  });

  it.each([true, false])('the trustee of a trust, or the trustor (impersonation: %p)', async (impersonation) => {
    const trustee = await keystone.identity.user(`trustee ${impersonation}`);
    const trust = await trustOf(member, trustee, 'member', impersonation);
    const token = await keystone.identity.token(trustee, { 'OS-TRUST:trust': { id: trust } });
    const expected = impersonation ? person() : { ...person(), user: trustee, userName: 'trustee false' };
    expect(await sorted(token)).toEqual({ ...expected, ...tenant(), roles: ['member', 'reader'] });
  });

  it('the same user whatever the other identity headers say', async () => {
    const token = await keystone.identity.token(member);
    const headers = { 'x-user-id': 'root', 'x-project-id': project, 'x-roles': 'admin', 'openstack-system-scope': 'all' };
    expect(await identify(strategyOf(), token, headers)).toEqual(await identify(strategyOf(), token));
  });
});

async function applicationToken(name: string, more: object): Promise<string> {
  const own = await keystone.identity.token(member, { project: { id: project } });
  const body = { application_credential: { name, ...more } };
  const answer = await keystone.identity.call('POST', `/users/${member}/application_credentials`, body, own);
  const { id, secret } = answer['application_credential'] as { readonly id: string; readonly secret: string };
  return keystone.identity.applicationToken(id, secret);
}
async function trustOf(trustor: string, trustee: string, role: string, impersonation: boolean): Promise<string> {
  const own = await keystone.identity.token(trustor, { project: { id: project } });
  const trust = { trustor_user_id: trustor, trustee_user_id: trustee, project_id: project, impersonation, roles: [{ name: role }] };
  const answer = await keystone.identity.call('POST', '/OS-TRUST/trusts', { trust }, own);
  return (answer['trust'] as { readonly id: string }).id;
}

describe('the log-in of the page', () => {
  const logIn = (fields: object): Promise<Response> =>
    fetch(`${apiUrl}/ui/session`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ user: 'Member', password: PASSWORD, ...fields }),
    });
  it.each<[string, object, () => object]>([
    ['a project', { project: 'tenant' }, () => ({ user: 'Member', project })],
    ['the system', { domain: 'Default' }, () => ({ user: 'Member', project: null, roles: ['reader'] })],
  ])('accepts a password for %s', async (_, fields, caller) => {
    const opened = await logIn(fields);
    expect(opened.status).toBe(201);
    expect(await opened.json()).toMatchObject({ caller: caller() });
    const cookie = /^[^;]+/.exec(opened.headers.get('set-cookie')!)![0];
    expect((await fetch(`${apiUrl}/v1/nodes`, { headers: { cookie } })).status).toBe(200);
  });
  it.each([{ password: 'wrong' }, { user: 'nobody' }, { domain: 'nowhere' }, { project: 'unknown' }])('refuses %p', async (fields) => {
    const refused = await logIn(fields);
    expect(refused.status).toBe(401);
    expect(await refused.json()).toEqual({ error: { message: 'Keystone refuses this user, password, domain or project.' } });
  });
});

describe('the strategy keystone refuses', () => {
  it('a revoked token once its cached validation is too old', async () => {
    const strategy = strategyOf();
    const token = await keystone.identity.token(member, { project: { id: project } });
    const caller = await identify(strategy, token);
    await keystone.identity.revoke(token);
    expect(await identify(strategy, token)).toEqual(caller);
    ahead += 301_000;
    expect(await refusal(identify(strategy, token))).toBe(401);
    ahead = 0;
  });

  it('an expired token although its validation is cached', async () => {
    const strategy = strategyOf({ ...credentials(), 'keystone_authtoken.token_cache_time': 100_000 });
    const token = await keystone.identity.token(member);
    await identify(strategy, token);
    ahead += 3_601_000;
    expect(await refusal(identify(strategy, token))).toBe(401);
    ahead = 0;
  });

  it.each([
    'garbage',
    'gAAAAABnotATokenAtAll',
    '-',
    'a'.repeat(2048),
    'a'.repeat(9000),
    '%ff%00',
    '{}',
    'g'.repeat(255),
    'tökén',
    "' OR 1=1 --",
  ])('a text that is not a token: %p', async (token) => {
    expect(await refusal(identify(strategyOf(), token))).toBe(401);
  });

  it('a request without a token', async () => {
    expect(await refusal(strategyOf().identify({}, '/v1/nodes', 'GET', '192.0.2.1'))).toBe(401);
  });
});

describe('the strategy keystone, for a request with a service token,', () => {
  let serviceToken: string;
  let expired: string;
  beforeAll(async () => {
    const brief = await keystone.beside({ token: { expiration: '2', allow_expired_window: '0' } });
    await addIdentityEndpoint('RegionWithoutWindow', brief.url);
    serviceToken = await keystone.identity.token(service, { project: { id: serviceProject } });
    expired = await brief.identity.token(member, { project: { id: project } });
    await until('the token expires', async () => (await identify(strategyOf(), expired).catch(() => undefined)) === undefined, 200);
  });

  it('accepts an expired user token, which it refuses without the service token', async () => {
    const strategy = strategyOf();
    expect(await refusal(identify(strategy, expired))).toBe(401);
    expect(await identify(strategy, expired, { 'x-service-token': serviceToken })).toMatchObject({ user: member, project });
    expect(await refusal(identify(strategy, expired))).toBe(401);
  });

  it("refuses an expired user token outside Keystone's allow_expired_window", async () => {
    const strategy = strategyOf({ ...credentials(), 'keystone_authtoken.region_name': 'RegionWithoutWindow' });
    expect(await refusal(identify(strategy, expired, { 'x-service-token': serviceToken }))).toBe(401);
  });

  it('uses the scope of the user token, not that of the service token', async () => {
    const inSystem = await keystone.identity.token(service, { system: { all: true } });
    const inProject = await keystone.identity.token(member, { project: { id: project } });
    expect(await identify(strategyOf(), inProject, { 'x-service-token': inSystem })).toMatchObject({
      user: member,
      project,
      system: false,
      service: { user: service, roles: expect.arrayContaining(['service']) as unknown },
    });
    const ofUser = await keystone.identity.token(member, { system: { all: true } });
    expect(await identify(strategyOf(), ofUser, { 'x-service-token': serviceToken })).toMatchObject({
      user: member,
      project: null,
      system: true,
      service: { user: service, project: serviceProject },
    });
  });

  it('refuses any user token if the service token is invalid', async () => {
    const token = await keystone.identity.token(member);
    expect(await refusal(identify(strategyOf(), token, { 'x-service-token': 'garbage' }))).toBe(401);
    expect(await refusal(identify(strategyOf(), token, { 'x-service-token': expired }))).toBe(401);
    expect(await identify(strategyOf(), token, { 'x-service-token': serviceToken })).toMatchObject({ user: member });
  });

  it('refuses any user token if the service token lacks the role, unless service_token_roles_required is false', async () => {
    const token = await keystone.identity.token(member);
    const wrong = { 'x-service-token': await keystone.identity.token(member, { project: { id: project } }) };
    expect(await refusal(identify(strategyOf(), token, wrong))).toBe(401);
    const lenient = strategyOf({ ...credentials(), 'keystone_authtoken.service_token_roles_required': false });
    expect(await identify(lenient, token, wrong)).toMatchObject({ user: member });
    expect(await refusal(identify(lenient, expired, wrong))).toBe(401);
  });
});

it('access rules of an application credential limit its requests', async () => {
  const access_rules = [
    { service: 'baremetal', method: 'GET', path: '/v1/nodes/*' },
    { service: 'compute', method: 'GET', path: '/**' },
  ];
  const token = await applicationToken('ruled', { access_rules });
  const strategy = strategyOf({ ...credentials(), 'keystone_authtoken.service_type': 'baremetal' });
  expect(await identify(strategy, token, {}, '/v1/nodes/one')).toMatchObject({ user: member });
  for (const path of ['/v1/nodes', '/v1/nodes/one/states', '/v1/nodes/one%2Fstates', '/v1/ports'])
    expect(await refusal(identify(strategy, token, {}, path))).toBe(401);
  expect(await refusal(strategy.identify({ 'x-auth-token': token }, '/v1/nodes/one', 'DELETE', '192.0.2.1'))).toBe(401);
  // Strategies with another service type, and with none.
  const other = strategyOf({ ...credentials(), 'keystone_authtoken.service_type': 'compute' });
  expect(await refusal(identify(other, token, {}, '/v1/nodes/one'))).toBe(401);
  expect(await refusal(identify(strategyOf(), token, {}, '/v1/nodes/one'))).toBe(401);
});

describe("our server's authentication to Keystone", () => {
  const section = (values: Readonly<Record<string, string>>): Partial<Options> =>
    Object.fromEntries(Object.entries({ auth_url: keystone.url, ...values }).map(([name, value]) => [`keystone_authtoken.${name}`, value]));
  const variants: Readonly<Record<string, () => Promise<Partial<Options>>>> = {
    'password, by IDs': async () => section({ auth_type: 'password', user_id: service, password: PASSWORD, project_id: serviceProject }),
    'v3password, by names': async () =>
      section({
        auth_type: 'v3password',
        username: 'baremetal',
        password: PASSWORD,
        user_domain_name: 'Default',
        project_name: 'service',
        project_domain_name: 'Default',
      }),
    'password, with a default domain and an URL without version': async () => ({
      ...section({
        auth_type: 'password',
        username: 'baremetal',
        password: PASSWORD,
        project_name: 'service',
        default_domain_id: 'default',
      }),
      'keystone_authtoken.auth_url': keystone.url.slice(0, -'v3'.length),
    }),
    'password, in the system': async () => section({ auth_type: 'password', user_id: service, password: PASSWORD, system_scope: 'all' }),
    'password, in a domain': async () => section({ auth_type: 'password', user_id: service, password: PASSWORD, domain_id: 'default' }),
    'password, by a trust': async () => {
      const trustee = await keystone.identity.user('trustee of the service');
      const own = await keystone.identity.token(service, { project: { id: serviceProject } });
      const users = { trustor_user_id: service, trustee_user_id: trustee };
      const trust = { ...users, project_id: serviceProject, impersonation: false, roles: [{ name: 'service' }] };
      const answer = await keystone.identity.call('POST', '/OS-TRUST/trusts', { trust }, own);
      return section({ auth_type: 'v3password', user_id: trustee, password: PASSWORD, trust_id: (answer['trust'] as { id: string }).id });
    },
    v3token: async () => section({ auth_type: 'v3token', token: await keystone.identity.token(service), project_id: serviceProject }),
    v3applicationcredential: async () => {
      const own = await keystone.identity.token(service, { project: { id: serviceProject } });
      const body = { application_credential: { name: 'by name', secret: PASSWORD } };
      await keystone.identity.call('POST', `/users/${service}/application_credentials`, body, own);
      return section({
        auth_type: 'v3applicationcredential',
        application_credential_name: 'by name',
        application_credential_secret: PASSWORD,
        user_id: service,
      });
    },
  };
  it.each(Object.keys(variants))('succeeds with %s', async (name) => {
    const token = await keystone.identity.token(member);
    expect(await identify(strategyOf(await variants[name]!()), token)).toMatchObject({ user: member });
  });

  it('is repeated when its token was revoked', async () => {
    const strategy = strategyOf();
    await identify(strategy, await keystone.identity.token(member));
    // That revokes the tokens of the user.
    for (const enabled of [false, true]) await keystone.identity.call('PATCH', `/users/${service}`, { user: { enabled } });
    // Times of tokens have whole seconds: Keystone also revokes the tokens that are issued later in the same second, ours among them.
    const token = await keystone.identity.token(member);
    let caller: unknown;
    await until(
      'a token that is not revoked',
      async () => {
        caller = await identify(strategy, token).catch((error: unknown) => {
          if (error instanceof Unauthenticated && error.status === 503) return undefined;
          throw error;
        });
        return caller !== undefined;
      },
      200,
    );
    expect(caller).toMatchObject({ user: member });
  });

  it.each([
    ['a wrong password', { 'keystone_authtoken.password': 'wrong' }],
    ['a region without Identity API', { 'keystone_authtoken.region_name': 'nowhere' }],
    ['an interface without Identity API', { 'keystone_authtoken.interface': 'nothing' }],
  ])('fails with %s, and requests fail with 503', async (_, options) => {
    const strategy = strategyOf({ ...credentials(), ...options });
    expect(await refusal(identify(strategy, await keystone.identity.token(member)))).toBe(503);
  });
});

describe('the server', () => {
  const ask = (token: string | undefined, path = '/v1/nodes'): Promise<Response> =>
    fetch(`${apiUrl}${path}`, { headers: { accept: 'application/json', ...(token === undefined ? {} : { 'x-auth-token': token }) } });

  it('refuses requests without a valid token as Ironic does', async () => {
    for (const token of [undefined, 'garbage']) {
      const response = await ask(token);
      expect(response.status).toBe(401);
      expect(response.headers.get('www-authenticate')).toBe('Keystone uri="http://keystone.example.net/v3"');
      const message = 'The request you have made requires authentication.';
      expect(await response.json()).toEqual({ error: { code: 401, title: 'Unauthorized', message } });
    }
    expect((await ask(undefined, '/v1')).status).toBe(200);
  });

  it('serves the CLI and openstacksdk, which find it in the catalog', async () => {
    const bin = await openstackClient();
    const env = {
      ...process.env,
      OS_AUTH_TYPE: 'password',
      OS_AUTH_URL: keystone.url,
      OS_USERNAME: 'admin',
      OS_PASSWORD: PASSWORD,
      OS_USER_DOMAIN_ID: 'default',
      OS_SYSTEM_SCOPE: 'all',
      OS_REGION_NAME: REGION,
    };
    const create = ['baremetal', 'node', 'create', '--driver', 'fake-hardware', '--name', 'seen', '-f', 'value', '-c', 'name'];
    expect((await run(join(bin, 'openstack'), create, { env })).stdout.trim()).toBe('seen');
    const list = await run(join(bin, 'openstack'), ['baremetal', 'node', 'list', '-f', 'json'], { env });
    expect(JSON.parse(list.stdout)).toEqual([expect.objectContaining({ name: 'seen' })]);
    const script = 'import openstack; print([node.name for node in openstack.connect().baremetal.nodes()])';
    expect((await run(join(bin, 'python'), ['-c', script], { env })).stdout.trim()).toBe("['seen']");
  });

  it('accepts cached tokens while Keystone does not respond', async () => {
    const cached = await keystone.identity.token(member, { system: { all: true } });
    expect((await ask(cached)).status).toBe(200);
    const fresh = await keystone.identity.token(member, { system: { all: true } });
    proxy.hold();
    let isAnswered = false;
    const pending = ask(fresh).finally(() => (isAnswered = true));
    await until('the validation waits', () => proxy.held() > 0);
    for (let n = 0; n < 50; n++) expect((await ask(cached)).status).toBe(200);
    expect(isAnswered).toBe(false);
    proxy.release();
    expect((await pending).status).toBe(200);
  });

  it('accepts cached tokens while Keystone is down, refuses others with 503, and accepts those after its restart', async () => {
    const cached = await keystone.identity.token(member, { system: { all: true } });
    const fresh = await keystone.identity.token(member, { system: { all: true } });
    expect((await ask(cached)).status).toBe(200);
    await keystone.stop();
    const refused = await ask(fresh);
    expect(refused.status).toBe(503);
    expect(refused.headers.get('www-authenticate')).toBeNull();
    expect(await refused.json()).toMatchObject({ code: '503 Service Unavailable', title: 'Service Unavailable' });
    expect((await ask(cached)).status).toBe(200);
    await keystone.start();
    await until('the server takes the other token', async () => (await ask(fresh)).status === 200, 200);
  });

  it('sends one validation to Keystone for 50 requests with the same invalid token', async () => {
    const validations = (): number => readFileSync(keystone.log, 'utf8').split('GET /v3/auth/tokens').length;
    const before = validations();
    await Promise.all(Array.from({ length: 50 }, () => ask('the-same-bad-token')));
    expect(validations() - before).toBe(1);
  });

  it('writes no token to its log', async () => {
    const token = await keystone.identity.token(member);
    await ask(token);
    await ask('a-bad-token-of-this-test');
    const log = readFileSync(server.log, 'utf8');
    for (const secret of [token, 'a-bad-token-of-this-test', PASSWORD]) expect(log).not.toContain(secret);
  });
});
