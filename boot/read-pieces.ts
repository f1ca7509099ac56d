/**
 * Streams files in pieces. Large pieces cost less time per byte. Many concurrent downloads use small pieces, because a client that reads
 * slowly holds two or three of them in memory.
 */
import type { FileHandle } from 'node:fs/promises';
import { Readable } from 'node:stream';
import { createTurns } from '../wire/turns';

const MAX = 1024 * 1024;
const SMALLEST = 16 * 1024;
/** Bytes of the pieces of all downloads together, one piece for each. */
const OF_ALL = 16 * 1024 * 1024;

/** A turn of the event loop reads and writes at most 4 pieces, so that other clients do not wait for hundreds of downloads. */
const nextTurn = createTurns(4);

let downloads = 0;
const pieceSize = (): number => Math.max(SMALLEST, Math.min(MAX, Math.floor(OF_ALL / downloads)));

async function* pieces(
  handle: FileHandle,
  start: number,
  end: number,
  arrivedAfter: (at: number) => Promise<number>,
): AsyncGenerator<Buffer> {
  downloads++;
  try {
    for (let at = start; at <= end;) {
      const length = Math.min((await arrivedAfter(at)) - at, end + 1 - at, pieceSize());
      await nextTurn();
      const { bytesRead, buffer } = await handle.read(Buffer.allocUnsafeSlow(length), 0, length, at);
      if (bytesRead === 0) throw new Error('the file was truncated');
      at += bytesRead;
      yield buffer.subarray(0, bytesRead);
    }
  } finally {
    downloads--;
  }
}

/**
 * @param start and `end`: both included
 * @param arrivedAfter for a file that grows: resolves with its size once that is more than `at`
 */
export const readPieces = (
  handle: FileHandle,
  start: number,
  end: number,
  arrivedAfter: (at: number) => Promise<number> = async () => Infinity,
): Readable => Readable.from(pieces(handle, start, end, arrivedAfter), { objectMode: false });
