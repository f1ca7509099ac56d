/** The pieces of work that go on after their request was answered: bounded in number, waited for at the end. */
import { Fault, reasonOf } from '../../model/errors';
import type { Log } from '../../model/log';
import type { Metrics } from '../../model/metrics';

/** A place for one piece of work, taken before anything is promised to a client: used once, or given back. */
export interface Place {
  run(work: () => Promise<void>): void;
  giveBack(): void;
}
export interface Workers {
  /**
   * @param ordinary not from the places that are kept for what the API asks: periodic work, heartbeats
   * Throws NoFreeConductorWorker when all places are taken, or the conductor stops.
   */
  take(ordinary?: boolean): Place;
  /** Until no work is left, also none that work has started. */
  idle(): Promise<void>;
  /** No new work from here on. */
  close(): void;
}

/**
 * @param size most pieces of work at once
 * @param reservedPercentage of them that ordinary work leaves free
 */
export function createWorkers(size: number, log: Log, metrics: Metrics, reservedPercentage = 0): Workers {
  const forOrdinary = size - Math.trunc((size * reservedPercentage) / 100);
  /** One promise a place, from when it is taken until it is free again. */
  const taken = new Set<Promise<void>>();
  let closed = false;
  metrics.read('bloomery_workers', () => [[{}, size]]);
  metrics.read('bloomery_workers_in_use', () => [[{}, taken.size]]);
  return {
    take: (ordinary = false) => {
      if (closed || taken.size >= (ordinary ? forOrdinary : size)) {
        metrics.count('bloomery_workers_refused_total', {});
        throw new Fault('NoFreeConductorWorker');
      }
      let free = (): void => {};
      const place = new Promise<void>((resolve) => {
        free = () => {
          taken.delete(place);
          resolve();
        };
      });
      taken.add(place);
      let used = false;
      return {
        run: (work) => {
          if (used) throw new Error('a place for work is used twice');
          used = true;
          work()
            .catch((error: unknown) => log.error('a piece of work ended badly', { reason: reasonOf(error), error }))
            .finally(free);
        },
        giveBack: () => {
          if (!used) free();
          used = true;
        },
      };
    },
    idle: async () => {
      while (taken.size > 0) await Promise.all(taken);
    },
    close: () => {
      closed = true;
    },
  };
}
