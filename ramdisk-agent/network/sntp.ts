/** The time of an NTP server (RFC 5905, the exchange of a simple client: §14). */
import { createSocket } from 'node:dgram';
import { lookup as resolve } from 'node:dns/promises';
import { isIP } from 'node:net';
import type { Clock } from '../../model/clock';

const PORT = 123;
const LENGTH = 48;
/** No leap warning, version 4, client. */
const REQUEST = 0b00_100_011;
const SERVER_MODE = 4;
const UNSYNCHRONIZED = 3;
const MAX_STRATA = 15;
/** Seconds from 1900 to 1970, and those of an era (§6). */
const EPOCH = 2_208_988_800;
const ERA = 2 ** 32;
/** Times from here on are of era 0, earlier ones of era 1, which begins in 2036. */
const PIVOT = 0x80000000;
const ATTEMPTS = 4;
const TIMEOUT_MS = 2000;

interface Exchange {
  readonly random: (bytes: number) => Buffer;
  /** Milliseconds from any start; it must not jump. */
  readonly monotonic: () => number;
  readonly clock: Pick<Clock, 'sleep'>;
  readonly port?: number;
  readonly signal?: AbortSignal;
}

/** A host name or an address; other text would not be a server. */
const isServer = (text: string): boolean =>
  isIP(text) !== 0 || (text.length <= 253 && /^[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?$/.test(text) && !text.includes('..'));

/** Milliseconds of the Unix epoch, at the time of the return. Rejects with the reason when the server does not answer. */
export async function timeOf(server: string, exchange: Exchange): Promise<number> {
  if (!isServer(server)) throw new Error(`Invalid NTP server address: ${server}`);
  let reason: unknown;
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    exchange.signal?.throwIfAborted();
    try {
      return await ask(server, exchange);
    } catch (error) {
      reason = error;
    }
  }
  throw reason;
}

async function ask(server: string, { random, monotonic, clock, port = PORT, signal }: Exchange): Promise<number> {
  const { address, family } = await resolve(server);
  const socket = createSocket(family === 6 ? 'udp6' : 'udp4');
  const answered = new AbortController();
  try {
    return await new Promise<number>((found, failed) => {
      const request = Buffer.alloc(LENGTH);
      request[0] = REQUEST;
      // The server returns it: an answer without it comes from elsewhere.
      random(8).copy(request, 40);
      let sent = 0;
      clock.sleep(TIMEOUT_MS, answered.signal).then(
        () => failed(new Error(`NTP server ${server} did not answer`)),
        () => {},
      );
      signal?.addEventListener('abort', () => failed(signal.reason as Error), { once: true });
      socket.once('error', failed);
      socket.on('message', (answer) => {
        if (answer.length < LENGTH || !answer.subarray(24, 32).equals(request.subarray(40, 48)) || (answer[0]! & 7) !== SERVER_MODE) return;
        const [leap, stratum] = [answer[0]! >> 6, answer[1]!];
        if (leap === UNSYNCHRONIZED || stratum === 0 || stratum > MAX_STRATA)
          failed(new Error(`NTP server ${server} has no time of its own (stratum ${stratum})`));
        // Half of the way there and back passed since the server sent its time.
        else found(millisecondsAt(answer, 40) + (monotonic() - sent) / 2);
      });
      socket.connect(port, address, () => {
        sent = monotonic();
        socket.send(request);
      });
    });
  } finally {
    answered.abort();
    socket.close();
  }
}

function millisecondsAt(packet: Buffer, at: number): number {
  const seconds = packet.readUInt32BE(at);
  return (seconds + (seconds < PIVOT ? ERA : 0) - EPOCH) * 1000 + (packet.readUInt32BE(at + 4) / ERA) * 1000;
}
