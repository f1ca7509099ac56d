/** The pieces of work that go on after their request was answered: bounded in number, waited for at the end. */
import { Fault, reasonOf } from '../model/errors';
import type { Log } from '../model/log';
import type { Metrics } from '../model/metrics';

/** A place for one piece of work, taken before anything is promised to a client: used once, or given back. */
export interface Place {
  run(work: () => Promise<void>): void;
  giveBack(): void;
}
export interface Workers {
  /** Throws NoFreeConductorWorker when all places are taken, or the conductor stops. */
  take(): Place;
  /** Until no work is left, also none that work has started. */
  idle(): Promise<void>;
  /** No new work from here on. */
  close(): void;
}

/** @param size most pieces of work at once */
export function createWorkers(size: number, log: Log, metrics: Metrics): Workers {
  /** One promise a place, from when it is taken until it is free again. */
  const taken = new Set<Promise<void>>();
  let closed = false;
  metrics.read('bloomery_workers', () => [[{}, size]]);
  metrics.read('bloomery_workers_in_use', () => [[{}, taken.size]]);
  return {
    take: () => {
      if (closed || taken.size >= size) {
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
