/** The console's UDP sockets, one for all BMCs of an address family. Our session IDs identify the responses. */
import { createSocket, type Socket } from 'node:dgram';
import { lookup } from 'node:dns/promises';
import { decodePacket, decodeResponseHead, PAYLOAD, type Packet } from './codec';
import { IpmiError } from './constants';

type RmcpPlusPacket = Packet & { readonly kind: 'rmcp+' };
export type SessionPacket = Packet & { readonly kind: 'rmcp+' | 'lan' };
export interface Peer {
  readonly address: string;
  readonly family: 4 | 6;
  readonly port: number;
}
/** Selects packets: those of the session with our ID (RMCP+), or all IPMI 1.5 packets of a peer, which chooses the session IDs itself. */
export interface Route {
  readonly peer: Peer;
  readonly consoleId?: number;
}
interface Listener {
  readonly peer: Peer;
  readonly read: (packet: SessionPacket) => void;
  readonly fail: (reason: Error) => void;
}
export interface ConsoleSockets {
  /**
   * One attempt: sends a packet and waits for one on the route for which `read` returns a value. Others are dropped.
   * @returns undefined when none came in time
   */
  ask<T>(route: Route, bytes: Buffer, read: (packet: SessionPacket) => T | undefined, milliseconds: number): Promise<T | undefined>;
  /** Sends without waiting for a response. Send errors are ignored. */
  send(peer: Peer, bytes: Buffer): Promise<void>;
  /** Receives the packets of a route until the returned function is called. */
  listen(route: Route, read: (packet: SessionPacket) => void, fail: (reason: Error) => void): () => void;
  /** Rejects all pending and future requests with this. */
  interrupt(reason: Error): void;
  close(): void;
}

/** Handshake messages are outside any session. They contain our session ID (§13.18, §13.21, §13.23). */
const HANDSHAKE: readonly number[] = [PAYLOAD.openSessionResponse, PAYLOAD.rakp2, PAYLOAD.rakp4];
const keyOf = ({ peer, consoleId }: Route): number | string => consoleId ?? `${peer.address} ${peer.port}`;
const consoleIdOf = (packet: RmcpPlusPacket): number | undefined =>
  HANDSHAKE.includes(packet.payloadType) ? decodeResponseHead(packet.payload)?.consoleId : packet.sessionId;

/** @param host a name or an address. Throws IpmiError `unreachable`. */
export async function resolvePeer(host: string, port: number): Promise<Peer> {
  try {
    const { address, family } = await lookup(host);
    return { address, family: family === 6 ? 6 : 4, port };
  } catch (error) {
    throw new IpmiError('unreachable', `cannot resolve the address of the BMC ${host}: ${(error as Error).message}`, { cause: error });
  }
}

/** Most packets that one turn of the event loop reads (libuv's uv__udp_recvmsg). After fewer, the socket is empty. */
const READ_AT_ONCE = 32;

export function createConsoleSockets(log: { warn(message: string, fields?: object): void }): ConsoleSockets {
  const sockets = new Map<4 | 6, Socket>();
  const listeners = new Map<number | string, Set<Listener>>();
  let interrupted: Error | undefined;
  let received = 0;
  /** Timers run before packets are read. After a busy phase, packets that have arrived are read before the timeout counts. */
  const onceRead = (then: () => void): void => {
    const before = received;
    setImmediate(() => (received - before < READ_AT_ONCE ? then() : onceRead(then)));
  };
  const socketOf = (family: 4 | 6): Socket => {
    const open = sockets.get(family);
    if (open) return open;
    const socket = createSocket({
      type: family === 6 ? 'udp6' : 'udp4',
      recvBufferSize: 1 << 20,
      // Peers are addresses already, and node would look each one up.
      lookup: (host, _options, done) => done(null, host, family),
    });
    sockets.set(family, socket);
    socket.on('message', (bytes, from) => {
      received++;
      const packet = decodePacket(bytes);
      if (packet?.kind !== 'rmcp+' && packet?.kind !== 'lan') return;
      const id = packet.kind === 'lan' ? keyOf({ peer: { ...from, family } }) : consoleIdOf(packet);
      if (id) for (const { read } of Array.from(listeners.get(id) ?? [])) read(packet);
      // A refusal without our session ID is for all requests to that BMC.
      else if (id === 0)
        for (const { peer, read } of [...listeners.values()].flatMap((them) => [...them]))
          if (peer.port === from.port && peer.address === from.address) read(packet);
    });
    socket.on('error', (error) => {
      log.warn('IPMI socket failed', { error });
      sockets.delete(family);
      socket.close();
    });
    // Pending requests have timers. An idle socket does not keep the process alive.
    socket.bind(0);
    socket.unref();
    return socket;
  };
  // A packet that cannot be sent (no route at the moment) counts as lost, and is sent again.
  const send = (peer: Peer, bytes: Buffer): Promise<void> =>
    new Promise((done) => socketOf(peer.family).send(bytes, peer.port, peer.address, () => done()));
  const add = (route: Route, value: Listener): (() => void) => {
    const key = keyOf(route);
    const them = listeners.get(key) ?? new Set();
    listeners.set(key, them.add(value));
    return () => {
      if (them.delete(value) && them.size === 0) listeners.delete(key);
    };
  };
  return {
    send,
    listen: (route, read, fail) => add(route, { peer: route.peer, read, fail }),
    ask: (route, bytes, read, milliseconds) =>
      new Promise((done, fail) => {
        if (interrupted) {
          fail(interrupted);
          return;
        }
        const end = (): void => {
          clearTimeout(timer);
          remove();
        };
        const late = (): void => {
          end();
          done(undefined);
        };
        const timer = setTimeout(() => onceRead(late), milliseconds);
        const remove = add(route, {
          peer: route.peer,
          fail: (reason) => {
            end();
            fail(reason);
          },
          read: (packet) => {
            const value = read(packet);
            if (value === undefined) return;
            end();
            done(value);
          },
        });
        void send(route.peer, bytes);
      }),
    interrupt: (reason) => {
      interrupted = reason;
      for (const { fail } of [...listeners.values()].flatMap((them) => [...them])) fail(reason);
    },
    close: () => {
      for (const socket of sockets.values()) socket.close();
      sockets.clear();
    },
  };
}
