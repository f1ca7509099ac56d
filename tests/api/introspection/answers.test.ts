/** The introspection service's answers, whole: their words, their headers, and which of several faults is named. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { hashSync } from 'bcryptjs';
import { request } from 'undici';
import { createIntrospectionApi, handlers, PUBLIC_OPERATIONS } from '../../../api/introspection/server';
import { checkOperations } from '../../../api/pipeline/access';
import { loadDocument } from '../../../api/schema/document';
import type { ConductorApi } from '../../../conductor/conductor';
import { systemClock } from '../../../model/clock';
import { INTROSPECTION_STATES } from '../../../model/introspection';
import { silentLog } from '../../../model/log';
import { silentMetrics } from '../../../model/metrics';
import { ACTIONS, CONDITIONS } from '../../../model/rules/introspection-rules';
import { useDatabase } from '../../support/database';
import { optionsOf } from '../../support/options';

const database = useDatabase();
const folder = mkdtempSync(join(tmpdir(), 'introspection-'));
const conductor = {
  from: () => ({
    continueIntrospection: async () => {
      throw new Error('secret');
    },
  }),
} as unknown as ConductorApi;
let server: Server;
beforeAll(async () => {
  const [users, roles] = [join(folder, 'users'), join(folder, 'roles')];
  writeFileSync(users, ['root', 'joe'].map((user) => `${user}:${hashSync('secret', 4)}`).join('\n'));
  writeFileSync(roles, '[root]\nroles = admin\nsystem = all\n[joe]\nroles = reader\nproject = p\nproject_name = p\n');
  const options = optionsOf({
    'DEFAULT.auth_strategy': 'http_basic',
    'DEFAULT.http_basic_auth_user_file': users,
    'DEFAULT.http_basic_roles_file': roles,
    'api.max_json_body_size_inspection': 1,
    'cors.allowed_origin': ['http://good.example'],
  });
  const store = database.store();
  const services = { store, conductor, options, log: silentLog, clock: systemClock, metrics: silentMetrics };
  server = createServer(createIntrospectionApi(services));
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
});
afterAll(async () => {
  await new Promise((done) => {
    server.close(done);
    server.closeAllConnections();
  });
  rmSync(folder, { recursive: true, force: true });
});

interface Sent {
  /** Absent: nobody. */
  readonly as?: 'root' | 'joe';
  readonly version?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
}
/** Status, body and headers of an answer, without those that every answer has, and without the length. */
async function ask(method: string, path: string, { as, version, headers, body }: Sent) {
  const { port } = server.address() as AddressInfo;
  const { statusCode, ...answer } = await request(`http://127.0.0.1:${port}${path}`, {
    method: method as 'GET',
    headers: {
      ...(as ? { authorization: `Basic ${Buffer.from(`${as}:secret`).toString('base64')}` } : {}),
      ...(version === undefined ? {} : { 'x-openstack-ironic-inspector-api-version': version }),
      'content-type': 'application/json',
      ...headers,
    },
    ...(body === undefined ? {} : { body }),
  });
  const text = (await answer.body.text()).replaceAll(`127.0.0.1:${port}`, 'HOST');
  const { 'openstack-request-id': id, 'content-length': length, date, connection, 'keep-alive': alive, ...others } = answer.headers;
  expect([typeof date, String(id).slice(0, 4), length]).toEqual(['string', 'req-', expect.any(String)]);
  const isKept = alive !== undefined && connection === 'keep-alive';
  return { status: statusCode, text, headers: { ...others, ...(isKept ? {} : { connection }) } };
}

const VERSIONS = {
  'x-openstack-ironic-inspector-api-minimum-version': '1.0',
  'x-openstack-ironic-inspector-api-maximum-version': '1.18',
};
const json = { 'content-type': 'application/json' };
const html = { 'content-type': 'text/html; charset=utf-8' };
/** The server closes the connection; undici asks for that with HEAD. */
const CLOSED = { connection: 'close' };
const refusal = (message: string): string => `{"error":{"message":${JSON.stringify(message)}}}\n`;
const MISSING = refusal(
  '404 Not Found: The requested URL was not found on the server. If you entered the URL manually please check your spelling and try again.',
);
const PAGE =
  '<!doctype html>\n<html lang=en>\n<title>405 Method Not Allowed</title>\n<h1>Method Not Allowed</h1>\n<p>The method is not allowed for the requested URL.</p>\n';
const MALFORMED = refusal('Malformed API version: expected string in form of X.Y or latest');
const UNKNOWN = refusal('Authentication required');
const forged = { headers: { origin: 'http://evil.example', 'content-type': 'text/plain' }, body: '{}' };
const RULE = '{"uuid":"cccccccc-0000-4000-8000-000000000001","description":"dé","actions":[{"message":"ü😀","action":"fail"}]}';
const SHOWN =
  '{"actions":[{"action":"fail","message":"\\u00fc\\ud83d\\ude00"}],"conditions":[],"description":"d\\u00e9","links":[{"href":"/v1/rules/cccccccc-0000-4000-8000-000000000001","rel":"self"}],"scope":null,"uuid":"cccccccc-0000-4000-8000-000000000001"}\n';
const SHOW = '/v1/rules/cccccccc-0000-4000-8000-000000000001';
const REPORT =
  '{"inventory":{"interfaces":[{"name":"a","mac_address":"52:54:00:00:00:01"}],"cpu":{"architecture":"x","count":1},"memory":{"physical_mb":1}}}';

const ANSWERS: readonly (readonly [
  why: string,
  method: string,
  path: string,
  sent: Sent,
  status: number,
  text: string,
  headers: Readonly<Record<string, unknown>>,
])[] = [
  [
    'the root',
    'GET',
    '/',
    {},
    200,
    '{"versions":[{"id":"1.18","links":[{"href":"http://HOST/v1","rel":"self"}],"status":"CURRENT"}]}\n',
    json,
  ],
  [
    'a version',
    'GET',
    '/v1/',
    {},
    200,
    `{"resources":[${['continue', 'introspection', 'rules'].map((name) => `{"links":[{"href":"http://HOST/v1/${name}","rel":"self"}],"name":"${name}"}`).join()}]}\n`,
    json,
  ],
  ['another version', 'GET', '/v2', {}, 404, refusal('Version v2 not found.'), json],
  ['the version before the path', 'GET', '/nope/x', { version: 'abc' }, 400, MALFORMED, json],
  [
    'an unsupported version',
    'GET',
    '/',
    { version: '+1.019' },
    406,
    refusal('Unsupported API version 1.19, supported range is 1.0 to 1.18'),
    json,
  ],
  ['the path before the caller', 'GET', '/v1/introspection/a/b', {}, 404, MISSING, json],
  ['an empty segment', 'POST', '/v1/introspection//abort', {}, 404, MISSING, json],
  ['a path without /v1', 'GET', '/introspection/a', {}, 404, MISSING, json],
  ['the method before the caller', 'PUT', '/v1/rules', {}, 405, PAGE, { ...html, allow: 'GET, POST, DELETE, OPTIONS, HEAD' }],
  ['a path without GET', 'HEAD', '/v1/continue', {}, 405, '', { ...html, allow: 'POST, OPTIONS', ...CLOSED }],
  ['OPTIONS without a login', 'OPTIONS', '/v1/rules/x', {}, 200, '', { ...html, allow: 'GET, DELETE, OPTIONS, HEAD' }],
  [
    'a forgery before the caller',
    'POST',
    '/v1/rules',
    forged,
    415,
    '{"error":{"message":"Pages of other origins may send JSON only, with its Content-Type."}}\n',
    { ...json, ...CLOSED },
  ],
  ['the method before a forgery', 'POST', '/v1', forged, 405, PAGE, { ...html, allow: 'GET, OPTIONS, HEAD' }],
  [
    'a page of an allowed origin',
    'GET',
    '/v1/rules',
    { headers: { origin: 'http://good.example' } },
    401,
    UNKNOWN,
    { ...json, vary: 'Origin', 'access-control-allow-origin': 'http://good.example', 'access-control-allow-credentials': 'true' },
  ],
  ['the caller before the policy and the body', 'POST', '/v1/rules', { body: '{' }, 401, UNKNOWN, json],
  [
    'the policy before the body',
    'POST',
    '/v1/rules',
    { as: 'joe', body: '{'.repeat(2000) },
    403,
    refusal('Access was denied to the following resource: introspection:rule:create'),
    json,
  ],
  [
    'a body that is too large',
    'POST',
    '/v1/rules',
    { as: 'root', body: ' '.repeat(2000) },
    413,
    refusal('Request body is too large. Please contact the service administrator.'),
    { ...json, ...CLOSED },
  ],
  [
    'a large body where none is expected',
    'POST',
    '/v1/introspection/x/abort',
    { as: 'root', body: ' '.repeat(2000) },
    413,
    refusal('Request body is too large. Please contact the service administrator.'),
    { ...json, ...CLOSED },
  ],
  ['a body where none is expected', 'GET', '/v1/rules', { as: 'root', headers: { 'content-length': '0' } }, 200, '{"rules":[]}\n', json],
  [
    'the data before the node',
    'POST',
    '/v1/introspection/nobody/data/unprocessed',
    { as: 'root', body: '{x' },
    400,
    refusal('Invalid data: expected a JSON object, got None'),
    json,
  ],
  [
    'data that are null',
    'POST',
    '/v1/introspection/nobody/data/unprocessed',
    { as: 'root', body: 'null' },
    400,
    refusal('Invalid data: expected a JSON object, got NoneType'),
    json,
  ],
  [
    'no data',
    'POST',
    '/v1/introspection/nobody/data/unprocessed',
    { as: 'root', body: '' },
    404,
    refusal('Node nobody was not found in Ironic'),
    json,
  ],
  ['no report', 'POST', '/v1/continue', { body: '' }, 400, refusal('Invalid data: expected a JSON object, got nothing'), json],
  ['an unexpected error, without details', 'POST', '/v1/continue', { body: REPORT }, 500, refusal('Internal server error'), json],
  [
    'the marker first',
    'GET',
    '/v1/introspection?limit=x&state=x&marker=x',
    { as: 'root' },
    400,
    refusal('Bad request: Marker not UUID-like'),
    json,
  ],
  [
    'the limit before the state',
    'GET',
    '/v1/introspection?state=x&limit=-1',
    { as: 'root' },
    400,
    refusal('Bad request: Limit cannot be negative'),
    json,
  ],
  ['the first of several values', 'GET', '/v1/introspection?limit=1&limit=x&other=1', { as: 'root' }, 200, '{"introspection":[]}\n', json],
  [
    'the argument before the node',
    'POST',
    '/v1/introspection/nobody?manage_boot=maybe',
    { as: 'root' },
    400,
    refusal('Invalid boolean value for manage_boot: maybe'),
    json,
  ],
  ['a new rule', 'POST', '/v1/rules', { as: 'root', body: RULE, version: '1.6' }, 201, SHOWN, json],
  ['a rule', 'GET', SHOW, { as: 'root', version: 'LATEST' }, 200, SHOWN, json],
  ['HEAD of a rule', 'HEAD', SHOW, { as: 'root' }, 200, '', { ...json, ...CLOSED }],
  ['a deleted rule', 'DELETE', SHOW, { as: 'root' }, 204, '', { 'content-type': 'text/plain; charset=utf-8' }],
  ['a new rule before 1.6', 'POST', '/v1/rules', { as: 'root', body: RULE, version: '1.5' }, 200, SHOWN, json],
];
it.each(ANSWERS)('answers %s', async (_, method, path, sent, status, text, headers) => {
  expect(await ask(method, path, sent)).toEqual({ status, text, headers: { ...VERSIONS, ...headers } });
});

const document = loadDocument('introspection');
it('has a handler for each operation, and a policy for each that is not public', () => {
  const operations = document.paths.flatMap((path) => [...path.operations.values()]);
  expect(Object.keys(handlers).sort()).toEqual(operations.map(({ operationId }) => operationId).sort());
  expect(() => checkOperations(document, PUBLIC_OPERATIONS)).not.toThrow();
  expect(() => checkOperations(document, PUBLIC_OPERATIONS.slice(1))).toThrow(/showRoot$/);
});
it('introspection.yaml names the states, the operators and the actions that exist', () => {
  const { Introspection, NewRule } = document.schemas;
  const { conditions, actions } = NewRule!.properties!;
  expect(Introspection!.properties!['state']!['enum']).toEqual(INTROSPECTION_STATES);
  expect(conditions!.items!.properties!['op']!['enum']).toEqual(Object.keys(CONDITIONS));
  expect(actions!.items!.properties!['action']!['enum']).toEqual(Object.keys(ACTIONS));
});
