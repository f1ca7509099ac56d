/** The end of console logs with their nodes. */
import type { Context } from '../../../conductor/core/context';
import { removeConsoleLog, removeStrayConsoleLogs } from '../../../conductor/requests/console';
import { silentLog } from '../../../model/log';

function bench(uuids: readonly string[], there: readonly string[], remove: (uuid: string) => Promise<void>) {
  const asked: number[] = [];
  const list = async ({ where: { uuid } }: { where: { uuid: readonly string[] } }) => {
    asked.push(uuid.length);
    return there.filter((each) => uuid.includes(each)).map((each) => ({ uuid: each }));
  };
  const context = { log: silentLog, store: { nodes: { list } }, connections: { consoleLogs: { nodes: async () => uuids, remove } } };
  return { asked, context: context as unknown as Context };
}

it('a file that cannot be removed fails no deletion of a node', async () => {
  const { context } = bench([], [], async () => {
    throw new Error('EIO');
  });
  await expect(removeConsoleLog(context, 'u')).resolves.toBeUndefined();
});
it('logs of nodes that are gone are removed, with few queries', async () => {
  const uuids = Array.from({ length: 1200 }, (_, index) => `u${index}`);
  const removed: string[] = [];
  const { context, asked } = bench(uuids, uuids.slice(2), async (uuid) => void removed.push(uuid));
  expect(await removeStrayConsoleLogs(context)).toBe(2);
  expect(removed).toEqual(['u0', 'u1']);
  expect(asked).toEqual([500, 500, 200]);
});
