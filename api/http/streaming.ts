/** A streaming response. It lasts until one side ends it. */
import type { ServerResponse } from 'node:http';
import type { Clock } from '../../model/clock';
import { Fault } from '../../model/errors';

export interface Sink {
  /** Aborted when the client disconnects or the server stops. */
  readonly signal: AbortSignal;
  /** Resolves when the client has read enough for more text. Throws Fault TemporaryFailure after a timeout. */
  write(text: string): Promise<void>;
  /** Sends the final text to a client that may not read any more. */
  end(text: string): Promise<void>;
}
export type Stream = (sink: Sink) => Promise<void>;

/** The timeouts for a client to read the text, and to read the final text. */
const READ_TIMEOUT_MS = 30_000;
const LINGER_MS = 1000;

/**
 * @param stopping aborted when the server stops
 * @returns when either side has ended the stream
 */
export async function sendStream(
  response: ServerResponse,
  headers: Readonly<Record<string, string>>,
  stream: Stream,
  clock: Clock,
  stopping: AbortSignal,
): Promise<void> {
  // Proxies must not buffer events.
  response.writeHead(200, { 'Content-Type': 'text/event-stream', 'Cache-Control': 'no-store', 'X-Accel-Buffering': 'no', ...headers });
  response.flushHeaders();
  response.socket?.setNoDelay(true);
  const over = new AbortController();
  const end = (): void => over.abort();
  response.once('close', end);
  stopping.addEventListener('abort', end);
  if (stopping.aborted) end();

  /** Whether one of the events happened in time. */
  const happens = (milliseconds: number, ...events: readonly string[]): Promise<boolean> =>
    new Promise((resolve) => {
      const waiting = new AbortController();
      const settle = (isInTime: boolean): void => {
        for (const event of events) response.off(event, onEvent);
        waiting.abort();
        resolve(isInTime);
      };
      const onEvent = (): void => settle(true);
      for (const event of events) response.once(event, onEvent);
      clock.sleep(milliseconds, waiting.signal).then(
        () => settle(false),
        () => {},
      );
    });
  const sink: Sink = {
    signal: over.signal,
    async write(text) {
      if (response.destroyed || response.write(text)) return;
      if (!(await happens(READ_TIMEOUT_MS, 'drain', 'close')))
        throw new Fault('TemporaryFailure', { message: 'The client did not read for too long.' });
    },
    async end(text) {
      if (response.destroyed) return;
      response.end(text);
      await happens(LINGER_MS, 'close');
    },
  };
  try {
    await stream(sink);
  } finally {
    stopping.removeEventListener('abort', end);
    if (!response.writableFinished) response.destroy();
  }
}
