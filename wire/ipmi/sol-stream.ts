/** The packets of serial-over-LAN (IPMI 2.0 §15.9–15.11) for both sides: one at a time, acknowledged, repeated when lost. */
import { IpmiError } from './constants';

/** Byte 4. Bit 6 is a negative acknowledgement both ways. Bit 4 requests a break, or reports that the BMC ends SOL. */
export const SOL_BITS = { nack: 0x40, break: 0x10, ending: 0x10, breakDetected: 0x04 } as const;
const HEADER = 4;
/** Attempts for one packet before the other side counts as gone. */
const TRIES = 8;
const LAST_SEQUENCE = 15;

interface SolStreamOptions {
  /** Characters in a packet to the other side. */
  readonly maxBytes: number;
  readonly resendMs: number;
  readonly send: (payload: Buffer) => void;
  /** Received characters, each once and in order. */
  readonly deliver: (bytes: Buffer) => void;
  /** Byte 4 of a received packet. */
  readonly status?: (bits: number) => void;
  /** The other side accepts nothing any more. */
  readonly failed: (error: IpmiError) => void;
}
export interface SolStream {
  receive(payload: Buffer): void;
  /** Resolves when the other side has accepted all of it. Rejects on failure and at `end`. */
  write(bytes: Buffer, bits?: number): Promise<void>;
  /** The other side has begun anew, with the first sequence number. */
  restart(): void;
  /** @param reason of writes that are not accepted yet */
  end(reason?: Error): void;
}
interface Outgoing {
  bytes: Buffer;
  readonly bits: number;
  readonly done: () => void;
  readonly fail: (reason: Error) => void;
}

export function createSolStream({ maxBytes, resendMs, send, deliver, status, failed }: SolStreamOptions): SolStream {
  const queue: Outgoing[] = [];
  let sequence = 0;
  /** The packet that is not acknowledged yet. */
  let unacknowledged: { readonly length: number; tries: number } | undefined;
  let timer: NodeJS.Timeout | undefined;
  let received = { sequence: 0, length: 0 };
  let ended = false;

  const stop = (reason: Error): void => {
    ended = true;
    clearTimeout(timer);
    for (const { fail } of queue.splice(0)) fail(reason);
  };
  const transmit = (): void => {
    const [first] = queue;
    if (!first || !unacknowledged) return;
    if (unacknowledged.tries++ >= TRIES) {
      const error = new IpmiError('unreachable', 'the other end of the serial-over-LAN session does not answer');
      stop(error);
      failed(error);
      return;
    }
    send(Buffer.concat([Buffer.from([sequence, 0, 0, first.bits]), first.bytes.subarray(0, unacknowledged.length)]));
    timer = setTimeout(transmit, resendMs);
    timer.unref();
  };
  const next = (): void => {
    const [first] = queue;
    if (ended || unacknowledged || !first) return;
    sequence = (sequence % LAST_SEQUENCE) + 1;
    unacknowledged = { length: Math.min(first.bytes.length, maxBytes), tries: 0 };
    transmit();
  };
  const acknowledged = (count: number, refused: boolean): void => {
    const [first] = queue;
    if (!first || !unacknowledged) return;
    clearTimeout(timer);
    const { length, tries } = unacknowledged;
    const taken = refused ? Math.min(count, length) : length;
    first.bytes = first.bytes.subarray(taken);
    unacknowledged = undefined;
    if (first.bytes.length === 0) {
      queue.shift();
      first.done();
      next();
    } else if (taken > 0) next();
    else {
      // The other side's buffer is full: repeat later, a limited number of times.
      unacknowledged = { length, tries };
      sequence = (sequence % LAST_SEQUENCE) + 1;
      timer = setTimeout(transmit, resendMs);
      timer.unref();
    }
  };

  return {
    receive: (payload) => {
      if (ended || payload.length < HEADER) return;
      const [number, answered, count, bits] = [payload[0]! & 0x0f, payload[1]! & 0x0f, payload[2]!, payload[3]!];
      if (answered !== 0 && answered === sequence) acknowledged(count, (bits & SOL_BITS.nack) !== 0);
      const again = number !== 0 && number === received.sequence;
      if (number !== 0) {
        const data = payload.subarray(HEADER);
        // A repetition, because our acknowledgement was lost. It may have further characters at its end.
        const known = again ? Math.min(received.length, data.length) : 0;
        received = { sequence: number, length: data.length };
        send(Buffer.from([0, number, data.length, 0]));
        if (data.length > known) deliver(Buffer.from(data.subarray(known)));
      }
      if (bits !== 0 && !again) status?.(bits);
    },
    write: (bytes, bits = 0) =>
      new Promise((done, fail) => {
        if (ended) {
          fail(new IpmiError('closed', 'the serial-over-LAN session has ended'));
          return;
        }
        queue.push({ bytes, bits, done, fail });
        next();
      }),
    restart: () => {
      received = { sequence: 0, length: 0 };
      if (unacknowledged) unacknowledged.tries = 0;
    },
    end: (reason) => stop(reason ?? new IpmiError('closed', 'the serial-over-LAN session has ended')),
  };
}
