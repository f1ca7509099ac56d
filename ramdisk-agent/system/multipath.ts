/** Joins the paths to a disk: two SCSI disks with the same world wide name are one disk (dm-multipath). */
import { waitUntil, type Clock } from '../../model/clock';
import { reasonOf } from '../../model/errors';
import type { Log } from '../../model/log';
import type { Run } from './run';
import type { Tree } from './tree';

interface Environment {
  readonly tree: Tree;
  readonly run: Run;
  readonly clock: Clock;
  readonly log: Log;
}
const MODULES = ['dm_multipath', 'dm_service_time', 'scsi_dh_alua', 'scsi_dh_rdac', 'scsi_dh_emc'];
const ATTEMPTS = 60;
const INTERVAL_MS = 500;

/** Disks that several paths lead to and that are not joined yet: their names in /sys/block. */
function separatePaths(tree: Tree): readonly string[] {
  const byName = new Map<string, string[]>();
  for (const name of tree.list('/sys/block').filter((candidate) => candidate.startsWith('sd'))) {
    const id = tree.text(`/sys/block/${name}/device/wwid`);
    if (id !== null) byName.set(id, [...(byName.get(id) ?? []), name]);
  }
  const several = [...byName.values()].filter((names) => names.length > 1).flat();
  return several.filter((name) => tree.list(`/sys/block/${name}/holders`).length === 0);
}

/**
 * Starts multipathd where it is needed, and waits until it has joined the paths; never rejects. It also joins paths that appear later. Other
 * machines are spared its memory.
 */
export async function joinPaths({ tree, run, clock, log }: Environment, signal: AbortSignal): Promise<void> {
  const paths = separatePaths(tree);
  if (paths.length === 0) return;
  log.info(`Several paths lead to the same disk: ${paths.join(', ')}`);
  try {
    await run('modprobe', ['-q', '-a', ...MODULES]).catch(() => '');
    await run('multipathd', []);
    const areJoined = (): boolean => separatePaths(tree).length === 0;
    if (!(await waitUntil({ clock, signal }, areJoined, (checks) => (checks <= ATTEMPTS ? INTERVAL_MS : undefined))))
      throw new Error(`multipathd did not join ${separatePaths(tree).join(', ')}`);
    await run('udevadm', ['settle', '-t', '30']);
  } catch (error) {
    signal.throwIfAborted();
    log.warn(`The paths are not joined: ${reasonOf(error)}`);
  }
}
