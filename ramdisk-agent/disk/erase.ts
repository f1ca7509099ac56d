/** Erases disks by the best method that the disk supports, from one table. */
import { AgentError } from '../../model/agent/errors';
import { retry, type Clock } from '../../model/clock';
import { reasonOf } from '../../model/errors';
import type { Log } from '../../model/log';
import type { JsonObject } from '../../model/records';
import type { FoundDisk } from '../inventory/disks';
import type { Run } from '../system/run';
import type { Tree } from '../system/tree';
import { numberIn } from '../system/tree';
import type { Device } from './device';
import { isReadOnly } from './guard';
import { wipeMetadata } from './partitions';
import { usersOf } from './users';

type ErasedDisk = Pick<FoundDisk, 'name' | 'size' | 'tran' | 'logical_sectors'>;
export interface Erasing {
  readonly disk: ErasedDisk;
  /** node.driver_internal_info: the settings of erase steps. */
  readonly settings: JsonObject;
  /** Opens the disk through the guard (disk/guard.ts). */
  readonly open: (disk: ErasedDisk) => Promise<Device>;
  /** For programs that only read. */
  readonly query: Run;
  readonly tree: Tree;
  readonly random: (bytes: number) => Buffer;
  readonly clock: Pick<Clock, 'sleep'>;
  readonly progress: (percent: number) => void;
  readonly log: Log;
}
interface Method {
  readonly name: string;
  /** The disk erases itself. If that fails, the next method is used only if the operator allows it. */
  readonly secure?: true;
  /** Whether the disk supports the method, and the settings allow it. */
  fits(erasing: Erasing): Promise<boolean>;
  erase(device: Device, erasing: Erasing): Promise<void>;
}
const MiB = 2 ** 20;
const blockName = ({ name }: ErasedDisk): string => name.slice('/dev/'.length).replaceAll('/', '!');

const METHODS: readonly Method[] = [
  {
    name: 'NVMe format',
    secure: true,
    fits: async ({ disk, settings, query }) =>
      disk.name.startsWith('/dev/nvme') && settings['agent_enable_nvme_secure_erase'] !== false && (await nvmeFormat(disk.name, query)) > 0,
    async erase(device, { disk, query }) {
      const setting = String(await nvmeFormat(disk.name, query));
      await device.command('nvme', ['format', '--ses', setting, '--force']);
    },
  },
  {
    name: 'ATA secure erase',
    secure: true,
    // A SATA disk may be behind a SAS controller. Bridges of USB do not pass security commands reliably.
    fits: async ({ disk, settings, query }) =>
      /^\/dev\/(sd|hd)/.test(disk.name) &&
      disk.tran !== 'usb' &&
      settings['agent_enable_ata_secure_erase'] !== false &&
      (await ataSecurity(disk.name, query)).has('supported'),
    erase: ataErase,
  },
  {
    name: 'write zeroes',
    fits: async ({ disk, settings, tree }) =>
      (numberIn(tree.text(`/sys/block/${blockName(disk)}/queue/write_zeroes_max_bytes`)) ?? 0) > 0 &&
      Number(settings['agent_erase_devices_iterations'] ?? 1) <= 1,
    async erase(device) {
      await device.command('blkdiscard', ['--zeroout', '--force']);
    },
  },
  { name: 'overwriting', fits: async () => true, erase: overwrite },
];

/** Throws BlockDeviceEraseError, and what `open` throws. */
export async function eraseDisk(erasing: Erasing): Promise<void> {
  const { disk, settings, tree, log } = erasing;
  if (isReadOnly(tree, disk)) {
    if (settings['agent_erase_skip_read_only'] === true) {
      log.info(`Skipping erase of read-only device ${disk.name}`);
      return;
    }
    throw new AgentError('BlockDeviceEraseError', `Failed to invoke erase of device ${disk.name} as the device is flagged read-only`);
  }
  const device = await erasing.open(disk);
  try {
    for (const method of METHODS) if (await erasedBy(method, device, erasing)) return;
  } finally {
    await device.close();
  }
}

/** False: the next method is to be tried. */
async function erasedBy(method: Method, device: Device, erasing: Erasing): Promise<boolean> {
  const { disk, settings, log } = erasing;
  try {
    if (!(await method.fits(erasing))) return false;
    log.info(`Erasing ${disk.name} by ${method.name}`);
    await method.erase(device, erasing);
    return true;
  } catch (error) {
    const text = `Erasing ${disk.name} by ${method.name} failed: ${reasonOf(error)}`;
    const goOn = settings['agent_continue_if_secure_erase_failed'] ?? settings['agent_continue_if_ata_erase_failed'] ?? false;
    const last = method === METHODS.at(-1);
    if (last || (method.secure && goOn !== true)) throw new AgentError('BlockDeviceEraseError', text, { cause: error });
    log.warn(`${text}; trying the next method`);
    return false;
  }
}

/** Wipes both edges of every partition and of the disk. This removes partition tables and volume signatures, but not the data. */
export async function eraseMetadata({ disk, open, query, tree, clock, log }: Erasing): Promise<void> {
  if (isReadOnly(tree, disk)) {
    log.info(`Skipping erasure of read-only device ${disk.name}`);
    return;
  }
  const device = await open(disk);
  try {
    await wipeMetadata(device);
  } finally {
    await device.close();
  }
  await rescan({ run: query, tree, clock }, disk.name);
}

const RESCANS = 10;
const RESCAN_PAUSE_MS = 500;
/**
 * Makes the kernel read the partition table again. The partitions of a multipath device are devices of their own, which kpartx makes. Who
 * looks at a partition meanwhile, such as a scan of the kernel's own, makes the disk busy for a moment. An error names who uses it for longer.
 */
export async function rescan({ run, tree, clock }: Pick<Erasing, 'tree' | 'clock'> & { readonly run: Run }, disk: string): Promise<void> {
  const [program, words] = disk.startsWith('/dev/dm-')
    ? (['kpartx', ['-u', '-s', '-p', '-part', disk]] as const)
    : (['blockdev', ['--rereadpt', disk]] as const);
  await retry(
    { clock },
    () => run(program, [...words]),
    (_, attempt) => (attempt < RESCANS ? RESCAN_PAUSE_MS : undefined),
  ).catch((error: unknown) => {
    const users = usersOf(tree, disk);
    throw users.length === 0 ? error : new Error(`the disk is in use: ${users.join(', ')}: ${reasonOf(error)}`, { cause: error });
  });
}

/** Secure erase setting (NVMe base specification §5.14): 2 cryptographic, 1 user data, 0 no format command. */
async function nvmeFormat(name: string, query: Run): Promise<number> {
  const controller = JSON.parse(await query('nvme', ['id-ctrl', name, '--output-format=json'])) as {
    readonly oacs?: number;
    readonly fna?: number;
  };
  if (((controller.oacs ?? 0) & 0b10) === 0) return 0;
  return ((controller.fna ?? 0) & 0b100) === 0 ? 1 : 2;
}

/** The lines below `Security:` in the output of hdparm -I; empty if the disk lacks the feature or hdparm fails. */
async function ataSecurity(name: string, query: Run): Promise<ReadonlySet<string>> {
  const output = await query('hdparm', ['-I', name]).catch(() => '');
  const section = /\nSecurity: ?\n((?:\t.*(?:\n|$))*)/.exec(output)?.[1] ?? '';
  return new Set(section.split('\n').map((line) => line.trim().replaceAll(/\t+/g, ' ')));
}

/** The ATA password during the erasure, which removes it. hdparm before 9.51 took NULL for that word, later versions for no password. */
const PASSWORDS = ['NULL', ''] as const;
const ata = (device: Device, ...args: readonly string[]): Promise<string> => device.command('hdparm', ['--user-master', 'u', ...args]);

/** Removes a password that an erasure left. Returns what the disk then says. */
async function unlocked(device: Device, { disk, query, log }: Erasing): Promise<ReadonlySet<string>> {
  let security = await ataSecurity(disk.name, query);
  for (const password of PASSWORDS) {
    for (const [wanted, option] of [
      ['not locked', '--security-unlock'],
      ['not enabled', '--security-disable'],
    ] as const) {
      if (security.has(wanted)) continue;
      await ata(device, option, password).catch((error: unknown) => log.info(`${disk.name}: ${option} failed: ${reasonOf(error)}`));
      security = await ataSecurity(disk.name, query);
    }
  }
  return security;
}

async function ataErase(device: Device, erasing: Erasing): Promise<void> {
  const { disk, query } = erasing;
  if (!(await ataSecurity(disk.name, query)).has('not frozen'))
    throw new Error('the disk is frozen by the firmware and takes no security command');
  const security = await unlocked(device, erasing);
  if (!security.has('not locked')) throw new Error('the disk has a security password that the agent does not know');
  await ata(device, '--security-set-pass', PASSWORDS[0]);
  try {
    await ata(device, security.has('supported: enhanced erase') ? '--security-erase-enhanced' : '--security-erase', PASSWORDS[0]);
  } catch (error) {
    // A locked disk refuses everything else: no other method could erase it, and no system could use it.
    await unlocked(device, erasing);
    throw error;
  }
  if (!(await ataSecurity(disk.name, query)).has('not enabled')) {
    await unlocked(device, erasing);
    throw new Error('the disk still had its security enabled after the erasure');
  }
}

/** Writes random data in the configured number of passes, then zeros. */
async function overwrite(device: Device, { disk, settings, random, progress }: Erasing): Promise<void> {
  const rounds = Math.max(0, Number(settings['agent_erase_devices_iterations'] ?? 1));
  const zeros = settings['agent_erase_devices_zeroize'] !== false;
  const total = (rounds + (zeros ? 1 : 0)) * disk.size;
  for (let round = 0; round < rounds; round++) {
    for (let position = 0; position < disk.size; position += MiB) {
      await device.write(random(Math.min(MiB, disk.size - position)), position);
      progress((100 * (round * disk.size + position)) / total);
    }
  }
  await device.flush();
  for (let position = 0; zeros && position < disk.size; position += 64 * MiB) {
    await device.zero(position, Math.min(64 * MiB, disk.size - position));
    progress((100 * (rounds * disk.size + position)) / total);
  }
  await device.flush();
}
