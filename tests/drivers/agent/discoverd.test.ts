/** Every answer of an introspection service, valid or not, and what happens to the node that waits for it. */
import { shortened } from '../../../model/text';
import { randomBytes } from 'node:crypto';
import { discoverdInspect, discoverdService } from '../../../drivers/agent/discoverd';
import { fakePower } from '../../../drivers/fake/fake';
import { agentPower } from '../../../drivers/agent/power';
import { ServiceUnavailable } from '../../../drivers/interfaces';
import { urlProblem } from '../../../wire/http/introspection';
import { startIntrospectionService, type IntrospectionService, type Reply } from '../../support/introspection-service';
import { driverOptions, NODE_UUID, testTask } from '../../support/task';

type DiscoverdOptions = Parameters<typeof discoverdService>[0];
const SINCE = '2026-02-03T04:05:06.000000+00:00';
const [periodic] = discoverdInspect.periodics!;
let service: IntrospectionService;
const opened: { close(): Promise<void> }[] = [];
beforeAll(async () => {
  service = await startIntrospectionService();
});
beforeEach(() => {
  service.answers.clear();
  service.asked.length = 0;
});
afterEach(async () => {
  for (const item of opened.splice(0)) await item.close();
});
afterAll(() => service.shut());

const options = (changes: Partial<DiscoverdOptions> = {}) =>
  driverOptions({ 'discoverd.enabled': true, 'discoverd.service_url': service.url, ...changes });
function waiting(isAsked: boolean, changes: Partial<DiscoverdOptions> = {}, given: Parameters<typeof testTask>[0] = {}) {
  const introspection = discoverdService(options(changes));
  if (introspection) opened.push(introspection);
  return testTask({
    ...given,
    node: {
      provision_state: 'inspect wait',
      inspection_started_at: SINCE,
      driver_internal_info: isAsked ? { discoverd_asked: SINCE } : { discoverd_asked: '2026-02-02T00:00:00.000000+00:00' },
    },
    ...(introspection ? { connections: { introspection } } : {}),
  });
}
const error = (message: unknown): unknown => ({ error: { message } });
const failed = (reason: string) => ({ outcome: { kind: 'failed', reason }, internal: { discoverd_asked: undefined } });
const over = { outcome: { kind: 'done' }, internal: { discoverd_asked: undefined } };
/** Time enough for the request to arrive. */
const patience = (reply: Reply): Partial<DiscoverdOptions> => (reply === 'hang' ? { 'discoverd.timeout': 2 } : {});
/** The node does not change, and there is no complaint. */
const quiet = null;
const away = { away: /does not answer/ };

it.each<[string, Reply, unknown]>([
  ['accepts the request', { status: 202, body: '' }, { internal: { discoverd_asked: SINCE } }],
  ['accepts the request with status 200, as old versions do', { status: 200, body: '{}' }, { internal: { discoverd_asked: SINCE } }],
  [
    'rejects the request with a reason',
    { status: 400, body: error('Invalid provision state') },
    failed('Failed to start inspection: Invalid provision state'),
  ],
  [
    'does not know the node',
    { status: 404, body: error('Node x was not found in Ironic') },
    failed('Failed to start inspection: Node x was not found in Ironic'),
  ],
  [
    'is another program that answers 404',
    { status: 404, body: '<html>nothing\nhere' },
    failed('Failed to start inspection: HTTP status 404: <html>nothing here'),
  ],
  [
    'requires authentication',
    { status: 401, body: error('Authentication required') },
    failed('Failed to start inspection: Authentication required'),
  ],
  [
    'redirects',
    { status: 302, headers: { location: 'http://192.0.2.1/\u00e4' } },
    failed('Failed to start inspection: HTTP status 302: it redirects to http://192.0.2.1/\u00e4'),
  ],
  ['redirects without a location', { status: 307 }, failed('Failed to start inspection: HTTP status 307: it redirects')],
  ['rejects the request without a reason', { status: 418 }, failed('Failed to start inspection: HTTP status 418: no reason given')],
  ['reports that the node is locked', { status: 409, body: error('Node is locked') }, undefined],
  ['is overloaded', { status: 429 }, undefined],
  ['answers 500', { status: 500, body: error('database is locked') }, undefined],
  ['is behind a proxy that answers 502', { status: 502, body: '<html>' }, undefined],
  ['does not answer', 'hang', away],
  ['closes the connection in the middle of its answer', 'cut', away],
])('the periodic check requests an introspection from a service that %s', async (_, reply, expected) => {
  service.answers.set('start', reply);
  service.answers.set('status', { status: 404, body: error('unknown') });
  const { task, complaints } = waiting(false, patience(reply));
  if (expected === away) await expect(periodic!.check!(task)).rejects.toThrow(ServiceUnavailable);
  else expect(await periodic!.check!(task)).toEqual(expected);
  expect(service.asked[0]).toBe(`start ${NODE_UUID}`);
  expect(complaints.length).toBe(expected === undefined || expected === away ? 1 : 0);
});

it('the periodic check adopts an introspection that already runs', async () => {
  service.answers.set('start', { status: 400, body: error('Can not transition from state starting on event start') });
  expect(await periodic!.check!(waiting(false).task)).toEqual({ internal: { discoverd_asked: SINCE } });
});

const long = 'x'.repeat(5000);
it.each<[string, Reply, unknown]>([
  ['has not finished', { body: { finished: false, error: null } }, quiet],
  [
    'has not finished and sends more fields',
    { body: { finished: false, error: null, state: 'waiting', links: [], uuid: NODE_UUID } },
    quiet,
  ],
  ['has finished', { body: { finished: true, error: null } }, over],
  ['has finished and omits the error, as old versions do', { body: { finished: true } }, over],
  ['has finished with an empty error', { body: { finished: true, error: '' } }, over],
  ['reports an error', { body: { finished: true, error: 'Timeout' } }, failed('discoverd inspection failed: Timeout')],
  [
    'reports an error before it has finished',
    { body: { finished: false, error: 'no lookup' } },
    failed('discoverd inspection failed: no lookup'),
  ],
  [
    'sends an error with control characters',
    { body: { finished: true, error: 'a\u001b[31m\r\nb\u0000' } },
    failed('discoverd inspection failed: a [31m b'),
  ],
  ['sends an error of only a newline', { body: { finished: true, error: '\n' } }, failed('discoverd inspection failed: no reason given')],
  ['sends a long error', { body: { finished: true, error: long } }, failed(`discoverd inspection failed: ${shortened(long, 1000)}`)],
  [
    'no longer knows the introspection',
    { status: 404, body: error('Node not in cache') },
    failed('discoverd inspection failed: the service knows of none: Node not in cache'),
  ],
  ['is another program that answers 404', { status: 404, body: '<html>' }, undefined],
  ['answers 403', { status: 403, body: error('no') }, undefined],
  ['redirects', { status: 301, headers: { location: 'http://192.0.2.1/' } }, undefined],
  ['sends an error that is not a string', { body: { finished: true, error: { a: 1 } } }, undefined],
  ['sends a non-Boolean "finished"', { body: { finished: 'yes', error: null } }, undefined],
  ['sends an array', { body: [{ finished: true }] }, undefined],
  ['sends null', { body: 'null' }, undefined],
  ['sends invalid JSON', { body: '{"finished": tr' }, undefined],
  ['sends an empty body', { body: '' }, undefined],
  ['sends deeply nested JSON', { body: '['.repeat(50_000) }, undefined],
  ['sends __proto__', { body: '{"__proto__": {"finished": true}}' }, undefined],
  ['answers 503', { status: 503 }, undefined],
  ['sends more than the size limit', { body: `{"finished": true, "error": null, "x": "${'x'.repeat(2 << 20)}"}` }, away],
  ['does not answer', 'hang', away],
  ['closes the connection in the middle of its answer', 'cut', away],
])('the periodic check reads the status from a service that %s', async (_, reply, expected) => {
  service.answers.set('status', reply);
  const { task, complaints } = waiting(true, patience(reply));
  if (expected === away) await expect(periodic!.check!(task)).rejects.toThrow(ServiceUnavailable);
  else expect(await periodic!.check!(task)).toEqual(expected ?? undefined);
  expect(service.asked).toEqual([`status ${NODE_UUID}`]);
  expect(complaints.length).toBe(expected === undefined || expected === away ? 1 : 0);
});

it('the periodic check never takes an answer of random bytes for success', async () => {
  for (let one = 0; one < 200; one++) {
    service.answers.set('status', {
      status: 200 + (randomBytes(2).readUInt16BE() % 400),
      body: randomBytes(randomBytes(1)[0]!).toString('latin1'),
    });
    expect((await periodic!.check!(waiting(true).task).catch(() => undefined))?.outcome?.kind).not.toBe('done');
  }
});

it.each<[string, Reply, RegExp | undefined]>([
  ['aborts the introspection', { status: 202 }, undefined],
  ['does not know the node', { status: 404, body: error('not found') }, undefined],
  [
    'reports that the node is locked',
    { status: 409, body: error('Node is locked, please, retry later') },
    /did not abort: HTTP status 409: Node is locked/,
  ],
  ['answers 500', { status: 500 }, /did not abort/],
  ['does not answer', 'hang', /did not abort/],
])('abort handles a service that %s', async (_, reply, text) => {
  service.answers.set('abort', reply);
  const { task } = waiting(true, patience(reply));
  await (text ? expect(discoverdInspect.abort!(task)).rejects.toThrow(text) : discoverdInspect.abort!(task));
  expect(service.asked).toEqual([`abort ${NODE_UUID}`]);
});
it('abort sends no request if this inspection was not requested or the service is disabled', async () => {
  await discoverdInspect.abort!(waiting(false).task);
  await discoverdInspect.abort!(waiting(true, { 'discoverd.enabled': false }).task);
  expect(service.asked).toEqual([]);
});
it('the periodic check ends when the conductor stops', async () => {
  service.answers.set('status', 'hang');
  const { task, stop } = waiting(true);
  const looked = periodic!.check!(task);
  setImmediate(() => stop(new Error('The conductor is stopping.')));
  await expect(looked).rejects.toThrow('The conductor is stopping.');
});

it('requests use the configured credentials, and any form of the service URL', async () => {
  for (const url of ['', '/', '/v1', '/v1/'].map((path) => service.url.replace(/\/v1$/, path))) {
    const { task } = waiting(false, {
      'discoverd.service_url': url,
      'discoverd.auth_type': 'http_basic',
      'discoverd.username': 'bob',
      'discoverd.password': 'x:y',
    });
    expect(await periodic!.check!(task)).toEqual({ internal: { discoverd_asked: SINCE } });
    expect(service.heard.headers['authorization']).toBe(`Basic ${Buffer.from('bob:x:y').toString('base64')}`);
  }
  await periodic!.check!(waiting(false).task);
  expect(service.heard.headers['authorization']).toBeUndefined();
});

describe('configuration', () => {
  it.each<[string | null, RegExp | undefined]>([
    ['http://127.0.0.1:5050/v1', undefined],
    ['https://[::1]:5050', undefined],
    [null, /\[discoverd\]service_url names no service/],
    ['', /names no service/],
    ['127.0.0.1:5050', /cannot be used: it is (not a URL|neither)/],
    ['ftp://127.0.0.1', /neither http/],
    ['http://a:b@127.0.0.1', /user name or password/],
    ['http://127.0.0.1/v1?x', /query/],
  ])('cannotLoad checks the service URL %j', (url, text) => {
    const refused = discoverdInspect.cannotLoad!(driverOptions({ 'discoverd.enabled': true, 'discoverd.service_url': url }));
    expect(refused ?? '').toMatch(text ?? /^$/);
    expect(discoverdInspect.cannotLoad!(driverOptions({ 'discoverd.service_url': url }))).toBeUndefined();
    expect(url !== null && url !== '' && urlProblem(url) === undefined).toBe(text === undefined);
  });
  it('discoverdService throws when the CA file cannot be read', () => {
    expect(() => discoverdService(options({ 'discoverd.cafile': '/nonexistent' }))).toThrow(/cannot read \[discoverd\]cafile/);
  });
  it('a disabled service makes validate, inspect and the periodic check fail with the missing option', async () => {
    const { task } = waiting(false, { 'discoverd.enabled': false });
    await expect(discoverdInspect.validate!(task)).rejects.toThrow(/disabled: it needs \[discoverd\]enabled = true/);
    expect(await discoverdInspect.inspect(task)).toMatchObject({ kind: 'failed', reason: expect.stringContaining('disabled') as string });
    expect(await periodic!.check!(task)).toMatchObject({ outcome: { kind: 'failed' } });
  });
  it.each([
    ['fake', fakePower, undefined],
    ['agent', agentPower, /needs a power interface that powers machines on and off/],
  ])('validate accepts the power interface only if it can power machines on and off: %s', async (_, power, text) => {
    const { task } = waiting(false, {}, { driver: { power } });
    await (text ? expect(discoverdInspect.validate!(task)).rejects.toThrow(text) : discoverdInspect.validate!(task));
    expect(await discoverdInspect.inspect(task)).toEqual({ kind: 'wait' });
    expect(service.asked).toEqual([]);
  });
});
