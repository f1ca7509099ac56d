/** Conductors for a test file, on a clock that tests advance and a database of the file, which is empty at the beginning of each test. */
import { setTimeout as delay } from 'node:timers/promises';
import type { TestClock } from './clock';
import { testClock } from './clock';
import { started, type Started } from './conductor';
import { useDatabase, type TestDatabase } from './database';
import { until } from './until';

type Given = Parameters<typeof started>[2];
export interface TestConductors {
  readonly clock: TestClock;
  readonly database: TestDatabase;
  /** A conductor, which is stopped after the test. */
  readonly start: (given?: Given) => Promise<Started>;
  /**
   * Advances the clock by up to so many seconds, until `is` holds. It advances a minute at a time, so that each round of periodic work can
   * end on a busy machine too. It waits at most a second for a round that itself waits for the clock.
   */
  readonly after: (seconds: number, is: () => boolean | Promise<boolean>) => Promise<void>;
}

/** To be called once at the top of a test file: `const { clock, start } = useConductor();` */
export function useConductor(): TestConductors {
  const clock = testClock();
  const database = useDatabase({ clock });
  const running: Started[] = [];
  afterEach(async () => {
    for (const { conductor } of running.splice(0)) await conductor.stop();
    await database.clear();
  });
  /** The number of rounds of periodic work that are under way. */
  const rounds = (): number => running.reduce((sum, { conductor }) => sum + conductor.rounds(), 0);
  return {
    clock,
    database,
    start: async (given) => {
      const one = await started(database.store(), clock, given);
      running.push(one);
      return one;
    },
    after: async (seconds, is) => {
      for (let turned = 0; turned < seconds && !(await is()); turned += 60) {
        await clock.advance(Math.min(60, seconds - turned));
        for (let turn = 0; turn < (rounds() === 0 ? 10 : 100) && !(await is()); turn++) await delay(10);
      }
      await until('what the clock brings', is);
    },
  };
}
