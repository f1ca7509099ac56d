/**
 * Answers that are kept: the JSON of one row in one shape, as bytes, held against the row's revision at every request. A list reads ids
 * and revisions, then only the rows that are not kept as they are now. See docs/decisions/0005-fragments.md.
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
interface FragmentRequest<Row extends CachedRow> {
  /** Everything beside the row that its JSON depends on (`shapeOf`). */
  readonly shape: string;
  /** What the database says that there is now. */
  readonly versions: readonly RowVersion[];
  /** Reads rows; one that is gone meanwhile is missing in the answer. */
  readonly read: (ids: readonly number[]) => Promise<readonly Row[]>;
  /** Asked for once, and only when something is to be rendered. */
  readonly renderer: () => (row: Row) => unknown;
}
export interface Fragments {
  /** The JSON of each row, in the order of `versions`, none of it older than they are. */
  of<Row extends CachedRow>(wanted: FragmentRequest<Row>): Promise<readonly Fragment[]>;
  /** What is kept, by its size. */
  readonly size: number;
}

/** Bytes that an entry takes beside its own: its key, its place in the map, the buffer's header. */
const OVERHEAD = 300;
/** Rows that are read and rendered in one go: others get their turn in between, and memory does not swell. */
const BATCH = 250;

/** All that an answer depends on, as a short word of even length: callers choose some of it. */
export const shapeOf = (...parts: readonly unknown[]): string => hash('sha256', JSON.stringify(parts), 'base64');

/** Not `Buffer.from`: small ones of those are parts of a larger buffer, all of which stays as long as one part is kept. */
function ownBytes(text: string): Buffer {
  const bytes = Buffer.allocUnsafeSlow(Buffer.byteLength(text));
  bytes.write(text);
  return bytes;
}

/** @param limit bytes; what was used longest ago goes first */
export function createFragments(limit: number, metrics: Metrics): Fragments {
  // A Map keeps the order of insertion: whatever is used is put in again, so the first is the oldest.
  const kept = new Map<string, CachedFragment>();
  let size = 0;
  const weight = ({ bytes }: CachedFragment): number => bytes.length + OVERHEAD;

  function drop(key: string, fragment: CachedFragment): void {
    kept.delete(key);
    size -= weight(fragment);
  }
  function keep(key: string, fragment: CachedFragment): void {
    const before = kept.get(key);
    // Somebody else may have read a later one meanwhile.
    if (before && before.revision > fragment.revision) return;
    if (before) drop(key, before);
    kept.set(key, fragment);
    size += weight(fragment);
    for (const [oldest, one] of kept) {
      if (size <= limit) break;
      drop(oldest, one);
    }
  }
  function current(key: string, revision: number): CachedFragment | undefined {
    const found = kept.get(key);
    if (found?.revision !== revision) return undefined;
    kept.delete(key);
    kept.set(key, found);
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
      for (const { id, revision } of versions) {
        const fragment = current(`${shape}${id}`, revision);
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
          keep(`${shape}${id}`, fragment);
        }
      return versions.flatMap(({ id }) => found.get(id) ?? []);
    },
  };
}
