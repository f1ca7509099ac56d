/** Reads a backup in chunks: its lines, and the rows between them. */
import { END_OF_ROWS } from './backup';

/** Limit in bytes for lines other than rows. */
const MAX_LINE = 1 << 20;
const END = Buffer.from(END_OF_ROWS);
const END_AFTER_ROW = Buffer.concat([Buffer.from('\n'), END]);
const LINE_BREAK = 10;

export interface BackupReader {
  /** The next line, as JSON. Throws if there is none. */
  line(): Promise<unknown>;
  /** The rows up to the end of the table, in chunks. A long row comes in several, so that memory use does not depend on its length. */
  rows(): AsyncGenerator<Buffer>;
  /** Throws if data follows. */
  end(): Promise<void>;
}
const truncated = (): Error => new Error('it is truncated: its end is missing');

/** @param onRead gets all bytes in order, as they are consumed */
export function readBackup(source: AsyncIterable<Buffer>, onRead: (piece: Buffer) => void): BackupReader {
  const pieces = source[Symbol.asyncIterator]();
  let rest: Buffer = Buffer.alloc(0);
  const more = async (): Promise<boolean> => {
    const next = await pieces.next();
    if (next.done) return false;
    rest = rest.length === 0 ? next.value : Buffer.concat([rest, next.value]);
    return true;
  };
  const take = (length: number): Buffer => {
    const taken = rest.subarray(0, length);
    rest = rest.subarray(length);
    onRead(taken);
    return taken;
  };
  return {
    async line() {
      for (;;) {
        const end = rest.indexOf(LINE_BREAK);
        if (end > MAX_LINE || (end === -1 && rest.length > MAX_LINE)) throw new Error('it is damaged: a line has no end');
        if (end !== -1) return parsed(take(end + 1));
        if (!(await more())) throw truncated();
      }
    },
    async *rows() {
      let atStart = true;
      for (;;) {
        const head = rest.subarray(0, END.length);
        const mayBeEnd = atStart && head.equals(END.subarray(0, head.length));
        if (mayBeEnd && head.length === END.length) {
          take(END.length);
          return;
        }
        if (mayBeEnd || rest.length === 0) {
          if (!(await more())) throw truncated();
          continue;
        }
        const end = rest.indexOf(END_AFTER_ROW);
        const whole = end === -1 ? rest.lastIndexOf(LINE_BREAK) + 1 : end + 1;
        atStart = whole > 0;
        yield take(atStart ? whole : rest.length);
      }
    },
    async end() {
      if (rest.length > 0 || (await more())) throw new Error('it is damaged: something follows its end');
    },
  };
}

function parsed(line: Buffer): unknown {
  try {
    return JSON.parse(line.toString('utf8'));
  } catch {
    throw new Error('it is damaged: a line is not JSON');
  }
}
