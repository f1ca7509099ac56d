/** The recorder: pushes its host's hardware at an interval, as long as it runs, and survives failures of the service. */
import { gzipSync } from 'node:zlib';
import type { Clock } from '../model/clock';
import { digestOf, type HardwareRecord } from '../model/hardware-records';
import type { Log } from '../model/log';
import { reasonOf } from '../model/errors';
import type { DiskHealth } from '../model/rules/health-smart';
import type { Identity } from './drive-settings';
import { ask, type HttpAnswer, type Trust } from './system/http';

interface Pace {
  readonly intervalMs: number;
  /** The part of the interval by which a pause varies. */
  readonly jitter: number;
}
/** The longest pause, in intervals, so that one or two failed pushes do not make a record stale ([recorder]stale_after). */
const MAX_PAUSE = 2;

/**
 * Milliseconds until the next push, after this many consecutive failures. Failures never shorten the pause, so that the load by recorders
 * does not rise while the service is down, and their pushes stay spread.
 * @param random from 0 to 1
 * @internal
 */
export const pauseAfter = ({ intervalMs, jitter }: Pace, failures: number, random: () => number): number =>
  intervalMs * Math.min(1 + failures / 2, MAX_PAUSE) * (1 + jitter * (2 * random() - 1));
/** Spreads the first pushes of hosts that start together. @internal */
export const firstPause = ({ intervalMs }: Pace, random: () => number): number => intervalMs * random();

export interface Recording {
  readonly pace: Pace;
  /** Called before each push, since the token may change at any time. */
  readonly identity: () => Promise<Identity>;
  /** Called after each push. @param isForbidden the service does not accept the identity */
  readonly pushed?: ((isForbidden: boolean) => void) | undefined;
  readonly read: () => Promise<HardwareRecord>;
  /** What the disks say of themselves; undefined: nobody knows. */
  readonly smart?: ((hardware: HardwareRecord) => Promise<readonly DiskHealth[] | undefined>) | undefined;
  readonly bootId: string | null;
  readonly trust: Trust;
  readonly clock: Clock;
  readonly random: () => number;
  readonly log: Log;
  readonly signal: AbortSignal;
}

const TIMEOUT_MS = 30_000;
const words = ({ status, text }: HttpAnswer): string => `the service answers ${status} ${text.slice(0, 300)}`;

/** Sends the digest, and the record itself if the service does not have it. Throws the service's reason on a refusal. */
export async function pushOnce({ identity, pushed, read, smart, bootId, trust, signal }: Recording): Promise<'unchanged' | 'recorded'> {
  const hardware = await read();
  const disks = await smart?.(hardware);
  const { url, node, token } = await identity();
  const put = (content: object): Promise<HttpAnswer> =>
    ask({
      method: 'PUT',
      url: `${url.replace(/(?<!\/)\/+$/, '').replace(/\/v1$/, '')}/v1/nodes/${encodeURIComponent(node)}/hardware`,
      headers: { 'content-type': 'application/json', 'content-encoding': 'gzip', accept: 'application/json', 'x-recorder-token': token },
      body: gzipSync(JSON.stringify({ ...content, smart: disks, boot_id: bootId ?? undefined })),
      timeoutMs: TIMEOUT_MS,
      trust,
      signal,
    });
  const byDigest = await put({ digest: digestOf(hardware) });
  pushed?.(byDigest.status === 403);
  if (byDigest.status === 200) return 'unchanged';
  if (byDigest.status !== 409) throw new Error(words(byDigest));
  const byRecord = await put({ hardware });
  if (byRecord.status !== 200) throw new Error(words(byRecord));
  return 'recorded';
}

/** Pushes until the signal is aborted. Logs a push's result when it differs from the previous one. */
export async function keepPushing(recording: Recording): Promise<void> {
  const { pace, clock, random, log, signal } = recording;
  let failures = 0;
  let lastMessage = '';
  const logOnce = (level: 'info' | 'warn', message: string): void => {
    if (message !== lastMessage) log[level](message);
    lastMessage = message;
  };
  for (let pause = firstPause(pace, random); ; pause = pauseAfter(pace, failures, random)) {
    await clock.sleep(pause, signal).catch(() => {});
    if (signal.aborted) return;
    try {
      const result = await pushOnce(recording);
      failures = 0;
      if (result === 'recorded') lastMessage = '';
      logOnce('info', result === 'recorded' ? 'The hardware was recorded' : 'The hardware is as it was recorded');
    } catch (error) {
      if (signal.aborted) return;
      failures++;
      logOnce('warn', `The hardware could not be pushed: ${reasonOf(error)}`);
    }
  }
}
