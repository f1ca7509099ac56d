/** A recorder: pushes what hardware its host has, at an interval, for as long as it runs, whatever the service does. */
import { gzipSync } from 'node:zlib';
import type { Clock } from '../model/clock';
import { digestOf, type HardwareRecord } from '../model/hardware';
import type { Log } from '../model/log';
import { reasonOf } from './system/errors';
import { ask, type HttpAnswer, type Trust } from './system/http';

export interface Pace {
  readonly intervalMs: number;
  /** Part of the interval by which a pause may be shorter or longer. */
  readonly jitter: number;
}
/** How much longer than an interval pauses become: no record counts as stale for a push or two that failed ([recorder]stale_after). */
const MOST_LONGER = 2;

/**
 * Milliseconds until the next push, after so many that failed in a row. Never shorter than without failures: however many recorders a
 * service has, they ask it no more often while it is away, and come back to it as spread as they were.
 * @param random from 0 to 1
 */
export const pauseAfter = ({ intervalMs, jitter }: Pace, failures: number, random: () => number): number =>
  intervalMs * Math.min(1 + failures / 2, MOST_LONGER) * (1 + jitter * (2 * random() - 1));
/** Hosts that were started together do not push together. */
export const firstPause = ({ intervalMs }: Pace, random: () => number): number => intervalMs * random();

/** Where to, and who says so. */
export interface Identity {
  readonly url: string;
  readonly node: string;
  readonly token: string;
}
export interface Recording {
  readonly pace: Pace;
  /** Asked before each push: a token may be exchanged at any time. */
  readonly identity: () => Promise<Identity>;
  readonly read: () => Promise<HardwareRecord>;
  readonly bootId: string | null;
  readonly trust: Trust;
  readonly clock: Clock;
  readonly random: () => number;
  readonly log: Log;
  readonly signal: AbortSignal;
}

const TIMEOUT_MS = 30_000;
const words = ({ status, text }: HttpAnswer): string => `the service answers ${status} ${text.slice(0, 300)}`;

/** The digest, and the record itself when the service does not have it. Throws why it was not taken. */
export async function pushOnce({ identity, read, bootId, trust, signal }: Recording): Promise<'unchanged' | 'recorded'> {
  const hardware = await read();
  const { url, node, token } = await identity();
  const put = (content: object): Promise<HttpAnswer> =>
    ask({
      method: 'PUT',
      url: `${url.replace(/\/+$/, '').replace(/\/v1$/, '')}/v1/nodes/${encodeURIComponent(node)}/hardware`,
      headers: { 'content-type': 'application/json', 'content-encoding': 'gzip', accept: 'application/json', 'x-recorder-token': token },
      body: gzipSync(JSON.stringify({ ...content, ...(bootId === null ? {} : { boot_id: bootId }) })),
      timeoutMs: TIMEOUT_MS,
      trust,
      signal,
    });
  const known = await put({ digest: digestOf(hardware) });
  if (known.status === 200) return 'unchanged';
  if (known.status !== 409) throw new Error(words(known));
  const taken = await put({ hardware });
  if (taken.status !== 200) throw new Error(words(taken));
  return 'recorded';
}

/** Until the signal is aborted. Says what became of a push when it is something else than of the one before. */
export async function keepPushing(recording: Recording): Promise<void> {
  const { pace, clock, random, log, signal } = recording;
  let failures = 0;
  let said = '';
  const say = (level: 'info' | 'warn', message: string): void => {
    if (message !== said) log[level](message);
    said = message;
  };
  for (let pause = firstPause(pace, random); ; pause = pauseAfter(pace, failures, random)) {
    await clock.sleep(pause, signal).catch(() => {});
    if (signal.aborted) return;
    try {
      const became = await pushOnce(recording);
      failures = 0;
      if (became === 'recorded') said = '';
      say('info', became === 'recorded' ? 'The hardware was recorded' : 'The hardware is as it was recorded');
    } catch (error) {
      if (signal.aborted) return;
      failures++;
      say('warn', `The hardware could not be pushed: ${reasonOf(error)}`);
    }
  }
}
