/** A TCP proxy on loopback that can hold back what clients send: a server that does not answer yet. */
import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';

export interface HoldingProxy {
  readonly port: number;
  /** From now on, nothing reaches the server until `release`. */
  hold(): void;
  release(): void;
  /** How many pieces of data are held back. */
  held(): number;
  close(): Promise<void>;
}
export async function startHoldingProxy(target: { readonly host: string; readonly port: number }): Promise<HoldingProxy> {
  const sockets = new Set<Socket>();
  let isHolding = false;
  let waiting: (() => void)[] = [];
  const server = createServer((client) => {
    const upstream = connect(target.port, target.host);
    for (const socket of [client, upstream]) {
      sockets.add(socket);
      socket.on('error', () => {});
      socket.on('close', () => {
        sockets.delete(socket);
        client.destroy();
        upstream.destroy();
      });
    }
    upstream.pipe(client);
    client.on('data', (data) => {
      const send = (): void => void upstream.write(data);
      if (isHolding) waiting.push(send);
      else send();
    });
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    hold: () => {
      isHolding = true;
    },
    release: () => {
      isHolding = false;
      const held = waiting;
      waiting = [];
      for (const send of held) send();
    },
    held: () => waiting.length,
    close: async () => {
      for (const socket of sockets) socket.destroy();
      await new Promise((closed) => server.close(closed));
    },
  };
}
