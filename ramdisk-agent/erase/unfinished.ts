/**
 * What somebody else has begun, such as the agent before this one. A sanitize operation goes on when the agent or the machine restarts. Until
 * it ends, the disk cannot be read, and a SCSI disk has no size: it would look as if the machine did not have it.
 */
import { reasonOf } from '../../model/errors';
import { fixedDisksOf, mediaOf, type FoundDisk } from '../inventory/disks';
import type { Machine } from '../machine';
import type { Run } from '../system/run';
import { ataFeatures, ataSanitizeState, isAta, unlockAfterPowerLoss } from './ata';
import { blockName, untilOver, type Erasing } from './erasing';
import { NVME_EXIT_FAILURE, nvmeSanitizeState } from './nvme';
import { SCSI_EXIT_FAILURE, scsiSanitizeState } from './scsi';

interface Kind {
  readonly fits: (name: string, query: Run) => Promise<boolean> | boolean;
  /** Undefined: the disk works. */
  readonly state: (query: Run, name: string) => Promise<string | undefined>;
  /** The program that ends the failed state, and so makes the disk readable. */
  readonly leave?: readonly [program: string, args: readonly string[]];
}
const isScsi = (name: string): boolean => name.startsWith('/dev/sd');
const KINDS: readonly Kind[] = [
  {
    fits: (name) => name.startsWith('/dev/nvme'),
    state: (query, name) => nvmeSanitizeState(query, name, () => {}),
    leave: ['nvme', NVME_EXIT_FAILURE],
  },
  { fits: isScsi, state: scsiSanitizeState, leave: ['sg_sanitize', SCSI_EXIT_FAILURE] },
  {
    fits: async (name, query) => isScsi(name) && (await ataFeatures(name, query)).has('SANITIZE feature set'),
    state: (query, name) => ataSanitizeState(query, name, () => {}),
  },
];

/** Most disks have no such command, or cannot be asked for it. */
async function finished({ run, clock, log }: Machine, name: string, { fits, state, leave }: Kind): Promise<void> {
  if (!(await fits(name, run))) return;
  const now = await state(run, name).catch(() => 'unknown');
  if (now === undefined) log.info(`${name}: waiting for the end of a sanitize operation that was begun before`);
  const after = now ?? (await untilOver(clock, () => state(run, name)));
  if (after !== 'failed' || !leave) return;
  log.warn(`${name}: a sanitize operation that was begun before has failed`);
  await run(leave[0], [...leave[1], name]).catch((error: unknown) => log.warn(`${name}: the failed state remains: ${reasonOf(error)}`));
}
const withoutMedium = ({ tree }: Machine, disk: FoundDisk): boolean =>
  disk.size === 0 && tree.text(`/sys/block/${blockName(disk)}/removable`) !== '1';

/** @param settings of erase steps @param stays whether nothing may be done with a disk */
export async function awaitUnfinished(machine: Machine, settings: Erasing['settings'], stays: (disk: FoundDisk) => boolean): Promise<void> {
  const media = mediaOf(machine);
  const disks = fixedDisksOf(machine.tree).filter((disk) => !media.includes(disk.name) && !stays(disk));
  await Promise.all(
    disks.map(async (disk) => {
      for (const kind of KINDS) await finished(machine, disk.name, kind);
      if (isAta({ disk, settings })) await unlockAfterPowerLoss(disk.name, machine.run, machine.log);
      if (!isScsi(disk.name) || !withoutMedium(machine, disk)) return;
      // The kernel reads a size when it finds the disk, and does not look again.
      const file = `/sys/block/${blockName(disk)}/device/rescan`;
      await machine
        .run('sh', ['-c', 'echo 1 > "$0"', file])
        .catch((error: unknown) => machine.log.info(`${disk.name}: ${reasonOf(error)}`));
    }),
  );
}
/** Disks that nobody can erase, and that a certificate may not pass over in silence. */
export const disksWithoutSize = (machine: Machine): readonly FoundDisk[] =>
  fixedDisksOf(machine.tree).filter((disk) => withoutMedium(machine, disk));
