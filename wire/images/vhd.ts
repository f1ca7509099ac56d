/** The footer and the header of a VHD file (Microsoft, Virtual Hard Disk Image Format Specification 1.0). */

export const VHD_COOKIE = 'conectix';
export const VHD_FOOTER = 512;
export const VHD_HEADER = 1024;
const VERSION_1 = 0x00010000;
const [FIXED, DYNAMIC, DIFFERENCING] = [2, 3, 4];
const MAX_SIZE = 64 * 2 ** 40;
const [MIN_BLOCK, MAX_BLOCK] = [4096, 256 * 2 ** 20];

interface VhdFooter {
  readonly kind: 'dynamic' | 'fixed';
  /** Bytes of the disk. */
  readonly size: number;
  /** Bytes; of a dynamic disk. */
  readonly headerOffset: number;
}

/** The ones' complement of the sum of all bytes but its own four. */
function isChecked(bytes: Buffer, at: number): boolean {
  let sum = 0;
  for (let index = 0; index < bytes.length; index++) if (index < at || index >= at + 4) sum += bytes[index]!;
  return ~sum >>> 0 === bytes.readUInt32BE(at);
}

/** @returns the reason in place of a footer that is refused */
export function readVhdFooter(bytes: Buffer): VhdFooter | string {
  const footer = bytes.subarray(0, VHD_FOOTER);
  if (footer.length < VHD_FOOTER || footer.toString('latin1', 0, 8) !== VHD_COOKIE) return 'it has no footer';
  if (!isChecked(footer, 64)) return 'the checksum of its footer is wrong';
  if (footer.readUInt32BE(12) !== VERSION_1) return 'its version is not supported';
  const [type, size, offset] = [footer.readUInt32BE(60), Number(footer.readBigUInt64BE(48)), Number(footer.readBigUInt64BE(16))];
  if (type === DIFFERENCING) return 'it has a parent';
  if (type !== FIXED && type !== DYNAMIC) return 'its type is unknown';
  if (size > MAX_SIZE || (type === DYNAMIC && (offset < VHD_FOOTER || offset > MAX_SIZE))) return 'its footer makes no sense';
  return { kind: type === FIXED ? 'fixed' : 'dynamic', size, headerOffset: offset };
}

interface VhdHeader {
  /** Bytes. */
  readonly tableOffset: number;
  readonly entries: number;
  readonly blockSize: number;
}
/** @returns the reason in place of a header that is refused */
export function readVhdHeader(header: Buffer, size: number): VhdHeader | string {
  if (header.length < VHD_HEADER || header.toString('latin1', 0, 8) !== 'cxsparse') return 'it has no header of a dynamic disk';
  if (!isChecked(header.subarray(0, VHD_HEADER), 36)) return 'the checksum of its header is wrong';
  const [tableOffset, entries, blockSize] = [Number(header.readBigUInt64BE(16)), header.readUInt32BE(28), header.readUInt32BE(32)];
  const isPower = (blockSize & (blockSize - 1)) === 0;
  if (!isPower || blockSize < MIN_BLOCK || blockSize > MAX_BLOCK || tableOffset > MAX_SIZE || entries * blockSize < size)
    return 'its header makes no sense';
  return { tableOffset, entries, blockSize };
}

/** As `qcow2Refusal`, of a file that begins with a copy of its footer. */
export function vhdRefusal(head: Buffer): string | undefined {
  const footer = readVhdFooter(head);
  if (typeof footer === 'string') return footer;
  if (footer.kind === 'fixed') return 'its footer is at its beginning';
  const header = head.subarray(footer.headerOffset, footer.headerOffset + VHD_HEADER);
  if (header.length < VHD_HEADER) return undefined;
  const found = readVhdHeader(header, footer.size);
  return typeof found === 'string' ? found : undefined;
}
