import { createFairQueue, createFairWork } from '../../wire/fair-queue';

/** The items of the queue, in their order. */
function drained(queue: { shift(): string | undefined }): readonly string[] {
  const items: string[] = [];
  for (let item = queue.shift(); item !== undefined; item = queue.shift()) items.push(item);
  return items;
}

it('groups take turns, and groups within them', () => {
  const queue = createFairQueue<string>(10);
  for (const item of ['a1x', 'a1y', 'a2x', 'b1x', 'b1y']) queue.push([item[0]!, item[1]!], item);
  expect(queue.size).toBe(5);
  expect(drained(queue)).toEqual(['a1x', 'b1x', 'a2x', 'b1y', 'a1y']);
  expect(queue.size).toBe(0);
});
it('when it is full, the largest group loses its newest item', () => {
  const queue = createFairQueue<string>(3);
  for (const item of ['a1', 'a2', 'a3']) expect(queue.push(['a'], item)).toBeUndefined();
  expect(queue.push(['b'], 'b1')).toBe('a3');
  expect(queue.push(['a'], 'a4')).toBe('a4');
  expect(queue.push(['c'], 'c1')).toBe('a2');
  // All are alike: the newest is refused.
  expect(queue.push(['d'], 'd1')).toBe('d1');
  expect(drained(queue)).toEqual(['a1', 'b1', 'c1']);
});
it('serves and drops each of 10,000 items once', () => {
  const queue = createFairQueue<string>(500);
  const seen = new Set<string>();
  let seed = 1;
  const random = (below: number): number => (seed = (seed * 48271) % 2147483647) % below;
  for (let n = 0; n < 10_000; n++) {
    const lost = queue.push([String(random(2)), String(random(40)), String(random(500))], String(n));
    const served = random(3) === 0 ? queue.shift() : undefined;
    for (const item of [lost, served]) {
      if (item === undefined) continue;
      expect(seen.has(item)).toBe(false);
      seen.add(item);
    }
    expect(queue.size).toBeLessThanOrEqual(500);
  }
  for (const item of drained(queue)) seen.add(item);
  expect(seen.size).toBe(10_000);
});

describe('createFairWork', () => {
  const open = (setup: Partial<Parameters<typeof createFairWork>[0]> = {}) => {
    const begun: string[] = [];
    const ends = new Map<string, () => void>();
    let dropped = 0;
    const work = createFairWork({ waiting: 4, inWork: 10, inTurn: 2, ...setup });
    const add = (path: readonly string[], name: string): void =>
      work.add(
        path,
        () => {
          begun.push(name);
          return new Promise((end) => void ends.set(name, end));
        },
        () => void (dropped += 1),
      );
    return { begun, ends, work, add, dropped: () => dropped };
  };
  const turn = (): Promise<void> => new Promise((done) => setImmediate(done));

  it('begins some work in a turn of the event loop, and groups take turns', async () => {
    const { begun, ends, work, add, dropped } = open();
    for (let n = 0; n < 20; n++) add(['others', `invented ${n}`], `invented ${n}`);
    add(['expected', 'a'], 'expected');
    expect(begun).toEqual(['invented 0', 'invented 1']);
    await turn();
    expect(begun.slice(2)).toEqual(['invented 2', 'expected']);
    expect(dropped()).toBe(15);
    const stopped = work.stop();
    for (const end of ends.values()) end();
    await stopped;
    add(['others', 'late'], 'late');
    await turn();
    expect(begun).toHaveLength(4);
  });
  it('does so much at the same time', async () => {
    const { begun, ends, add } = open({ inWork: 1 });
    for (const name of ['a', 'b']) add([name], name);
    await turn();
    expect(begun).toEqual(['a']);
    ends.get('a')!();
    await turn();
    expect(begun).toEqual(['a', 'b']);
  });
});
