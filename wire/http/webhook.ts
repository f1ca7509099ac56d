/** Posts messages to a URL in order: retried, signed, bounded. The caller never waits. */
import { createHmac } from 'node:crypto';
import { retry } from '../../model/clock';
import { createAgent, requestOn } from '../http-agent';
import { timeoutSignal } from '../timeout-signal';

interface WebhookOptions {
  readonly url: string;
  /** Key of the signature; null: none. */
  readonly secret: string | null;
  readonly headers: Readonly<Record<string, string>>;
  readonly timeoutMs: number;
  readonly retries: number;
  /** Most messages in the queue. */
  readonly queue: number;
  /** Seconds since the epoch, for the signature. */
  readonly now: () => number;
  /** Rejects when the signal is aborted. */
  readonly sleep: (milliseconds: number, signal: AbortSignal) => Promise<void>;
  /** Called with the result of a message; `reason`: why it is lost. */
  readonly told: (outcome: 'sent' | 'lost', message: WebhookMessage, reason?: string) => void;
}
interface WebhookMessage {
  readonly id: string;
  readonly event: string;
  readonly body: string;
}
export interface Webhook {
  readonly send: (message: WebhookMessage) => void;
  readonly waiting: () => number;
  /** Sends the queue for at most this many milliseconds; the rest is lost. */
  stop(milliseconds: number): Promise<void>;
}

const MAX_PAUSE_MS = 60_000;
/** Statuses after which a retry may succeed. */
const isTemporary = (status: number): boolean => status >= 500 || status === 408 || status === 425 || status === 429;

class Refused extends Error {
  constructor(readonly status: number) {
    super(`status ${status}`);
  }
}

/** The value of X-Bloomery-Signature, over the time in X-Bloomery-Timestamp and the body as sent. */
const signatureOf = (secret: string, moment: number, body: string): string =>
  `sha256=${createHmac('sha256', secret).update(`${moment}.${body}`).digest('hex')}`;

export function createWebhook(options: WebhookOptions): Webhook {
  const { url, secret, headers, timeoutMs, retries, told } = options;
  const target = new URL(url);
  const dispatcher = createAgent({
    connections: 1,
    bodyBytes: 'streamed',
    headersMs: timeoutMs,
    bodyMs: timeoutMs,
    connect: { timeout: timeoutMs },
  });
  const waiting: WebhookMessage[] = [];
  const stopping = new AbortController();
  let working: Promise<void> | undefined;

  /** @throws Refused; another Error when there was no response in time */
  async function post({ id, event, body }: WebhookMessage): Promise<void> {
    stopping.signal.throwIfAborted();
    const moment = Math.floor(options.now());
    const answer = await requestOn(dispatcher, {
      origin: target.origin,
      path: `${target.pathname}${target.search}`,
      method: 'POST',
      headers: {
        ...headers,
        'content-type': 'application/json',
        'x-bloomery-event': event,
        'x-bloomery-delivery': id,
        'x-bloomery-timestamp': String(moment),
        ...(secret === null ? {} : { 'x-bloomery-signature': signatureOf(secret, moment, body) }),
      },
      body,
      signal: timeoutSignal(timeoutMs, stopping.signal),
    });
    await answer.body.dump({ limit: 65_536 }).catch(() => {});
    if (answer.statusCode >= 300) throw new Refused(answer.statusCode);
  }
  async function deliver(message: WebhookMessage): Promise<void> {
    const { signal } = stopping;
    try {
      await retry(
        { clock: options, signal },
        () => post(message),
        (error, tried) => {
          const isFinal = signal.aborted || tried > retries || (error instanceof Refused && !isTemporary(error.status));
          return isFinal ? undefined : Math.min(1000 * 2 ** (tried - 1), MAX_PAUSE_MS);
        },
      );
    } catch (error) {
      told('lost', message, signal.aborted ? 'the server stopped' : error instanceof Error ? error.message : String(error));
      return;
    }
    told('sent', message);
  }
  async function work(): Promise<void> {
    for (let next = waiting[0]; next; next = waiting[0]) {
      await deliver(next);
      waiting.shift();
    }
    working = undefined;
  }
  return {
    waiting: () => waiting.length,
    send(message) {
      if (waiting.length >= options.queue || stopping.signal.aborted) {
        told('lost', message, 'the queue is full');
        return;
      }
      waiting.push(message);
      working ??= work();
    },
    async stop(milliseconds) {
      const ended = new AbortController();
      const late = options.sleep(milliseconds, ended.signal).catch(() => {});
      await Promise.race([working, late]);
      ended.abort();
      stopping.abort();
      await working;
      await dispatcher.destroy();
    },
  };
}
