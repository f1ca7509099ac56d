import { retry, waitUntil } from '../../model/clock';

const failing = (times: number) => {
  const attempts: number[] = [];
  return {
    attempts,
    work: async (attempt: number): Promise<string> => {
      attempts.push(attempt);
      if (attempts.length <= times) throw new Error(`failure ${attempt}`);
      return 'done';
    },
  };
};
const sleeping = () => {
  const pauses: number[] = [];
  return { pauses, clock: { sleep: async (milliseconds: number) => void pauses.push(milliseconds) } };
};

it('repeats the work after the pauses that the errors get', async () => {
  const { attempts, work } = failing(2);
  const { pauses, clock } = sleeping();
  expect(await retry({ clock }, work, (_, attempt) => attempt * 10)).toBe('done');
  expect([attempts, pauses]).toEqual([
    [1, 2, 3],
    [10, 20],
  ]);
});
it('throws the error that gets no pause', async () => {
  const { attempts, work } = failing(9);
  const { clock } = sleeping();
  await expect(retry({ clock }, work, (_, attempt) => (attempt < 3 ? 0 : undefined))).rejects.toThrow('failure 3');
  expect(attempts).toEqual([1, 2, 3]);
});
it('ends with the reason of a signal that aborts the pause', async () => {
  const signal = AbortSignal.abort(new Error('stopped'));
  const clock = { sleep: async (_: number, ended?: AbortSignal) => ended?.throwIfAborted() };
  await expect(retry({ clock, signal }, failing(9).work, () => 0)).rejects.toThrow('stopped');
});

it('waits until a check holds', async () => {
  const { pauses, clock } = sleeping();
  let checks = 0;
  expect(
    await waitUntil(
      { clock },
      () => ++checks === 3,
      (after) => after * 10,
    ),
  ).toBe(true);
  expect([checks, pauses]).toEqual([3, [10, 20]]);
});
it('gives up after a check without a pause', async () => {
  const { pauses, clock } = sleeping();
  expect(
    await waitUntil(
      { clock },
      async () => false,
      (after) => (after < 3 ? 5 : undefined),
    ),
  ).toBe(false);
  expect(pauses).toEqual([5, 5]);
});
it('does not wait for what holds, and ends with the error of a check or the reason of the signal', async () => {
  const signal = AbortSignal.abort(new Error('stopped'));
  const clock = { sleep: async (_: number, ended?: AbortSignal) => ended?.throwIfAborted() };
  expect(
    await waitUntil(
      { clock, signal },
      () => true,
      () => 1,
    ),
  ).toBe(true);
  await expect(
    waitUntil(
      { clock, signal },
      () => false,
      () => 1,
    ),
  ).rejects.toThrow('stopped');
  const broken = (): boolean => {
    throw new Error('broken');
  };
  await expect(waitUntil({ clock }, broken, () => 1)).rejects.toThrow('broken');
});
