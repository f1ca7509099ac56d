/** A viewer here and a conductor there: the relay between their WebSockets. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { WebSocket, WebSocketServer } from 'ws';
import { lastWords, relay } from '../../../api/ui/screen-relay';
import { systemClock } from '../../../model/clock';
import { until } from '../../support/until';

const stops: (() => void)[] = [];
afterEach(() => {
  for (const stop of stops.splice(0).reverse()) stop();
});
/** Both ends of a WebSocket: that of the server and that of the client, which is paused. */
async function pair(): Promise<readonly [WebSocket, WebSocket]> {
  const http = createServer();
  const sockets = new WebSocketServer({ server: http });
  http.listen(0, '127.0.0.1');
  await once(http, 'listening');
  const client = new WebSocket(`ws://127.0.0.1:${(http.address() as AddressInfo).port}`);
  client.once('open', () => client.pause());
  const [[server]] = (await Promise.all([once(sockets, 'connection'), once(client, 'open')])) as [[WebSocket], unknown];
  stops.push(() => {
    client.terminate();
    server.terminate();
    http.close();
  });
  return [server, client];
}
/** The viewer's end, the conductor's end, and the relay between them. */
async function relayed() {
  const [viewer, conductor] = [await pair(), await pair()];
  const gone = new AbortController();
  viewer[0].once('close', () => gone.abort(new Error('The viewer left.')));
  stops.push(() => gone.abort(new Error('the end of the test')));
  return { viewer: viewer[1], conductor: conductor[0], ended: relay(viewer[0], conductor[1], systemClock, gone.signal) };
}

it('passes messages as they are, in both directions, and the reason of the end', async () => {
  const { viewer, conductor, ended } = await relayed();
  const got: (readonly [string, boolean])[] = [];
  viewer.on('message', (data, binary) => got.push([(data as Buffer).toString(), binary]));
  conductor.on('message', (data, binary) => got.push([(data as Buffer).toString(), binary]));
  viewer.resume();
  conductor.send('{"page":"x"}');
  conductor.send(Buffer.from('RFB'));
  await until('both', () => got.length === 2);
  viewer.send(Buffer.from('key'));
  await until('the key', () => got.length === 3);
  expect(got).toEqual([
    ['{"page":"x"}', false],
    ['RFB', true],
    ['key', true],
  ]);
  const closed = once(viewer, 'close');
  conductor.close(4003, 'The console was turned off.');
  expect(await ended).toBe('The console was turned off.');
  const [code, reason] = (await closed) as [number, Buffer];
  expect([code, reason.toString()]).toEqual([4003, 'The console was turned off.']);
});
it('says so when the conductor is lost', async () => {
  const { viewer, conductor, ended } = await relayed();
  viewer.resume();
  const closed = once(viewer, 'close');
  conductor.terminate();
  expect(await ended).toBe('The connection to the conductor of the node was lost.');
  expect(((await closed) as [number])[0]).toBe(4000);
});
it('closes the connection to the conductor when the viewer has left', async () => {
  const { viewer, conductor, ended } = await relayed();
  const closed = once(conductor, 'close');
  viewer.terminate();
  expect(await ended).toBe('The viewer left.');
  expect(((await closed) as [number])[0]).toBe(1000);
});
it('reads from the conductor no faster than the viewer reads', async () => {
  const { viewer, conductor } = await relayed();
  const piece = Buffer.alloc(64 * 1024);
  const ALL = 64 * 2 ** 20;
  for (let sent = 0; sent < ALL; sent += piece.length) conductor.send(piece);
  // It goes on until the buffers of the two connections are full.
  let before = -1;
  await until(
    'a standstill',
    () => {
      const now = conductor.bufferedAmount;
      const stands = now === before;
      before = now;
      return stands;
    },
    500,
  );
  expect(conductor.bufferedAmount).toBeGreaterThan(ALL / 2);
  let received = 0;
  viewer.on('message', (data) => (received += (data as Buffer).length));
  viewer.resume();
  await until('all of it', () => received === ALL);
});
it('tells the reason of a refusal', async () => {
  const [server, client] = await pair();
  server.close(4003, 'Too many users look at this screen.');
  expect(await lastWords(client)).toBe('Too many users look at this screen.');
});
