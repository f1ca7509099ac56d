/**
 * When to send heartbeats: at once, then after heartbeat_timeout × (0.3 … 0.6), so that machines that started together drift apart, and
 * soon after each finished command. A conductor that holds the node drops a heartbeat without saying so; a forced one is therefore
 * repeated until the conductor has come back to the agent.
 */
import type { Clock } from '../model/clock';
import type { Log } from '../model/log';
import { reasonOf } from './system/errors';

export interface Heart {
  /** Something is to be told: beat soon, whatever the interval. */
  readonly force: () => void;
  /** The conductor called: what was to be told is known. */
  readonly heard: () => void;
  /** Beats until `signal` is aborted; never rejects. */
  readonly beat: (signal: AbortSignal) => Promise<void>;
}
export interface HeartOptions {
  readonly send: () => Promise<void>;
  /** Seconds after which the server takes a silent agent for lost. */
  readonly timeout: number;
  readonly clock: Clock;
  /** 0 … 1. */
  readonly random: () => number;
  readonly log: Log;
}

const LEAST_INTERVAL = 5;
/** Seconds between a command's end and the heartbeats that tell it, until one is heard: the caller may still hold the node's lock. */
const FORCED = [1, 2, 4, 8, 8, 8] as const;

export function heart({ send, timeout, clock, random, log }: HeartOptions): Heart {
  let due = clock.now();
  /** When the next forced beat is due; which of FORCED it is. The first beat is one. */
  let forced: { readonly due: number; readonly index: number } | null = { due, index: 0 };
  let told = false;
  let wake = new AbortController();

  const seconds = (least: number, most: number): number => (least + (most - least) * random()) * 1000;
  const pause = async (signal: AbortSignal): Promise<void> => {
    wake = new AbortController();
    const left = Math.min(due, forced?.due ?? due) - clock.now();
    if (left > 0) await clock.sleep(left, AbortSignal.any([signal, wake.signal])).catch(() => undefined);
  };
  const plan = (failed: boolean): void => {
    const now = clock.now();
    due = now + (failed ? seconds(LEAST_INTERVAL, 2 * LEAST_INTERVAL) : Math.max(LEAST_INTERVAL * 1000, timeout * seconds(0.3, 0.6)));
    if (!forced) return;
    const next = FORCED[forced.index + 1];
    if (failed) forced = { ...forced, due };
    else forced = next === undefined ? null : { due: now + next * 1000, index: forced.index + 1 };
  };
  return {
    force() {
      forced = { due: clock.now() + FORCED[0] * 1000, index: 0 };
      told = false;
      wake.abort();
    },
    heard() {
      if (told) forced = null;
    },
    async beat(signal) {
      while (!signal.aborted) {
        await pause(signal);
        const now = clock.now();
        if (signal.aborted || (now < due && now < (forced?.due ?? Infinity))) continue;
        told = true;
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
