import { createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { createAgent, request, requestOn } from '../../wire/http-agent';
import { timeoutSignal } from '../../wire/timeout-signal';

/** Accepts connections and says nothing: a TLS handshake with it never ends. */
const sockets: Socket[] = [];
const silent: Server = createServer((socket) => void sockets.push(socket.on('error', () => {})));
const agent = createAgent({ connect: { timeout: 20_000 }, bodyBytes: 1000 });
beforeAll(() => new Promise<void>((resolve) => void silent.listen(0, '127.0.0.1', resolve)));
afterAll(async () => {
  for (const socket of sockets) socket.destroy();
  await agent.destroy();
  await new Promise((resolve) => void silent.close(resolve));
});

it('ends a request at its signal although the connection is not made', async () => {
  const origin = `https://127.0.0.1:${(silent.address() as AddressInfo).port}`;
  const inTime = (signal: AbortSignal): readonly Promise<unknown>[] => [
    request(origin, { dispatcher: agent, signal }),
    requestOn(agent, { origin, path: '/', method: 'GET', signal }),
  ];
  const timedOut = { name: 'TimeoutError' };
  for (const sent of inTime(timeoutSignal(50))) await expect(sent).rejects.toMatchObject(timedOut);
  // Aborted before it is sent.
  for (const sent of inTime(AbortSignal.abort(new Error('stop')))) await expect(sent).rejects.toThrow('stop');
}, 60_000);
