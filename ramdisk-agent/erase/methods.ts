/** The ways of erasing a disk, the best first. */
import type { Device } from '../disk/device';
import { numberIn } from '../system/tree';
import { ATA_METHODS, ataFeatures } from './ata';
import { blockName, type Erasing, type Method } from './erasing';
import { NVME_METHODS } from './nvme';
import { SCSI_METHODS } from './scsi';

const psidOf = ({ disk, psids }: Erasing): string | undefined =>
  (disk.serial ?? []).map((serial) => psids?.get(serial)).find((psid) => psid !== undefined);
const OPAL: Method = {
  name: 'opal-psid-revert',
  secure: true,
  express: true,
  async fits(erasing) {
    const { disk, query, log } = erasing;
    if (psidOf(erasing) === undefined) return false;
    const found = await query('sedutil-cli', ['--isValidSED', disk.name]).catch(() => undefined);
    if (found === undefined) log.warn(`${disk.name}: there is a PSID for it, and the ramdisk has no sedutil-cli`);
    return found !== undefined && /\bSED\b/.test(found);
  },
  async erase(device, erasing) {
    const psid = psidOf(erasing)!;
    // The error of a program quotes its arguments.
    await device.command('sedutil-cli', ['--yesIreallywanttoERASEALLmydatausingthePSID', psid]).catch((error: unknown) => {
      throw new Error(String(error).replaceAll(psid, '******'));
    });
  },
};

const onePass = ({ settings }: Erasing): boolean => Number(settings['agent_erase_devices_iterations'] ?? 1) <= 1;
const queueNumber = ({ disk, tree }: Erasing, file: string): number =>
  numberIn(tree.text(`/sys/block/${blockName(disk)}/queue/${file}`)) ?? 0;
/** Logical Block Provisioning VPD page (SBC-4 §6.6.6), LBPRZ: 001b, or 1xxb, which is another pattern. */
const readsZeros = (page: Buffer | null): boolean => page !== null && page.length > 5 && ((page[5]! >> 2) & 0b111) === 0b001;
/** Bytes, and how many places of a disk that promises no zeros are marked before it is told to discard, and read back after it. */
const [MARK, MARKS] = [4096, 64];
const SAMPLED_DISCARD: Method = {
  name: 'discard',
  fits: async (erasing) =>
    erasing.settings['agent_enable_discard_erase'] === true && onePass(erasing) && queueNumber(erasing, 'discard_max_bytes') > 0,
  async erase(device, { random, query, disk }) {
    const last = Math.floor(device.size / MARK) - 1;
    const places = [0, last, ...Array.from({ length: MARKS - 2 }, () => random(6).readUIntBE(0, 6) % (last + 1))].map((at) => at * MARK);
    for (const at of places) await device.write(random(MARK), at);
    await device.flush();
    await device.command('blkdiscard', ['--force']);
    // The kernel remembers what was written.
    await query('blockdev', ['--flushbufs', disk.name]).catch(() => '');
    for (const at of places)
      if (!(await device.read(at, MARK)).every((byte) => byte === 0)) throw new Error(`the disk has data at byte ${at} after it`);
  },
};
const DISCARD: Method = {
  name: 'discard',
  async fits(erasing) {
    const { disk, query, tree } = erasing;
    if (!onePass(erasing) || queueNumber(erasing, 'discard_max_bytes') === 0) return false;
    if (!disk.name.startsWith('/dev/sd') || disk.tran === 'usb') return false;
    if (readsZeros(tree.bytes(`/sys/block/${blockName(disk)}/device/vpd_pgb2`))) return true;
    return (await ataFeatures(disk.name, query)).has('Deterministic read ZEROs after TRIM');
  },
  erase: async (device) => void (await device.command('blkdiscard', ['--force'])),
};
const WRITE_ZEROES: Method = {
  name: 'write-zeroes',
  fits: async (erasing) => onePass(erasing) && queueNumber(erasing, 'write_zeroes_max_bytes') > 0,
  erase: async (device) => void (await device.command('blkdiscard', ['--zeroout', '--force'])),
};

const MiB = 2 ** 20;
/** Writes random data in the configured number of passes, then zeros. */
async function overwrite(device: Device, { disk, settings, random, progress }: Erasing): Promise<void> {
  const rounds = Math.max(0, Number(settings['agent_erase_devices_iterations'] ?? 1));
  const zeros = settings['agent_erase_devices_zeroize'] !== false;
  // NaN is no pass either.
  if (!(rounds > 0) && !zeros) throw new Error('there is nothing to write: the settings ask for no pass of random data, and for no zeros');
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

export const METHODS: readonly Method[] = [
  OPAL,
  ...NVME_METHODS,
  ...ATA_METHODS,
  ...SCSI_METHODS,
  DISCARD,
  SAMPLED_DISCARD,
  WRITE_ZEROES,
  { name: 'overwrite', fits: async () => true, erase: overwrite },
];
