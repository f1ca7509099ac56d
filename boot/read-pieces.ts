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

/** For a file that grows: resolves with its size once that is more than `at`. */
type ArrivedAfter = (at: number) => Promise<number>;

/** @param roomFor memory for so many bytes */
async function* pieces(
  handle: FileHandle,
  start: number,
  end: number,
  arrivedAfter: ArrivedAfter,
  roomFor: (length: number) => Buffer,
): AsyncGenerator<Buffer> {
  downloads++;
  try {
    for (let at = start; at <= end;) {
      const length = Math.min((await arrivedAfter(at)) - at, end + 1 - at, pieceSize());
      await nextTurn();
      const { bytesRead, buffer } = await handle.read(roomFor(length), 0, length, at);
      if (bytesRead === 0) throw new Error('the file was truncated');
      at += bytesRead;
      yield buffer.subarray(0, bytesRead);
    }
  } finally {
    downloads--;
  }
}

/** @param start and `end`: both included */
export const readPieces = (handle: FileHandle, start: number, end: number, arrivedAfter: ArrivedAfter = complete): Readable =>
  Readable.from(
    pieces(handle, start, end, arrivedAfter, (length) => Buffer.allocUnsafeSlow(length)),
    { objectMode: false },
  );

const complete: ArrivedAfter = async () => Infinity;
/** As readPieces, in memory that is used again when `write` has resolved: new memory for each piece costs as much time as reading it. */
export async function copyPieces(
  handle: FileHandle,
  start: number,
  end: number,
  write: (piece: Buffer) => Promise<void>,
  arrivedAfter: ArrivedAfter = complete,
): Promise<void> {
  let room = Buffer.alloc(0);
  const roomFor = (length: number): Buffer => {
    // When downloads begin, each of them has to give memory back.
    if (room.length < length || room.length > 2 * pieceSize()) room = Buffer.allocUnsafeSlow(Math.max(length, pieceSize()));
    return room;
  };
  for await (const piece of pieces(handle, start, end, arrivedAfter, roomFor)) await write(piece);
}
