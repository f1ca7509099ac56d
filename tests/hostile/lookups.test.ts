/** What agents may ask without authentication, by the thousand: lookups and heartbeats with made-up addresses, parameters and tokens. */
import { randomBytes, randomUUID } from 'node:crypto';
import { expectBounded, useAttackedServer } from './watchdog';
import { NEWEST_VERSION } from '../support/newest';

const server = useAttackedServer();
const headers = { 'content-type': 'application/json', 'x-openstack-ironic-api-version': NEWEST_VERSION };
const MAC = '52:54:00:00:77:01';
const NODE = 'aaaaaaaa-0000-4000-8000-000000007701';
beforeAll(async () => {
  // A server that keeps running (HOSTILE_URL) has them from the round before.
  for (const [path, body] of [
    ['/v1/nodes', { driver: 'fake-hardware', uuid: NODE }],
    ['/v1/ports', { node_uuid: NODE, address: MAC }],
  ] as const)
    expect([201, 409]).toContain((await server.call('POST', path, { headers, body: JSON.stringify(body) })).status);
});

const mac = (): string => randomBytes(6).toString('hex').match(/../g)!.join(':');
const addresses = (count: number): string => Array.from({ length: count }, mac).join();
const repeated = (name: string, value: () => string, count: number): string =>
  Array.from({ length: count }, () => `${name}=${value()}`).join('&');
const heartbeat = (ident: string, token: string) => () =>
  server.call('POST', `/v1/heartbeat/${ident}`, {
    headers,
    body: JSON.stringify({ callback_url: 'https://192.0.2.7:9999', agent_version: '1', agent_token: token }),
  });
const lookup = (query: () => string) => () => server.call('GET', `/v1/lookup?${query()}`, { headers });

const ROUNDS = 5;
const AT_ONCE = 40;
/** Name → request, and the statuses that may answer. */
const FLOODS: readonly (readonly [name: string, ask: () => Promise<{ readonly status: number }>, statuses: readonly number[]])[] = [
  ['of a made-up MAC address', lookup(() => `addresses=${mac()}`), [404]],
  ['of hundreds of made-up MAC addresses', lookup(() => `addresses=${addresses(700)}`), [404]],
  ['with the parameter addresses hundreds of times', lookup(() => repeated('addresses', mac, 400)), [400, 404]],
  ['with thousands of unknown parameters', lookup(() => `${repeated('x', () => '', 4000)}&addresses=${mac()}`), [400]],
  ['of an invalid MAC address', lookup(() => `addresses=${'z'.repeat(12_000)}`), [400]],
  ['of a made-up node', lookup(() => `node_uuid=${randomUUID()}&addresses=${mac()}`), [404]],
  ['of a node with an invalid UUID', lookup(() => `node_uuid=${'a-'.repeat(6000)}`), [400, 404]],
  ['of a known MAC address among others', lookup(() => `addresses=${addresses(300)},${MAC}`), [404]],
];
it.each(FLOODS)('refuses many lookups %s at bounded cost', async (_, ask, statuses) => {
  const cost = await server.attack(async () => {
    for (let turn = 0; turn < ROUNDS; turn++)
      for (const { status } of await Promise.all(Array.from({ length: AT_ONCE }, ask))) expect(statuses).toContain(status);
  });
  expectBounded(cost);
});

it.each([
  ['a made-up node', () => heartbeat(randomUUID(), randomBytes(32).toString('base64'))(), [404]],
  ['a made-up token', () => heartbeat(NODE, randomBytes(32).toString('base64'))(), [400]],
  ['a token of a megabyte', () => heartbeat(NODE, 'x'.repeat(1_000_000))(), [400, 413]],
])('refuses many heartbeats with %s at bounded cost', async (_, ask, statuses) => {
  const cost = await server.attack(async () => {
    for (let turn = 0; turn < ROUNDS; turn++)
      for (const { status } of await Promise.all(Array.from({ length: AT_ONCE / 10 }, ask))) expect(statuses).toContain(status);
  });
  expectBounded(cost);
});
