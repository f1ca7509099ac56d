/** The headers, the region table and the metadata of a VHDX file ([MS-VHDX]). */

export const VHDX_SIGNATURE = 'vhdxfile';
const KIB = 2 ** 10;
const MIB = 2 ** 20;
/** Where two headers and two region tables end. */
export const VHDX_HEADERS = 320 * KIB;
const HEADERS = [64 * KIB, 128 * KIB] as const;
const TABLES = [192 * KIB, 256 * KIB] as const;
const HEADER_LENGTH = 4 * KIB;
const TABLE_LENGTH = 64 * KIB;
const MAX_ENTRIES = 2047;
const MAX_SIZE = 64 * 2 ** 40;

/** GUIDs as they are in the file, in hexadecimal. */
const guid = (text: string): string => {
  const [a, b, c, d, e] = text.split('-') as [string, string, string, string, string];
  const turned = (part: string): string => Buffer.from(part, 'hex').reverse().toString('hex');
  return (turned(a) + turned(b) + turned(c) + d + e).toLowerCase();
};
const BAT = guid('2DC27766-F623-4200-9D64-115E9BFD4A08');
const METADATA = guid('8B7CA206-4790-4B9A-B8FE-575F050F886E');
const FILE_PARAMETERS = guid('CAA16737-FA36-4D43-B3B6-33F0AA44E76B');
const DISK_SIZE = guid('2FA54224-CD1B-4876-B211-5DBED83BF4B8');
const LOGICAL_SECTOR = guid('8141BF1D-A96F-4709-BA47-F233A8FAAB5F');
const PHYSICAL_SECTOR = guid('CDA348C7-445D-4471-9CC9-E9885251C556');
const PAGE_83 = guid('BECA12AB-B2E6-4523-93EF-C309E000C746');
const PARENT_LOCATOR = guid('A8D35F2D-B30B-454D-ABF7-D3D84834AB0C');
const KNOWN_ITEMS: readonly string[] = [FILE_PARAMETERS, DISK_SIZE, LOGICAL_SECTOR, PHYSICAL_SECTOR, PAGE_83, PARENT_LOCATOR];

/** CRC-32C (RFC 3720, appendix B.4). */
const CRC = Uint32Array.from({ length: 256 }, (_, byte) => {
  let value = byte;
  for (let bit = 0; bit < 8; bit++) value = value & 1 ? (value >>> 1) ^ 0x82f63b78 : value >>> 1;
  return value >>> 0;
});
/** Whether the bytes have the checksum in their second field. */
function isChecked(bytes: Buffer): boolean {
  let value = 0xffffffff;
  for (let at = 0; at < bytes.length; at++) value = CRC[(value ^ (at >= 4 && at < 8 ? 0 : bytes[at]!)) & 0xff]! ^ (value >>> 8);
  return (value ^ 0xffffffff) >>> 0 === bytes.readUInt32LE(4);
}
const signatureOf = (bytes: Buffer): string => bytes.toString('latin1', 0, 4);

/** The valid header that was written last. */
function currentHeader(head: Buffer): Buffer | undefined {
  const headers = HEADERS.map((at) => head.subarray(at, at + HEADER_LENGTH)).filter(
    (header) => signatureOf(header) === 'head' && isChecked(header),
  );
  return headers.sort((a, b) => (a.readBigUInt64LE(8) < b.readBigUInt64LE(8) ? 1 : -1))[0];
}

interface Region {
  readonly offset: number;
  readonly length: number;
}
interface VhdxRegions {
  readonly bat: Region;
  readonly metadata: Region;
}
/**
 * @param head the first VHDX_HEADERS bytes
 * @returns the reason in place of a file that is refused
 */
export function readVhdxRegions(head: Buffer): VhdxRegions | string {
  if (head.length < VHDX_HEADERS) return 'its headers are truncated';
  const header = currentHeader(head);
  if (!header) return 'it has no valid header';
  if (header.readUInt16LE(66) !== 1) return 'its version is not supported';
  if (header.subarray(48, 64).some((byte) => byte !== 0)) return 'its log is not empty: it was not closed';
  const table = TABLES.map((at) => head.subarray(at, at + TABLE_LENGTH)).find((bytes) => signatureOf(bytes) === 'regi' && isChecked(bytes));
  const count = table?.readUInt32LE(8) ?? 0;
  if (!table || count > MAX_ENTRIES) return 'it has no valid region table';
  const found = new Map<string, Region>();
  for (let at = 16; at < 16 + count * 32; at += 32) {
    const id = table.toString('hex', at, at + 16);
    const [offset, length] = [Number(table.readBigUInt64LE(at + 16)), table.readUInt32LE(at + 24)];
    const isRequired = (table.readUInt32LE(at + 28) & 1) !== 0;
    if (id !== BAT && id !== METADATA && isRequired) return 'it has an unknown region';
    if (found.has(id) || offset < MIB || offset > MAX_SIZE) return 'its region table makes no sense';
    found.set(id, { offset, length });
  }
  const [bat, metadata] = [found.get(BAT), found.get(METADATA)];
  return bat && metadata && metadata.length >= TABLE_LENGTH ? { bat, metadata } : 'its region table is not complete';
}

/** Bytes of the metadata that are read: the table, and values behind it. */
export const vhdxMetadataLength = ({ metadata }: VhdxRegions): number => Math.min(metadata.length, MIB);

interface VhdxDisk {
  /** Bytes of the disk. */
  readonly size: number;
  readonly blockSize: number;
  readonly sectorSize: number;
}
/** @returns the reason in place of a disk that is refused */
export function readVhdxMetadata(bytes: Buffer): VhdxDisk | string {
  if (bytes.length < TABLE_LENGTH || bytes.toString('latin1', 0, 8) !== 'metadata') return 'it has no metadata';
  const count = bytes.readUInt16LE(10);
  if (count > MAX_ENTRIES) return 'its metadata makes no sense';
  const values = new Map<string, Buffer>();
  for (let at = 32; at < 32 + count * 32; at += 32) {
    const id = bytes.toString('hex', at, at + 16);
    const [offset, length, flags] = [bytes.readUInt32LE(at + 16), bytes.readUInt32LE(at + 20), bytes.readUInt32LE(at + 24)];
    if (!KNOWN_ITEMS.includes(id) && (flags & 4) !== 0) return 'it has unknown metadata';
    if (values.has(id)) return 'its metadata makes no sense';
    values.set(id, bytes.subarray(offset, offset + length));
  }
  const [parameters, disk, sector] = [values.get(FILE_PARAMETERS), values.get(DISK_SIZE), values.get(LOGICAL_SECTOR)];
  if (!parameters || !disk || !sector || parameters.length < 8 || disk.length < 8 || sector.length < 4)
    return 'its metadata is not complete';
  if ((parameters.readUInt32LE(4) & 2) !== 0 || values.has(PARENT_LOCATOR)) return 'it has a parent';
  const [blockSize, size, sectorSize] = [parameters.readUInt32LE(0), Number(disk.readBigUInt64LE(0)), sector.readUInt32LE(0)];
  const isPower = (blockSize & (blockSize - 1)) === 0;
  const isSound = isPower && blockSize >= MIB && blockSize <= 256 * MIB && size <= MAX_SIZE && [512, 4096].includes(sectorSize);
  return isSound ? { size, blockSize, sectorSize } : 'its metadata makes no sense';
}

/** As `qcow2Refusal`. @param head undefined where less than VHDX_HEADERS bytes were read */
export function vhdxRefusal(head: Buffer, metadata: Buffer | undefined): string | undefined {
  const regions = head.length < VHDX_HEADERS ? undefined : readVhdxRegions(head);
  if (typeof regions === 'string') return regions;
  const disk = metadata && readVhdxMetadata(metadata);
  return typeof disk === 'string' ? disk : undefined;
}
