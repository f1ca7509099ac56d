/**
 * The words of erasing disks: what a client may choose, which steps follow, what each method proves, and what an agent reports of each disk
 * (docs/erase.md).
 */
import { reasonOf } from '../errors';
import { isObject, type JsonObject } from '../json';
import { type HintedDisk, matchDisks, parseHints } from './hints';

/** What a client chooses → the only erase step of the cleaning that follows, and its least priority; null: none. */
export const ERASE_CHOICES = {
  none: null,
  metadata: { step: 'erase_devices_metadata', priority: 99 },
  express: { step: 'erase_devices_express', priority: 99 },
  full: { step: 'erase_devices', priority: 10 },
} as const;
export type EraseChoice = keyof typeof ERASE_CHOICES;
const CHOICES = Object.keys(ERASE_CHOICES) as readonly EraseChoice[];
const STEPS: readonly string[] = CHOICES.flatMap((choice) => ERASE_CHOICES[choice]?.step ?? []);
/** Whether a step erases disks. */
export const isEraseStep = ({ interface: owner, step }: { readonly interface: string; readonly step: string }): boolean =>
  owner === 'deploy' && STEPS.includes(step);

/** What is wrong with a choice; undefined: nothing. */
export const eraseProblem = (value: unknown): string | undefined =>
  CHOICES.some((known) => known === value) ? undefined : `must be one of ${CHOICES.join(', ')}`;

const MAX_KEEP = 64;
const MAX_KEEP_TEXT = 8192;
/** What is wrong with a list of hints for disks to keep; undefined: nothing. */
export function keepProblem(value: unknown): string | undefined {
  if (!Array.isArray(value) || value.length > MAX_KEEP) return `must be a list of at most ${MAX_KEEP} objects with hints of disks`;
  if (JSON.stringify(value).length > MAX_KEEP_TEXT) return `must have at most ${MAX_KEEP_TEXT} characters`;
  for (const [index, hints] of (value as readonly unknown[]).entries()) {
    try {
      if (!isObject(hints)) return `[${index}] must be an object of hint names and values`;
      if (parseHints(hints).length === 0) return `[${index}] must have a hint`;
    } catch (error) {
      return `[${index}]: ${reasonOf(error)}`;
    }
  }
  return undefined;
}
/** The disks that hints keep, and the hints that no disk matches. Throws an Error for a wrong hint. */
export function keptDisks<Disk extends HintedDisk>(
  disks: readonly Disk[],
  keep: readonly JsonObject[],
): { readonly kept: readonly Disk[]; readonly unmatched: readonly JsonObject[] } {
  const found = keep.map((hints) => ({ hints, disks: matchDisks(disks, parseHints(hints)) }));
  const names = new Set(found.flatMap((each) => each.disks.map(({ name }) => name)));
  return {
    kept: disks.filter(({ name }) => names.has(name)),
    unmatched: found.filter((each) => each.disks.length === 0).map(({ hints }) => hints),
  };
}
/** The hints of disks to keep, of a node as the agent gets it. */
export function keepOf(node: JsonObject): readonly JsonObject[] {
  const internal = node['driver_internal_info'];
  const choice = isObject(internal) ? internal['erase_choice'] : undefined;
  const keep = isObject(choice) ? choice['keep'] : undefined;
  return Array.isArray(keep) ? (keep as unknown[]).filter(isObject) : [];
}

const CONTROLLER_SAYS = 'The controller of the disk reported that it was done.';
const ALL_BLOCKS = 'Spare and remapped blocks are included.';
const ONLY_ADDRESSABLE = 'Blocks that the disk has remapped, and its spare blocks, are not included.';
interface EraseMethod {
  readonly title: string;
  readonly proves: string;
  /** The disk destroys the key of its data. This takes seconds. */
  readonly crypto?: true;
}
/** What an agent names → what a certificate says. */
const ERASE_METHODS = {
  'opal-psid-revert': {
    title: 'Opal PSID revert',
    crypto: true,
    proves: `The key of all data on the disk was replaced (TCG Opal). ${ALL_BLOCKS} ${CONTROLLER_SAYS}`,
  },
  'nvme-sanitize-crypto': {
    title: 'NVMe sanitize, crypto erase',
    crypto: true,
    proves: `The keys of all user data in the NVM subsystem were changed, caches included. ${ALL_BLOCKS} ${CONTROLLER_SAYS}`,
  },
  'nvme-sanitize-block': {
    title: 'NVMe sanitize, block erase',
    proves: `All blocks of the NVM subsystem that may hold user data were erased, caches included. ${ALL_BLOCKS} ${CONTROLLER_SAYS}`,
  },
  'nvme-format-crypto': {
    title: 'NVMe format, cryptographic erase',
    crypto: true,
    proves: `The key of the user data in the namespace was deleted. ${CONTROLLER_SAYS}`,
  },
  'nvme-format-user-data': {
    title: 'NVMe format, user data erase',
    proves: `All user data in the namespace was erased. ${CONTROLLER_SAYS}`,
  },
  'ata-sanitize-crypto': {
    title: 'ATA sanitize, crypto scramble',
    crypto: true,
    proves: `The keys of all user data on the disk were changed. ${ALL_BLOCKS} ${CONTROLLER_SAYS}`,
  },
  'ata-sanitize-block': {
    title: 'ATA sanitize, block erase',
    proves: `All blocks of the disk that may hold user data were erased. ${ALL_BLOCKS} ${CONTROLLER_SAYS}`,
  },
  'ata-secure-erase-enhanced': {
    title: 'ATA secure erase, enhanced',
    proves: `The disk wrote patterns of its maker to all user data areas, sectors that it had remapped included. ${CONTROLLER_SAYS}`,
  },
  'ata-secure-erase': {
    title: 'ATA secure erase',
    proves: `The disk wrote zeros or ones to all user data areas. Sectors that it had remapped may not be included. ${CONTROLLER_SAYS}`,
  },
  'scsi-sanitize-crypto': {
    title: 'SCSI sanitize, cryptographic erase',
    crypto: true,
    proves: `The keys of all user data on the disk were changed. ${ALL_BLOCKS} ${CONTROLLER_SAYS}`,
  },
  'scsi-sanitize-block': {
    title: 'SCSI sanitize, block erase',
    proves: `All blocks of the disk that may hold user data were erased. ${ALL_BLOCKS} ${CONTROLLER_SAYS}`,
  },
  discard: {
    title: 'discard',
    proves: `All blocks were given back, and the disk says that such blocks read as zeros. The old data may remain in its memory cells.`,
  },
  'write-zeroes': {
    title: 'write zeroes',
    proves: `The disk took a command to write zeros to all its addresses. ${ONLY_ADDRESSABLE}`,
  },
  overwrite: {
    title: 'overwriting',
    proves: `All addresses of the disk were written. ${ONLY_ADDRESSABLE}`,
  },
  metadata: {
    title: 'metadata',
    proves: 'The first and the last MiB of the disk and of each partition were overwritten. The data between them is still there.',
  },
} as const satisfies Readonly<Record<string, EraseMethod>>;
export type EraseMethodName = keyof typeof ERASE_METHODS;
export const methodNamed = (name: EraseMethodName): EraseMethod => ERASE_METHODS[name];
export const titleOf = (name: EraseMethodName): string => ERASE_METHODS[name].title;

/** Whether the data of a disk is gone: not if only its metadata was wiped. */
export const hasErasedData = ({ method }: Pick<ErasedDisk, 'method'>): boolean => method !== null && method !== 'metadata';

/** Why a disk was left as it was. */
export const SKIPS = {
  kept: 'The request names it among the disks to keep.',
  skip_block_devices: 'The node names it in skip_block_devices.',
  'read-only': 'It is write-protected.',
  array: 'It is an array that stays, or it carries members of arrays: of those, only the arrays are erased, or stay.',
  medium: 'The ramdisk was booted from it.',
  'no-size': 'It tells no size: nothing on it could be read or written.',
} as const;
export type Skip = keyof typeof SKIPS;

/** Places that were read before and after. `zero`, `blank`, `changed`, `same` and `unreadable` add up to `places`. */
export interface Sample {
  readonly places: number;
  /** Bytes of each. */
  readonly bytes: number;
  /** Those that had something else than one repeated byte before. */
  readonly held_data: number;
  /** How many read as zeros after. */
  readonly zero: number;
  /** How many read as another byte, repeated. */
  readonly blank: number;
  /** How many read as something else than before. */
  readonly changed: number;
  /** How many read as before, and hold data: none, or the erasure has failed. */
  readonly same: number;
  /** How many the disk could not read after: some do not read what was never written with a new key. */
  readonly unreadable: number;
}
/** What an agent reports of a disk, after the step has succeeded. */
export interface ErasedDisk {
  readonly name: string;
  readonly serial: string | null;
  readonly wwn: string | null;
  readonly model: string | null;
  readonly size: number;
  /** Either this or `skipped`. */
  readonly method: EraseMethodName | null;
  readonly skipped: Skip | null;
  readonly started_at: string | null;
  readonly ended_at: string | null;
  readonly seconds: number | null;
  /** How long one pass of overwriting would have taken, by the speed of reading. Only beside a method of the disk's own. */
  readonly overwrite_seconds: number | null;
  readonly sample: Sample | null;
}

/** The most disks of a report. */
const MAX_DISKS = 1024;
const MAX_TEXT = 255;
const shortText = (value: unknown): string | null => (typeof value === 'string' ? value.slice(0, MAX_TEXT) : null);
const count = (value: unknown): number | null => (typeof value === 'number' && Number.isFinite(value) && value >= 0 ? value : null);
const instant = (value: unknown): string | null =>
  typeof value === 'string' && /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,6})?Z$/.test(value) ? value : null;
function sampleIn(value: unknown): Sample | null {
  if (!isObject(value)) return null;
  const of = (name: keyof Sample): number => count(value[name]) ?? NaN;
  const sample: Sample = {
    places: of('places'),
    bytes: of('bytes'),
    held_data: of('held_data'),
    zero: of('zero'),
    blank: of('blank'),
    changed: of('changed'),
    same: of('same'),
    unreadable: of('unreadable'),
  };
  return Object.values(sample).every(Number.isSafeInteger) ? sample : null;
}
function diskIn(value: unknown): ErasedDisk | undefined {
  if (!isObject(value)) return undefined;
  const { name, size, method, skipped } = value;
  const known = typeof method === 'string' && Object.hasOwn(ERASE_METHODS, method) ? (method as EraseMethodName) : null;
  const left = typeof skipped === 'string' && Object.hasOwn(SKIPS, skipped) ? (skipped as Skip) : null;
  const bytes = count(size);
  if (typeof name !== 'string' || bytes === null || (known === null) === (left === null)) return undefined;
  return {
    name: name.slice(0, MAX_TEXT),
    serial: shortText(value['serial']),
    wwn: shortText(value['wwn']),
    model: shortText(value['model']),
    size: bytes,
    method: known,
    skipped: left,
    started_at: instant(value['started_at']),
    ended_at: instant(value['ended_at']),
    seconds: count(value['seconds']),
    overwrite_seconds: count(value['overwrite_seconds']),
    sample: sampleIn(value['sample']),
  };
}
/** What the agent reports as the result of an erase step. Undefined: it reports nothing of each disk, or something else. */
export function erasedDisksIn(result: unknown): readonly ErasedDisk[] | undefined {
  const listed = isObject(result) ? result['erased_disks'] : undefined;
  if (!Array.isArray(listed) || listed.length === 0 || listed.length > MAX_DISKS) return undefined;
  const disks = (listed as readonly unknown[]).map(diskIn);
  return disks.every((disk) => disk !== undefined) ? disks : undefined;
}

/** `SERIAL=PSID`, separated by commas (driver_info.opal_psids). */
const PSIDS = /^[^\s,=]{1,64}=[A-Z0-9]{32}(?:,[^\s,=]{1,64}=[A-Z0-9]{32}){0,255}$/;
export const psidsProblem = (value: unknown): string | undefined =>
  typeof value === 'string' && value.length <= 32_768 && PSIDS.test(value)
    ? undefined
    : 'must be SERIAL=PSID, separated by commas without spaces; a PSID has 32 capital letters and digits';
export const psidsIn = (value: unknown): ReadonlyMap<string, string> =>
  new Map(
    typeof value === 'string' && psidsProblem(value) === undefined
      ? value.split(',').map((pair) => [pair.slice(0, pair.lastIndexOf('=')), pair.slice(pair.lastIndexOf('=') + 1)] as const)
      : [],
  );
