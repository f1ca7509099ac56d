import { retry } from '../../model/clock';

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
