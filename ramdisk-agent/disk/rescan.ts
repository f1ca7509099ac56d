/** Makes the kernel read a partition table again. */
import { retry, type Clock } from '../../model/clock';
import { reasonOf } from '../../model/errors';
import type { Run } from '../system/run';
import type { Tree } from '../system/tree';
import { usersOf } from './users';

interface Rescanning {
  readonly run: Run;
  readonly tree: Tree;
  readonly clock: Pick<Clock, 'sleep'>;
}
const RESCANS = 10;
const RESCAN_PAUSE_MS = 500;
/**
 * Makes the kernel read the partition table again. The partitions of a multipath device are devices of their own, which kpartx makes. Who
 * looks at a partition meanwhile, such as a scan of the kernel's own, makes the disk busy for a moment. An error names who uses it for longer.
 */
export async function rescan({ run, tree, clock }: Rescanning, disk: string): Promise<void> {
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
