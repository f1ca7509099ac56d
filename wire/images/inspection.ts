/**
 * Which format an image has, and whether it is safe to use, by its first bytes. Each format is a row: its signature, and what is refused in
 * it. Nothing here reads more than it is given, and nothing trusts a length in the file.
 */
import { QCOW2_MAGIC, qcow2Refusal, qcow2Size } from './qcow2';
import { readVhdFooter, VHD_COOKIE, vhdRefusal } from './vhd';
import { readVhdxMetadata, readVhdxRegions, VHDX_HEADERS, VHDX_SIGNATURE, vhdxMetadataLength, vhdxRefusal } from './vhdx';
import { isVmdkDescriptor, readVmdkHeader, VMDK_MAGIC, vmdkRefusal } from './vmdk';

/** The most bytes that the checks of a head need, except those of VHDX. */
export const HEAD_LENGTH = 128 * 2 ** 10;

interface Place {
  readonly offset: number;
  readonly length: number;
}
interface FormatRow {
  readonly name: string;
  matches(head: Buffer): boolean;
  /** Absent: nothing is refused in it. @param more what `needs` asks for, if the file can be read there */
  refusal?(head: Buffer, more: Buffer | undefined): string | undefined;
  /** What the check needs besides a head of this length. */
  needs?(head: Buffer): Place | undefined;
  /** Bytes of the disk that the image is of. Absent: the file is as large. @param head of an image that is not refused */
  size?(head: Buffer, more: Buffer | undefined): number | undefined;
}

const has =
  (offset: number, ...signatures: readonly string[]) =>
  (head: Buffer): boolean =>
    signatures.some((signature) => head.toString('latin1', offset, offset + signature.length) === signature);
/** Of what a reader returns: its size, unless it is the reason for a refusal. */
const sizeIn = (read: { readonly size: number } | string | undefined): number | undefined =>
  typeof read === 'object' ? read.size : undefined;
/** Nobody writes such images to disks. */
const banned = (): string => 'this format is not supported';

const FORMATS: readonly FormatRow[] = [
  { name: 'qcow2', matches: has(0, QCOW2_MAGIC), refusal: qcow2Refusal, size: qcow2Size },
  {
    name: 'vmdk',
    matches: (head) => has(0, VMDK_MAGIC)(head) || isVmdkDescriptor(head),
    refusal: vmdkRefusal,
    size: (head) => sizeIn(readVmdkHeader(head)),
  },
  {
    name: 'vhdx',
    matches: has(0, VHDX_SIGNATURE),
    refusal: vhdxRefusal,
    needs: vhdxNeeds,
    size: (_, more) => sizeIn(more && readVhdxMetadata(more)),
  },
  { name: 'vhd', matches: has(0, VHD_COOKIE), refusal: vhdRefusal, size: (head) => sizeIn(readVhdFooter(head)) },
  { name: 'vdi', matches: has(64, '\x7f\x10\xda\xbe') },
  { name: 'qed', matches: has(0, 'QED\0'), refusal: banned },
  { name: 'luks', matches: has(0, 'LUKS\xba\xbe') },
  // ECMA-119 §8.1.2, ECMA-167 2/9.1.2.
  { name: 'iso', matches: has(32769, 'CD001', 'NSR02', 'NSR03') },
  { name: 'gpt', matches: hasPartitionTable, refusal: partitionTableRefusal },
];

function vhdxNeeds(head: Buffer): Place | undefined {
  if (head.length < VHDX_HEADERS) return { offset: 0, length: VHDX_HEADERS };
  const regions = readVhdxRegions(head);
  return typeof regions === 'string' ? undefined : { offset: regions.metadata.offset, length: vhdxMetadataLength(regions) };
}

const SECTOR = 512;
/** The boot sector of a FAT file system has the signature too: two tables, on a fixed disk. */
function hasPartitionTable(head: Buffer): boolean {
  return head.length >= SECTOR && head.readUInt16LE(510) === 0xaa55 && !(head[16] === 2 && head[21] === 0xf8);
}
const PROTECTIVE = 0xee;
/** Ironic's checks of the table of an image that is not declared raw. */
function partitionTableRefusal(head: Buffer): string | undefined {
  const entries = [446, 462, 478, 494].map((at) => head.subarray(at, at + 16));
  if (entries.some((entry) => entry[0] !== 0 && entry[0] !== 0x80)) return 'its partition table has an invalid boot flag';
  const used = entries.flatMap((entry, index) => (entry[4] === 0 ? [] : [index]));
  if (used.length === 0) return 'its partition table has no partitions';
  const protective = entries.find((entry) => entry[4] === PROTECTIVE);
  if (!protective) return undefined;
  if (protective.toString('hex', 1, 4) !== '000200' || protective.readUInt32LE(8) !== 1) return 'its protective MBR has an invalid start';
  return used.length === 1 && used[0] === 0 ? undefined : 'its protective MBR has further partitions';
}

/** Compressions of a whole file, by its first bytes. */
const WRAPPERS: readonly (readonly [name: Wrapper, signature: string])[] = [
  ['gzip', '\x1f\x8b\x08'],
  ['xz', '\xfd7zXZ\0'],
  // RFC 8878 §3.1.1
  ['zstd', '\x28\xb5\x2f\xfd'],
];
export type Wrapper = 'gzip' | 'xz' | 'zstd';
/** Bytes that tell whether a file is compressed. */
export const WRAPPER_LENGTH = 6;
export const wrapperOf = (head: Buffer): Wrapper | undefined => WRAPPERS.find(([, signature]) => has(0, signature)(head))?.[0];

/** Whether `[conductor]permitted_image_formats` can mean a format by this name. */
export const isFormat = (name: string): boolean => name === 'raw' || FORMATS.some((row) => row.name === name);

/** A disk image that starts as an ISO image does has both, and is an ISO image. */
const isBootableIso = (names: readonly string[]): boolean => names.length === 2 && names.includes('iso') && names.includes('gpt');
/** All formats that the head has; `raw` where it has none. @internal */
export function formatsOf(head: Buffer): readonly string[] {
  const names = FORMATS.filter((row) => row.matches(head)).map((row) => row.name);
  if (isBootableIso(names)) return ['iso'];
  return names.length === 0 ? ['raw'] : names;
}

/** A further part of the file that its check needs; undefined: none. */
export const neededFor = (head: Buffer): Place | undefined => {
  const [name, ...others] = formatsOf(head);
  return others.length > 0 ? undefined : FORMATS.find((row) => row.name === name)?.needs?.(head);
};

interface Rules {
  /** [conductor]permitted_image_formats */
  readonly permitted: readonly string[];
  /** What the user or Glance says; null: nothing. */
  readonly declared: string | null;
  /** False: [conductor]disable_deep_image_inspection. */
  readonly deep: boolean;
}
interface Judged {
  /** Of several formats the first. */
  readonly format: string;
  /** In the agent's words; undefined: the image may be used. */
  readonly refusal: string | undefined;
}

/** Written to the disk as they are. */
const AS_IS: readonly string[] = ['raw', 'gpt', 'iso'];
/** Kernels and ramdisks: Ironic accepts any content. */
const ANY: readonly string[] = ['unknown', 'ari', 'aki'];
/** Whether an image may be declared so. A fixed VHD has its footer at its end, and no sign at its beginning. @internal */
export function isDeclared(declared: string | null, format: string): boolean {
  if (declared === null || ANY.includes(declared) || declared === format) return true;
  if (declared === 'raw') return AS_IS.includes(format);
  return declared === 'vhd' && (format === 'raw' || format === 'gpt');
}
/** As in Ironic, who permits raw images permits those with a partition table. @internal */
export const isPermitted = (format: string, permitted: readonly string[]): boolean =>
  permitted.includes(format) || (format === 'gpt' && permitted.includes('raw'));

/**
 * Judges an image by its first bytes. A declared raw image is written unchanged and never interpreted, so only a sign of another format is
 * refused.
 * @param more the part that `neededFor` names
 */
export function judge(head: Buffer, { permitted, declared, deep }: Rules, more?: Buffer): Judged {
  const [format, ...others] = formatsOf(head) as [string, ...string[]];
  const refused = (text: string): Judged => ({ format, refusal: `Security: ${text}` });
  if (!deep) return { format, refusal: undefined };
  if (others.length > 0) return refused(`Image matched multiple potential formats: ${[format, ...others].join(', ')}`);
  const expected = declared === 'vhd' ? 'vhd' : format;
  if (declared !== 'raw' && !isPermitted(expected, permitted))
    return refused(`Detected image format was ${expected}, but only ${permitted.join(', ')} are allowed`);
  if (!isDeclared(declared, format)) return refused(`Expected format was ${declared}, but image was actually ${format}`);
  if (declared === 'raw') return { format, refusal: undefined };
  const reason = FORMATS.find((row) => row.name === format)?.refusal?.(head, more);
  return reason === undefined
    ? { format, refusal: undefined }
    : refused(`Image failed safety check: the ${format} image cannot be used: ${reason}`);
}

/**
 * Bytes of the disk that an image of the format needs, where its first bytes say so. `file`: it needs as many as the file has.
 * @param head of an image that `judge` does not refuse
 * @param declared as in Rules: a declared raw image is written as it is
 */
export function sizeOfDisk(head: Buffer, format: string, declared: string | null, more?: Buffer): number | 'file' | undefined {
  const row = declared === 'raw' ? undefined : FORMATS.find(({ name }) => name === format);
  if (row?.size) return row.size(head, more);
  // A fixed one has its size in its footer.
  return declared === 'vhd' ? undefined : 'file';
}
