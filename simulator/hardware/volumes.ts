/** RAID volumes of a simulated machine: which may be made of which drives, and what the machine then sees. */
import type { DiskDescription, MachineDescription } from './description';
import type { HardwareState } from './hardware';

export interface VolumeState {
  readonly id: string;
  /** The storage subsystem. */
  readonly storage: string;
  readonly name: string;
  readonly raid: RaidType;
  readonly bytes: number;
  /** Names of drives. */
  readonly drives: readonly string[];
}
/** Drives that a type needs, in multiples of what, and how many of them hold data. */
interface RaidRow {
  readonly least: number;
  readonly most?: number;
  readonly multiple?: number;
  readonly data: (drives: number) => number;
}
const RAID = {
  RAID0: { least: 1, data: (drives) => drives },
  RAID1: { least: 2, most: 2, data: () => 1 },
  RAID5: { least: 3, data: (drives) => drives - 1 },
  RAID6: { least: 4, data: (drives) => drives - 2 },
  RAID10: { least: 4, multiple: 2, data: (drives) => drives / 2 },
  RAID50: { least: 6, multiple: 2, data: (drives) => drives - 2 },
  RAID60: { least: 8, multiple: 2, data: (drives) => drives - 4 },
} as const satisfies Readonly<Record<string, RaidRow>>;
export type RaidType = keyof typeof RAID;
export const RAID_TYPES = Object.keys(RAID) as readonly RaidType[];
const MAX_VOLUMES = 64;

/** A storage subsystem and its drives: what is on PCIe is no part of a RAID. */
export interface Subsystem {
  readonly id: string;
  readonly protocol: 'SATA' | 'NVMe';
  readonly raid: readonly RaidType[];
  readonly drives: readonly DiskDescription[];
}
/** What Redfish calls a disk: sda for /dev/sda. */
export const driveName = ({ name }: DiskDescription): string => name.replace(/^\/dev\//, '');
export function subsystemsOf({ disks }: MachineDescription): readonly Subsystem[] {
  const onPcie = (disk: DiskDescription): boolean => disk.name.startsWith('/dev/nvme');
  const all: readonly Subsystem[] = [
    { id: 'RAID1', protocol: 'SATA', raid: RAID_TYPES, drives: disks.filter((disk) => !onPcie(disk)) },
    { id: 'NVMe1', protocol: 'NVMe', raid: [], drives: disks.filter(onPcie) },
  ];
  return all.filter(({ drives }) => drives.length > 0);
}
export const volumesIn = ({ volumes = [] }: HardwareState, storage: string): readonly VolumeState[] =>
  volumes.filter((volume) => volume.storage === storage);

/** Bytes of each of its drives that a volume takes. */
const share = (raid: RaidType, bytes: number, drives: number): number => Math.ceil(bytes / (RAID[raid] as RaidRow).data(drives));
const free = (volumes: readonly VolumeState[], drive: DiskDescription): number =>
  volumes
    .filter(({ drives }) => drives.includes(driveName(drive)))
    .reduce((left, volume) => left - share(volume.raid, volume.bytes, volume.drives.length), drive.size);

/** The Base message and its arguments for a volume that cannot be. @param bytes undefined: as much as there is */
export function planVolume(
  state: HardwareState,
  subsystem: Subsystem,
  raid: RaidType,
  names: readonly string[],
  bytes: number | undefined,
): { readonly bytes: number } | { readonly problem: readonly [message: string, ...args: string[]] } {
  const { least, most = Infinity, multiple = 1, data }: RaidRow = RAID[raid];
  const drives = subsystem.drives.filter((drive) => names.includes(driveName(drive)));
  if (drives.length !== names.length || names.length < least || names.length > most || names.length % multiple !== 0)
    return { problem: ['PropertyValueNotInList', names.join(', '), 'Links/Drives'] };
  const volumes = volumesIn(state, subsystem.id);
  if (volumes.length >= MAX_VOLUMES) return { problem: ['CreateLimitReachedForResource'] };
  const room = Math.max(0, Math.min(...drives.map((drive) => free(volumes, drive)))) * data(drives.length);
  if (room === 0) return { problem: ['ResourceInUse'] };
  if (bytes !== undefined && (bytes <= 0 || bytes > room)) return { problem: ['PropertyValueOutOfRange', String(bytes), 'CapacityBytes'] };
  return { bytes: bytes ?? room };
}

/** The disks that the machine's system sees: a volume in place of its drives. */
export function visibleDisks({ disks, serial }: MachineDescription, { volumes = [] }: HardwareState): readonly DiskDescription[] {
  if (volumes.length === 0) return disks;
  const taken = new Set(volumes.flatMap(({ drives }) => drives));
  const seen = volumes.map(({ id, bytes, drives }, index): DiskDescription => {
    const members = disks.filter((disk) => drives.includes(driveName(disk)));
    return {
      // The first of its drives lends its name, so that names stay as they are for the others.
      name: members[0]!.name + (volumes.findIndex((one) => one.drives[0] === drives[0]) === index ? '' : `v${id}`),
      size: bytes,
      serial: `${serial}${id.padStart(4, '0')}`,
      rotational: members.some(({ rotational }) => rotational),
      model: 'Simulated volume',
    };
  });
  return [...seen, ...disks.filter((disk) => !taken.has(driveName(disk)))];
}
