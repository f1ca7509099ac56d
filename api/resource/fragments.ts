/**
 * A cache of responses: the JSON of one row in one shape, as bytes. Each request compares the revision of a fragment with that of its row.
 * A list reads ids and revisions, then only the rows that are not cached at that revision. See docs/decisions/0005-fragments.md.
 */
import { hash } from 'node:crypto';
import type { Metrics } from '../../model/metrics';
import type { RowVersion } from '../../store/store';

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
  /** Called at most once, and only if a row must be rendered. */
  readonly renderer: () => (row: Row) => unknown;
}
export interface Fragments {
  /** The JSON of each row, in the order of `versions`, and not older than its version. Rows that were deleted meanwhile are missing. */
  of<Row extends CachedRow, Version extends RowVersion>(request: FragmentRequest<Row, Version>): Promise<readonly Fragment[]>;
  /** Bytes in the cache. */
  readonly size: number;
}

/** Bytes of an entry besides its text: its key, its place in the map, the buffer's header. */
const OVERHEAD = 300;
/** Rows that are read and rendered at once. Other requests run between the batches, and memory stays bounded. */
const BATCH = 250;

/** A hash of everything that a fragment depends on. Its length is fixed, because clients choose some of the parts. */
export const shapeOf = (...parts: readonly unknown[]): string => hash('sha256', JSON.stringify(parts), 'base64');

/** Not `Buffer.from`: its small buffers are slices of a pool, and one slice keeps the whole pool in memory. */
function ownBytes(text: string): Buffer {
  const bytes = Buffer.allocUnsafeSlow(Buffer.byteLength(text));
  bytes.write(text);
  return bytes;
}

/** @param limit bytes; the least recently used fragments are removed first */
export function createFragments(limit: number, metrics: Metrics): Fragments {
  // A Map iterates in insertion order. Each use inserts the fragment again, so the first one is the least recently used.
  const cache = new Map<string, CachedFragment>();
  let size = 0;
  const weight = ({ bytes }: CachedFragment): number => bytes.length + OVERHEAD;

  function drop(key: string, fragment: CachedFragment): void {
    cache.delete(key);
    size -= weight(fragment);
  }
  function put(key: string, fragment: CachedFragment): void {
    const before = cache.get(key);
    // A concurrent request may have read a later revision.
    if (before && before.revision > fragment.revision) return;
    if (before) drop(key, before);
    cache.set(key, fragment);
    size += weight(fragment);
    for (const [oldest, one] of cache) {
      if (size <= limit) break;
      drop(oldest, one);
    }
  }
  function take(key: string, revision: number): CachedFragment | undefined {
    const found = cache.get(key);
    if (found?.revision !== revision) return undefined;
    cache.delete(key);
    cache.set(key, found);
    return found;
  }

  metrics.read('bloomery_api_fragments_bytes', () => [[{}, size]]);
  return {
    get size() {
      return size;
    },
    async of({ shape, versions, read, renderer }) {
      const found = new Map<number, Fragment>();
      const stale: number[] = [];
      for (const version of versions) {
        const { id, revision } = version;
        const fragment = take(`${shape(version)}${id}`, revision);
        if (fragment) found.set(id, fragment);
        else stale.push(id);
      }
      if (versions.length > stale.length) metrics.count('bloomery_api_fragments_total', { result: 'hit' }, versions.length - stale.length);
      if (stale.length > 0) metrics.count('bloomery_api_fragments_total', { result: 'miss' }, stale.length);
      const render = stale.length > 0 ? renderer() : undefined;
      for (let start = 0; start < stale.length; start += BATCH)
        for (const row of await read(stale.slice(start, start + BATCH))) {
          const { id, uuid, revision } = row;
          const fragment = { uuid, revision, bytes: ownBytes(JSON.stringify(render!(row))) };
          found.set(id, fragment);
          put(`${shape(row)}${id}`, fragment);
        }
      return versions.flatMap(({ id }) => found.get(id) ?? []);
    },
  };
}
