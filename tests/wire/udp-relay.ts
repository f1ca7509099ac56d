/** A relay in front of a UDP server that loses, doubles and delays packets both ways, in the same order in every run. */
import { createSocket, type Socket } from 'node:dgram';

/** What becomes of a packet: the delays, in milliseconds, after which copies of it arrive. Empty: it is lost. */
export type Fate = (packet: Buffer, toServer: boolean) => readonly number[];
export interface Relay {
  readonly port: number;
  readonly seen: readonly { readonly toServer: boolean; readonly packet: Buffer }[];
  /** Sends a packet to the client as if the server had sent it. */
  inject(packet: Buffer): void;
  close(): Promise<void>;
}

const bound = (): Promise<Socket> =>
  new Promise((done, fail) => {
    const socket = createSocket('udp4');
    socket.once('error', fail);
    socket.bind(0, '127.0.0.1', () => done(socket));
  });

export async function udpRelay(serverPort: number, fate: Fate = () => [0]): Promise<Relay> {
  const [front, back] = [await bound(), await bound()];
  const seen: { toServer: boolean; packet: Buffer }[] = [];
  const timers = new Set<NodeJS.Timeout>();
  let client: { readonly port: number; readonly address: string } | undefined;
  const later = (delay: number, send: () => void): void => {
    // Without a timer, which takes a millisecond at least.
    if (delay === 0) {
      send();
      return;
    }
    const timer = setTimeout(() => {
      timers.delete(timer);
      send();
    }, delay);
    timers.add(timer);
  };
  const toClient = (packet: Buffer): void => {
    if (client) front.send(packet, client.port, client.address);
  };
  front.on('message', (packet, from) => {
    client = from;
    seen.push({ toServer: true, packet });
    for (const delay of fate(packet, true)) later(delay, () => back.send(packet, serverPort, '127.0.0.1'));
  });
  back.on('message', (packet) => {
    seen.push({ toServer: false, packet });
    for (const delay of fate(packet, false)) later(delay, () => toClient(packet));
  });
  return {
    port: front.address().port,
    seen,
    inject: toClient,
    close: async () => {
      for (const timer of timers) clearTimeout(timer);
      await Promise.all([front, back].map((socket) => new Promise<void>((done) => socket.close(() => done()))));
    },
  };
}

/** Numbers from 0 to 1 that are the same in every run. */
export function sameNumbers(seed: number): () => number {
  let state = seed;
  return () => (state = (state * 48271) % 2147483647) / 2147483647;
}
