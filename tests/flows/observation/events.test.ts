/** Events and notifications of the whole server: operations over its API appear in its event stream, and are sent to its webhook. */
import { createHmac } from 'node:crypto';
import { createServer, type Server as HttpServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { loadOptions } from '../../../config/load';
import { startServer } from '../../../server/server';
import { silentLog } from '../../../model/log';
import { useDatabase } from '../../support/database';
import { listen, type Listening } from '../../support/listen';
import type { Server } from '../../support/whole-server';

const database = useDatabase();
const KINDS = ['bios', 'boot', 'console', 'deploy', 'firmware', 'inspect', 'management', 'power', 'raid', 'rescue', 'vendor'];
let folder: string;
let server: Server;
let receiver: HttpServer;
const posted: { readonly event: string; readonly isSigned: boolean }[] = [];
const listeners: Listening[] = [];
let wake = (): void => {};

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'bloomery-events-'));
  receiver = createServer((request, response) => {
    let body = '';
    request.on('data', (chunk: Buffer) => (body += chunk.toString()));
    request.on('end', () => {
      const { 'x-bloomery-timestamp': moment, 'x-bloomery-signature': signature } = request.headers;
      const own = createHmac('sha256', 'key')
        .update(`${moment as string}.${body}`)
        .digest('hex');
      posted.push({ event: (JSON.parse(body) as { event_type: string }).event_type, isSigned: signature === `sha256=${own}` });
      response.writeHead(204).end();
      wake();
    });
  });
  await new Promise<void>((done) => receiver.listen(0, '127.0.0.1', done));
  const { options } = loadOptions([], {
    OS_DEFAULT__ENABLED_HARDWARE_TYPES: 'fake-hardware',
    ...Object.fromEntries(KINDS.map((kind) => [`OS_DEFAULT__ENABLED_${kind.toUpperCase()}_INTERFACES`, 'fake'])),
    OS_DEFAULT__ENABLED_NETWORK_INTERFACES: 'noop',
    OS_DEFAULT__ENABLED_STORAGE_INTERFACES: 'noop',
    OS_DEFAULT__NOTIFICATION_LEVEL: 'info',
    OS_NOTIFICATIONS__WEBHOOK_URL: `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/`,
    OS_NOTIFICATIONS__WEBHOOK_SECRET: 'key',
    OS_DEFAULT__MY_IP: '127.0.0.1',
    OS_API__HOST_IP: '127.0.0.1',
    OS_API__PORT: '0',
    OS_EVENTS__POLL_INTERVAL: '0.05',
  });
  server = await startServer({
    options,
    roles: ['api', 'conductor'],
    stateDir: folder,
    log: silentLog,
    databaseUrl: database.connection(),
  });
});
afterAll(async () => {
  for (const listening of listeners) await listening.stop();
  await server?.stop();
  await new Promise((done) => receiver.close(done));
  rmSync(folder, { recursive: true, force: true });
});

const call = async (method: string, path: string, body?: object): Promise<number> => {
  const response = await fetch(`${server.apiUrl!}/v1/${path}`, {
    method,
    headers: { 'content-type': 'application/json', 'x-openstack-ironic-api-version': 'latest' },
    ...(body ? { body: JSON.stringify(body) } : {}),
  });
  await response.arrayBuffer();
  return response.status;
};

it('sends events and notifications of a deployment, and an end event when the server stops', async () => {
  const listening = await listen(`${server.apiUrl!}/v1/events/stream?node=one`);
  listeners.push(listening);
  const goTo = async (target: string, state: string) => {
    expect(await call('PUT', 'nodes/one/states/provision', { target })).toBe(202);
    const heard = [];
    for (;;) {
      const [event] = await listening.next(1);
      heard.push(event!);
      if (event!.event === 'state' && (event!.data['payload'] as { provision_state: string }).provision_state === state) break;
    }
    // The reservation ends a moment after the node has reached its state.
    await server.conductor!.idle();
    return heard;
  };
  expect(await call('POST', 'nodes', { name: 'one', driver: 'fake-hardware' })).toBe(201);
  expect((await listening.next(1)).map(({ event }) => event)).toEqual(['created']);
  await goTo('manage', 'manageable');
  await goTo('provide', 'available');
  const heard = await goTo('active', 'active');
  const payloads = (kind: string): unknown[] => heard.filter(({ event }) => event === kind).map(({ data }) => data['payload']);
  expect(payloads('state')).toEqual([
    { provision_state: 'deploying', target_provision_state: 'active', previous_provision_state: 'available' },
    { provision_state: 'active', target_provision_state: null, previous_provision_state: 'deploying' },
  ]);
  expect(payloads('step')[0]).toMatchObject({ flow: 'deploy', step: expect.stringMatching(/^deploy\./) as unknown, number: 1 });

  const expected = [
    'node.create.start',
    'node.create.end',
    'node.provision_set.start',
    'node.provision_set.end',
    'node.provision_set.start',
    'node.provision_set.end',
    'node.provision_set.start',
    'node.provision_set.end',
  ].map((name) => `baremetal.${name}`);
  const told = (): string[] => posted.map(({ event }) => event).filter((event) => !/power_/.test(event));
  while (told().length < expected.length)
    await new Promise<void>((resolve) => {
      wake = resolve;
    });
  expect(told()).toEqual(expected);
  expect(posted.every(({ isSigned }) => isSigned)).toBe(true);

  await server.stop();
  expect((await listening.rest()).map(({ event, data }) => [event, data])).toEqual([['end', { reason: 'The server stops.' }]]);
});
