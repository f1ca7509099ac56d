/** The tokens of agents in deployed systems, and what these agents register. */
import { randomBytes, randomUUID } from 'node:crypto';
import { ownCertificate } from '../../../wire/http/certificate';
import { useApi } from '../../support/api';
import { NEWEST } from '../../support/newest';

const api = useApi({ 'recorder.max_pushes_per_minute': 4 });
const { database } = api;
let node: string;
let token: string;
const certificate = ownCertificate('192.0.2.7', 'host', Date.now(), randomBytes).certificate;
const REGISTRATION = { url: 'https://192.0.2.7:9998', certificate, version: 'bloomery-agent 1', boot_id: '0d5a' };
const path = (more = ''): string => `/v1/nodes/${node}/resident_agent${more}`;
const register = (body: object, headers: Record<string, string> = {}) =>
  api.ask('PUT', path(), NEWEST, { body, headers: { 'X-Resident-Token': token, ...headers } });

beforeEach(async () => {
  await database.clear();
  ({ uuid: node } = await database.store().nodes.create({ uuid: randomUUID(), driver: 'fake-hardware', name: 'one' }));
  token = (await api.ask('POST', path('/token'))).body['token'] as string;
});

it('shows what the agent registered, and never the token', async () => {
  expect((await api.ask('GET', path())).body).toMatchObject({ url: null, seen_at: null, fingerprint: null, token: { from: 'operator' } });
  expect((await register(REGISTRATION)).status).toBe(204);
  const { status, body, text } = await api.ask('GET', '/v1/nodes/one/resident_agent');
  expect([status, body]).toEqual([
    200,
    expect.objectContaining({ node_uuid: node, url: REGISTRATION.url, version: 'bloomery-agent 1', boot_id: '0d5a' }) as unknown,
  ]);
  expect(body['fingerprint']).toMatch(/^([0-9A-F]{2}:){31}[0-9A-F]{2}$/);
  expect(body['seen_at']).not.toBeNull();
  expect(text).not.toContain(token);
});

it.each<[string, object, RegExp]>([
  ['a name in place of an address', { url: 'https://host.example:9998' }, /url is https:\/\/ADDRESS:PORT/],
  ['a path', { url: 'https://192.0.2.7:9998/admin' }, /url is https:\/\/ADDRESS:PORT/],
  ['credentials', { url: 'https://a:b@192.0.2.7:9998' }, /url is https:\/\/ADDRESS:PORT/],
  ['no TLS', { url: 'http://192.0.2.7:9998' }, /url is https/],
  ['no URL', { url: 'https://[' }, /url is https:\/\/ADDRESS:PORT/],
  ['no certificate', { certificate: 'x' }, /certificate is no certificate in PEM/],
  ['a huge certificate', { certificate: 'x'.repeat(9000) }, /is too long/],
  ['a boot ID that is none', { boot_id: 'a b' }, /'a b' does not match/],
])('refuses %s', async (_, changes, reason) => {
  expect(await register({ ...REGISTRATION, ...changes })).toMatchObject({ status: 400, fault: expect.stringMatching(reason) as unknown });
  expect((await api.ask('GET', path())).body['seen_at']).toBeNull();
});

it('takes no registration with another token, an old one, or none', async () => {
  const old = token;
  expect((await register(REGISTRATION, { 'X-Resident-Token': 'x' })).status).toBe(403);
  expect((await api.ask('PUT', path(), NEWEST, { body: REGISTRATION })).status).toBe(403);
  await register(REGISTRATION);
  token = (await api.ask('POST', path('/token'))).body['token'] as string;
  expect((await register(REGISTRATION, { 'X-Resident-Token': old })).status).toBe(403);
  // Who had the old token is not asked any more.
  expect((await api.ask('GET', path())).body).toMatchObject({ url: null, seen_at: null });
  expect((await api.ask('DELETE', path('/token'))).status).toBe(204);
  expect((await register(REGISTRATION)).status).toBe(403);
  expect((await api.ask('GET', path())).status).toBe(404);
});

it('takes an address of IPv6, and no more registrations than the limit', async () => {
  expect((await register({ ...REGISTRATION, url: 'https://[2001:db8::7]:9998' })).status).toBe(204);
  expect((await api.ask('GET', path())).body['url']).toBe('https://[2001:db8::7]:9998');
  for (let at = 0; at < 3; at++) await register(REGISTRATION);
  expect((await register(REGISTRATION)).status).toBe(429);
});

it('the token ends with the instance', async () => {
  const store = database.store();
  await database.query("UPDATE nodes SET provision_state = 'deleting' WHERE uuid = $1", [node]);
  expect(await store.residentAgents.find(node)).toBeDefined();
  await database.query("UPDATE nodes SET provision_state = 'cleaning' WHERE uuid = $1", [node]);
  expect(await store.residentAgents.find(node)).toBeUndefined();
});
