/** Erases disks by the best method that the disk supports, from one table. */
import type { InventoryDisk, JsonObject } from '../../model/records';
import type { Log } from '../../model/log';
import { AgentError } from '../../model/agent/errors';
import { reasonOf } from '../../model/errors';
import type { Tree } from '../system/tree';
import { numberIn } from '../system/tree';
import type { Run } from '../system/run';
import type { Device } from './device';
import { wipeEdges } from './image';
import { readPartitions } from './partitions';

export interface Erasing {
  readonly disk: InventoryDisk;
  /** node.driver_internal_info: the settings of erase steps. */
  readonly settings: JsonObject;
  readonly open: (disk: InventoryDisk) => Promise<Device>;
  readonly run: Run;
  readonly tree: Tree;
  readonly random: (bytes: number) => Buffer;
  readonly progress: (percent: number) => void;
  readonly log: Log;
}
interface Method {
  readonly name: string;
  /** The disk erases itself. If that fails, the next method is used only if the operator allows it. */
  readonly secure?: true;
  /** Whether the disk supports the method, and the settings allow it. */
  fits(erasing: Erasing): Promise<boolean>;
  erase(erasing: Erasing): Promise<void>;
}
const DAY_MS = 86_400_000;
const MiB = 2 ** 20;

const METHODS: readonly Method[] = [
  {
    name: 'NVMe format',
    secure: true,
    fits: async ({ disk, settings, run }) =>
      disk.name.startsWith('/dev/nvme') && settings['agent_enable_nvme_secure_erase'] !== false && (await nvmeFormat(disk.name, run)) > 0,
    async erase({ disk, run }) {
      const setting = String(await nvmeFormat(disk.name, run));
      await run('nvme', ['format', disk.name, '--ses', setting, '--force'], { timeoutMs: DAY_MS });
    },
  },
  {
    name: 'ATA secure erase',
    secure: true,
    fits: async ({ disk, settings, run }) =>
      disk.tran === 'sata' && settings['agent_enable_ata_secure_erase'] !== false && (await ataSecurity(disk.name, run)).has('supported'),
    async erase({ disk, run }) {
      const security = await ataSecurity(disk.name, run);
      if (!security.has('not frozen')) throw new Error('the disk is frozen by the firmware and takes no security command');
      const hdparm = (...args: readonly string[]): Promise<string> =>
        run('hdparm', ['--user-master', 'u', ...args, disk.name], { timeoutMs: DAY_MS });
      if (!security.has('not locked')) await hdparm('--security-unlock', PASSWORD);
      if (!security.has('not enabled')) await hdparm('--security-disable', PASSWORD);
      await hdparm('--security-set-pass', PASSWORD);
      await hdparm(security.has('supported: enhanced erase') ? '--security-erase-enhanced' : '--security-erase', PASSWORD);
      if (!(await ataSecurity(disk.name, run)).has('not enabled')) throw new Error('the disk still has its security enabled');
    },
  },
  {
    name: 'write zeroes',
    fits: async ({ disk, settings, tree }) =>
      (numberIn(tree.text(`/sys/block/${disk.name.slice(5)}/queue/write_zeroes_max_bytes`)) ?? 0) > 0 &&
      Number(settings['agent_erase_devices_iterations'] ?? 1) <= 1,
    async erase({ disk, run }) {
      await run('blkdiscard', ['--zeroout', '--force', disk.name], { timeoutMs: DAY_MS });
    },
  },
  { name: 'overwriting', fits: async () => true, erase: overwrite },
];
/** The ATA password during the erasure. The erasure removes it. */
const PASSWORD = 'NULL';

/** Throws BlockDeviceEraseError. */
export async function eraseDisk(erasing: Erasing): Promise<void> {
  const { disk, settings, tree, log } = erasing;
  if (tree.text(`/sys/block/${disk.name.slice(5)}/ro`) === '1') {
    if (settings['agent_erase_skip_read_only'] === true) {
      log.info(`Skipping erase of read-only device ${disk.name}`);
      return;
    }
    throw new AgentError('BlockDeviceEraseError', `Failed to invoke erase of device ${disk.name} as the device is flagged read-only`);
  }
  for (const method of METHODS) {
    try {
      if (!(await method.fits(erasing))) continue;
      log.info(`Erasing ${disk.name} by ${method.name}`);
      await method.erase(erasing);
      return;
    } catch (error) {
      const text = `Erasing ${disk.name} by ${method.name} failed: ${reasonOf(error)}`;
      const goOn = settings['agent_continue_if_secure_erase_failed'] ?? settings['agent_continue_if_ata_erase_failed'] ?? false;
      const last = method === METHODS.at(-1);
      if (last || (method.secure && goOn !== true)) throw new AgentError('BlockDeviceEraseError', text, { cause: error });
      log.warn(`${text}; trying the next method`);
    }
  }
}

/** Wipes both edges of every partition and of the disk. This removes partition tables and volume signatures, but not the data. */
export async function eraseMetadata({ disk, open, run, tree, log }: Erasing): Promise<void> {
  if (tree.text(`/sys/block/${disk.name.slice(5)}/ro`) === '1') {
    log.info(`Skipping erasure of read-only device ${disk.name}`);
    return;
  }
  const device = await open(disk);
  try {
    for (const { start, size } of (await readPartitions(device))?.partitions ?? []) {
      if (start + size <= device.size) await wipeEdges(device, start, size);
    }
    await wipeEdges(device);
  } finally {
    await device.close();
  }
  await run('blockdev', ['--rereadpt', disk.name]);
}

/** Secure erase setting (NVMe base specification §5.14): 2 cryptographic, 1 user data, 0 no format command. */
async function nvmeFormat(name: string, run: Run): Promise<number> {
  const controller = JSON.parse(await run('nvme', ['id-ctrl', name, '--output-format=json'])) as {
    readonly oacs?: number;
    readonly fna?: number;
  };
  if (((controller.oacs ?? 0) & 0b10) === 0) return 0;
  return ((controller.fna ?? 0) & 0b100) === 0 ? 1 : 2;
}

/** The lines below `Security:` in the output of hdparm -I; empty if the disk lacks the feature or hdparm fails. */
async function ataSecurity(name: string, run: Run): Promise<ReadonlySet<string>> {
  const output = await run('hdparm', ['-I', name]).catch(() => '');
  const section = /\nSecurity: ?\n((?:\t.*(?:\n|$))*)/.exec(output)?.[1] ?? '';
  return new Set(section.split('\n').map((line) => line.trim().replaceAll(/\t+/g, ' ')));
}

/** Writes random data in the configured number of passes, then zeros. */
async function overwrite({ disk, settings, open, random, progress }: Erasing): Promise<void> {
  const rounds = Math.max(0, Number(settings['agent_erase_devices_iterations'] ?? 1));
  const zeros = settings['agent_erase_devices_zeroize'] !== false;
  const total = (rounds + (zeros ? 1 : 0)) * disk.size;
  const device = await open(disk);
  try {
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
  } finally {
    await device.close();
  }
}
