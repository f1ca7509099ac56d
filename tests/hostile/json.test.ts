import { gzipSync } from 'node:zlib';
import { expectBounded, useAttackedServer } from './watchdog';

const server = useAttackedServer();
const VERSION = { 'x-openstack-ironic-api-version': '1.115' };
const post = (path: string, body: Buffer | string, headers = {}): Promise<{ status: number }> =>
  server.call('POST', path, { body, headers: { 'content-type': 'application/json', ...VERSION, ...headers } });

const inventory = (data: string): string => `{"inventory":{"interfaces":[{"name":"e","mac_address":"52:54:00:99:99:99"}]},"data":${data}}`;
const MIB = 2 ** 20;
const list = (element: string, bytes: number): string =>
  `[${`${element},`.repeat(Math.floor(bytes / (element.length + 1)) - 1)}${element}]`;
const names = (count: number): string => `{${Array.from({ length: count }, (_, at) => `"n${at}":1`).join()}}`;

/** Name → body of continue_inspection, the statuses that may answer. */
const BODIES: readonly (readonly [name: string, body: () => string, status: number])[] = [
  ['objects by the million', () => inventory(list('{}', 15 * MIB)), 413],
  ['numbers by the million', () => inventory(list('1', 15 * MIB)), 413],
  ['names by the million', () => inventory(names(900_000)), 413],
  ['one number of megabytes', () => inventory('1'.repeat(15 * MIB)), 400],
  ['nesting by the million', () => inventory('['.repeat(15 * MIB)), 400],
  ['one text of megabytes', () => inventory(`{"a":"${'\\u00e9'.repeat(2 * MIB)}"}`), 400],
  ['as many values as are allowed', () => inventory(`{"a":${list('[1]', 280_000)}}`), 400],
];
it.each(BODIES)('%s, without a name', async (_, body, status) => {
  const text = body();
  const cost = await server.attack(async () => {
    for (let turn = 0; turn < 3; turn++) expect(await post('/v1/continue_inspection', text)).toMatchObject({ status });
  });
  expectBounded(cost);
});

it('fourteen small bodies that gzip makes 16 MiB of', async () => {
  const packed = gzipSync(inventory(list('{}', 15 * MIB)));
  expect(packed.length).toBeLessThan(20_000);
  const cost = await server.attack(async () => {
    const replies = await Promise.all(
      Array.from({ length: 14 }, () => post('/v1/continue_inspection', packed, { 'content-encoding': 'gzip' })),
    );
    expect(replies.map(({ status }) => status)).toEqual(Array.from({ length: 14 }, () => 413));
  });
  expectBounded(cost);
});

it.each<[string, (at: number) => object]>([
  ['adds to a list', () => ({ op: 'add', path: '/extra/list/0', value: 1 })],
  ['replaces a name', (at) => ({ op: 'add', path: `/extra/n${at}`, value: 1 })],
])('a patch that %s thousands of times', async (_, operation) => {
  const created = await server.call('POST', '/v1/nodes', {
    body: JSON.stringify({ driver: 'fake-hardware', extra: { list: [] } }),
    headers: { 'content-type': 'application/json', ...VERSION },
  });
  const { uuid } = JSON.parse(created.text) as { uuid: string };
  const body = JSON.stringify(Array.from({ length: 7000 }, (_unused, at) => operation(at)));
  const cost = await server.attack(async () => {
    const patched = await server.call('PATCH', `/v1/nodes/${uuid}`, { body, headers: { 'content-type': 'application/json', ...VERSION } });
    expect(patched.status).toBe(200);
  });
  expectBounded(cost);
});

it('a template of thousands of steps', async () => {
  const steps = Array.from({ length: 4000 }, (_, at) => ({ interface: 'deploy', step: `s${at}`, args: {}, priority: 10 }));
  const cost = await server.attack(async () => {
    const { status } = await post('/v1/deploy_templates', JSON.stringify({ name: 'CUSTOM_MANY', steps }));
    expect([201, 400, 413]).toContain(status);
  });
  expectBounded(cost);
});

it('shows the delay of the event loop to scrapers', async () => {
  expect((await server.call('GET', '/metrics')).text).toMatch(/^nodejs_eventloop_lag_p99_seconds \d/m);
});
