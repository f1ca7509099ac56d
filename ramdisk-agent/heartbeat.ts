/**
 * The schedule of heartbeats: at once, then after heartbeat_timeout × (0.3 … 0.6), so that machines that started together drift apart. The
 * agent also sends one soon after a command has ended, or has made much progress. If the node is reserved, the conductor silently drops a
 * heartbeat. The agent therefore repeats a forced heartbeat until the conductor contacts it.
 */
import type { Clock } from '../model/clock';
import type { Log } from '../model/log';
import { reasonOf } from '../model/errors';

interface HeartbeatSchedule {
  /** Requests a heartbeat at once, or a second after the conductor's last request, whatever the interval. */
  readonly force: () => void;
  /** Requests one heartbeat, unless the agent sent one less than LEAST_INTERVAL ago. */
  readonly progressed: () => void;
  /** Called when the conductor has contacted the agent, which ends the repetition of a heartbeat that was sent. */
  readonly contacted: () => void;
  /** Sends heartbeats until `signal` is aborted; never rejects. */
  readonly run: (signal: AbortSignal) => Promise<void>;
}
interface HeartbeatOptions {
  readonly send: () => Promise<void>;
  /** Seconds without a heartbeat after which the server considers the agent lost. */
  readonly timeout: number;
  readonly clock: Clock;
  /** 0 … 1. */
  readonly random: () => number;
  readonly log: Log;
}

/** Seconds. */
const LEAST_INTERVAL = 5;
/**
 * Seconds from the conductor's last request to the first forced heartbeat, then from each one to its repetition: the node may still be
 * reserved.
 */
const FORCED = [1, 2, 4, 8, 8, 8] as const;

export function createHeartbeatSchedule({ send, timeout, clock, random, log }: HeartbeatOptions): HeartbeatSchedule {
  // Whoever sets the clock back must not stop the heartbeats.
  const time = (): number => clock.monotonic?.() ?? clock.now();
  let due = time();
  /** When the next forced heartbeat is due, and its index in FORCED. The first heartbeat is forced. */
  let forced: { readonly due: number; readonly index: number } | null = { due, index: 0 };
  let sent = false;
  let lastSent = -Infinity;
  let lastContact = -Infinity;
  let wake = new AbortController();

  const seconds = (least: number, most: number): number => (least + (most - least) * random()) * 1000;
  const pause = async (signal: AbortSignal): Promise<void> => {
    wake = new AbortController();
    const left = Math.min(due, forced?.due ?? due) - time();
    if (left > 0) await clock.sleep(left, AbortSignal.any([signal, wake.signal])).catch(() => undefined);
  };
  const plan = (failed: boolean): void => {
    const now = time();
    due = now + (failed ? seconds(LEAST_INTERVAL, 2 * LEAST_INTERVAL) : Math.max(LEAST_INTERVAL * 1000, timeout * seconds(0.3, 0.6)));
    if (!forced) return;
    const next = FORCED[forced.index + 1];
    if (failed) forced = { ...forced, due };
    else forced = next === undefined ? null : { due: now + next * 1000, index: forced.index + 1 };
  };
  return {
    force() {
      forced = { due: Math.max(time(), lastContact + FORCED[0] * 1000), index: 0 };
      sent = false;
      wake.abort();
    },
    progressed() {
      if (time() - lastSent < LEAST_INTERVAL * 1000) return;
      due = time();
      wake.abort();
    },
    contacted() {
      lastContact = time();
      if (sent) forced = null;
    },
    async run(signal) {
      while (!signal.aborted) {
        await pause(signal);
        const now = time();
        if (signal.aborted || (now < due && now < (forced?.due ?? Infinity))) continue;
        sent = true;
        lastSent = now;
        const failed = await send().then(
          () => false,
          (error: unknown) => {
            log.warn(`Heartbeat failed: ${reasonOf(error)}`);
            return true;
          },
        );
        plan(failed);
      }
    },
  };
}
