/** The partitions of a disk for a partition image, in the order of ironic-python-agent: systems find them at the same places. */
import { AgentError } from './errors';

/** File systems of the ephemeral partition, with the programs that make them, and their options with the label. */
export const EPHEMERAL_FORMATS = {
  ext2: ['mke2fs', '-q', '-F', '-t', 'ext2', '-L'],
  ext3: ['mke2fs', '-q', '-F', '-t', 'ext3', '-L'],
  ext4: ['mke2fs', '-q', '-F', '-t', 'ext4', '-L'],
  xfs: ['mkfs.xfs', '-q', '-f', '-L'],
  vfat: ['mkfs.vfat', '-n'],
} as const satisfies Readonly<Record<string, readonly [program: string, ...options: string[]]>>;
export type EphemeralFormat = keyof typeof EPHEMERAL_FORMATS;

/** In MiB. */
export interface PartitionSizes {
  readonly root: number;
  readonly swap: number;
  readonly ephemeral: number;
  readonly ephemeralFormat: EphemeralFormat;
  /** The ephemeral partition of an earlier deployment stays as it is. */
  readonly preservesEphemeral: boolean;
}

type Role = 'esp' | 'bios' | 'ephemeral' | 'swap' | 'configdrive' | 'root';
export interface PlannedPartition {
  readonly role: Role;
  readonly number: number;
  /** Bytes. */
  readonly start: number;
  readonly size: number;
}
export interface PartitionPlan {
  readonly label: 'gpt' | 'msdos';
  readonly partitions: readonly PlannedPartition[];
}
interface Wanted {
  readonly bootMode: 'bios' | 'uefi';
  readonly label: 'gpt' | 'msdos';
  readonly sizes: PartitionSizes;
  /** Bytes; 0: there is none. */
  readonly configDrive: number;
}
interface Disk {
  readonly path: string;
  /** Bytes. */
  readonly size: number;
  readonly sectorSize: number;
}

const MiB = 2 ** 20;
/** MiB. Both are ironic-python-agent's. */
const ESP = 550;
const BIOS_BOOT = 1;
/** Bytes of a GPT's entries. */
const GPT_ENTRIES = 128 * 128;

/** The root partition is the last, so that the system can make it larger. Throws DeploymentError for a disk that has no room. */
export function planPartitions({ bootMode, label, sizes, configDrive }: Wanted, disk: Disk): PartitionPlan {
  const rows: readonly (readonly [Role, number])[] = [
    ['esp', bootMode === 'uefi' ? ESP : 0],
    ['bios', bootMode === 'bios' && label === 'gpt' ? BIOS_BOOT : 0],
    ['ephemeral', sizes.ephemeral],
    ['swap', sizes.swap],
    ['configdrive', Math.ceil(configDrive / MiB)],
    ['root', sizes.root],
  ];
  // The first MiB is the table's, and the boot loader's.
  let end = MiB;
  const partitions = rows
    .filter(([, size]) => size > 0)
    .map(([role, size], index) => {
      const start = end;
      end += size * MiB;
      return { role, number: index + 1, start, size: size * MiB };
    });
  const limit =
    label === 'gpt'
      ? disk.size - disk.sectorSize - Math.ceil(GPT_ENTRIES / disk.sectorSize) * disk.sectorSize
      : Math.min(disk.size, 2 ** 32 * disk.sectorSize);
  if (end > limit) {
    const parts = rows.filter(([, size]) => size > 0).map(([role, size]) => `${role} ${size}`);
    throw new AgentError(
      'DeploymentError',
      `The partitions of the image need ${end / MiB} MiB (${parts.join(', ')}), and ${disk.path} has room for ${Math.floor(limit / MiB)} MiB with a partition table ${label}`,
    );
  }
  return { label, partitions };
}

/** The partition of that role, if the plan has it. */
export const partitionFor = ({ partitions }: PartitionPlan, role: Role): PlannedPartition | undefined =>
  partitions.find((partition) => partition.role === role);
