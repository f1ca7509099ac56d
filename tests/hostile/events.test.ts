import { once } from 'node:events';
import type { Socket } from 'node:net';
import { until } from '../support/until';
import { expectBounded, useAttackedServer } from './watchdog';
import { NEWEST_VERSION } from '../support/newest';

const server = useAttackedServer();
const STREAM = `GET /v1/events/stream?since=0-0 HTTP/1.1\r\nHost: x\r\nX-OpenStack-Ironic-API-Version: ${NEWEST_VERSION}\r\n\r\n`;
const listen = (localAddress?: string): Socket => {
  const socket = server.connect(localAddress);
  socket.write(STREAM);
  return socket;
};
const statusOf = async (socket: Socket): Promise<number> =>
  Number(/^HTTP\/1\.1 (\d+)/.exec(String(((await once(socket, 'data')) as [Buffer])[0]))?.[1]);

it('limits the event listeners of one address that read nothing, and still serves others', async () => {
  const statuses: number[] = [];
  const cost = await server.attack(async () => {
    for (let at = 0; at < 260; at++) {
      const socket = listen();
      void statusOf(socket).then((status) => {
        socket.pause();
        statuses.push(status);
      });
    }
    await until('all are answered', () => statuses.length === 260);
    // Half of [events]max_listeners. One that reads nothing for long enough makes room for the next.
    const { text } = await server.call('GET', '/metrics');
    expect(Number(/^bloomery_event_listeners (\d+)$/m.exec(text)?.[1])).toBeLessThanOrEqual(100);
    expect(statuses.filter((status) => status === 200).length).toBeGreaterThanOrEqual(100);
    expect(new Set(statuses)).toEqual(new Set([200, 503]));
    expect(await statusOf(listen('127.0.0.2'))).toBe(200);
    const headers = { 'content-type': 'application/json', 'x-openstack-ironic-api-version': NEWEST_VERSION };
    for (let at = 0; at < 30; at++)
      expect((await server.call('POST', '/v1/nodes', { body: '{"driver":"fake-hardware"}', headers })).status).toBe(201);
  });
  expectBounded(cost);
});
