/** Files that are composed of others while they are read. */
import { Readable } from 'node:stream';
import { CPIO_ALIGNMENT, cpioArchive } from '../wire/images/cpio';
import type { CachedFile } from './cache';
import type { OpenFile } from '../wire/local-files';
import { copyPieces, readPieces } from './read-pieces';

/** A part of a composed file: bytes, or a file to read them from. */
export interface Piece {
  readonly at: number;
  readonly size: number;
  readonly from: Buffer | Pick<CachedFile, 'read'>;
}

/** Streams the bytes `start` to `end`, both included, of the pieces in order; gaps are zeros. */
export function streamPieces(pieces: readonly Piece[], start: number, end: number): Readable {
  const ordered = [...pieces].sort((a, b) => a.at - b.at);
  async function* bytes(): AsyncGenerator<Buffer> {
    let at = start;
    for (const piece of ordered) {
      if (piece.size === 0 || piece.at + piece.size <= at) continue;
      if (piece.at > end) break;
      if (piece.at > at) {
        yield Buffer.alloc(piece.at - at);
        at = piece.at;
      }
      const [from, to] = [at - piece.at, Math.min(end - piece.at, piece.size - 1)];
      if (Buffer.isBuffer(piece.from)) yield piece.from.subarray(from, to + 1);
      else for await (const chunk of piece.from.read(from, to)) yield chunk as Buffer;
      at = piece.at + to + 1;
    }
    if (at <= end) yield Buffer.alloc(end + 1 - at);
  }
  return Readable.from(bytes(), { objectMode: false });
}

export const readable = ({ size, modified, handle }: OpenFile): CachedFile => ({
  size,
  modified,
  read: (start, end) => readPieces(handle, start, end),
  copy: (start, end, write) => copyPieces(handle, start, end, write),
  release: () => handle.close(),
});

/** The pieces of a ramdisk, followed by a cpio archive of more files. The kernel unpacks both in order. */
export function ramdiskWith(ramdisk: CachedFile, files: Readonly<Record<string, string>>): readonly Piece[] {
  const archive = cpioArchive(Object.fromEntries(Object.entries(files).map(([path, text]) => [path, Buffer.from(text)])));
  const at = Math.ceil(ramdisk.size / CPIO_ALIGNMENT) * CPIO_ALIGNMENT;
  return [
    { at: 0, size: ramdisk.size, from: ramdisk },
    { at, size: archive.length, from: archive },
  ];
}
export const sizeOf = (pieces: readonly Piece[]): number => Math.max(...pieces.map(({ at, size }) => at + size));
