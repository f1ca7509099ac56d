/** Receives the DHCP packets of one interface, and handles a bounded number of them at the same time. For both IP versions. */
import type { Socket } from 'node:dgram';
import type { Clock } from '../../model/clock';
import { reasonOf } from '../../model/errors';
import type { Log } from '../../model/log';
import { waitWithinStopTimeout } from './leases';

/** Packets that may wait for the store; further ones are dropped, and clients retry. */
const MOST_PENDING = 2048;
/** Repeated warnings are logged once in this time, with their number. */
const LOG_EVERY_MS = 60_000;

export type Warn = (message: string, fields: object) => void;
/** Limits warnings that traffic can cause. There are few different messages, so the memory is bounded. */
export function createWarnings(log: Log, clock: Clock): Warn {
  const kinds = new Map<string, { readonly until: number; left: number }>();
  return (message, fields) => {
    const kind = kinds.get(message);
    if (kind && kind.until > clock.now()) {
      kind.left += 1;
      return;
    }
    log.warn(message, kind?.left ? { ...fields, repeated: kind.left } : fields);
    kinds.set(message, { until: clock.now() + LOG_EVERY_MS, left: 0 });
  };
}

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
  readonly handle: (packet: Packet, from: string) => Promise<void>;
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
  count,
}: ListenerSetup<Packet>): Listener {
  const pending = new Set<Promise<void>>();
  socket.on('error', (error) => warn(`${protocol}: the socket failed`, { reason: error.message }));
  socket.on('message', (bytes, { address: from }) => {
    const packet = decode(bytes);
    if ('malformed' in packet) {
      count(undefined, 'malformed');
      warn(`${protocol}: malformed packet`, { from, reason: packet.malformed });
      return;
    }
    if (pending.size >= MOST_PENDING) {
      count(packet, 'dropped');
      warn(`${protocol}: too many packets at once, some are dropped`, { from });
      return;
    }
    const work = handle(packet, from)
      .catch((error: unknown) => {
        count(packet, 'failed');
        warn(`${protocol}: no answer could be made`, { from, reason: reasonOf(error) });
      })
      .finally(() => pending.delete(work));
    pending.add(work);
  });
  return {
    stop: async () => {
      // Takes no new packets, and answers those in work.
      socket.removeAllListeners('message');
      await waitWithinStopTimeout(clock, Promise.allSettled(pending));
      await new Promise<void>((done) => void socket.close(done));
    },
  };
}
