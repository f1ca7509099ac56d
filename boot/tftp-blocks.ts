/** Splits a file into numbered DATA packets and reads ahead in large pieces. Packets of recent pieces are kept for retransmission. */
import { writeDataHeader } from '../wire/tftp';
import type { CachedFile } from './cache';
import type { OpenFile } from '../wire/local-files';

/** The content to send. */
export interface BlockSource {
  /** Octets. */
  readonly size: number;
  /** Fills the buffers in order with the bytes from `start` on. */
  fill(views: readonly Buffer[], start: number): Promise<void>;
}
export const fileSource = (file: OpenFile): BlockSource => ({ size: file.size, fill: (views, start) => readFully(file, views, start) });
export const textSource = (text: Buffer): BlockSource => ({
  size: text.length,
  fill: async (views, start) => {
    let at = start;
    for (const view of views) at += text.copy(view, 0, at);
  },
});
/** A file that may still be downloading. */
export const cachedSource = (file: CachedFile): BlockSource => ({
  size: file.size,
  fill: async (views, start) => {
    const end = start + lengthOf(views);
    if (end === start) return;
    const left = [...views];
    for await (const chunk of file.read(start, end - 1)) {
      for (let rest = chunk as Buffer; rest.length > 0;) {
        const view = left[0]!;
        const copied = rest.copy(view);
        rest = rest.subarray(copied);
        if (copied === view.length) left.shift();
        else left[0] = view.subarray(copied);
      }
    }
  },
});
const lengthOf = (views: readonly Buffer[]): number => views.reduce((sum, view) => sum + view.length, 0);

export interface Blocks {
  /** Octets to transfer; of a text, those of the file until its second packet is requested. */
  readonly size: number;
  /**
   * Number of DATA packets. The last one is shorter than the others, possibly empty (RFC 1350 §6). Infinity for a text of unknown length.
   */
  readonly count: number;
  /**
   * DATA packets `first` to `last` (from 1), ready to send; fewer if there are not so many. The first packet alone costs a read of one
   * block, because its receiver may not exist.
   */
  packets(first: number, last: number): Promise<readonly Buffer[]> | readonly Buffer[];
}

const HEADER = 4;
/** Octets and packets in a piece. Two pieces are kept, and a third is being read. */
const PIECE = 256 * 1024;
const PIECE_PACKETS = 512;
/** netascii is converted in memory (RFC 764 line ends), so its size is limited. */
const MAX_TEXT = 1024 * 1024;

/** Undefined if the text is too large. */
export function openBlocks(source: BlockSource, mode: string, blockSize: number, window: number): Blocks | undefined {
  if (mode !== 'netascii') return blocksOf(source, blockSize, window);
  return source.size > MAX_TEXT ? undefined : textBlocks(source, blockSize, window);
}

/** The text is converted when its second packet is requested. */
function textBlocks(source: BlockSource, blockSize: number, window: number): Blocks {
  let whole: Blocks | undefined;
  let isShort = false;
  /** The first octets of the text are in the first octets of the file, because the conversion only adds some. */
  const convert = async (most: number): Promise<Buffer> => {
    const bytes = Buffer.alloc(Math.min(source.size, most));
    await source.fill([bytes], 0);
    return netascii(bytes);
  };
  return {
    get size() {
      return whole?.size ?? source.size;
    },
    get count() {
      return whole?.count ?? (isShort ? 1 : Infinity);
    },
    packets: async (first, last) => {
      if (last === 1) {
        const start = (await convert(blockSize)).subarray(0, blockSize);
        isShort = start.length < blockSize;
        return blocksOf(textSource(start), blockSize, 1).packets(1, 1);
      }
      whole ??= blocksOf(textSource(await convert(Infinity)), blockSize, window);
      return whole.packets(first, Math.min(last, whole.count));
    },
  };
}

function blocksOf(source: BlockSource, blockSize: number, window: number): Blocks {
  const { size } = source;
  const count = Math.floor(size / blockSize) + 1;
  const each = Math.max(window, Math.min(Math.floor(PIECE / blockSize), PIECE_PACKETS));
  const pieces = new Map<number, readonly Buffer[] | Promise<readonly Buffer[]>>();

  const fill = async (index: number, most = each): Promise<readonly Buffer[]> => {
    const first = index * each + 1;
    const packets = layOut(first, Math.min(most, count - first + 1), blockSize, size);
    const views = packets.map((packet) => packet.subarray(HEADER));
    await source.fill(views, (first - 1) * blockSize);
    return packets;
  };
  const piece = (index: number): readonly Buffer[] | Promise<readonly Buffer[]> => {
    const known = pieces.get(index);
    if (known) return known;
    const coming = fill(index).then((packets) => {
      if (pieces.has(index)) pieces.set(index, packets);
      return packets;
    });
    // Avoids an unhandled rejection of a piece that was read ahead. Callers see the error.
    coming.catch(() => {});
    pieces.set(index, coming);
    return coming;
  };

  return {
    size,
    count,
    packets: (first, last) => {
      if (last === 1) return fill(0, 1);
      const from = Math.floor((first - 1) / each);
      const to = Math.floor((last - 1) / each);
      const here = piece(from);
      const next = piece(Math.min(from + 1, Math.floor((count - 1) / each)));
      for (const index of pieces.keys()) if (index < from - 1) pieces.delete(index);
      const cut = (a: readonly Buffer[], b: readonly Buffer[]): readonly Buffer[] => {
        const offset = from * each + 1;
        const own = a.slice(first - offset, last - offset + 1);
        return to === from ? own : [...own, ...b.slice(0, last - offset - each + 1)];
      };
      if (Array.isArray(here) && (to === from || Array.isArray(next))) return cut(here, next as readonly Buffer[]);
      return Promise.all([here, to === from ? [] : next]).then(([a, b]) => cut(a, b));
    },
  };
}

/** Allocates packets with headers in one buffer, so that one vectored read fills them. */
function layOut(first: number, howMany: number, blockSize: number, size: number): Buffer[] {
  const room = Buffer.allocUnsafe(howMany * (blockSize + HEADER));
  return Array.from({ length: howMany }, (_, i) => {
    const offset = i * (blockSize + HEADER);
    const length = Math.min(blockSize, size - (first - 1 + i) * blockSize);
    writeDataHeader(room, offset, (first + i) % 65536);
    return room.subarray(offset, offset + HEADER + length);
  });
}

/** Linux limits readv to 1024 buffers. */
const AT_ONCE = 1024;
async function readFully(file: OpenFile, views: readonly Buffer[], start: number): Promise<void> {
  let position = start;
  for (let i = 0; i < views.length; i += AT_ONCE) {
    const some = views.slice(i, i + AT_ONCE);
    const wanted = lengthOf(some);
    const { bytesRead } = await file.handle.readv(some, position);
    // A short read of a regular file means that it was truncated.
    if (bytesRead !== wanted) throw new Error(`the file ${file.path} became shorter while it was sent`);
    position += wanted;
  }
}

/** CR → CR NUL, LF → CR LF (RFC 764, by RFC 1350 §1). */
const netascii = (bytes: Buffer): Buffer =>
  Buffer.from(bytes.toString('latin1').replaceAll('\r', '\r\0').replaceAll('\n', '\r\n'), 'latin1');
