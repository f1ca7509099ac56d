/**
 * A cache of responses: the JSON of one row in one shape, as bytes. Each request compares the revision of a fragment with that of its row.
 * A list reads ids and revisions, then only the rows that are not cached at that revision. See docs/decisions/0005-fragments.md.
 */
import { hash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import type { Metrics } from '../../model/metrics';
import type { RowVersion } from '../../store/store';
import { createTurns, sliced } from '../../wire/turns';

export interface Fragment {
  readonly uuid: string;
  readonly bytes: Buffer;
}
interface CachedFragment extends Fragment {
  readonly revision: number;
}
interface CachedRow extends RowVersion {
  readonly uuid: string;
}
interface FragmentRequest<Row extends CachedRow, Version extends RowVersion> {
  /**
   * Everything besides the row that its JSON depends on (`shapeOf`). It may differ between rows, for example because the caller may read
   * different fields of them. A rendered row is cached under the shape of the row as it was read, which may be newer than its version.
   */
  readonly shape: (row: Version | Row) => string;
  /** The current ids and revisions from the database. */
  readonly versions: readonly Version[];
  /** Reads rows. A row that was deleted meanwhile is missing in the result. */
  readonly read: (ids: readonly number[]) => Promise<readonly Row[]>;
  /** The bytes of rows, about, by ID. Absent: one row is read. */
  readonly sizes?: (ids: readonly number[]) => Promise<ReadonlyMap<number, number>>;
  /** Called at most once, and only if a row must be rendered. */
  readonly renderer: () => (row: Row) => unknown;
  /** Changes the JSON of a row before it is cached. */
  readonly rewrite?: (json: string) => string;
}
export interface Fragments {
  /**
   * The JSON of each row in slices, in the order of `versions`, and not older than its version. Rows that were deleted meanwhile are missing.
   * Each slice is read when it is asked for.
   */
  slices<Row extends CachedRow, Version extends RowVersion>(
    request: FragmentRequest<Row, Version>,
  ): AsyncGenerator<readonly Fragment[], void>;
  /** The JSON of one row. Undefined: the row was deleted. */
  of<Row extends CachedRow, Version extends RowVersion>(
    version: Version,
    request: Omit<FragmentRequest<Row, Version>, 'versions'>,
  ): Promise<Fragment | undefined>;
  /** Bytes in the cache. */
  readonly size: number;
}

/** Resolves when a slice of a list may be read and rendered: of all requests, one in a turn of the event loop. */
export const nextSlice = createTurns(1);
/** Bytes of an entry besides its text: its key, its place in the map, the buffer's header. */
const OVERHEAD = 300;
/** The most rows that are read and rendered at once. Other requests run between the batches. */
const BATCH = 250;
/** Bytes of cached fragments in a slice. */
const CACHED_SLICE = 2 << 20;
/** Fewer rows are read without asking for their sizes. */
const FEW = 2;

/** A hash of everything that a fragment depends on. Its length is fixed, because clients choose some of the parts. */
export const shapeOf = (...parts: readonly unknown[]): string => hash('sha256', JSON.stringify(parts), 'base64');

/** Not `Buffer.from`: its small buffers are slices of a pool, and one slice keeps the whole pool in memory. */
function ownBytes(text: string): Buffer {
  const bytes = Buffer.allocUnsafeSlow(Buffer.byteLength(text));
  bytes.write(text);
  return bytes;
}

/** @param limit bytes of the cache */
export function createFragments(limit: number, metrics: Metrics): Fragments {
  // At least 1: lru-cache refuses 0, and no fragment is that small.
  const cache = new LRUCache<string, CachedFragment>({
    maxSize: Math.max(1, limit),
    sizeCalculation: ({ bytes }) => bytes.length + OVERHEAD,
  });
  function cachedOf<Version extends RowVersion>(shape: (row: Version) => string, version: Version): CachedFragment | undefined {
    const fragment = cache.get(`${shape(version)}${version.id}`);
    return fragment?.revision === version.revision ? fragment : undefined;
  }
  const count = (result: 'hit' | 'miss', rows: number): void => {
    if (rows > 0) metrics.count('bloomery_api_fragments_total', { result }, rows);
  };
  /** The cached fragments of the first versions, until these fill a slice, or as many stale ones as are read at once have been found. `to`: the first version that was not looked up. */
  function takeFrom<Version extends RowVersion>(
    shape: (row: Version) => string,
    versions: readonly Version[],
    from: number,
  ): { readonly found: Map<number, Fragment>; readonly stale: readonly number[]; readonly to: number } {
    const found = new Map<number, Fragment>();
    const stale: number[] = [];
    let to = from;
    let cached = 0;
    for (; to < versions.length && stale.length < BATCH && cached < CACHED_SLICE; to++) {
      const version = versions[to]!;
      const fragment = cachedOf(shape, version);
      if (fragment) {
        found.set(version.id, fragment);
        cached += fragment.bytes.length;
      } else stale.push(version.id);
    }
    count('hit', found.size);
    count('miss', stale.length);
    return { found, stale, to };
  }
  async function* slices<Row extends CachedRow, Version extends RowVersion>({
    shape,
    versions,
    read,
    sizes,
    renderer,
    rewrite = (json) => json,
  }: FragmentRequest<Row, Version>): AsyncGenerator<readonly Fragment[], void> {
    let render: ((row: Row) => unknown) | undefined;
    let begun = 0;
    while (begun < versions.length) {
      const { found, stale, to } = takeFrom<Version>(shape, versions, begun);
      const bytes = stale.length > FEW ? await sizes?.(stale) : undefined;
      const reads = sliced(stale, (id) => bytes?.get(id) ?? 0);
      for (const [at, slice] of reads.entries()) {
        if (reads.length > 1) await nextSlice();
        if (at > 0) {
          // The fragments up to the first one that is not read yet.
          const end = versions.findIndex(({ id }, index) => index >= begun && id === slice[0]);
          yield versions.slice(begun, end).flatMap(({ id }) => found.get(id) ?? []);
          for (const { id } of versions.slice(begun, end)) found.delete(id);
          begun = end;
        }
        for (const row of await read(slice)) {
          const { id, uuid, revision } = row;
          render ??= renderer();
          const fragment = { uuid, revision, bytes: ownBytes(rewrite(JSON.stringify(render(row)))) };
          found.set(id, fragment);
          const key = `${shape(row)}${id}`;
          // A concurrent request may have read a later revision.
          if ((cache.peek(key)?.revision ?? revision) <= revision) cache.set(key, fragment);
        }
      }
      yield versions.slice(begun, to).flatMap(({ id }) => found.get(id) ?? []);
      begun = to;
    }
  }

  metrics.read('bloomery_api_fragments_bytes', () => [[{}, cache.calculatedSize]]);
  return {
    get size() {
      return cache.calculatedSize;
    },
    slices,
    async of(version, request) {
      const cached = cachedOf(request.shape, version);
      if (cached) {
        count('hit', 1);
        return cached;
      }
      for await (const [fragment] of slices({ ...request, versions: [version] })) return fragment;
      return undefined;
    },
  };
}
