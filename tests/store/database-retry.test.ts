import { retryingStore, retryWhileDatabaseDown } from '../../store/database-retry';
import { Fault } from '../../model/errors';
import type { Log } from '../../model/log';
import type { Store } from '../../store/store';
import { testClock } from '../support/clock';

const away = (): Fault => new Fault('TemporaryFailure', { message: 'away' });
const said: string[] = [];
const note = (line: string): void => void said.push(line);
const log: Log = { debug: note, info: note, warn: note, error: note, child: () => log };
const waiting = (signal = new AbortController().signal) => ({ clock: testClock(), signal, log });
/** Fails so often, then answers. */
const failing = (times: number, error: () => unknown = away) => {
  let asked = 0;
  return async (): Promise<number> => {
    if (asked++ < times) throw error();
    return asked;
  };
};
beforeEach(() => said.splice(0));

it.each([0, 1, 30])('retryWhileDatabaseDown retries until the work succeeds (%i failures), and logs the wait once', async (times) => {
  expect(await retryWhileDatabaseDown(waiting(), failing(times))).toBe(times + 1);
  expect(said).toEqual(times === 0 ? [] : ['temporary failure: the work is retried', 'the retried work succeeded']);
});

it('retryWhileDatabaseDown does not retry after other errors', async () => {
  await expect(
    retryWhileDatabaseDown(
      waiting(),
      failing(1, () => new Fault('NodeLocked', { node: 'n', host: 'h' })),
    ),
  ).rejects.toMatchObject({ name: 'NodeLocked' });
  await expect(
    retryWhileDatabaseDown(
      waiting(),
      failing(1, () => new Error('defect')),
    ),
  ).rejects.toThrow('defect');
});

it('retryWhileDatabaseDown fails when the conductor stops', async () => {
  const ending = new AbortController();
  const asked = retryWhileDatabaseDown(waiting(ending.signal), async () => {
    ending.abort(new Error('stopping'));
    throw away();
  });
  await expect(asked).rejects.toThrow('away');
});

it('retryingStore retries each call of the store, and a transaction as a whole', async () => {
  let asked = 0;
  const inner = { nodes: { find: failing(0) } };
  const bare = { nodes: { find: failing(2) }, transaction: async (work: (store: unknown) => Promise<number>) => work(inner) };
  const store = retryingStore(bare as unknown as Store, (work) => {
    asked++;
    return retryWhileDatabaseDown(waiting(), work);
  });
  expect(await store.nodes.find('n')).toBe(3);
  expect(await store.transaction(({ nodes }) => nodes.find('n'))).toBe(1);
  expect(asked).toBe(2);
});
