/** The ways of erasing a disk, the best first. */
import { reasonOf } from '../../model/errors';
import type { Device } from '../disk/device';
import { numberIn } from '../system/tree';
import { ATA_METHODS, ataFeatures } from './ata';
import { blockName, type Erasing, type Method } from './erasing';
import { NVME_METHODS } from './nvme';

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

/** Volumes of arrays and of other hosts are not disks that may erase themselves. */
const LOCAL_SCSI = ['sas', 'spi'];
/** SBC-4 §5.31: opcode 48h, with the service actions 2 block erase and 3 cryptographic erase. */
const scsi = (name: 'scsi-sanitize-crypto' | 'scsi-sanitize-block', action: 2 | 3, order: string, more: Partial<Method>): Method => ({
  name,
  secure: true,
  ...more,
  fits: async ({ disk, query }) => {
    if (!disk.name.startsWith('/dev/sd') || !LOCAL_SCSI.includes(disk.tran ?? '')) return false;
    const said = await query('sg_opcodes', [`--opcode=0x48,${action}`, disk.name]).catch(() => '');
    return /command (?:is )?supported/i.test(said) && !/not supported/i.test(said);
  },
  // With --wait, the status of the command is that of the operation.
  erase: async (device, { disk, log }) => {
    await device.command('sg_sanitize', ['--ause', order, '--quick', '--wait']).catch(async (error: unknown) => {
      // A disk whose sanitize operation has failed takes no other command.
      const ending = device.command('sg_sanitize', ['--fail', '--quick', '--wait']);
      await ending.catch((also: unknown) => log.warn(`${disk.name}: the failed state remains: ${reasonOf(also)}`));
      throw error;
    });
  },
});

const onePass = ({ settings }: Erasing): boolean => Number(settings['agent_erase_devices_iterations'] ?? 1) <= 1;
const queueNumber = ({ disk, tree }: Erasing, file: string): number =>
  numberIn(tree.text(`/sys/block/${blockName(disk)}/queue/${file}`)) ?? 0;
/** Logical Block Provisioning VPD page (SBC-4 §6.6.6), LBPRZ: 001b, or 1xxb, which is another pattern. */
const readsZeros = (page: Buffer | null): boolean => page !== null && page.length > 5 && ((page[5]! >> 2) & 0b111) === 0b001;
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
  scsi('scsi-sanitize-crypto', 3, '--crypto', { express: true }),
  scsi('scsi-sanitize-block', 2, '--block', {}),
  DISCARD,
  WRITE_ZEROES,
  { name: 'overwrite', fits: async () => true, erase: overwrite },
];
