/** The counts by state over time: one of the conductors counts, each minute, and it counts on after a restart. */
import { randomUUID } from 'node:crypto';
import type { RunningConductor } from '../../../conductor/index';
import { testClock } from '../../support/clock';
import { useDatabase } from '../../support/database';
import { FAKE, startFake } from '../../support/fakes/fake-hardware';
import { until } from '../../support/until';

const clock = testClock();
const database = useDatabase({ clock });
const conductors: RunningConductor[] = [];
afterEach(async () => {
  for (const conductor of conductors.splice(0)) await conductor.stop();
});
const start = async (host: string): Promise<RunningConductor> => {
  const conductor = await startFake(database.store(), clock, { ...FAKE, 'DEFAULT.host': host });
  conductors.push(conductor);
  return conductor;
};
const rows = async (): Promise<number> => {
  const [found] = await database.query<{ readonly count: number }>('SELECT count(*)::int AS count FROM state_counts');
  return found!.count;
};
async function minutes(count: number): Promise<void> {
  // The longest period of this periodic work: a minute and a tenth.
  for (let minute = 1; minute <= count; minute++) {
    const before = await rows();
    for (let seconds = 0; seconds < 66 && (await rows()) === before; seconds++) await clock.advance(1);
    await until('the nodes are counted', async () => (await rows()) > before);
  }
}

it('one of two conductors counts the nodes each minute', async () => {
  const one = await start('one');
  await start('two');
  await one.createNode({ uuid: randomUUID(), driver: 'fake-hardware' });
  const began = clock.now();
  await minutes(3);
  expect(await rows()).toBeLessThanOrEqual((clock.now() - began) / 54_000);
  const { stateCounts } = database.store();
  expect(await stateCounts.list('1970-01-01T00:00:00+00:00')).toMatchObject([{ counts: { enroll: 1 } }]);
  for (const conductor of conductors.splice(0)) await conductor.stop();
  await start('three');
  await minutes(1);
  expect(await rows()).toBeGreaterThanOrEqual(4);
});
