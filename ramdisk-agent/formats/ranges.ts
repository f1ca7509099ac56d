/**
 * Image files whose tables say where the disk's bytes are in the file. They are written while they arrive, without storing them. A file usually
 * has each table before what it points to, so one pass suffices. A further pass reads what precedes its table.
 */
import type { ImageWriter, Sink } from '../disk/image';

/** A range of the file to wait for. `take` processes its bytes and returns the ranges to wait for next. */
export interface FileRange {
  readonly offset: number;
  readonly length: number;
  take(bytes: Buffer): Promise<readonly FileRange[]>;
  /** The file must have all its bytes. Absent: those behind its end are zeros. */
  readonly isWhole?: true;
  /** The file ends before it. Absent: the image is damaged then. */
  readonly atEnd?: () => Promise<void>;
}

/** Bytes that are on the disk as they are in the file. */
interface Run {
  /** In the file. */
  readonly from: number;
  /** On the disk. */
  readonly to: number;
  readonly length: number;
}
/** Bytes of a run that are in memory at a time. */
const PIECE = 2 ** 20;
/** The most runs in memory, of all tables that are known and not yet copied. */
const MAX_RUNS = 2 ** 20;
/** The most tables that one table may name: those of 8 TiB in grains of 64 KiB. */
export const MAX_RANGES = 2 ** 18;
export const tooManyTables = (): Error => new Error('the tables of the image do not fit into memory');

/** A part of the disk, and where the file has its bytes; null: zeros. */
export interface Part {
  readonly to: number;
  readonly length: number;
  readonly from: number | null;
}
/** Sorts runs by their place in the file, and joins those that continue each other. */
function joined(runs: readonly Run[]): readonly Run[] {
  const result: Run[] = [];
  for (const run of runs.toSorted((a, b) => a.from - b.from)) {
    const last = result.at(-1);
    const continues = last && last.from + last.length === run.from && last.to + last.length === run.to;
    if (continues) result[result.length - 1] = { ...last, length: last.length + run.length };
    else result.push(run);
  }
  return result;
}
type Lay = (parts: Iterable<Part>) => Promise<readonly FileRange[]>;
/**
 * Returns a function that writes the zeros of a table's parts, which are in the order of the disk, and returns the ranges of the others. Many
 * tables may be at one place of the file, so the bound is for all of them together.
 */
export function layOn(sink: Sink): Lay {
  let held = 0;
  return async (parts) => {
    const runs: Run[] = [];
    let zeros = { start: 0, length: 0 };
    for (const { to, length, from } of parts) {
      if (from !== null) {
        if (held + runs.push({ from, to, length }) > MAX_RUNS) throw tooManyTables();
      } else if (zeros.start + zeros.length === to) zeros.length += length;
      else {
        if (zeros.length > 0) await sink.zero(zeros.start, zeros.length);
        zeros = { start: to, length };
      }
    }
    if (zeros.length > 0) await sink.zero(zeros.start, zeros.length);
    const copied = joined(runs);
    held += copied.length;
    return copying(sink, copied, () => (held -= copied.length));
  };
}
/** Copies runs, which are in the order of the file, piece by piece. */
function copying(sink: Sink, runs: readonly Run[], over: () => void, at = 0, done = 0): readonly FileRange[] {
  const run = runs[at];
  if (!run) {
    over();
    return [];
  }
  const length = Math.min(PIECE, run.length - done);
  return [
    {
      offset: run.from + done,
      length,
      isWhole: true,
      async take(bytes) {
        await sink.write(bytes, run.to + done);
        return done + length < run.length ? copying(sink, runs, over, at, done + length) : copying(sink, runs, over, at + 1);
      },
    },
  ];
}

const MAX_PASSES = 4;

/** @param first the range with which the file begins */
export function rangesWriter(first: FileRange): ImageWriter {
  let window: Buffer = Buffer.alloc(0);
  /** Chunks after the window that are not yet joined with it, since a join at each chunk would take quadratic time. */
  let arrived: Buffer[] = [];
  let arrivedBytes = 0;
  /** The window's offset in the file. */
  let base = 0;
  let waiting = queue([first]);
  let missed: FileRange[] = [];
  let passes = 1;

  function join(): void {
    window = Buffer.concat([window, ...arrived]);
    arrived = [];
    arrivedBytes = 0;
  }
  /** Processes all ranges that are completely in the window. At the file's `end` it also processes truncated ranges, filled with zeros. */
  async function drain(end: boolean): Promise<void> {
    for (;;) {
      const next = waiting.first();
      const known = base + window.length;
      if (!next || next.offset >= known) {
        base = known;
        window = Buffer.alloc(0);
        return;
      }
      if (next.offset < base) {
        missed.push(waiting.remove());
        continue;
      }
      const start = next.offset - base;
      const bytes = window.subarray(start, start + next.length);
      if (bytes.length < next.length && !end) {
        window = window.subarray(start);
        base = next.offset;
        return;
      }
      if (bytes.length < next.length && next.isWhole) throw new Error('the image is damaged: it ends in its content');
      waiting.remove();
      const whole = bytes.length < next.length ? Buffer.concat([bytes, Buffer.alloc(next.length - bytes.length)]) : bytes;
      for (const range of await next.take(whole)) waiting.add(range);
    }
  }
  return {
    async take(chunk) {
      arrived.push(chunk);
      arrivedBytes += chunk.length;
      const next = waiting.first();
      const known = base + window.length + arrivedBytes;
      const isIncomplete = next && next.offset >= base && next.offset < known && next.offset + next.length > known;
      if (isIncomplete) return;
      join();
      await drain(false);
    },
    async end() {
      join();
      await drain(true);
      for (let next = waiting.first(); next; next = waiting.first()) {
        if (!next.atEnd) throw new Error('the image is damaged: it points beyond its end');
        await waiting.remove().atEnd!();
      }
      if (missed.length === 0) return 'done';
      if (++passes > MAX_PASSES) throw new Error('the image is damaged: its tables do not come to an end');
      waiting = queue(missed);
      missed = [];
      base = 0;
      return 'again';
    },
  };
}

/** The ranges to wait for, ordered by their offset in the file (a binary heap). */
function queue(initial: readonly FileRange[]): { first(): FileRange | undefined; remove(): FileRange; add(range: FileRange): void } {
  const heap: FileRange[] = [];
  const swap = (a: number, b: number): void => {
    [heap[a], heap[b]] = [heap[b]!, heap[a]!];
  };
  const before = (a: number, b: number): boolean => heap[a]!.offset < heap[b]!.offset;
  const add = (range: FileRange): void => {
    heap.push(range);
    for (let at = heap.length - 1, up = (at - 1) >> 1; at > 0 && before(at, up); at = up, up = (at - 1) >> 1) swap(at, up);
  };
  initial.forEach(add);
  return {
    first: () => heap[0],
    remove() {
      const first = heap[0]!;
      const last = heap.pop()!;
      if (heap.length > 0) heap[0] = last;
      for (let at = 0; ;) {
        const [left, right] = [2 * at + 1, 2 * at + 2];
        let least = at;
        if (left < heap.length && before(left, least)) least = left;
        if (right < heap.length && before(right, least)) least = right;
        if (least === at) return first;
        swap(at, least);
        at = least;
      }
    },
    add,
  };
}
