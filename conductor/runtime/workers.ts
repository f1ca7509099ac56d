/** Work that continues after the response to its request: limited in number, and awaited when the conductor stops. */
import { Fault, reasonOf } from '../../model/errors';
import type { Log } from '../../model/log';
import type { Metrics } from '../../model/metrics';

/** A worker for one piece of work, taken before the response to a client: used once, or given back. */
export interface ReservedWorker {
  run(work: () => Promise<void>): void;
  giveBack(): void;
}
export interface Workers {
  /**
   * Throws NoFreeConductorWorker when all workers are busy, or the conductor stops.
   * @param ordinary leaves the workers free that are reserved for requests of the API: periodic work, heartbeats
   */
  take(ordinary?: boolean): ReservedWorker;
  /** Resolves when no work runs, including work that other work started. */
  idle(): Promise<void>;
  /** Refuses new work from here on. */
  close(): void;
}

/**
 * @param size workers in all
 * @param reservedPercentage of the workers that ordinary work leaves free
 */
export function createWorkers(size: number, log: Log, metrics: Metrics, reservedPercentage = 0): Workers {
  const forOrdinary = size - Math.trunc((size * reservedPercentage) / 100);
  /** One promise for each worker that is taken. */
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
            .catch((error: unknown) => log.error('background work failed', { reason: reasonOf(error), error }))
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
