import { createRate } from '../../wire/shares';

it('createRate admits some of a source and in all, again in the next period', () => {
  let now = 0;
  const admits = createRate({ inAll: 3, ofSource: 2 }, 1000, () => now);
  expect(['a', 'a', 'a', 'b', 'c'].map(admits)).toEqual([true, true, false, true, false]);
  now = 999;
  expect(admits('b')).toBe(false);
  now = 1000;
  expect(['a', 'c'].map(admits)).toEqual([true, true]);
});
