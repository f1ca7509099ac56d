/** SCSI: SANITIZE (SBC-4 §4.11, §5.31). */
import { reasonOf } from '../../model/errors';
import type { Run } from '../system/run';
import type { Method } from './erasing';

/** While it works, a disk answers nothing else: it cannot be read, and the kernel finds no size. Undefined: it works. */
export async function scsiSanitizeState(query: Run, name: string): Promise<'failed' | 'idle' | undefined> {
  const sense = await query('sg_requests', [name]);
  if (/sanitize in progress/i.test(sense)) return undefined;
  return /sanitize command failed/i.test(sense) ? 'failed' : 'idle';
}
/** The arguments that end the failed state, in which a disk takes no other command. */
export const SCSI_EXIT_FAILURE = ['--fail', '--quick', '--wait'];

/** Volumes of arrays and of other hosts are not disks that may erase themselves. */
const LOCAL_SCSI = ['sas', 'spi'];
/** Opcode 48h, with the service actions 2 block erase and 3 cryptographic erase. */
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
      const ending = device.command('sg_sanitize', SCSI_EXIT_FAILURE);
      await ending.catch((also: unknown) => log.warn(`${disk.name}: the failed state remains: ${reasonOf(also)}`));
      throw error;
    });
  },
});

export const SCSI_METHODS: readonly Method[] = [
  scsi('scsi-sanitize-crypto', 3, '--crypto', { express: true }),
  scsi('scsi-sanitize-block', 2, '--block', {}),
];
