/** The UDP sockets of the console side, one for all BMCs of an address family: answers are told apart by the session ID we chose. */
import { createSocket, type Socket } from 'node:dgram';
import { lookup } from 'node:dns/promises';
import { decodePacket, decodeAnswered, PAYLOAD, type Packet } from './codec';
import { IpmiError } from './constants';

export type RmcpPlusPacket = Packet & { readonly kind: 'rmcp+' };
export type SessionPacket = Packet & { readonly kind: 'rmcp+' | 'lan' };
export interface Peer {
  readonly address: string;
  readonly family: 4 | 6;
  readonly port: number;
}
/** Whose packets: of the session with this ID of ours (RMCP+), or all of IPMI 1.5 from that peer, which chooses the session IDs itself. */
export interface Route {
  readonly peer: Peer;
  readonly consoleId?: number;
}
interface Waiting {
  readonly peer: Peer;
  readonly read: (packet: SessionPacket) => void;
  readonly fail: (reason: Error) => void;
}
export interface ConsoleSockets {
  /**
   * One try: sends, and waits for a packet on that route that `read` makes something of; all others are dropped.
   * @returns undefined when none came in that time
   */
  ask<T>(route: Route, bytes: Buffer, read: (packet: SessionPacket) => T | undefined, milliseconds: number): Promise<T | undefined>;
  /** Sends without waiting for an answer; that it cannot be sent is no error. */
  send(peer: Peer, bytes: Buffer): Promise<void>;
  /** Gets the packets of a route that come unasked, until the function that it returns is called. */
  listen(route: Route, read: (packet: SessionPacket) => void, fail: (reason: Error) => void): () => void;
  /** Whoever waits, or asks from now on, fails with this. */
  interrupt(reason: Error): void;
  close(): void;
}

/** The messages of the handshake are outside any session; they carry our session ID in themselves (§13.18, §13.21, §13.23). */
const HANDSHAKE: readonly number[] = [PAYLOAD.openSessionResponse, PAYLOAD.rakp2, PAYLOAD.rakp4];
const keyOf = ({ peer, consoleId }: Route): number | string => consoleId ?? `${peer.address} ${peer.port}`;
const consoleIdOf = (packet: RmcpPlusPacket): number | undefined =>
  HANDSHAKE.includes(packet.payloadType) ? decodeAnswered(packet.payload)?.consoleId : packet.sessionId;

/** @param host a name or an address. Throws IpmiError `unreachable`. */
export async function resolvePeer(host: string, port: number): Promise<Peer> {
  try {
    const { address, family } = await lookup(host);
    return { address, family: family === 6 ? 6 : 4, port };
  } catch (error) {
    throw new IpmiError('unreachable', `cannot resolve the address of the BMC ${host}: ${(error as Error).message}`, { cause: error });
  }
}

/** Packets that are read in one turn of the event loop at most (libuv's uv__udp_recvmsg); fewer: there are no more. */
const READ_AT_ONCE = 32;

export function createConsoleSockets(log: { warn(message: string, fields?: object): void }): ConsoleSockets {
  const sockets = new Map<4 | 6, Socket>();
  const waiting = new Map<number | string, Set<Waiting>>();
  let interrupted: Error | undefined;
  let heard = 0;
  /** In a turn of the event loop timers come before packets: in a process that was busy, what came meanwhile is read before it counts as late. */
  const onceRead = (then: () => void): void => {
    const before = heard;
    setImmediate(() => (heard - before < READ_AT_ONCE ? then() : onceRead(then)));
  };
  const socketOf = (family: 4 | 6): Socket => {
    const open = sockets.get(family);
    if (open) return open;
    const socket = createSocket({
      ...{ type: family === 6 ? 'udp6' : 'udp4', recvBufferSize: 1 << 20 },
      // Peers are addresses already: node would look each packet's up.
      lookup: (host, _options, done) => done(null, host, family),
    });
    sockets.set(family, socket);
    socket.on('message', (bytes, from) => {
      heard++;
      const packet = decodePacket(bytes);
      if (packet?.kind !== 'rmcp+' && packet?.kind !== 'lan') return;
      const id = packet.kind === 'lan' ? keyOf({ peer: { ...from, family } }) : consoleIdOf(packet);
      if (id) for (const { read } of [...(waiting.get(id) ?? [])]) read(packet);
      // A refusal without our session ID: for whoever asked that BMC.
      else if (id === 0)
        for (const { peer, read } of [...waiting.values()].flatMap((them) => [...them]))
          if (peer.port === from.port && peer.address === from.address) read(packet);
    });
    socket.on('error', (error) => {
      log.warn('IPMI socket failed', { error });
      sockets.delete(family);
      socket.close();
    });
    // Who waits for an answer has a timer; an idle socket shall not keep the process.
    socket.bind(0);
    socket.unref();
    return socket;
  };
  // A packet that cannot be sent (no route for the moment) is a lost one: it is sent again.
  const send = (peer: Peer, bytes: Buffer): Promise<void> =>
    new Promise((done) => socketOf(peer.family).send(bytes, peer.port, peer.address, () => done()));
  const add = (route: Route, one: Waiting): (() => void) => {
    const key = keyOf(route);
    const them = waiting.get(key) ?? new Set();
    waiting.set(key, them.add(one));
    return () => {
      if (them.delete(one) && them.size === 0) waiting.delete(key);
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
      for (const { fail } of [...waiting.values()].flatMap((them) => [...them])) fail(reason);
    },
    close: () => {
      for (const socket of sockets.values()) socket.close();
      sockets.clear();
    },
  };
}
