import { setImmediate as turn } from 'node:timers/promises';
import { createTurns } from '../../wire/turns';

it('lets so many callers continue in a turn of the event loop, in their order', async () => {
  const next = createTurns(2);
  const continued: number[] = [];
  const all = Array.from({ length: 5 }, async (_, at) => {
    await next();
    continued.push(at);
  });
  await Promise.resolve();
  await Promise.resolve();
  expect(continued).toEqual([0, 1]);
  const counts: number[] = [];
  while (continued.length < 5) {
    await turn();
    counts.push(continued.length);
  }
  expect(continued).toEqual([0, 1, 2, 3, 4]);
  // A turn of this loop may come before one of the callers' turns.
  expect(new Set(counts)).toEqual(new Set([...counts.filter((count) => count % 2 === 0), 5]));
  await Promise.all(all);
  await next();
});
