import { setImmediate as turn } from 'node:timers/promises';
import { createTurns } from '../../wire/turns';

it('createTurns lets at most two callers continue in a turn of the event loop, in order', async () => {
  const next = createTurns(2);
  const continued: number[] = [];
  const all = Array.from({ length: 5 }, async (_, at) => {
    await next();
    continued.push(at);
  });
  await Promise.resolve();
  await Promise.resolve();
  expect(continued).toEqual([]);
  let before = 0;
  while (continued.length < 5) {
    await turn();
    // Fewer where the machine is so busy that the time of a turn is used up.
    expect(continued.length - before).toBeLessThanOrEqual(2);
    before = continued.length;
  }
  expect(continued).toEqual([0, 1, 2, 3, 4]);
  await Promise.all(all);
  await next();
});
