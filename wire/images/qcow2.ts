/** The header of a qcow2 file, and the beginning of the disk in it (QEMU docs/interop/qcow2). */
import { constants, inflateRaw } from 'node:zlib';
import { promisify } from 'node:util';

export const QCOW2_MAGIC = 'QFI\xfb';
/** Up to the type of compression. */
export const QCOW2_HEADER_LENGTH = 105;
const [VERSION_2, VERSION_3] = [2, 3];
/** Where the extensions begin in version 2. */
const LENGTH_OF_VERSION_2 = 72;
/** Bits of the size of a cluster. */
const [LEAST_BITS, MOST_BITS] = [9, 21];

/** Bits of the incompatible features. What the table does not have is unknown. */
const FEATURES: readonly (readonly [bit: number, refusal: string | null])[] = [
  // Dirty: only the counts of references may be wrong, which no reader needs.
  [0, null],
  [1, 'it is marked as corrupt'],
  [2, 'it has an external data file'],
  // The type of compression is in the header.
  [3, null],
  [4, 'it has extended tables'],
];
const KNOWN = FEATURES.reduce((bits, [bit]) => bits | (1 << bit), 0);

/** Header extensions that name another file, or a key. Others are harmless. */
const EXTENSIONS: ReadonlyMap<number, string> = new Map([
  [0xe2792aca, 'it has a backing file'],
  [0x44415441, 'it has an external data file'],
  [0x0537be77, 'it is encrypted'],
]);
const MAX_EXTENSIONS = 64;

/** The incompatible features: all of them are in the lower half. */
export const incompatibleFeatures = (head: Buffer): number => (head.readUInt32BE(4) === VERSION_3 ? head.readUInt32BE(76) : 0);

/** Bytes of the disk. */
export const qcow2Size = (head: Buffer): number => Number(head.readBigUInt64BE(24));

/**
 * Why the image is refused: it needs other files, or a reader that knows more. Undefined: nothing is known against it.
 * @param head the file's first bytes. Extensions beyond them are not seen
 */
export function qcow2Refusal(head: Buffer): string | undefined {
  if (head.length < QCOW2_HEADER_LENGTH) return 'its header is truncated';
  const version = head.readUInt32BE(4);
  if (version !== VERSION_2 && version !== VERSION_3) return `qcow2 version ${version} is not supported`;
  if (head.readBigUInt64BE(8) !== 0n) return 'it has a backing file';
  if (head.readUInt32BE(32) !== 0) return 'it is encrypted';
  const features = incompatibleFeatures(head);
  if ((version === VERSION_3 && head.readUInt32BE(72) !== 0) || (features & ~KNOWN) !== 0) return 'it has unknown features';
  const feature = FEATURES.find(([bit, refusal]) => refusal !== null && (features & (1 << bit)) !== 0);
  if (feature) return feature[1]!;
  const start = version === VERSION_2 ? LENGTH_OF_VERSION_2 : head.readUInt32BE(100);
  const bits = head.readUInt32BE(20);
  const end = 2 ** bits;
  if (bits < LEAST_BITS || bits > MOST_BITS || start < LENGTH_OF_VERSION_2 || start > end) return 'its header makes no sense';
  return extensionRefusal(head, start, end);
}

/** They are in the first cluster. @param end bytes of a cluster */
function extensionRefusal(head: Buffer, start: number, end: number): string | undefined {
  let at = start;
  for (let count = 0; at + 8 <= Math.min(end, head.length); count++) {
    const [type, length] = [head.readUInt32BE(at), head.readUInt32BE(at + 4)];
    if (type === 0) return undefined;
    if (count === MAX_EXTENSIONS || at + 8 + length > end) return 'its header extensions make no sense';
    const refusal = EXTENSIONS.get(type);
    if (refusal !== undefined) return refusal;
    at += 8 + Math.ceil(length / 8) * 8;
  }
  return undefined;
}

const COMPRESSION = 8;
const COMPRESSED = 1n << 62n;
const OFFSET = (1n << 56n) - 512n;
const inflated = promisify(inflateRaw);
/**
 * The first cluster of the disk; undefined: it has no data, or it is compressed with zstd. Throws an Error for one that cannot be read.
 * @param head of an image that `qcow2Refusal` does not refuse
 * @param read reads a part of the file
 */
export async function qcow2Start(head: Buffer, read: (offset: number, length: number) => Promise<Buffer>): Promise<Buffer | undefined> {
  const bits = head.readUInt32BE(20);
  const entryAt = async (offset: bigint): Promise<bigint> => (await read(Number(offset), 8)).readBigUInt64BE(0);
  if (head.readUInt32BE(36) === 0) return undefined;
  const table = (await entryAt(head.readBigUInt64BE(40) & OFFSET)) & OFFSET;
  if (table === 0n) return undefined;
  const entry = await entryAt(table);
  if ((entry & COMPRESSED) === 0n) {
    const isZero = head.readUInt32BE(4) === VERSION_3 && (entry & 1n) !== 0n;
    return isZero || (entry & OFFSET) === 0n ? undefined : read(Number(entry & OFFSET), 2 ** bits);
  }
  if ((incompatibleFeatures(head) & COMPRESSION) !== 0) return undefined;
  const offsetBits = BigInt(62 - (bits - 8));
  const offset = Number(entry & ((1n << offsetBits) - 1n));
  const sectors = Number((entry & (COMPRESSED - 1n)) >> offsetBits) + 1;
  const bytes = await read(offset, sectors * 512 - (offset % 512));
  return inflated(bytes, { finishFlush: constants.Z_SYNC_FLUSH, maxOutputLength: 2 ** bits });
}
