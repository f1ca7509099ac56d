/** The introspection service by HTTP: its OpenAPI document, the answers that the document declares, its log lines, and bad requests. */
import { execFileSync } from 'node:child_process';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import Ajv from 'ajv';
import { createIntrospectionApi, handlers } from '../../../api/introspection/server';
import { plainSegmentsOf } from '../../../api/http/target';
import { fits } from '../../../api/pipeline/routes';
import { loadDocument } from '../../../api/schema/document';
import { toJsonSchema } from '../../../api/schema/schema';
import { createRouter } from '../../../conductor/rpc/router';
import type { Log } from '../../../model/log';
import { silentMetrics, type Metrics } from '../../../model/metrics';
import { testClock } from '../../support/clock';
import { conductorOptions, started, type Started } from '../../support/conductor';
import { useDatabase } from '../../support/database';

const clock = testClock();
const database = useDatabase({ clock });
const MAC = '52:54:00:00:00:01';
const RULE = 'cccccccc-0000-4000-8000-000000000001';
const REPORT = {
  inventory: {
    interfaces: [{ name: 'e', mac_address: MAC, ipv4_address: '192.0.2.5' }],
    cpu: { architecture: 'x86_64', count: 4 },
    memory: { physical_mb: 2048 },
  },
};
type Json = Readonly<Record<string, unknown>>;
interface Document {
  readonly paths: Readonly<
    Record<string, Readonly<Record<string, { readonly responses: Readonly<Record<string, { readonly content?: Json }>> }>>>
  >;
  readonly components: { readonly schemas: Json };
}

let one: Started;
let server: Server;
let url = '';
let document: Document;
/** Log lines `request`, the labels of the metrics, and the errors of the log. */
const [lines, measured, errors]: [Json[], Json[], string[]] = [[], [], []];
const log: Log = {
  debug: () => {},
  info: (message, fields) => {
    if (message === 'request') lines.push(fields as Json);
  },
  warn: () => {},
  error: (message, fields) => {
    errors.push(`${message} ${JSON.stringify(fields)}`);
  },
  child: () => log,
};
const metrics: Metrics = {
  ...silentMetrics,
  observe: (_, labels) => {
    measured.push(labels);
  },
};
const options = conductorOptions({ 'api.log_requests': 'changes' });

beforeAll(async () => {
  one = await started(database.store(), clock);
  const rooms = { store: one.store, options, log, clock, metrics };
  const router = createRouter({ ...rooms, options: conductorOptions(), here: one.conductor });
  server = createServer(createIntrospectionApi({ ...rooms, conductor: router }));
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  document = (await (await fetch(`${url}/v1/openapi.json`)).json()) as Document;
});
afterAll(async () => {
  await one.conductor.stop();
  await new Promise((done) => {
    server.close(done);
    server.closeAllConnections();
  });
});

const { paths } = loadDocument('introspection');
const ajv = new Ajv({ strict: false, formats: { uuid: true } });
/** Sends a request, and validates the answer against the document. */
async function ask(method: string, path: string, body?: unknown, headers: Readonly<Record<string, string>> = {}) {
  const response = await fetch(`${url}${path}`, {
    method,
    headers: { 'content-type': 'application/json', ...headers },
    ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
  });
  const { status } = response;
  const content = await response.text();
  const isJson = response.headers.get('content-type') === 'application/json';
  const answer = { status, headers: response.headers, body: (isJson ? JSON.parse(content) : content) as Json };
  const segments = plainSegmentsOf(path.split('?')[0]!);
  const place = paths.find((candidate) => fits(candidate, segments));
  const operation = place && document.paths[place.path]?.[method.toLowerCase()];
  if (!operation) return answer;
  const declared = operation.responses[String(status)] ?? (status >= 400 ? operation.responses['default'] : undefined);
  expect([path, status, declared !== undefined]).toEqual([path, status, true]);
  const media = declared!.content?.['application/json'] as { schema: Json } | undefined;
  expect([path, isJson]).toEqual([path, media !== undefined]);
  if (media) {
    const validate = ajv.compile({ ...(toJsonSchema(media.schema) as Json), components: toJsonSchema(document.components) as Json });
    if (!validate(answer.body)) throw new Error(`${method} ${path}: ${ajv.errorsText(validate.errors)}`);
  }
  return answer;
}

/** Runs in another process, because jest cannot load the modules that openapi-backend is made of. */
const READER = `
  const { OpenAPIBackend } = require('openapi-backend');
  const backend = new OpenAPIBackend({ definition: JSON.parse(require('fs').readFileSync(0, 'utf8')), strict: true, validate: false });
  backend.init().then(() => console.log(JSON.stringify(backend.getOperations().map((one) => one.operationId))));`;
it('has a valid OpenAPI document of all its routes for openapi-backend', () => {
  const input = JSON.stringify(document);
  const read = JSON.parse(
    execFileSync(process.execPath, ['-e', READER], { cwd: join(__dirname, '../../..'), encoding: 'utf8', input }),
  ) as string[];
  expect(read.sort()).toEqual(Object.keys(handlers).sort());
  expect(input).not.toContain('"x-');
  expect(input).not.toContain('undefined');
  const unused = Object.keys(document.components.schemas).filter((name) => !input.includes(`"#/components/schemas/${name}"`));
  expect(unused).toEqual([]);
});

it('answers operations on introspections and rules as the document declares', async () => {
  const { uuid } = await one.enrol({ provision_state: 'manageable', name: 'anvil' });
  await one.conductor.createPort({ uuid: '00000000-0000-4000-8000-00000000000a', node_uuid: uuid, address: MAC });
  expect((await ask('GET', '/')).status).toBe(200);
  expect((await ask('GET', '/v1')).body).toMatchObject({ resources: [{ name: 'continue' }, { name: 'introspection' }, { name: 'rules' }] });
  for (const [body, version, status] of [
    [{ uuid: RULE, description: 'd', actions: [{ action: 'add-trait', name: 'CUSTOM_X' }] }, '1.18', 201],
    [{ conditions: [{ op: 'eq', field: 'cpus', value: 4 }], actions: [{ action: 'set-capability', name: 'a', value: 'b' }] }, '1.5', 200],
    [{ actions: [] }, '1.18', 400],
  ] as const)
    expect(await ask('POST', '/v1/rules', body, { 'x-openstack-ironic-inspector-api-version': version })).toMatchObject({ status });
  expect((await ask('GET', '/v1/rules')).body).toMatchObject({ rules: [{ uuid: RULE }, {}] });
  expect((await ask('GET', `/v1/rules/${RULE}`)).status).toBe(200);
  expect((await ask('POST', '/v1/introspection/anvil?manage_boot=0')).status).toBe(202);
  expect((await ask('POST', '/v1/introspection/nobody')).status).toBe(404);
  expect((await ask('GET', '/v1/introspection/anvil')).body).toMatchObject({ uuid, state: 'waiting' });
  expect((await ask('GET', '/v1/introspection/anvil/data')).status).toBe(404);
  expect((await ask('POST', '/v1/continue', REPORT)).body).toEqual({ uuid });
  await one.conductor.idle();
  expect((await ask('POST', '/v1/continue', REPORT)).status).toBe(404);
  for (const path of ['data', 'data/unprocessed']) expect((await ask('GET', `/v1/introspection/anvil/${path}`)).status).toBe(200);
  expect((await ask('POST', '/v1/introspection/anvil/data/unprocessed')).status).toBe(202);
  await one.conductor.idle();
  expect((await ask('GET', '/v1/introspection?limit=1&state=finished')).body).toMatchObject({ introspection: [{ uuid, error: null }] });
  expect((await ask('POST', `/v1/introspection/${uuid}/abort`)).status).toBe(202);
  expect((await ask('DELETE', `/v1/rules/${RULE}`)).status).toBe(204);
  expect((await ask('DELETE', '/v1/rules')).status).toBe(204);
});

it('logs requests as [api]log_requests says, and measures all requests by their route', async () => {
  lines.length = 0;
  measured.length = 0;
  const { headers } = await ask('GET', '/v1/rules');
  await ask('GET', `/v1/rules/${RULE}?secret=1`, undefined, { 'x-openstack-request-id': 'req-11111111-1111-4111-8111-111111111111' });
  expect(headers.get('openstack-request-id')).toMatch(/^req-/);
  expect(lines).toEqual([
    expect.objectContaining({
      method: 'GET',
      path: `/v1/rules/${RULE}`,
      status: 404,
      global_request_id: expect.stringMatching(/^req-1/) as string,
    }),
  ]);
  expect(measured).toEqual([
    { method: 'GET', route: 'introspection:/v1/rules', status: '2xx' },
    { method: 'GET', route: 'introspection:/v1/rules/{rule}', status: '4xx' },
  ]);
});

const DEEP = `${'['.repeat(3000)}${']'.repeat(3000)}`;
const HOSTILE: readonly (readonly [method: string, path: string, body?: unknown, headers?: Readonly<Record<string, string>>])[] = [
  ['GET', '/v1/introspection/%00'],
  ['GET', '/v1/introspection/%E0%A4%A'],
  ['GET', `/v1/introspection/${'x'.repeat(5000)}`],
  ['GET', '/v1/introspection/__proto__'],
  ['POST', '/v1/introspection/constructor?manage_boot=__proto__'],
  ['GET', '/v1/introspection?limit=99999999999999999999'],
  ['GET', '/v1/introspection?limit=1e3'],
  ['GET', '/v1/introspection?marker=AAAAAAAA-0000-4000-8000-000000000001'],
  ['GET', '/v1/introspection?state=constructor'],
  ['GET', '/v1/introspection?state=%00'],
  ['GET', '/v1/rules/%00'],
  ['DELETE', '/v1/rules/%00'],
  ['POST', '/v1/rules', 'null'],
  ['POST', '/v1/rules', { uuid: 5, actions: [{ action: 'fail', message: 'm' }] }],
  ['POST', '/v1/rules', { description: 'a\u0000b', actions: [{ action: 'fail', message: 'm' }] }],
  ['POST', '/v1/rules', { scope: 'a\u0000b', actions: [{ action: 'fail', message: '\u0000' }] }],
  ['POST', '/v1/rules', { conditions: [{ op: 'matches', field: 'a', value: '(' }], actions: [{ action: 'fail', message: 'm' }] }],
  ['POST', '/v1/rules', { conditions: [{ op: 'eq', field: 'data://$[', value: 1 }], actions: [{ action: 'fail', message: 'm' }] }],
  ['POST', '/v1/rules', { conditions: [{ op: '__proto__', field: 'a' }], actions: [{ action: 'constructor' }] }],
  ['POST', '/v1/continue', DEEP],
  ['POST', '/v1/continue', { inventory: { interfaces: [null] } }],
  ['POST', '/v1/continue', { inventory: { interfaces: [{ name: 'a\u0000', mac_address: MAC }], bmc_address: '\u0000' } }],
  ['POST', '/v1/continue', { inventory: [], ipmi_address: 'a\u0000b', boot_interface: {} }],
  ['POST', '/v1/introspection/anvil/data/unprocessed', { inventory: { interfaces: 5, x: '\u0000' } }],
  ['GET', '/v1', undefined, { 'x-openstack-ironic-inspector-api-version': '9'.repeat(400) }],
];
it('answers hostile requests without internal errors', async () => {
  errors.length = 0;
  for (const [index, [method, path, body, headers]] of HOSTILE.entries()) {
    const { status } = await ask(method, path, body, headers);
    expect([index, status < 500]).toEqual([index, true]);
  }
  await one.conductor.idle();
  expect(errors).toEqual([]);
});
it('refuses a report that is too large', async () => {
  const { status } = await ask('POST', '/v1/continue', {
    a: 'x'.repeat(options['api.max_json_body_size_inspection'] * 1024 + 1),
  });
  expect(status).toBe(413);
});
