/** A relay between TFTP clients and a server that loses packets both ways: the same packets in every run. */
import { createSocket, type Socket } from 'node:dgram';

export interface LossyRelay {
  readonly port: number;
  readonly lost: () => number;
  close(): Promise<void>;
}

/** @param share fraction of the packets that are lost, 0 to 1 */
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
  /** Client → the relay's socket towards the server: a repeated request comes from the same port. */
  const clients = new Map<number, Promise<Socket>>();
  const standIn = async (clientPort: number): Promise<Socket> => {
    const [near, far] = [await socket(), await socket()];
    let transferPort = serverPort;
    far.on('message', (bytes, from) => {
      transferPort = from.port;
      if (!lose()) near.send(bytes, clientPort, '127.0.0.1');
    });
    near.on('message', (bytes) => {
      if (!lose()) far.send(bytes, transferPort, '127.0.0.1');
    });
    return far;
  };
  front.on('message', (request, client) => {
    const known = clients.get(client.port) ?? standIn(client.port);
    clients.set(client.port, known);
    void known.then((far) => far.send(request, serverPort, '127.0.0.1'));
  });
  return {
    port: front.address().port,
    lost: () => lost,
    close: async () => {
      await Promise.all(sockets.map((item) => new Promise<void>((done) => item.close(() => done()))));
    },
  };
}
