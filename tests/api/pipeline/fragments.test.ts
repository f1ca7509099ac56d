import { createFragments, shapeOf, type Fragment, type Fragments } from '../../../api/pipeline/fragments';
import { silentMetrics } from '../../../model/metrics';
import { batched } from '../../../store/sql/batch';

interface StoredRow {
  readonly id: number;
  readonly revision: number;
  readonly uuid: string;
  readonly text?: string;
}
const row = (id: number, revision = 1, text = ''): StoredRow => ({ id, revision, uuid: `u${id}`, text });
const MANY = 1_000_000;

const all = async (slices: AsyncIterable<readonly Fragment[]>): Promise<readonly Fragment[]> => {
  const found: Fragment[] = [];
  for await (const slice of slices) found.push(...slice);
  return found;
};
/** A table that is read through fragments, and notes which rows were read. */
function tableOf(rows: StoredRow[], limit = MANY) {
  const fragments = createFragments(limit, silentMetrics);
  const read: number[][] = [];
  const list = async (shape = 'a', table = rows): Promise<string> => {
    const found = await all(
      fragments.slices({
        shape: () => shape,
        versions: table.map(({ id, revision }) => ({ id, revision })),
        read: async (ids) => {
          read.push([...ids]);
          return rows.filter(({ id }) => ids.includes(id)).reverse();
        },
        renderer: () => (value: StoredRow) => `${value.uuid}.${value.revision}`,
      }),
    );
    return found.map(({ uuid, bytes }) => `${uuid}=${bytes.toString()}`).join();
  };
  return { rows, fragments, read, list };
}

it('reads only the rows whose current revision is not cached, and keeps the order', async () => {
  const { rows, list, read } = tableOf([row(3), row(1), row(2)]);
  expect(await list()).toBe('u3="u3.1",u1="u1.1",u2="u2.1"');
  expect(await list()).toBe('u3="u3.1",u1="u1.1",u2="u2.1"');
  rows[1] = row(1, 2);
  expect(await list()).toBe('u3="u3.1",u1="u1.2",u2="u2.1"');
  await list('another shape');
  expect(read).toEqual([[3, 1, 2], [1], [3, 1, 2]]);
});
it('returns and caches the current row when it was written after its version was read', async () => {
  const { rows, list, read } = tableOf([row(1)]);
  rows[0] = row(1, 5);
  expect(await list('a', [row(1, 4)])).toBe('u1="u1.5"');
  expect(await list()).toBe('u1="u1.5"');
  expect(read).toEqual([[1]]);
});
it('omits rows that were deleted meanwhile', async () => {
  const { list, fragments } = tableOf([row(1), row(3)]);
  expect(await fragments.of(row(2), { shape: () => 'a', read: async () => [], renderer: () => () => '' })).toBeUndefined();
  expect(await list('a', [row(1), row(2), row(3)])).toBe('u1="u1.1",u3="u3.1"');
});
it('caches the later of two revisions, even if the earlier one is read last', async () => {
  const fragments = createFragments(MANY, silentMetrics);
  const ask = (version: StoredRow, found: Promise<StoredRow>) =>
    fragments.of(version, {
      shape: () => '',
      read: async () => [await found],
      renderer: () => (value: StoredRow) => value.revision,
    });
  let answerLate: (found: StoredRow) => void = () => {};
  const slow = ask(row(1, 1), new Promise((resolve) => (answerLate = resolve)));
  await ask(row(1, 2), Promise.resolve(row(1, 2)));
  answerLate(row(1, 1));
  await slow;
  const never = Promise.reject<StoredRow>(new Error('must not be read'));
  never.catch(() => {});
  expect((await ask(row(1, 2), never))!.bytes.toString()).toBe('2');
});
it('reads a long list in parts', async () => {
  const { list, read } = tableOf(Array.from({ length: 600 }, (_, id) => row(id)));
  await list();
  expect(read.map(({ length }) => length)).toEqual([250, 250, 100]);
});

describe('the cache', () => {
  const fill = async (fragments: Fragments, id: number, length: number): Promise<boolean> => {
    let wasRead = false;
    await fragments.of(row(id), {
      shape: () => '',
      read: async () => {
        wasRead = true;
        return [row(id)];
      },
      renderer: () => () => 'x'.repeat(length),
    });
    return wasRead;
  };
  it('is limited, and drops the least recently used rows first', async () => {
    const fragments = createFragments(10_000, silentMetrics);
    for (const id of [1, 2, 3]) await fill(fragments, id, 2500);
    expect(await fill(fragments, 1, 2500)).toBe(false);
    expect(await fill(fragments, 4, 2500)).toBe(true);
    expect(fragments.size).toBeLessThanOrEqual(10_000);
    expect([await fill(fragments, 1, 2500), await fill(fragments, 3, 2500), await fill(fragments, 2, 2500)]).toEqual([false, false, true]);
  });
  it.each([0, 100])('of %i bytes keeps nothing, and lists are still answered', async (limit) => {
    const { fragments, list } = tableOf([row(1)], limit);
    expect(await list()).toBe('u1="u1.1"');
    expect(fragments.size).toBe(0);
  });
  it('never exceeds its limit with rows of various lengths', async () => {
    const fragments = createFragments(5000, silentMetrics);
    for (let id = 0; id < 300; id++) {
      await fill(fragments, id % 37, (id * 7919) % 6000);
      expect(fragments.size).toBeLessThanOrEqual(5000);
    }
  });
});

it('shapeOf() distinguishes shapes by each part, and by how the parts are split', () => {
  const shapes = [['a', 1], ['a', 2], ['a1'], ['a', '1'], [['a', 1]], ['a', 1, null]].map((parts) => shapeOf(...parts));
  expect(new Set(shapes).size).toBe(shapes.length);
  expect(shapeOf('a', 1)).toBe(shapes[0]);
});

describe('batched()', () => {
  it('combines the calls of a turn of the event loop, and those that arrive during a query', async () => {
    const asked: (readonly number[])[] = [];
    const answer: (() => void)[] = [];
    const square = batched(async (keys: readonly number[]) => {
      asked.push(keys);
      await new Promise<void>((done) => answer.push(done));
      return keys.map((key) => key * key);
    });
    const first = [1, 2].map((key) => square(key));
    await new Promise(setImmediate);
    const later = [3, 4].map((key) => square(key));
    expect(asked).toEqual([[1, 2]]);
    answer[0]!();
    expect(await Promise.all(first)).toEqual([1, 4]);
    expect(asked).toEqual([
      [1, 2],
      [3, 4],
    ]);
    answer[1]!();
    expect(await Promise.all(later)).toEqual([9, 16]);
  });
  it('passes on the error of a query, and starts a new query for the next call', async () => {
    let fails = true;
    const ask = batched(async (keys: readonly number[]) => {
      if (fails) throw new Error('away');
      return keys;
    });
    await expect(ask(1)).rejects.toThrow('away');
    fails = false;
    expect(await ask(2)).toBe(2);
  });
});
it('caches a row under the shape of the row that was read, not of its older version', async () => {
  const fragments = createFragments(MANY, silentMetrics);
  const read: string[] = [];
  /** The presentation depends on the owner. The version says that it is `before`; the row has another one by now. */
  const ask = (owner: string, now = owner) =>
    fragments.of(
      { ...row(1), owner },
      {
        shape: (value: { readonly owner: string }) => value.owner,
        read: async () => [{ ...row(1), owner: now }],
        renderer: () => (value) => {
          read.push(value.owner);
          return value.owner;
        },
      },
    );
  expect((await ask('before', 'after'))!.bytes.toString()).toBe('"after"');
  expect((await ask('before'))!.bytes.toString()).toBe('"before"');
  await ask('after');
  expect(read).toEqual(['after', 'before']);
});

describe('slices', () => {
  const LARGE = 300_000;
  const lengths = async (slices: AsyncIterable<readonly Fragment[]>): Promise<readonly string[]> => {
    const found: string[] = [];
    for await (const slice of slices) found.push(slice.map(({ uuid }) => uuid).join());
    return found;
  };
  const ask = (fragments: Fragments, rows: readonly StoredRow[], read: number[][]) =>
    fragments.slices({
      shape: () => '',
      versions: rows,
      read: async (ids) => {
        read.push([...ids]);
        return rows.filter(({ id }) => ids.includes(id));
      },
      sizes: async (ids) => new Map(ids.map((id) => [id, rows.find((candidate) => candidate.id === id)!.text!.length])),
      renderer: () => (value: StoredRow) => value,
    });

  it('reads rows by their sizes, and each slice when it is asked for', async () => {
    const rows = [row(1), row(2, 1, 'x'.repeat(LARGE)), row(3, 1, 'x'.repeat(LARGE)), row(4), row(5, 1, 'x'.repeat(3 * LARGE))];
    const fragments = createFragments(MANY * 10, silentMetrics);
    const read: number[][] = [];
    const slices = ask(fragments, rows, read);
    await slices.next();
    expect(read).toEqual([[1, 2]]);
    expect(await lengths(slices)).toEqual(['u3,u4', 'u5']);
    expect(read).toEqual([[1, 2], [3, 4], [5]]);
  });
  it('divides cached fragments too, and keeps the order of cached and read ones', async () => {
    const rows = Array.from({ length: 12 }, (_, at) => row(at + 1, 1, 'x'.repeat(LARGE)));
    const fragments = createFragments(MANY * 10, silentMetrics);
    await lengths(ask(fragments, rows, []));
    const read: number[][] = [];
    expect((await lengths(ask(fragments, rows, read))).length).toBeGreaterThan(1);
    expect(read).toEqual([]);
    const changed = rows.map((item) => (item.id % 4 === 0 ? { ...item, revision: 2 } : item));
    const slices = await lengths(ask(fragments, changed, read));
    expect(slices.join().split(',')).toEqual(rows.map(({ uuid }) => uuid));
    expect(read.flat()).toEqual([4, 8, 12]);
  });
});
