/** The partition table of a plan, and what of an earlier one stays. */
import { AgentError } from '../../model/agent/errors';
import { partitionFor, type PartitionPlan, type PlannedPartition } from '../../model/agent/partition-plan';
import type { Device } from '../disk/device';
import { emptyGpt, entriesOf, readGpt, withEntry, writeGpt, writeProtectiveMbr } from '../disk/gpt';
import { BIOS_BOOT, EFI_SYSTEM, LINUX, readPartitions } from '../disk/partitions';

/** In a GPT: type and name. In an MBR: type. Names of systems of Linux. */
const TYPES: Readonly<Record<PlannedPartition['role'], { readonly gpt: string; readonly msdos: number; readonly name: string }>> = {
  esp: { gpt: EFI_SYSTEM.gpt, msdos: 0xef, name: 'efi-part' },
  bios: { gpt: BIOS_BOOT, msdos: 0, name: 'bios-boot-part' },
  ephemeral: { gpt: LINUX.gpt, msdos: LINUX.dos, name: 'ephemeral0' },
  swap: { gpt: '0657fd6d-a4ab-43c4-84e5-0933c84b4f4f', msdos: 0x82, name: 'swap1' },
  configdrive: { gpt: LINUX.gpt, msdos: LINUX.dos, name: 'config-2' },
  root: { gpt: LINUX.gpt, msdos: LINUX.dos, name: 'root' },
};
/** Of the MBR: the disk's identifier, the entries, and their flag for the partition that is booted. */
const [IDENTIFIER, ENTRIES, ACTIVE] = [440, 446, 0x80];

/** What identifies the disk and its ephemeral partition, and stays with the partition. */
export interface KeptIdentity {
  readonly disk: string;
  readonly ephemeral: string;
}
/**
 * Finds the ephemeral partition of an earlier deployment where the plan has it. Throws DeploymentError if it is not there: then nothing may be
 * written.
 */
export async function keptIdentity(device: Device, plan: PartitionPlan): Promise<KeptIdentity> {
  const wanted = partitionFor(plan, 'ephemeral');
  const table = await readPartitions(device);
  const same = table?.partitions.find(({ start, size }) => start === wanted?.start && size === wanted.size);
  if (!wanted || !same || table?.label !== (plan.label === 'gpt' ? 'gpt' : 'dos')) {
    const place = wanted ? `${wanted.size / 2 ** 20} MiB at ${wanted.start / 2 ** 20} MiB` : 'that size';
    throw new AgentError(
      'DeploymentError',
      `The ephemeral partition cannot be preserved: ${device.path} has none of ${place} in a partition table ${plan.label}. Nothing was written`,
    );
  }
  if (plan.label === 'msdos') return { disk: (await device.read(IDENTIFIER, 4)).toString('hex'), ephemeral: '' };
  const gpt = await readGpt(device);
  const entry = gpt && entriesOf(gpt).find(({ number }) => number === same.number);
  return { disk: gpt?.diskGuid ?? '', ephemeral: entry?.guid ?? '' };
}

interface Source {
  readonly newUuid: () => string;
  readonly random: (bytes: number) => Buffer;
}
/** Writes the table in place of any other. Its partitions keep their content. */
export async function writeTable(
  device: Device,
  plan: PartitionPlan,
  { newUuid, random }: Source,
  kept: KeptIdentity | null,
): Promise<void> {
  const { sectorSize } = device;
  if (plan.label === 'gpt') {
    let gpt = emptyGpt(device, kept?.disk || newUuid());
    for (const { role, start, size } of plan.partitions) {
      const guid = (role === 'ephemeral' && kept?.ephemeral) || newUuid();
      const [first, last] = [start / sectorSize, (start + size) / sectorSize - 1];
      ({ gpt } = withEntry(gpt, { type: TYPES[role].gpt, guid, first, last, name: TYPES[role].name }));
    }
    await writeProtectiveMbr(device);
    await writeGpt(device, gpt);
  } else {
    const mbr = Buffer.alloc(sectorSize);
    (kept ? Buffer.from(kept.disk, 'hex') : random(4)).copy(mbr, IDENTIFIER);
    for (const { role, number, start, size } of plan.partitions) {
      const entry = mbr.subarray(ENTRIES + (number - 1) * 16, ENTRIES + number * 16);
      // Maximal cylinder, head and sector numbers: only the LBA is valid.
      entry.set([role === 'root' ? ACTIVE : 0, 0xfe, 0xff, 0xff, TYPES[role].msdos, 0xfe, 0xff, 0xff]);
      entry.writeUInt32LE(start / sectorSize, 8);
      entry.writeUInt32LE(size / sectorSize, 12);
    }
    mbr.writeUInt16LE(0xaa55, 510);
    await device.write(mbr, 0);
  }
  await device.flush();
}
