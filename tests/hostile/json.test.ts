import { randomBytes } from 'node:crypto';
import { gzipSync } from 'node:zlib';
import { expectBounded, useAttackedServer } from './watchdog';
import { NEWEST_VERSION } from '../support/newest';

const server = useAttackedServer();
const VERSION = { 'x-openstack-ironic-api-version': NEWEST_VERSION };
const post = (path: string, body: Buffer | string, headers = {}): Promise<{ status: number }> =>
  server.call('POST', path, { body, headers: { 'content-type': 'application/json', ...VERSION, ...headers } });

const inventory = (data: string): string => `{"inventory":{"interfaces":[{"name":"e","mac_address":"52:54:00:99:99:99"}]},"data":${data}}`;
const MIB = 2 ** 20;
const list = (element: string, bytes: number): string =>
  `[${`${element},`.repeat(Math.floor(bytes / (element.length + 1)) - 1)}${element}]`;
const names = (count: number): string => `{${Array.from({ length: count }, (_, at) => `"n${at}":1`).join()}}`;

/** Name → body of continue_inspection, status. */
const BODIES: readonly (readonly [name: string, body: () => string, status: number])[] = [
  ['millions of objects', () => inventory(list('{}', 15 * MIB)), 413],
  ['millions of numbers', () => inventory(list('1', 15 * MIB)), 413],
  ['almost a million names', () => inventory(names(900_000)), 413],
  ['a number of 15 million digits', () => inventory('1'.repeat(15 * MIB)), 400],
  ['millions of nested lists', () => inventory('['.repeat(15 * MIB)), 400],
  ['a string of several megabytes', () => inventory(`{"a":"${'\\u00e9'.repeat(2 * MIB)}"}`), 400],
  ['as many values as are allowed', () => inventory(`{"a":${list('[1]', 280_000)}}`), 400],
];
it.each(BODIES)('handles an unauthenticated inspection report with %s at bounded cost', async (_, body, status) => {
  const text = body();
  const cost = await server.attack(async () => {
    for (let turn = 0; turn < 3; turn++) expect(await post('/v1/continue_inspection', text)).toMatchObject({ status });
  });
  expectBounded(cost);
});

it('refuses fourteen small gzip bodies that unpack to 15 MiB each, at bounded cost', async () => {
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
])('applies a patch that %s thousands of times at bounded cost', async (_, operation) => {
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

const step = (at: number, more: object = {}): object => ({ interface: 'deploy', step: `s${at}`, args: {}, ...more });
const steps = (count: number, more: object): readonly object[] => Array.from({ length: count }, (_, at) => step(at, more));
const unique = (): string => `CUSTOM_${randomBytes(8).toString('hex').toUpperCase()}`;
/** Name → path, body, status. */
const LISTS: readonly (readonly [name: string, path: string, body: () => object, status: number])[] = [
  ['a deploy template with thousands of steps', 'deploy_templates', () => ({ name: unique(), steps: steps(4000, { priority: 10 }) }), 201],
  [
    'a deploy template with the same step thousands of times',
    'deploy_templates',
    () => ({ name: unique(), steps: Array.from({ length: 4000 }, () => step(0, { priority: 1 })) }),
    400,
  ],
  ['a runbook with thousands of steps', 'runbooks', () => ({ name: unique(), steps: steps(4000, { order: 1 }) }), 201],
  [
    'a runbook with hundreds of invalid steps',
    'runbooks',
    () => ({ name: unique(), steps: steps(900, { step: 5, args: [], order: 'x' }) }),
    400,
  ],
  [
    'a deploy template with thousands of unknown members',
    'deploy_templates',
    () => Object.fromEntries(Array.from({ length: 2400 }, (_, at) => [`n${at}`, at])),
    400,
  ],
  [
    'an allocation with thousands of candidate nodes',
    'allocations',
    () => ({ resource_class: 'x', candidate_nodes: Array.from({ length: 20_000 }, (_, at) => `n${at}`) }),
    400,
  ],
  ['a node with a very long name', 'nodes', () => ({ driver: 'fake-hardware', name: 'a.'.repeat(400_000) }), 400],
];
it.each(LISTS)('handles %s at bounded cost', async (_, path, body, status) => {
  const text = JSON.stringify(body());
  const cost = await server.attack(async () => expect(await post(`/v1/${path}`, text)).toMatchObject({ status }));
  expectBounded(cost);
});

it('applies a patch that replaces thousands of steps at bounded cost', async () => {
  const name = unique();
  await post('/v1/deploy_templates', JSON.stringify({ name, steps: steps(4000, { priority: 10 }) }));
  const body = JSON.stringify([{ op: 'replace', path: '/steps', value: steps(4000, { priority: 11 }) }]);
  const headers = { 'content-type': 'application/json', ...VERSION };
  const cost = await server.attack(async () =>
    expect(await server.call('PATCH', `/v1/deploy_templates/${name}`, { body, headers })).toMatchObject({ status: 200 }),
  );
  expectBounded(cost);
});

it.each([
  ['segments', `/v1${'/a'.repeat(7000)}`, 404],
  ['fields', `/v1/nodes?fields=${'name,'.repeat(2500)}name`, 200],
  ['parameters', `/v1/nodes?${'a&'.repeat(7000)}`, 400],
])('answers a request for a URL with thousands of %s at bounded cost', async (_, path, status) => {
  const cost = await server.attack(async () => {
    for (let turn = 0; turn < 150; turn++) expect(await server.call('GET', path, { headers: VERSION })).toMatchObject({ status });
  });
  expectBounded(cost);
});

it('reports the delay of the event loop in /metrics', async () => {
  expect((await server.call('GET', '/metrics')).text).toMatch(/^nodejs_eventloop_lag_p99_seconds \d/m);
});
