/** A relay between TFTP clients and a server that loses packets both ways, in an order that is the same in every run. */
import { createSocket, type Socket } from 'node:dgram';

export interface LossyRelay {
  readonly port: number;
  readonly lost: () => number;
  close(): Promise<void>;
}

/** @param share of the packets that are lost, 0 to 1 */
export async function lossyRelay(serverPort: number, share: number, seed = 7): Promise<LossyRelay> {
  let state = seed;
  let lost = 0;
  const lose = (): boolean => {
    state = (state * 48271) % 2147483647;
    const it = state / 2147483647 < share;
    if (it) lost++;
    return it;
  };
  const sockets: Socket[] = [];
  const socket = async (): Promise<Socket> => {
    const made = createSocket('udp4');
    sockets.push(made);
    await new Promise<void>((done) => made.bind(0, '127.0.0.1', done));
    return made;
  };

  const front = await socket();
  front.on('message', (request, client) => {
    // One pair of sockets a request: what the server answers from comes to the client from one new port, as from the server itself.
    void (async () => {
      const [near, far] = [await socket(), await socket()];
      let transferPort: number | undefined;
      far.on('message', (bytes, from) => {
        transferPort ??= from.port;
        if (from.port === transferPort && !lose()) near.send(bytes, client.port, client.address);
      });
      near.on('message', (bytes) => {
        if (!lose()) far.send(bytes, transferPort ?? serverPort, '127.0.0.1');
      });
      far.send(request, serverPort, '127.0.0.1');
    })();
  });
  return {
    port: front.address().port,
    lost: () => lost,
    close: async () => {
      await Promise.all(sockets.map((one) => new Promise<void>((done) => one.close(() => done()))));
    },
  };
}
