/** Conductors for a test file, on a clock that tests advance and a database of the file, which is empty at the beginning of each test. */
import type { TestClock } from './clock';
import { testClock } from './clock';
import { started, type Started } from './conductor';
import { useDatabase, type TestDatabase } from './database';

type Given = Parameters<typeof started>[2];
export interface TestConductors {
  readonly clock: TestClock;
  readonly database: TestDatabase;
  /** A conductor, which is stopped after the test. */
  readonly start: (given?: Given) => Promise<Started>;
  /** The number of rounds of periodic work that are under way. */
  readonly rounds: () => number;
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
  return {
    clock,
    database,
    start: async (given) => {
      const one = await started(database.store(), clock, given);
      running.push(one);
      return one;
    },
    rounds: () => running.reduce((sum, { conductor }) => sum + conductor.rounds(), 0),
  };
}
