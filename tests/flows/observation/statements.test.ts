/** How many statements the work of a conductor sends to the database, BEGIN and COMMIT included. */
import { randomUUID } from 'node:crypto';
import { Client } from 'pg';
import type { RunningConductor } from '../../../conductor/index';
import { INTERFACES } from '../../../drivers/index';
import { testClock } from '../../support/clock';
import { useDatabase } from '../../support/database';
import { FAKE, startFake } from '../../support/fakes/fake-hardware';
import { until } from '../../support/until';

const clock = testClock();
const database = useDatabase({ clock });
let conductor: RunningConductor | undefined;
afterEach(async () => {
  jest.restoreAllMocks();
  await conductor?.stop();
  await database.clear();
});
/** How many statements `work` takes. */
async function statements(work: () => Promise<unknown>): Promise<number> {
  const query = jest.spyOn(Client.prototype, 'query');
  await work();
  return query.mock.calls.length;
}

it('a node goes from enroll to active in few SQL statements', async () => {
  const fake = (conductor = await startFake(database.store(), clock, FAKE));
  const lifecycle = async (): Promise<void> => {
    const { uuid } = await fake.createNode({ uuid: randomUUID(), driver: 'fake-hardware' });
    for (const verb of ['manage', 'provide', 'active']) {
      await fake.provision(uuid, verb, {});
      await fake.idle();
    }
    expect(await database.store().nodes.find(uuid)).toMatchObject({ provision_state: 'active', reservation: null });
  };
  await lifecycle();
  // Two of them create the node, and read it at the end.
  expect(await statements(lifecycle)).toBeLessThanOrEqual(24);
});

it('the power synchronisation of a thousand nodes takes few SQL statements', async () => {
  const asked = jest.spyOn(INTERFACES.power.fake!, 'get');
  conductor = await startFake(database.store(), clock, FAKE);
  await database.query(
    `INSERT INTO nodes (uuid, driver, provision_state, power_state, network_interface, created_at)
     SELECT gen_random_uuid()::text, 'fake-hardware', 'active', 'power on', 'noop', now() FROM generate_series(1, 1000)`,
  );
  const count = await statements(async () => {
    const isOver = (): boolean => asked.mock.calls.length >= 1000;
    for (let seconds = 0; !isOver() && seconds < 135; seconds++) await clock.advance(1);
    // The current round continues while the clock stands still, so that no other periodic work begins.
    await until('every machine was asked', isOver);
  });
  expect(asked).toHaveBeenCalledTimes(1000);
  // Pages of a hundred nodes, and two minutes of other periodic work. A node with the expected power state needs no statement of its own.
  expect(count).toBeLessThan(200);
});
