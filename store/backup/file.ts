/** Reading a backup: its lines, and the rows between them, never more than a piece at a time. */
import { END_OF_ROWS } from './backup';

/** A line that is no row is never as long. */
const LONGEST_LINE = 1 << 20;
const END = Buffer.from(END_OF_ROWS);
const END_BEHIND_A_ROW = Buffer.concat([Buffer.from('\n'), END]);
const LINE_BREAK = 10;

export interface BackupReader {
  /** The next line, as JSON. Throws when there is none. */
  line(): Promise<unknown>;
  /** Whole rows, up to the line that ends them. */
  rows(): AsyncGenerator<Buffer>;
  /** Throws unless everything was read. */
  end(): Promise<void>;
}
const cutOff = (): Error => new Error('it is cut off: its end is missing');

/** @param told every byte in its order, as far as it was read */
export function readBackup(source: AsyncIterable<Buffer>, told: (piece: Buffer) => void): BackupReader {
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
    told(taken);
    return taken;
  };
  return {
    async line() {
      for (;;) {
        const end = rest.indexOf(LINE_BREAK);
        if (end > LONGEST_LINE || (end === -1 && rest.length > LONGEST_LINE)) throw new Error('it is damaged: a line has no end');
        if (end !== -1) return parsed(take(end + 1));
        if (!(await more())) throw cutOff();
      }
    },
    async *rows() {
      for (;;) {
        // At the beginning of a row.
        if (rest.subarray(0, END.length).equals(END)) {
          take(END.length);
          return;
        }
        const end = rest.indexOf(END_BEHIND_A_ROW);
        const whole = end === -1 ? rest.lastIndexOf(LINE_BREAK) + 1 : end + 1;
        if (whole > 0) yield take(whole);
        else if (!(await more())) throw cutOff();
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
    throw new Error('it is damaged: a line is no JSON');
  }
}
