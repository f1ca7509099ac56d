/** Makes small VMDK, VHD and VHDX files for tests, as their specifications say. Each takes the bytes of a disk. */
import { deflateSync } from 'node:zlib';

const SECTOR = 512;
const MIB = 2 ** 20;
const GRAIN = 128;
const isZero = (bytes: Buffer): boolean => bytes.every((byte) => byte === 0);
const padded = (bytes: Buffer, to: number): Buffer => Buffer.concat([bytes, Buffer.alloc(-bytes.length & (to - 1))]);
/** Pieces of the disk with their positions; the last one may be shorter. */
const pieces = (disk: Buffer, length: number): readonly (readonly [number, Buffer])[] =>
  Array.from(
    { length: Math.ceil(disk.length / length) },
    (_, index) => [index, disk.subarray(index * length, (index + 1) * length)] as const,
  );

export const descriptor = (type: string, sectors: number, more = ''): string =>
  `# Disk DescriptorFile\nversion=1\nCID=fffffffe\nparentCID=ffffffff\ncreateType="${type}"\n${more}\n# Extent description\nRW ${sectors} SPARSE "image.vmdk"\n\n#DDB\nddb.adapterType = "ide"\n`;

interface Header {
  readonly text: string;
  readonly sectors: number;
  readonly isStream: boolean;
  /** In sectors. */
  readonly directory: bigint;
  readonly overhead: number;
}
export function vmdkHeader({ text, sectors, isStream, directory, overhead }: Header): Buffer {
  const header = Buffer.alloc(SECTOR * 21);
  header.write('KDMV');
  header.writeUInt32LE(isStream ? 3 : 1, 4);
  header.writeUInt32LE(isStream ? 0x30001 : 3, 8);
  header.writeBigUInt64LE(BigInt(sectors), 12);
  header.writeBigUInt64LE(BigInt(GRAIN), 20);
  header.writeBigUInt64LE(1n, 28);
  header.writeBigUInt64LE(20n, 36);
  header.writeUInt32LE(512, 44);
  header.writeBigUInt64LE(directory, 56);
  header.writeBigUInt64LE(BigInt(overhead), 64);
  header.write('\n \r\n', 73);
  header.writeUInt16LE(isStream ? 1 : 0, 77);
  header.write(text, SECTOR);
  return header;
}

/** With the grain directory at the end, as VMware writes it. */
export function vmdkStream(disk: Buffer, text = descriptor('streamOptimized', disk.length / SECTOR)): Buffer {
  const sectors = disk.length / SECTOR;
  const head = vmdkHeader({ text, sectors, isStream: true, directory: 2n ** 64n - 1n, overhead: 128 });
  const parts: Buffer[] = [padded(head, 128 * SECTOR)];
  const marker = (value: number, kind: number): Buffer => {
    const bytes = Buffer.alloc(SECTOR);
    bytes.writeBigUInt64LE(BigInt(value));
    bytes.writeUInt32LE(kind, 12);
    return bytes;
  };
  for (const [index, grain] of pieces(disk, GRAIN * SECTOR)) {
    if (isZero(grain)) continue;
    const packed = deflateSync(padded(grain, GRAIN * SECTOR));
    const front = Buffer.alloc(12);
    front.writeBigUInt64LE(BigInt(index * GRAIN));
    front.writeUInt32LE(packed.length, 8);
    parts.push(padded(Buffer.concat([front, packed]), SECTOR));
  }
  parts.push(marker(4, 1), Buffer.alloc(4 * SECTOR), marker(1, 2), Buffer.alloc(SECTOR), marker(1, 3));
  const footer = Buffer.from(head.subarray(0, SECTOR));
  footer.writeBigUInt64LE(7n, 56);
  return Buffer.concat([...parts, footer, marker(0, 0)]);
}

export function vmdkSparse(disk: Buffer, text = descriptor('monolithicSparse', disk.length / SECTOR)): Buffer {
  const grains = pieces(disk, GRAIN * SECTOR);
  const tables = Math.ceil(grains.length / 512);
  const [directoryAt, tablesAt] = [21, 22];
  const overhead = Math.ceil((tablesAt + tables * 4) / GRAIN) * GRAIN;
  const head = vmdkHeader({ text, sectors: disk.length / SECTOR, isStream: false, directory: BigInt(directoryAt), overhead });
  const front = Buffer.alloc(overhead * SECTOR);
  head.copy(front);
  for (let table = 0; table < tables; table++) front.writeUInt32LE(tablesAt + table * 4, directoryAt * SECTOR + table * 4);
  const data: Buffer[] = [];
  for (const [index, grain] of grains) {
    if (isZero(grain)) continue;
    front.writeUInt32LE(overhead + data.length * GRAIN, tablesAt * SECTOR + index * 4);
    data.push(padded(grain, GRAIN * SECTOR));
  }
  return Buffer.concat([front, ...data]);
}

const summed = (bytes: Buffer, at: number): Buffer => {
  bytes.writeUInt32BE(~bytes.reduce((sum, byte) => sum + byte, 0) >>> 0, at);
  return bytes;
};
export function vhdFooter(size: number, type: number): Buffer {
  const footer = Buffer.alloc(SECTOR);
  footer.write('conectix');
  footer.writeUInt32BE(2, 8);
  footer.writeUInt32BE(0x10000, 12);
  footer.writeBigUInt64BE(type === 2 ? 2n ** 64n - 1n : 512n, 16);
  footer.write('test', 28);
  footer.writeBigUInt64BE(BigInt(size), 40);
  footer.writeBigUInt64BE(BigInt(size), 48);
  footer.writeUInt32BE(type, 60);
  return summed(footer, 64);
}
export const fixedVhd = (disk: Buffer): Buffer => Buffer.concat([disk, vhdFooter(disk.length, 2)]);
const VHD_BLOCK = 2 * MIB;
export function dynamicVhd(disk: Buffer, type = 3): Buffer {
  const blocks = pieces(disk, VHD_BLOCK);
  const table = Buffer.alloc(Math.ceil((blocks.length * 4) / SECTOR) * SECTOR, 0xff);
  const header = Buffer.alloc(1024);
  header.write('cxsparse');
  header.writeBigUInt64BE(2n ** 64n - 1n, 8);
  header.writeBigUInt64BE(1536n, 16);
  header.writeUInt32BE(0x10000, 24);
  header.writeUInt32BE(blocks.length, 28);
  header.writeUInt32BE(VHD_BLOCK, 32);
  let at = 1536 + table.length;
  const data: Buffer[] = [];
  for (const [index, block] of blocks) {
    if (isZero(block)) continue;
    table.writeUInt32BE(at / SECTOR, index * 4);
    data.push(Buffer.alloc(SECTOR, 0xff), padded(block, VHD_BLOCK));
    at += SECTOR + VHD_BLOCK;
  }
  const footer = vhdFooter(disk.length, type);
  return Buffer.concat([footer, summed(header, 36), table, ...data, footer]);
}

const crc32c = (bytes: Buffer): number => {
  let value = 0xffffffff;
  for (const byte of bytes) {
    value ^= byte;
    for (let bit = 0; bit < 8; bit++) value = value & 1 ? (value >>> 1) ^ 0x82f63b78 : value >>> 1;
  }
  return (value ^ 0xffffffff) >>> 0;
};
const signed = (bytes: Buffer): Buffer => {
  bytes.writeUInt32LE(crc32c(bytes), 4);
  return bytes;
};
const guid = (text: string): Buffer => {
  const parts = text.split('-').map((part) => Buffer.from(part, 'hex'));
  return Buffer.concat([...parts.slice(0, 3).map((part) => part.reverse()), ...parts.slice(3)]);
};
export interface VhdxChanges {
  readonly log?: boolean;
  readonly parent?: boolean;
  readonly locator?: boolean;
  readonly region?: boolean;
  readonly state?: number;
  /** Of each copy of the header; the first is 1, the second 2. */
  readonly sequences?: readonly [number, number];
}
const VHDX_BLOCK = MIB;
/** The block allocation table precedes the metadata, as qemu-img has it. */
export function vhdx(disk: Buffer, changes: VhdxChanges = {}): Buffer {
  const [bat, metadata] = [2 * MIB, 3 * MIB];
  const front = Buffer.alloc(4 * MIB);
  front.write('vhdxfile');
  for (const [index, sequence] of (changes.sequences ?? [1, 2]).entries()) {
    const header = Buffer.alloc(4096);
    header.write('head');
    header.writeBigUInt64LE(BigInt(sequence), 8);
    if (changes.log) header.fill(1, 48, 64);
    header.writeUInt16LE(1, 66);
    signed(header).copy(front, (index + 1) * 65536);
  }
  const regions = Buffer.alloc(65536);
  regions.write('regi');
  const entries: readonly (readonly [string, number])[] = [
    ['2DC27766-F623-4200-9D64-115E9BFD4A08', bat],
    ['8B7CA206-4790-4B9A-B8FE-575F050F886E', metadata],
    ...(changes.region ? ([['00000000-0000-0000-0000-000000000001', MIB]] as const) : []),
  ];
  regions.writeUInt32LE(entries.length, 8);
  for (const [index, [id, offset]] of entries.entries()) {
    const at = 16 + index * 32;
    guid(id).copy(regions, at);
    regions.writeBigUInt64LE(BigInt(offset), at + 16);
    regions.writeUInt32LE(MIB, at + 24);
    regions.writeUInt32LE(1, at + 28);
  }
  signed(regions);
  for (const at of [3, 4]) regions.copy(front, at * 65536);
  const value = (length: number, write: (bytes: Buffer) => void): Buffer => {
    const bytes = Buffer.alloc(length);
    write(bytes);
    return bytes;
  };
  const items: readonly (readonly [string, Buffer])[] = [
    [
      'CAA16737-FA36-4D43-B3B6-33F0AA44E76B',
      value(8, (bytes) => bytes.writeUInt32LE(VHDX_BLOCK) && bytes.writeUInt32LE(changes.parent ? 2 : 0, 4)),
    ],
    ['2FA54224-CD1B-4876-B211-5DBED83BF4B8', value(8, (bytes) => bytes.writeBigUInt64LE(BigInt(disk.length)))],
    ['8141BF1D-A96F-4709-BA47-F233A8FAAB5F', value(4, (bytes) => bytes.writeUInt32LE(512))],
    ...(changes.locator ? ([['A8D35F2D-B30B-454D-ABF7-D3D84834AB0C', Buffer.alloc(20)]] as const) : []),
  ];
  front.write('metadata', metadata);
  front.writeUInt16LE(items.length, metadata + 10);
  for (const [index, [id, bytes]] of items.entries()) {
    const [at, offset] = [metadata + 32 + index * 32, 65536 + index * 32];
    guid(id).copy(front, at);
    front.writeUInt32LE(offset, at + 16);
    front.writeUInt32LE(bytes.length, at + 20);
    front.writeUInt32LE(4, at + 24);
    bytes.copy(front, metadata + offset);
  }
  const data: Buffer[] = [];
  for (const [index, block] of pieces(disk, VHDX_BLOCK)) {
    const state = isZero(block) ? 0 : (changes.state ?? 6);
    front.writeBigUInt64LE(BigInt(state) | (BigInt(isZero(block) ? 0 : 4 + data.length) << 20n), bat + index * 8);
    if (!isZero(block)) data.push(padded(block, VHDX_BLOCK));
  }
  return Buffer.concat([front, ...data]);
}
