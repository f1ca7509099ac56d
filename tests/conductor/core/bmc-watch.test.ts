/** Which parts are read after events. */
import { readOrigins } from '../../../conductor/core/bmc-watch';
import type { Context } from '../../../conductor/core/context';
import type { NodeTask } from '../../../conductor/core/node-task';
import { healthRules } from '../../../model/rules/health-rules';

it('however many parts events name, those that were not well are read first', async () => {
  const asked: string[] = [];
  let kept: unknown;
  const store = {
    bmcWatches: { find: async () => ({ origins: ['/bad'] }), put: async (_: string, row: unknown) => void (kept = row) },
    healthAlerts: { putChanges: async () => {} },
  };
  const origin = async (_: unknown, path: string) => {
    asked.push(path);
    return { source: 'event', kind: 'memory', subject: path, states: path === '/bad' ? ['critical'] : [] };
  };
  const context = { store, options: {}, healthRules: healthRules([]) } as unknown as Context;
  const task = { node: { uuid: 'u' }, driver: { management: { events: { origin } } } } as unknown as NodeTask;
  const read = await readOrigins(
    context,
    task,
    Array.from({ length: 100 }, (_, index) => `/${index}`),
  );
  expect(asked).toHaveLength(64);
  expect(asked[0]).toBe('/bad');
  expect(read.has('/bad')).toBe(true);
  // It is still bad, and so is read the next time.
  expect(kept).toBeUndefined();
});
