/**
 * Assigns drives to RAID volumes: pure functions, with the same result as Ironic. Volumes that name their drives come first, then those
 * whose drives are chosen here, then those that take the remaining space (`MAX`).
 */
import { Fault } from '../../../model/errors';

/** A requested logical disk (requested-disks.ts). */
export interface RequestedDisk {
  readonly size_gb: number | 'MAX';
  readonly raid_level: string;
  readonly is_root_volume?: boolean;
  readonly volume_name?: string;
  readonly share_physical_disks?: boolean;
  readonly disk_type?: string;
  readonly interface_type?: string;
  readonly number_of_physical_disks?: number;
  readonly controller?: string;
  readonly physical_disks?: readonly unknown[];
}
export interface Drive {
  /** Unique. */
  readonly path: string;
  readonly id: string;
  /** Identifier of its Storage resource. */
  readonly controller: string;
  /** HDD, SSD, … */
  readonly mediaType: string | null;
  /** SAS, SATA, … */
  readonly protocol: string | null;
  readonly bytes: number;
  /** A volume that stays has it, or it is a hot spare. */
  readonly inUse?: boolean;
}
export interface PlannedVolume {
  readonly request: RequestedDisk;
  /** RAIDType. */
  readonly raidType: string;
  readonly drives: readonly Drive[];
  readonly bytes: number | 'MAX';
}

interface Level {
  /** The API's name. */
  readonly name: string;
  /** RAIDType (schema Volume). */
  readonly raidType: string;
  /** For one span: the least and the largest number of drives, and how many of them hold redundancy. */
  readonly minDisks: number;
  readonly maxDisks: number;
  readonly overhead: number;
  /** The number of spans of a volume with `drives` drives; absent: one. */
  readonly spans?: (drives: number) => number;
}
const MANY = 1000;
const pairs = (drives: number): number => drives >> 1;
const two = (): number => 2;
const LEVELS: readonly Level[] = [
  { name: '0', raidType: 'RAID0', minDisks: 1, maxDisks: MANY, overhead: 0 },
  { name: '1', raidType: 'RAID1', minDisks: 2, maxDisks: 2, overhead: 1 },
  { name: '5', raidType: 'RAID5', minDisks: 3, maxDisks: MANY, overhead: 1 },
  { name: '6', raidType: 'RAID6', minDisks: 4, maxDisks: MANY, overhead: 2 },
  { name: '1+0', raidType: 'RAID10', minDisks: 2, maxDisks: 2, overhead: 1, spans: pairs },
  { name: '5+0', raidType: 'RAID50', minDisks: 3, maxDisks: MANY, overhead: 1, spans: two },
  { name: '6+0', raidType: 'RAID60', minDisks: 4, maxDisks: MANY, overhead: 2, spans: two },
];
/** The level of a volume of this RAIDType; undefined: none that can be requested. */
export const levelOfType = (raidType: unknown): string | undefined => LEVELS.find((level) => level.raidType === raidType)?.name;

/** The error of a configuration that cannot be created. */
const impossible = (reason: string): Fault =>
  new Fault('DriverOperationError', { message: `Redfish exception occurred. Error: ${reason}` });

/** Throws DriverOperationError for an unknown level. */
export function levelOf(name: string): Level {
  const level = LEVELS.find((candidate) => candidate.name === name);
  if (level) return level;
  const known = LEVELS.map((item) => item.name).join(', ');
  throw impossible(`RAID level ${name} is not supported by the driver. Supported RAID levels: ${known}`);
}
const spansOf = (level: Level, drives: number): number => level.spans?.(drives) ?? 1;

const GIB = 2 ** 30;
/** Volumes take stripes of this size from each drive. */
const STRIPE_BYTES = 64 * 2 ** 20;
/** Drive path → bytes that no planned volume uses. */
type Free = ReadonlyMap<string, number>;
const freeOf = (free: Free, { path }: Drive): number => free.get(path) ?? 0;

/** The largest volume that these drives hold. */
function capacity(level: Level, drives: readonly Drive[], free: Free): number {
  const overhead = level.overhead * spansOf(level, drives.length);
  if (drives.length <= overhead)
    throw impossible(
      `The number of physical drives (${drives.length}) is too few for the required number of overhead drives (${overhead})`,
    );
  const least = Math.min(...drives.map((drive) => freeOf(free, drive)));
  return Math.floor(least / STRIPE_BYTES) * STRIPE_BYTES * (drives.length - overhead);
}
/** Bytes that a volume of this size uses of each drive. */
function usage(level: Level, drives: readonly Drive[], bytes: number): number {
  const data = drives.length - level.overhead * spansOf(level, drives.length);
  return Math.ceil(Math.ceil(Math.floor(bytes / 1024) / (STRIPE_BYTES / 1024)) / data) * STRIPE_BYTES;
}

/** Places a volume on these drives. Throws when it does not fit. */
function place(request: RequestedDisk, drives: readonly Drive[], free: Free): { readonly volume: PlannedVolume; readonly free: Free } {
  const level = levelOf(request.raid_level);
  const spans = spansOf(level, drives.length);
  if (drives.length === 0 || spans === 0 || drives.length % spans !== 0)
    throw impossible(
      `For RAID level ${request.raid_level}, the number of physical disks provided (${drives.length}) must be a multiple of the spans count (${spans})`,
    );
  const most = capacity(level, drives, free);
  const bytes = request.size_gb === 'MAX' ? most : request.size_gb * GIB;
  if (request.size_gb === 'MAX' && most === 0) throw impossible("size set to 'MAX' but could not allocate physical disk space");
  if (most < bytes)
    throw impossible(`The physical disk space (${most} bytes) is not enough for the size of the logical disk (${bytes} bytes)`);
  const each = usage(level, drives, bytes);
  const left = new Map(free);
  for (const drive of drives) left.set(drive.path, freeOf(free, drive) - each);
  return { volume: { request, raidType: level.raidType, drives, bytes: request.size_gb === 'MAX' ? 'MAX' : bytes }, free: left };
}

const matches = (requested: string | undefined, actual: string | null): boolean =>
  requested === undefined || requested.toLowerCase() === actual?.toLowerCase();

interface Placement {
  /** In the order of creation. The volume that was placed last comes first, as in Ironic. */
  readonly volumes: readonly PlannedVolume[];
  readonly free: Free;
}
/** Limits the combinations that are tried, so that a request cannot keep the server busy. */
interface Search {
  left: number;
}
const MAX_TRIES = 5000;

/** Chooses drives for each volume: the fewest that hold it, one kind of drive after the other. Undefined: there are none. */
function choose(
  requests: readonly RequestedDisk[],
  kinds: readonly (readonly Drive[])[],
  free: Free,
  search: Search,
): Placement | undefined {
  const [first, ...others] = requests;
  if (!first) return { volumes: [], free };
  const level = levelOf(first.raid_level);
  for (const kind of kinds) {
    const [example] = kind;
    if (!example || !matches(first.disk_type, example.mediaType) || !matches(first.interface_type, example.protocol)) continue;
    const usable = kind
      .filter((drive) => freeOf(free, drive) > 0)
      .filter((drive) => first.share_physical_disks === true || drive.bytes === freeOf(free, drive))
      .sort((a, b) => freeOf(free, a) - freeOf(free, b));
    const mostSpans = spansOf(level, usable.length);
    const fewest = level.minDisks * (level.spans ? 2 : 1);
    const most = Math.min(level.maxDisks * mostSpans, usable.length);
    for (let count = fewest; count <= most; count++) {
      if ((first.number_of_physical_disks ?? count) !== count || (level.spans && count % 2 !== 0)) continue;
      if (search.left-- <= 0) throw impossible('the search for physical disks for all logical disks takes too long');
      const tried = attempt(() => place(first, usable.slice(0, count), free));
      const rest = tried && choose(others, kinds, tried.free, search);
      if (rest) return { volumes: [...rest.volumes, tried.volume], free: rest.free };
    }
  }
  return undefined;
}
function attempt<T>(work: () => T): T | undefined {
  try {
    return work();
  } catch (error) {
    if (error instanceof Fault) return undefined;
    throw error;
  }
}

const named = ({ physical_disks: ids, controller }: RequestedDisk, drives: readonly Drive[]): readonly Drive[] => {
  const found = drives.filter(({ id }) => ids?.includes(id));
  // Drives of two controllers may have the same identifiers.
  const own = found.filter((drive) => drive.controller === controller);
  return own.length > 0 ? own : found;
};

/** Groups drives of one medium, protocol and size, in their order: a volume consists of one group's drives. */
function byKind(drives: readonly Drive[]): readonly Drive[][] {
  const kinds = new Map<string, Drive[]>();
  for (const drive of drives) {
    const key = JSON.stringify([drive.mediaType, drive.protocol, drive.bytes]);
    kinds.set(key, [...(kinds.get(key) ?? []), drive]);
  }
  return [...kinds.values()];
}

/** The volumes in the order of creation. Throws DriverOperationError when the drives do not suffice. */
export function planVolumes(requests: readonly RequestedDisk[], drives: readonly Drive[]): readonly PlannedVolume[] {
  const hasDrives = (disk: RequestedDisk): boolean => disk.physical_disks !== undefined;
  const placed: PlannedVolume[] = [];
  let free: Free = new Map(drives.map(({ path, bytes, inUse }) => [path, inUse ? 0 : bytes]));
  const placeNamed = (disk: RequestedDisk): void => {
    const put = place(disk, named(disk, drives), free);
    placed.push(put.volume);
    free = put.free;
  };

  for (const disk of requests) if (hasDrives(disk) && disk.size_gb !== 'MAX') placeNamed(disk);

  const open = requests.filter((disk) => !hasDrives(disk));
  if (open.length > 0) {
    const paths = (of: readonly RequestedDisk[]): ReadonlySet<string> =>
      new Set(of.flatMap((disk) => named(disk, drives)).map(({ path }) => path));
    const taken = paths(requests.filter((disk) => hasDrives(disk) && disk.share_physical_disks !== true));
    // The drives of a shared MAX volume are used only where no others suffice.
    const reserved = paths(requests.filter((disk) => hasDrives(disk) && disk.share_physical_disks === true && disk.size_gb === 'MAX'));
    const kinds = byKind(drives);
    const first = kinds.map((kind) => kind.filter(({ path }) => !taken.has(path) && !reserved.has(path)));
    const all = kinds.map((kind, index) => [...first[index]!, ...kind.filter(({ path }) => reserved.has(path))]);
    const search: Search = { left: MAX_TRIES };
    const found = choose(open, first, free, search) ?? choose(open, all, free, search);
    if (!found) throw impossible('failed to find matching physical disks for all logical disks');
    placed.push(...found.volumes);
    ({ free } = found);
  }

  for (const disk of requests) if (hasDrives(disk) && disk.size_gb === 'MAX') placeNamed(disk);
  return placed;
}

/** The volumes on the same drives, which have other sizes now. A volume that they no longer hold becomes as large as they are. */
export const fitted = (volumes: readonly PlannedVolume[], drives: readonly Drive[]): readonly PlannedVolume[] =>
  volumes.map((volume) => {
    const now = volume.drives.map((drive) => drives.find(({ path }) => path === drive.path) ?? drive);
    const most = capacity(levelOf(volume.request.raid_level), now, new Map(now.map(({ path, bytes }) => [path, bytes])));
    return { ...volume, drives: now, bytes: volume.bytes === 'MAX' ? 'MAX' : Math.min(volume.bytes, most) };
  });
