/** mdadm, the program for software RAID. What changes disks needs them opened through the guard (disk/guard.ts). */
import type { Device } from '../disk/device';
import type { Run } from '../system/run';

const LIMIT_MS = 60_000;
const CREATE_MS = 300_000;

/** What mdadm knows of an array: `MD_NAME=…` in lines. */
export const detailsOf = (run: Run, array: string): Promise<string> =>
  run('mdadm', ['--detail', '--export', array], { timeoutMs: LIMIT_MS });
/** Starts all arrays of the machine. The kernel changes nothing on their members before something is written (arrays.ts, `start_ro`). */
export const startAll = (run: Run): Promise<string> => run('mdadm', ['--assemble', '--scan', '--run'], { timeoutMs: LIMIT_MS });
export const stopArray = (run: Run, array: string): Promise<string> => run('mdadm', ['--stop', array], { timeoutMs: LIMIT_MS });

interface NewArray {
  readonly name: string;
  readonly words: readonly string[];
  readonly members: readonly string[];
}
/** @param _disks those that the members are on */
export const createArray = (run: Run, _disks: readonly Device[], { name, words, members }: NewArray): Promise<string> =>
  run('mdadm', ['--create', name, ...words, `--raid-devices=${members.length}`, ...members], { timeoutMs: CREATE_MS });
/** @param _disks those that the members are on */
export const addMember = (run: Run, _disks: readonly Device[], array: string, member: string): Promise<string> =>
  run('mdadm', ['--add', array, member], { timeoutMs: LIMIT_MS });
