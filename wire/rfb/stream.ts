/** Reads the handshake of RFB from a stream: exact numbers of bytes. What is not read stays in the stream, which is paused in between. */
import type { Duplex } from 'node:stream';

/** What one side sent does not follow RFB, or is beyond the limits. The message is for users, and has no bytes of the other side. */
export class RfbError extends Error {}

/** @throws RfbError if the stream ends before; the signal's reason */
export function readBytes(stream: Duplex, count: number, signal: AbortSignal): Promise<Buffer> {
  return new Promise((done, fail) => {
    const parts: Buffer[] = [];
    let size = 0;
    const stop = (): void => {
      stream.pause();
      stream.off('data', take);
      for (const event of ENDS) stream.off(event, end);
      signal.removeEventListener('abort', abort);
    };
    const take = (part: Buffer): void => {
      parts.push(part);
      size += part.length;
      if (size < count) return;
      stop();
      const all = parts.length === 1 ? part : Buffer.concat(parts);
      if (size > count) stream.unshift(all.subarray(count));
      done(all.subarray(0, count));
    };
    const end = (): void => {
      stop();
      fail(new RfbError('The connection ended during the handshake.'));
    };
    const abort = (): void => {
      stop();
      fail(signal.reason as Error);
    };
    stream.on('data', take);
    for (const event of ENDS) stream.on(event, end);
    signal.addEventListener('abort', abort, { once: true });
    if (signal.aborted) abort();
    else if (count === 0) take(Buffer.alloc(0));
    else if (stream.readableEnded || stream.destroyed) end();
    else stream.resume();
  });
}
const ENDS = ['end', 'close', 'error'] as const;
