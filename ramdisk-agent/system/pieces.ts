/** Memory for the pieces of a large file, which is used again: the kernel gives new memory page by page, and clears each. */

/** Bytes. */
export const PIECE = 2 ** 20;

export interface Pieces {
  /** Of PIECE bytes. */
  take(): Buffer;
  /** Nobody needs the bytes any more. Those that are not a whole piece of `take` are left alone. */
  give(bytes: Uint8Array): void;
}
export function pieces(): Pieces {
  const own = new WeakSet<ArrayBufferLike>();
  const free: Buffer[] = [];
  return {
    take() {
      const known = free.pop();
      if (known) return known;
      const piece = Buffer.allocUnsafeSlow(PIECE);
      own.add(piece.buffer);
      return piece;
    },
    give(bytes) {
      if (bytes.length === PIECE && own.has(bytes.buffer)) free.push(Buffer.from(bytes.buffer));
    },
  };
}
