/**
 * Marked secrets in every field that can hold one, all answers, and many refusals of the built server. Then no answer, event, message, log,
 * metric or process title may have a mark, except where the field is shown by right.
 */
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { hashSync } from 'bcryptjs';
import { loadDocument } from '../../api/schema/document';
import { useDatabase } from '../support/database';
import { openProcesses } from '../support/processes';
import { until } from '../support/until';

const mark = (name: string): string => `Mark-${name}-9f3k`;
/** Answers with whole nodes. */
const NODES = /^(?:GET|PATCH) \/v1\/nodes\/(?:[0-9a-f-]{36}|detail)$|^POST \/v1\/nodes$/;
/** A hexadecimal key. */
const HEX_MARK = 'a9f3b7c1d5e2f8061a2b3c4d';
/**
 * Where secrets are put, and the answers that have them by right. The database and its backups have all of them, as Ironic's.
 * An answer's name is its method and path.
 */
const SEEDS: Readonly<Record<string, { readonly text: string; readonly shown?: RegExp; readonly why?: string }>> = {
  ...Object.fromEntries(
    [
      'redfish_password',
      'snmp_auth_key',
      'snmp_priv_key',
      'other_secret',
      'rescue_password',
      'configdrive',
      'image_url',
      'chap_password',
      'template_argument',
      'runbook_argument',
      'rule_argument',
      'step_argument',
      'vendor_password',
      'wrong_login',
      'login',
      'webhook_secret',
      'discoverd_password',
      'patched',
      'unknown_field',
    ].map((name) => [name, { text: mark(name) }]),
  ),
  hex_key: { text: HEX_MARK },
  // In the form of a token of `bloomery token`.
  made_up_token: { text: `blm_${'Mark-token-9f3k-'.repeat(3)}` },
  // Of at most 20 characters.
  ipmi_password: { text: 'Mark-ipmi-9f3k' },
  // Ironic shows URLs as they were given, in the fields that have them.
  image_login: { text: mark('image_login'), shown: NODES },
  kernel_login: { text: mark('kernel_login'), shown: NODES },
  bmc_login: { text: mark('bmc_login'), shown: NODES },
  proxy_login: { text: mark('proxy_login'), shown: NODES },
  webhook_header: { text: mark('webhook_header'), shown: /^webhook header/, why: 'the receiver authenticates the server by it' },
};
const put = (name: string): string => {
  const seed = SEEDS[name];
  if (!seed) throw new Error(`no seed ${name}`);
  return seed.text;
};

const folder = mkdtempSync(join(tmpdir(), 'bloomery-secrets-'));
writeFileSync(join(folder, 'users'), `admin:${hashSync(put('login'), 4)}\n`);
const database = useDatabase();
const processes = openProcesses(() => database.connection());
/** Everything that the server wrote or answered, with its place. */
const found: { readonly place: string; readonly text: string }[] = [];
const bodyOf = async (request: IncomingMessage): Promise<string> => {
  let text = '';
  for await (const chunk of request) text += String(chunk);
  return text;
};
const serve = (answer: (request: IncomingMessage, response: ServerResponse, body: string) => void) =>
  createServer((request, response) => void bodyOf(request).then((body) => answer(request, response, body)));
const webhook = serve(({ headers }, response, body) => {
  found.push({ place: 'webhook header', text: JSON.stringify(headers) }, { place: 'webhook', text: body });
  response.writeHead(204).end();
});
/** Quotes each request in an error. */
const bmc = serve(({ headers }, response, body) => {
  const error = { code: 'Base.1.0.GeneralError', message: `refused: ${JSON.stringify(headers)} ${body}` };
  response.writeHead(400, { 'content-type': 'application/json' }).end(JSON.stringify({ error }));
});
const portOf = (server: typeof webhook): number => (server.address() as AddressInfo).port;
let url: string;

const INTERFACES = {
  bios: 'no-bios,fake',
  boot: 'fake,ipxe',
  console: 'no-console,fake',
  deploy: 'fake,direct',
  firmware: 'no-firmware,fake',
  inspect: 'no-inspect,fake',
  management: 'fake,redfish,ipmitool',
  network: 'noop',
  power: 'fake,redfish,ipmitool',
  raid: 'no-raid,fake',
  rescue: 'no-rescue,fake',
  storage: 'noop',
  vendor: 'no-vendor,fake,redfish,ipmitool',
};
beforeAll(async () => {
  for (const server of [webhook, bmc]) await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  const enabled = Object.entries(INTERFACES).map(([kind, names]) => `enabled_${kind}_interfaces = ${names}`);
  const started = await processes.start(
    'swept',
    'api,conductor',
    `[DEFAULT]
auth_strategy = http_basic
http_basic_auth_user_file = ${join(folder, 'users')}
enabled_hardware_types = fake-hardware,redfish,ipmi
${enabled.join('\n')}
debug = true
log_file = ${join(folder, 'server.log')}
notification_level = debug
[api]
host_ip = 127.0.0.1
port = 0
restrict_lookup = false
[audit]
enabled = true
ignore_req_list =
log_file = ${join(folder, 'audit.log')}
[notifications]
webhook_url = http://127.0.0.1:${portOf(webhook)}/
webhook_secret = ${put('webhook_secret')}
webhook_headers = authorization:${put('webhook_header')}
[discoverd]
password = ${put('discoverd_password')}
[oslo_messaging_notifications]
driver = log
[redfish]
connection_attempts = 1
[ipmi]
command_retry_timeout = 1
[json_rpc]
host_ip = 127.0.0.1
[dhcp]
dhcp_provider = none
[boot]
http_port = 0
http_host = 127.0.0.1
tftp = false
[recorder]
enabled = true
`,
  );
  if (typeof started !== 'string') throw new Error(started.errors);
  url = started;
});
afterAll(async () => {
  await processes.close();
  for (const server of [webhook, bmc]) {
    server.closeAllConnections();
    await new Promise((done) => server.close(done));
  }
  rmSync(folder, { recursive: true, force: true });
});

interface Reply {
  readonly status: number;
  readonly body: Readonly<Record<string, unknown>>;
}
const basic = (password: string): string => `Basic ${Buffer.from(`admin:${password}`).toString('base64')}`;
/** Sends one request, and adds its answer to the texts that are searched. */
async function call(method: string, path: string, body?: unknown, headers: Readonly<Record<string, string>> = {}): Promise<Reply> {
  const response = await fetch(`${url}${path}`, {
    method,
    headers: {
      authorization: basic(put('login')),
      'content-type': 'application/json',
      'x-openstack-ironic-api-version': 'latest',
      ...headers,
    },
    ...(body === undefined || method === 'GET' ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
  });
  const text = await response.text();
  found.push({ place: `${method} ${path}`, text: `${JSON.stringify([...response.headers])} ${text}` });
  const isJson = response.headers.get('content-type') === 'application/json';
  return { status: response.status, body: isJson && text !== '' ? (JSON.parse(text) as Reply['body']) : {} };
}
async function create(path: string, body: object): Promise<string> {
  const answer = await call('POST', path, body);
  expect([path, answer]).toEqual([path, expect.objectContaining({ status: 201 })]);
  return answer.body['uuid'] as string;
}
const RESTING = /failed$|^(?:error|enroll|manageable|available|active|rescue)$/;
/** Waits until the node is in a stable or failed state, and returns it. */
async function rested(uuid: string): Promise<Reply['body']> {
  let node: Reply['body'] = {};
  await until(`node ${uuid} rests`, async () => {
    node = (await call('GET', `/v1/nodes/${uuid}`)).body;
    return node['reservation'] === null && RESTING.test(String(node['provision_state']));
  });
  return node;
}
async function provision(uuid: string, target: string, more: object = {}): Promise<Reply['body']> {
  expect([target, await call('PUT', `/v1/nodes/${uuid}/states/provision`, { target, ...more })]).toMatchObject([target, { status: 202 }]);
  return rested(uuid);
}

/** Members with a secret each, for bodies that are refused for another reason. */
const secrets = (): Readonly<Record<string, unknown>> => ({
  driver_info: { redfish_password: put('unknown_field'), snmp_auth_key: put('snmp_auth_key') },
  instance_info: { configdrive: put('configdrive'), rescue_password: put('rescue_password') },
  properties: { auth_password: put('chap_password') },
  steps: [{ interface: 'deploy', step: 'nosuch', args: { password: put('template_argument') }, priority: 1 }],
  rescue_password: put('rescue_password'),
  configdrive: put('configdrive'),
  agent_token: put('unknown_field'),
});
/** Bodies that every operation refuses for one reason or another. */
const BODIES: readonly (() => unknown)[] = [
  () => ({ ...secrets(), nosuch: 1 }),
  () => [
    { op: 'replace', path: '/driver_info/nosuch/password', value: put('patched') },
    { op: 'add', path: '/driver_info/redfish_password', value: put('patched') },
  ],
  () => `{"password": "${put('unknown_field')}", `,
];

it('no answer, notification, log, metric or process title contains a secret, except where the API shows the field', async () => {
  const driverInfo = {
    redfish_password: put('redfish_password'),
    ipmi_password: put('ipmi_password'),
    ipmi_hex_kg_key: put('hex_key'),
    snmp_auth_key: put('snmp_auth_key'),
    snmp_priv_key: put('snmp_priv_key'),
    other_secret: put('other_secret'),
  };
  const instanceInfo = {
    image_source: `http://user:${put('image_login')}@127.0.0.1:9/image`,
    configdrive: put('configdrive'),
    image_url: put('image_url'),
    rescue_password: put('rescue_password'),
  };
  const fake = await create('/v1/nodes', {
    name: 'fake',
    driver: 'fake-hardware',
    driver_info: driverInfo,
    instance_info: instanceInfo,
    rescue_interface: 'fake',
    automated_clean: false,
  });
  const urls = {
    deploy_kernel: `http://user:${put('kernel_login')}@127.0.0.1:9/kernel`,
    deploy_ramdisk: 'http://127.0.0.1:9/ramdisk',

    image_http_proxy: `http://user:${put('proxy_login')}@127.0.0.1:9`,
  };
  const redfish = await create('/v1/nodes', {
    name: 'redfish',
    driver: 'redfish',
    driver_info: {
      ...driverInfo,
      ...urls,
      redfish_username: 'admin',
      redfish_address: `http://user:${put('bmc_login')}@127.0.0.1:${portOf(bmc)}`,
      redfish_system_id: '/redfish/v1/Systems/1',
    },
  });
  const ipmi = await create('/v1/nodes', {
    name: 'ipmi',
    driver: 'ipmi',
    driver_info: { ...driverInfo, ipmi_address: '127.0.0.1', ipmi_port: 9, ipmi_username: 'admin' },
  });
  await create('/v1/ports', { node_uuid: fake, address: '52:54:00:00:00:01' });
  await create('/v1/volume/targets', {
    node_uuid: fake,
    volume_type: 'iscsi',
    volume_id: 'v',
    boot_index: 1,
    properties: { auth_method: 'CHAP', auth_username: 'user', auth_password: put('chap_password') },
  });
  const step = (name: string) => ({ interface: 'deploy', step: 'deploy', args: { password: put(name) } });
  await create('/v1/deploy_templates', { name: 'CUSTOM_A', steps: [{ ...step('template_argument'), priority: 1 }] });
  await create('/v1/runbooks', { name: 'CUSTOM_B', steps: [{ ...step('runbook_argument'), order: 1 }] });
  const argument = { op: 'set-attribute', args: { path: '/driver_info/redfish_password', value: put('rule_argument') } };
  await create('/v1/inspection_rules', { description: 'rule', sensitive: true, phase: 'main', actions: [argument] });

  // Operations that succeed, and operations that fail.
  await provision(fake, 'manage');
  await call('PUT', `/v1/nodes/${fake}/states/provision`, {
    target: 'clean',
    clean_steps: [{ interface: 'deploy', step: 'nosuch', args: { password: put('step_argument') } }],
  });
  if ((await rested(fake))['provision_state'] === 'clean failed') await provision(fake, 'manage');
  await provision(fake, 'provide');
  await call('PUT', `/v1/nodes/${fake}/states/provision`, { target: 'active', configdrive: put('configdrive') });
  await provision(fake, 'active', { configdrive: { meta_data: { admin_password: put('configdrive') } } });
  await call('PUT', `/v1/nodes/${fake}/states/provision`, { target: 'rescue', rescue_password: put('rescue_password') });
  await rested(fake);
  await call('POST', `/v1/nodes/${fake}/vendor_passthru?method=first_method`, { password: put('vendor_password'), bar: 'baz' });
  await call('POST', `/v1/nodes/${redfish}/vendor_passthru?method=create_subscription`, {
    HttpHeaders: [{ Authorization: put('vendor_password') }],
  });
  const failed = await provision(redfish, 'manage');
  expect(failed['last_error']).toContain('******');
  await provision(ipmi, 'manage');
  for (const path of ['validate', 'states', 'management/boot_device', 'management/boot_device/supported'])
    await call('GET', `/v1/nodes/${redfish}/${path}`);
  await call('PUT', `/v1/nodes/${redfish}/management/inject_nmi`, {});
  // Each takes as long as [ipmi]command_retry_timeout.
  await call('GET', `/v1/nodes/${ipmi}/management/boot_device`);
  await call('PUT', `/v1/nodes/${redfish}/states/power`, { target: 'power on' });
  await rested(redfish);

  // Agents and logins.
  const lookup = await call('GET', '/v1/lookup?addresses=52:54:00:00:00:01');
  const { agent_token: token } = lookup.body['config'] as { readonly agent_token: string };
  expect(token).toMatch(/^.{43}$/);
  for (const agentToken of [token, put('unknown_field')])
    await call('POST', `/v1/heartbeat/${fake}`, { callback_url: 'http://127.0.0.1:9/', agent_token: agentToken, agent_version: '1' });
  await call('GET', '/v1/nodes', undefined, { authorization: basic(put('wrong_login')) });
  await call('POST', '/v1/nodes', secrets(), { authorization: basic(put('wrong_login')) });
  await call('POST', '/v1/nodes', secrets(), { authorization: `Bearer ${put('wrong_login')}` });
  for (const headers of [{ authorization: `Bearer ${put('made_up_token')}` }, { authorization: '', 'x-auth-token': put('made_up_token') }])
    await call('POST', '/v1/nodes', secrets(), headers);
  await call('POST', '/v1/nodes', { nosuch: `curl -H "X-Auth-Token: ${put('made_up_token')}"` });
  const recorderToken = (await call('POST', `/v1/nodes/${fake}/hardware/token`)).body['token'] as string;
  expect(recorderToken.length).toBeGreaterThan(20);

  // Every operation, with bodies that it refuses.
  const paths = loadDocument().source['paths'] as Readonly<Record<string, Readonly<Record<string, unknown>>>>;
  const requests = Object.entries(paths).flatMap(([template, methods]) => {
    const path = template.replace('{node_ident}', redfish).replaceAll(/\{\w+\}/g, 'nosuch');
    const named = ['get', 'post', 'put', 'patch', 'delete'].filter((method) => method in methods && !template.endsWith('/stream'));
    return named.flatMap((method) =>
      method === 'get' ? [[method, path, undefined] as const] : BODIES.map((body) => [method, path, body()] as const),
    );
  });
  const lists = ['nodes', 'ports', 'volume/targets', 'deploy_templates', 'runbooks', 'inspection_rules', 'allocations', 'conductors'];
  for (const list of lists) await call('GET', `/v1/${list}${list === 'nodes' || list === 'ports' ? '/detail' : '?detail=true'}`);
  for (const uuid of [fake, redfish, ipmi]) await call('GET', `/v1/nodes/${uuid}/history?detail=true`);
  // Not the deletion of the node itself: without it, the other requests would test nothing.
  const refused = requests.filter(([method, path]) => method !== 'delete' || path !== `/v1/nodes/${redfish}`);
  const next = refused.values();
  const work = async (): Promise<void> => {
    for (const [method, path, body] of next) await call(method.toUpperCase(), path, body);
  };
  await Promise.all(Array.from({ length: 8 }, work));
  await call('GET', '/v1/events');
  await call('GET', '/metrics');

  const pid = processes.pid('swept');
  const children = readdirSync(`/proc/${pid}/task`).flatMap((task) =>
    readFileSync(`/proc/${pid}/task/${task}/children`, 'utf8').split(' ').filter(Boolean),
  );
  for (const child of [String(pid), ...children])
    found.push({ place: 'process title', text: readFileSync(`/proc/${child}/cmdline`, 'utf8') });
  await processes.end('swept', 'SIGTERM');
  for (const name of ['server.log', 'audit.log']) found.push({ place: name, text: readFileSync(join(folder, name), 'utf8') });

  const rows = await database.query<{ readonly value: string }>('SELECT value FROM secrets');
  const seeds: readonly { readonly name: string; readonly text: string; readonly shown?: RegExp }[] = [
    ...Object.entries(SEEDS).map(([name, seed]) => ({ name, ...seed })),
    // Each token is in one answer, for the client that it is for.
    { name: 'agent token', text: token, shown: /^GET \/v1\/lookup/ },
    { name: 'recorder token', text: recorderToken, shown: /^POST .*\/hardware\/token$/ },
    ...rows.map(({ value }, at) => ({ name: `shared secret ${at}`, text: value })),
  ];
  const leaks = seeds.flatMap(({ name, text, shown }) => {
    const forms = [text, encodeURIComponent(text), ...['admin', ''].map((user) => Buffer.from(`${user}:${text}`).toString('base64'))];
    return found
      .filter(({ place, text: all }) => !shown?.test(place) && forms.some((form) => all.includes(form)))
      .map(({ place, text: all }) => {
        const at = all.indexOf(forms.find((form) => all.includes(form))!);
        return `${name} in ${place}: ${all.slice(Math.max(0, at - 120), at + 60)}`;
      });
  });
  expect(leaks).toEqual([]);

  // The searched places contain what they should.
  const textOf = (place: string): string =>
    found
      .filter((candidate) => candidate.place === place)
      .map(({ text }) => text)
      .join('\n');
  expect(textOf('webhook')).toContain('baremetal.node.create.end');
  expect(textOf('webhook header')).toContain(put('webhook_header'));
  expect(textOf('server.log')).toContain('"msg":"node redfish: verifying → enroll (fail)"');
  expect(textOf('audit.log').split('\n').length).toBeGreaterThan(refused.length);
  expect(textOf('process title')).toContain('serve');
  expect(textOf('GET /metrics')).toContain('bloomery_api_requests_in_flight');
  expect(textOf(`GET /v1/nodes/${redfish}/history?detail=true`)).toContain('refused');
  expect(rows.length).toBeGreaterThan(0);
  expect(requests.length).toBeGreaterThan(300);
});
