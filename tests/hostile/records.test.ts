/** Records as large as users can make them, and lists and lookups of such records. */
import { expectBounded, useAttackedServer } from './watchdog';
import { NEWEST_VERSION } from '../support/newest';

const server = useAttackedServer(undefined, '[database]\nmax_record_size = 3072');
const headers = { 'content-type': 'application/json', 'x-openstack-ironic-api-version': NEWEST_VERSION };
const call = async (method: string, path: string, body?: unknown): Promise<{ readonly status: number; readonly text: string }> =>
  server.call(method, path, { headers, ...(body === undefined ? {} : { body: JSON.stringify(body) }) });

/** Answering nobody for longer is noticed. */
const MAX_TURN_MS = 200;
const MIB = 2 ** 20;
/** Almost as long as a request's body may be. */
const LONG = 'x'.repeat(1_040_000);

it('sends several lists of 60 allocations with a megabyte each, at bounded cost', async () => {
  for (let at = 0; at < 60; at++)
    expect((await call('POST', '/v1/allocations', { resource_class: 'none', extra: { a: LONG } })).status).toBe(201);
  const cost = await server.attack(async () => {
    const lists = await Promise.all(Array.from({ length: 4 }, () => call('GET', '/v1/allocations')));
    for (const { status, text } of lists) {
      expect(status).toBe(200);
      const { allocations } = JSON.parse(text) as { readonly allocations: readonly { readonly extra: { readonly a: string } }[] };
      expect(allocations.map(({ extra }) => extra.a.length)).toEqual(Array.from({ length: 60 }, () => LONG.length));
    }
  });
  expectBounded(cost, { turnMs: MAX_TURN_MS });
});

it('lists 60 nodes and ports with a megabyte each, at bounded cost', async () => {
  for (let at = 0; at < 60; at++) {
    const { text } = await call('POST', '/v1/nodes', { driver: 'fake-hardware', extra: { a: LONG } });
    const { uuid } = JSON.parse(text) as { readonly uuid: string };
    const address = `52:54:00:00:00:${at.toString(16).padStart(2, '0')}`;
    expect((await call('POST', '/v1/ports', { node_uuid: uuid, address, extra: { a: LONG } })).status).toBe(201);
  }
  const cost = await server.attack(async () => {
    for (const path of ['/v1/nodes/detail', '/v1/ports/detail', '/v1/nodes?fields=uuid,extra'])
      for (const { status, text } of await Promise.all([call('GET', path), call('GET', path)])) {
        expect(status).toBe(200);
        expect(text.length).toBeGreaterThan(60 * LONG.length);
        expect(() => JSON.parse(text) as unknown).not.toThrow();
      }
  });
  expectBounded(cost, { turnMs: MAX_TURN_MS });
});

it('looks up a node whose instance_info has grown to its limit, at bounded cost', async () => {
  const { text } = await call('POST', '/v1/nodes', { driver: 'fake-hardware', driver_info: { fast_track: true } });
  const { uuid } = JSON.parse(text) as { readonly uuid: string };
  const statuses: number[] = [];
  for (let at = 0; at < 12; at++) {
    const value = Array.from({ length: 4000 }, (_, index) => `https://user:password@host-${at}-${index}/image`.padEnd(200, 'y'));
    statuses.push((await call('PATCH', `/v1/nodes/${uuid}`, [{ op: 'add', path: `/instance_info/n${at}`, value }])).status);
  }
  expect(new Set(statuses)).toEqual(new Set([200, 413]));
  const cost = await server.attack(async () => {
    for (let turn = 0; turn < 5; turn++)
      for (const { status } of await Promise.all(Array.from({ length: 8 }, () => call('GET', `/v1/lookup?node_uuid=${uuid}`))))
        expect(status).toBe(200);
  });
  expectBounded(cost, { turnMs: MAX_TURN_MS });
});

it('refuses to let a node grow beyond the limit of a record', async () => {
  const { text } = await call('POST', '/v1/nodes', { driver: 'fake-hardware' });
  const { uuid } = JSON.parse(text) as { readonly uuid: string };
  const patch = (field: string, value: object) => call('PATCH', `/v1/nodes/${uuid}`, [{ op: 'add', path: `/${field}`, value }]);
  const fields = ['extra', 'properties', 'driver_info', 'instance_info'];
  const replies = [];
  for (const field of fields) replies.push(await patch(field, { a: LONG }));
  expect(replies.map(({ status }) => status)).toEqual([200, 200, 200, 413]);
  expect(replies.at(-1)!.text).toContain('[database]max_record_size');
  const shown = await call('GET', `/v1/nodes/${uuid}`);
  expect(shown.text.length).toBeLessThan(4 * MIB);
});
