import { connect } from 'node:net';
import { loadDocument } from '../../api/schema/document';
import { matching, useApi } from '../support/api';
import { cpuMsOf } from '../support/cpu-time';
import { NEWEST } from '../support/newest';

const api = useApi();
const { max } = loadDocument();
const UUID = /^req-[0-9a-f-]{36}$/;

it.each([
  [50, '1.50'],
  [null, '1.1'],
  ['latest', `1.${max}`],
])('answers version %p with its headers', async (minor, used) => {
  const { status, headers } = await api.ask('GET', '/v1/nodes', minor);
  expect(status).toBe(200);
  expect(headers).toMatchObject({
    'content-type': 'application/json',
    'x-openstack-ironic-api-version': used,
    'x-openstack-ironic-api-minimum-version': '1.1',
    'x-openstack-ironic-api-maximum-version': `1.${max}`,
    'x-openstack-request-id': matching(UUID),
  });
  expect(headers['openstack-request-id']).toBe(headers['x-openstack-request-id']);
});

it.each([
  [`1.${max + 1}`, true],
  ['2.0', true],
  ['junk', false],
])('refuses version %p with an error in the format of the router', async (version, told) => {
  const { status, headers, body } = await api.ask('GET', '/v1/nodes', version);
  expect(status).toBe(406);
  expect(JSON.parse(body.error_message) as object).toMatchObject({ code: 406, title: 'Not Acceptable' });
  expect('x-openstack-ironic-api-maximum-version' in headers).toBe(told);
  expect(headers['x-openstack-ironic-api-version']).toBeUndefined();
});

it.each(['/', '/v1', '/v1/', '/nodes', '/v1/nodes/', '/v1/nodes.json'])('finds the path %s', async (path) => {
  expect((await api.ask('GET', path, 90)).status).toBe(200);
});
it('ignores the suffix .json only below 1.91, and only with the version header of Ironic', async () => {
  expect((await api.ask('GET', '/v1/nodes.json', 91)).status).toBe(404);
  expect((await api.ask('GET', '/v1/nodes.json', null, { headers: { 'OpenStack-API-Version': 'baremetal 1.50' } })).status).toBe(404);
});

it('lists collections since the versions that introduced them', async () => {
  const names = async (minor: number): Promise<string[]> => Object.keys((await api.ask('GET', '/v1', minor)).body);
  expect(await names(22)).toEqual(expect.arrayContaining(['nodes', 'lookup', 'heartbeat']));
  expect(await names(22)).not.toContain('portgroups');
  expect(await names(NEWEST)).toEqual(expect.arrayContaining(['runbooks', 'inspection_rules', 'continue_inspection']));
});

it.each([
  // method, path, status, shape of the error, headers
  ['GET', '/v1/nosuch', 404, 'router'],
  ['GET', '/v2/', 404, 'router'],
  ['PUT', '/v1/nodes', 405, 'router'],
  ['GET', '/v1/nodes/x/maintenance', 405, 'router'],
  ['GET', '/v1/nodes/a%20b', 400, 'router'],
  ['GET', '/v1/nodes/ports', 404, 'router'],
  ['GET', '/v1/nodes/nobody', 404, 'fault'],
  ['DELETE', '/v1/nodes', 400, 'fault'],
  ['GET', '/v1/nodes?nosuch=1', 400, 'fault'],
  ['GET', '/v1/nodes/%ff', 400, 'router'],
  ['GET', '/v1/drivers/%00', 404, 'fault'],
])('refuses %s %s with %p in the format of the %s', async (method, path, status, shape) => {
  const answer = await api.ask(method, path);
  expect(answer.status).toBe(status);
  expect(Object.keys(JSON.parse(answer.body.error_message) as object)).toEqual(
    shape === 'router' ? ['code', 'title', 'description'] : ['faultcode', 'faultstring', 'debuginfo'],
  );
  expect('x-openstack-ironic-api-version' in answer.headers).toBe(shape === 'fault');
  if (status === 405) expect(answer.headers['allow']).toBeTruthy();
});

it('answers HEAD at the root, and OPTIONS everywhere', async () => {
  expect(await api.ask('HEAD', '/v1/')).toMatchObject({ status: 200, text: '' });
  expect((await api.ask('HEAD', '/v1/nodes')).status).toBe(405);
  const options = await api.ask('OPTIONS', '/nosuch');
  expect(options).toMatchObject({ status: 200, text: '' });
  expect(options.headers['content-type']).toBeUndefined();
});

it('makes links with the host of the request', async () => {
  const { body } = await api.ask('GET', '/', 1, { headers: { Host: 'bare.metal:1234' } });
  expect(body.default_version.links).toEqual([{ href: 'http://bare.metal:1234/v1/', rel: 'self' }]);
});

describe('bodies', () => {
  it.each([
    [
      'too large',
      JSON.stringify({ driver: 'x'.repeat(1024 * 1024) }),
      413,
      'Request body is too large. Please contact the service administrator.',
    ],
    [
      'too deep',
      `${'['.repeat(26)}${']'.repeat(26)}`,
      400,
      'Request body JSON is nested too deeply. Please contact the service administrator.',
    ],
  ])('that are %s are refused without version headers', async (_, body, status, faultstring) => {
    const answer = await api.ask('POST', '/v1/nodes', NEWEST, { body });
    expect(answer).toMatchObject({ status, body: { faultcode: 'Client', faultstring } });
    expect(answer.headers['x-openstack-ironic-api-version']).toBeUndefined();
  });
  it('may have any number of brackets in strings', async () => {
    const body = JSON.stringify({ driver: 'fake-hardware', description: `\\"${'['.repeat(100)}` });
    expect((await api.ask('POST', '/v1/nodes', NEWEST, { body })).status).toBe(201);
  });
  it.each(['{bad', '"', '{"driver":', '\ud800'])('with malformed JSON %p get 400', async (body) => {
    expect((await api.ask('POST', '/v1/nodes', NEWEST, { body })).status).toBe(400);
  });
  it('may be larger with a config drive', async () => {
    const body = JSON.stringify({ target: 'active', configdrive: 'x'.repeat(2 * 1024 * 1024) });
    expect((await api.ask('PUT', '/v1/nodes/nobody/states/provision', NEWEST, { body })).status).toBe(404);
  });
  it('with many errors are refused in bounded CPU time', async () => {
    const mistakes = (length: number) => JSON.stringify({ target: 'manage', clean_steps: Array.from({ length }, () => 5) });
    const send = async (): Promise<void> => {
      expect((await api.ask('PUT', '/v1/nodes/nobody/states/provision', NEWEST, { body: mistakes(40_000) })).status).toBe(404);
      expect((await api.ask('PUT', '/v1/nodes/nobody/states/provision', NEWEST, { body: mistakes(200_000) })).status).toBe(413);
    };
    expect(await cpuMsOf(send, 2000)).toBeLessThan(2000);
  });
});

it('answers 500 without details to an unexpected error, and logs it', async () => {
  await api.ask('POST', '/v1/nodes', NEWEST, { body: { driver: 'fake-hardware', name: 'victim' } });
  api.conductor.fail('setMaintenance', new Error('secret detail'));
  const answer = await api.ask('PUT', '/v1/nodes/victim/maintenance', NEWEST, { body: {} });
  expect(answer.status).toBe(500);
  expect(answer.text).not.toContain('secret detail');
  expect((JSON.parse(answer.body.error_message) as { faultcode: string }).faultcode).toBe('Server');
  expect(api.logged).toContain('request failed');
  expect((await api.ask('GET', '/v1/nodes')).status).toBe(200);
});

it('logs nothing when a client disconnects, and still answers others', async () => {
  const { hostname, port } = new URL(api.url());
  const before = api.logged.length;
  for (const text of [
    'POST /v1/nodes HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{"driver"',
    'GET /v1/nodes HTTP/1.1\r\nHost: x\r\n\r\n',
  ]) {
    const socket = connect(Number(port), hostname);
    await new Promise<void>((done) => socket.write(text, () => done()));
    socket.destroy();
  }
  await new Promise((done) => setTimeout(done, 100));
  expect((await api.ask('GET', '/v1/nodes')).status).toBe(200);
  expect(api.logged.length).toBe(before);
});
