/** The last lines of an agent's own log in the archive of its logs (gzip, RFC 1952; tar, POSIX.1-1988 ustar). */
import { createGunzip } from 'node:zlib';
import { printable } from '../../model/log';
import { shortened } from '../../model/text';

/** Lines, and characters of each. */
const LINES = 10;
const MAX_LINE = 400;
/** Bytes of the unpacked archive that are searched, and of the log's end that are kept. */
const MOST = 64 * 2 ** 20;
const KEPT = 64 * 1024;
const BLOCK = 512;
/** Our agent's log, and that of ironic-python-agent. */
const OWN_LOG = /(?:^|\/)(?:agent\.log|journal|ironic-python-agent\.log)$/;

/** Follows the blocks of an archive. `take` returns whether the log is complete. */
function createSearch(): { readonly take: (bytes: Buffer) => boolean; readonly end: () => Buffer } {
  let rest: Buffer = Buffer.alloc(0);
  /** Bytes of the current member that follow, and of its padding. */
  let [content, padding] = [0, 0];
  let isLog = false;
  let kept: Buffer = Buffer.alloc(0);
  return {
    end: () => kept,
    take: (bytes) => {
      rest = rest.length === 0 ? bytes : Buffer.concat([rest, bytes]);
      for (;;) {
        if (content > 0) {
          const part = rest.subarray(0, content);
          if (isLog) kept = Buffer.concat([kept, part]).subarray(-KEPT);
          content -= part.length;
          rest = rest.subarray(part.length);
          if (content > 0) return false;
          if (isLog) return true;
        }
        const skipped = Math.min(padding, rest.length);
        padding -= skipped;
        rest = rest.subarray(skipped);
        if (padding > 0 || rest.length < BLOCK) return false;
        const text = (from: number, length: number): string => rest.toString('latin1', from, from + length).split('\0', 1)[0]!;
        const size = parseInt(text(124, 12), 8);
        isLog = OWN_LOG.test(text(0, 100));
        content = Number.isSafeInteger(size) && size > 0 ? size : 0;
        padding = (BLOCK - (content % BLOCK)) % BLOCK;
        rest = rest.subarray(BLOCK);
      }
    },
  };
}

/** None for what is no such archive. Never rejects. */
export async function logTail(archive: Buffer): Promise<readonly string[]> {
  const search = createSearch();
  let size = 0;
  const unpacked = createGunzip();
  try {
    unpacked.end(archive);
    for await (const part of unpacked as AsyncIterable<Buffer>) {
      size += part.length;
      if (size > MOST || search.take(part)) break;
    }
  } catch {
    // Damaged, or no archive at all: what was found before counts.
  } finally {
    unpacked.destroy();
  }
  const lines = search.end().toString('utf8').split('\n');
  return lines
    .filter((line) => line.trim() !== '')
    .slice(-LINES)
    .map((line) => shortened(printable(line), MAX_LINE));
}
