/** Receives the DHCP packets of one interface, and handles a bounded number of them at the same time. For both IP versions. */
import type { Socket } from 'node:dgram';
import { createFairWork } from '../../wire/fair-queue';
import type { Clock } from '../../model/clock';
import { reasonOf } from '../../model/errors';
import { waitWithinStopTimeout } from './leases';

/** Packets that may wait, and that may wait for the store; further ones are dropped, and clients retry. */
const MAX_WAITING = 2048;
const MAX_IN_WORK = 512;
/** Packets whose handling begins in a turn of the event loop. */
const IN_TURN = 16;

export type Warn = (message: string, fields: object) => void;

export interface Listener {
  stop(): Promise<void>;
}
interface ListenerSetup<Packet> {
  readonly socket: Socket;
  /** DHCP or DHCPv6, for messages. */
  readonly protocol: string;
  readonly clock: Clock;
  readonly warn: Warn;
  readonly decode: (bytes: Buffer) => Packet | { readonly malformed: string };
  /** @param port of the sender */
  readonly handle: (packet: Packet, from: string, port: number) => Promise<void>;
  /** Whether the packet is of a machine that has an address, or was offered one. */
  readonly isExpected: (packet: Packet, from: string) => boolean;
  /** The client, or the relay that has many: each has its turn. */
  readonly sourceOf: (packet: Packet, from: string) => string;
  /** Counts packets without an answer; undefined: not a packet. */
  readonly count: (packet: Packet | undefined, answer: 'malformed' | 'dropped' | 'failed') => void;
}
export function startListener<Packet extends object>({
  socket,
  protocol,
  clock,
  warn,
  decode,
  handle,
  isExpected,
  sourceOf,
  count,
}: ListenerSetup<Packet>): Listener {
  const work = createFairWork({ waiting: MAX_WAITING, inWork: MAX_IN_WORK, inTurn: IN_TURN });
  socket.on('error', (error) => warn(`${protocol}: the socket failed`, { reason: error.message }));
  socket.on('message', (bytes, { address: from, port }) => {
    const packet = decode(bytes);
    if ('malformed' in packet) {
      count(undefined, 'malformed');
      warn(`${protocol}: malformed packet`, { from, reason: packet.malformed });
      return;
    }
    // A flood of invented machines does not delay the others.
    work.add(
      [isExpected(packet, from) ? 'expected' : 'others', sourceOf(packet, from)],
      () =>
        handle(packet, from, port).catch((error: unknown) => {
          count(packet, 'failed');
          warn(`${protocol}: no answer could be made`, { from, reason: reasonOf(error) });
        }),
      () => {
        count(packet, 'dropped');
        warn(`${protocol}: too many packets at once, some are dropped`, { from });
      },
    );
  });
  return {
    stop: async () => {
      // Takes no new packets, and answers those in work.
      socket.removeAllListeners('message');
      await waitWithinStopTimeout(clock, work.stop());
      await new Promise<void>((done) => void socket.close(done));
    },
  };
}
