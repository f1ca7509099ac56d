/** The header and the descriptor of a VMDK file with sparse extents (VMware, Virtual Disk Format 5.0). */

export const VMDK_MAGIC = 'KDMV';
export const SECTOR = 512;
const DESCRIPTOR_SECTOR = 1n;
/** Bytes of a descriptor. Programs that write such files use ten thousand. */
const MAX_DESCRIPTOR = 64 * 2 ** 10;
/** In place of the offset of the grain directory: it is in a footer. */
const AT_END = 2n ** 64n - 1n;

export interface VmdkHeader {
  readonly version: number;
  /** Grains are compressed, and a marker precedes each. */
  readonly isStream: boolean;
  /** An entry of 1 in a grain table stands for zeros. */
  readonly zeroGrains: boolean;
  /** Bytes of the disk. */
  readonly size: number;
  /** Bytes. */
  readonly grainSize: number;
  readonly descriptorOffset: number;
  readonly descriptorLength: number;
  readonly entriesPerTable: number;
  /** Bytes; null: in the footer. */
  readonly directory: number | null;
  /** Bytes before the first grain. */
  readonly overhead: number;
}

const COMPRESSED = 1 << 16;
const MARKERS = 1 << 17;
const ZERO_GRAINS = 1 << 2;
const DEFLATE = 1;
const MIN_GRAIN = 8;
const MAX_GRAIN = 128 * 16;
const MAX_SECTORS = 2n ** 43n;

/** @returns the reason in place of a header that makes no sense */
export function readVmdkHeader(head: Buffer): VmdkHeader | string {
  if (head.length < SECTOR || head.toString('latin1', 0, 4) !== VMDK_MAGIC) return 'it has no header of a sparse extent';
  const [version, flags] = [head.readUInt32LE(4), head.readUInt32LE(8)];
  const wide = (at: number): bigint => head.readBigUInt64LE(at);
  const [sectors, grain, offset, length, directory, overhead] = [wide(12), wide(20), wide(28), wide(36), wide(56), wide(64)];
  const isStream = (flags & COMPRESSED) !== 0;
  if (version < 1 || version > 3) return `VMDK version ${version} is not supported`;
  if (isStream !== ((flags & MARKERS) !== 0)) return 'its grains are compressed without markers';
  if (isStream && head.readUInt16LE(77) !== DEFLATE) return 'it has an unknown compression';
  const isSound =
    sectors <= MAX_SECTORS &&
    grain >= MIN_GRAIN &&
    grain <= MAX_GRAIN &&
    (grain & (grain - 1n)) === 0n &&
    overhead <= MAX_SECTORS &&
    (directory === AT_END || directory <= MAX_SECTORS) &&
    head.readUInt32LE(44) === 512;
  if (!isSound) return 'its header makes no sense';
  if (offset !== DESCRIPTOR_SECTOR) return 'its descriptor is not behind its header';
  if (length === 0n || length * BigInt(SECTOR) > MAX_DESCRIPTOR) return 'its descriptor has no length that makes sense';
  return {
    version,
    isStream,
    zeroGrains: (flags & ZERO_GRAINS) !== 0,
    size: Number(sectors) * SECTOR,
    grainSize: Number(grain) * SECTOR,
    descriptorOffset: SECTOR,
    descriptorLength: Number(length) * SECTOR,
    entriesPerTable: 512,
    directory: directory === AT_END ? null : Number(directory) * SECTOR,
    overhead: Number(overhead) * SECTOR,
  };
}

/** The kinds whose data is in the file itself. */
const TYPES: readonly string[] = ['monolithicsparse', 'streamoptimized'];
const NO_PARENT = 'ffffffff';
const ACCESS = /^(?:rw|rdonly|noaccess) /;
/** One extent in this file: access, sectors, type, and a name without a folder. */
const EXTENT = /^(?:rw|rdonly) \d{1,19} sparse "[^"/\\]{1,255}"$/;
const FIELD = /^([a-z][a-z0-9_.-]*) ?= ?(.*)$/;

/** Why a descriptor is refused: whatever a reader could take for a name of another file. */
function descriptorRefusal(text: string): string | undefined {
  if (/[^\t\n\r -~]/.test(text)) return 'its descriptor is not text';
  const lines = text
    .toLowerCase()
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '' && !line.startsWith('#'));
  const extents = lines.filter((line) => ACCESS.test(line));
  const fields = lines.filter((line) => !ACCESS.test(line)).map((line) => FIELD.exec(line));
  if (fields.includes(null)) return 'its descriptor has a line of an unknown kind';
  const valuesOf = (name: string): readonly string[] =>
    fields.filter((field) => field![1] === name).map((field) => field![2]!.replace(/^"(.*)"$/, '$1'));
  const types = valuesOf('createtype');
  if (types.length !== 1 || !TYPES.includes(types[0]!)) return `its createType is ${types.join(' and ').slice(0, 64) || 'not given'}`;
  if (valuesOf('parentfilenamehint').length > 0 || valuesOf('parentcid').some((cid) => cid !== NO_PARENT)) return 'it has a parent';
  if (extents.length !== 1) return `its descriptor has ${extents.length} extents`;
  if (!EXTENT.test(extents[0]!)) return 'its extent is not in this file';
  return undefined;
}

/** As `qcow2Refusal`. A file without a header is a descriptor, whose extents are other files. */
export function vmdkRefusal(head: Buffer): string | undefined {
  if (head.toString('latin1', 0, 4) !== VMDK_MAGIC) return 'it is a descriptor without data';
  const header = readVmdkHeader(head);
  if (typeof header === 'string') return header;
  const end = header.descriptorOffset + header.descriptorLength;
  if (head.length < end) return 'its descriptor is truncated';
  const text = head.toString('latin1', header.descriptorOffset, end);
  const padding = text.indexOf('\0');
  return descriptorRefusal(padding < 0 ? text : text.slice(0, padding));
}

/** Bytes in which a descriptor says what it is. */
const START_OF_TEXT = 4096;
/** Whether the file is a descriptor only: text, with a type. */
export function isVmdkDescriptor(head: Buffer): boolean {
  const start = head.toString('latin1', 0, START_OF_TEXT).toLowerCase();
  return /^[\t\n\r -~]*$/.test(start) && (start.startsWith('# disk descriptorfile') || start.includes('createtype='));
}
