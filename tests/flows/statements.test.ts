/** What the work of a conductor costs the database: statements, BEGIN and COMMIT counted too. */
import { randomUUID } from 'node:crypto';
import { Client } from 'pg';
import type { RunningConductor } from '../../conductor/index';
import { testClock } from '../support/clock';
import { useDatabase } from '../support/database';
import { FAKE, startFake } from '../support/fake-hardware';

const clock = testClock();
const database = useDatabase({ clock });
let conductor: RunningConductor | undefined;
afterEach(async () => {
  jest.restoreAllMocks();
  await conductor?.stop();
});
/** How many statements `work` takes. */
async function statements(work: () => Promise<unknown>): Promise<number> {
  const query = jest.spyOn(Client.prototype, 'query');
  await work();
  return query.mock.calls.length;
}

it('takes a node from enroll to active in few statements', async () => {
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
  // The making of the node and the last look are two of them.
  expect(await statements(lifecycle)).toBeLessThanOrEqual(24);
});
