/** RAID volumes: which volumes a machine's drives allow, and which disks its operating system sees. */
import type { DiskDescription, MachineDescription } from './description';
import { hardwarePart, type Hardware } from './hardware';

export interface Volume {
  readonly id: string;
  /** The identifier of the storage subsystem. */
  readonly storage: string;
  readonly name: string;
  readonly raid: RaidType;
  readonly bytes: number;
  /** Names of drives. */
  readonly drives: readonly string[];
}
export const VOLUMES = hardwarePart<readonly Volume[]>('volumes', []);

interface RaidDefinition {
  /** The least and the largest number of drives. */
  readonly least: number;
  readonly most?: number;
  /** The number of drives is a multiple of this. */
  readonly multiple?: number;
  /** How many of the drives hold data. */
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
} as const satisfies Readonly<Record<string, RaidDefinition>>;
export type RaidType = keyof typeof RAID;
export const RAID_TYPES = Object.keys(RAID) as readonly RaidType[];
const MAX_VOLUMES = 64;

/** A storage subsystem and its drives. Drives on PCIe take no part in a RAID. */
export interface Subsystem {
  readonly id: string;
  readonly protocol: 'SATA' | 'NVMe';
  readonly raid: readonly RaidType[];
  readonly drives: readonly DiskDescription[];
}
/** A disk's name in Redfish: sda for /dev/sda. */
export const driveName = ({ name }: Pick<DiskDescription, 'name'>): string => name.replace(/^\/dev\//, '');
export function subsystemsOf({ disks }: MachineDescription): readonly Subsystem[] {
  const onPcie = (disk: DiskDescription): boolean => disk.name.startsWith('/dev/nvme');
  const all: readonly Subsystem[] = [
    { id: 'RAID1', protocol: 'SATA', raid: RAID_TYPES, drives: disks.filter((disk) => !onPcie(disk)) },
    { id: 'NVMe1', protocol: 'NVMe', raid: [], drives: disks.filter(onPcie) },
  ];
  return all.filter(({ drives }) => drives.length > 0);
}
export const volumesIn = (hardware: Hardware, storage: string): readonly Volume[] =>
  hardware.get(VOLUMES).filter((volume) => volume.storage === storage);

/** Bytes that a volume takes on each of its drives. */
const share = (raid: RaidType, bytes: number, drives: number): number => Math.ceil(bytes / (RAID[raid] as RaidDefinition).data(drives));
const free = (volumes: readonly Volume[], drive: DiskDescription): number =>
  volumes
    .filter(({ drives }) => drives.includes(driveName(drive)))
    .reduce((left, volume) => left - share(volume.raid, volume.bytes, volume.drives.length), drive.size);

/**
 * @param bytes undefined: all free capacity of the drives
 * @returns the size, or the Base message and its arguments that say why this volume is impossible
 */
export function planVolume(
  hardware: Hardware,
  subsystem: Subsystem,
  raid: RaidType,
  names: readonly string[],
  bytes: number | undefined,
): { readonly bytes: number } | { readonly problem: readonly [message: string, ...args: string[]] } {
  const { least, most = Infinity, multiple = 1, data }: RaidDefinition = RAID[raid];
  const drives = subsystem.drives.filter((drive) => names.includes(driveName(drive)));
  if (drives.length !== names.length || names.length < least || names.length > most || names.length % multiple !== 0)
    return { problem: ['PropertyValueNotInList', names.join(', '), 'Links/Drives'] };
  const volumes = volumesIn(hardware, subsystem.id);
  if (volumes.length >= MAX_VOLUMES) return { problem: ['CreateLimitReachedForResource'] };
  const capacity = Math.max(0, Math.min(...drives.map((drive) => free(volumes, drive)))) * data(drives.length);
  if (capacity === 0) return { problem: ['ResourceInUse'] };
  if (bytes !== undefined && (bytes <= 0 || bytes > capacity))
    return { problem: ['PropertyValueOutOfRange', String(bytes), 'CapacityBytes'] };
  return { bytes: bytes ?? capacity };
}

/** The disks that the machine's operating system sees: each volume replaces its drives. */
export function visibleDisks({ disks, serial }: MachineDescription, hardware: Hardware): readonly DiskDescription[] {
  const volumes = hardware.get(VOLUMES);
  if (volumes.length === 0) return disks;
  const used = new Set(volumes.flatMap(({ drives }) => drives));
  const volumeDisks = volumes.map(({ id, bytes, drives }, index): DiskDescription => {
    const members = disks.filter((disk) => drives.includes(driveName(disk)));
    return {
      // The volume has the name of its first drive, so that the other drives keep their names.
      name: members[0]!.name + (volumes.findIndex((volume) => volume.drives[0] === drives[0]) === index ? '' : `v${id}`),
      size: bytes,
      serial: `${serial}${id.padStart(4, '0')}`,
      rotational: members.some(({ rotational }) => rotational),
      model: 'Simulated volume',
    };
  });
  return [...volumeDisks, ...disks.filter((disk) => !used.has(driveName(disk)))];
}
