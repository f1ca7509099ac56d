/** What every way of erasing a disk gets. */
import type { Clock } from '../../model/clock';
import type { EraseMethodName } from '../../model/agent/erasure';
import type { Log } from '../../model/log';
import type { JsonObject } from '../../model/records';
import type { Device } from '../disk/device';
import type { FoundDisk } from '../inventory/disks';
import type { Run } from '../system/run';
import type { Tree } from '../system/tree';

type Target = Pick<FoundDisk, 'name' | 'size' | 'tran' | 'logical_sectors'> & Partial<Pick<FoundDisk, 'serial'>>;
export interface Erasing {
  readonly disk: Target;
  /** node.driver_internal_info: the settings of erase steps. */
  readonly settings: JsonObject;
  /** Serial number → PSID, as the operator read it from the label of the disk. */
  readonly psids?: ReadonlyMap<string, string> | undefined;
  /** Opens the disk through the guard (disk/guard.ts). */
  readonly open: (disk: Target) => Promise<Device>;
  /** For programs that only read. */
  readonly query: Run;
  readonly tree: Tree;
  readonly random: (bytes: number) => Buffer;
  readonly clock: Pick<Clock, 'now' | 'sleep'>;
  readonly progress: (percent: number) => void;
  readonly log: Log;
}
export interface Method {
  readonly name: EraseMethodName;
  /** The disk erases itself. If that fails, the next method is used only if the operator allows it. */
  readonly secure?: true;
  /** Whether `express` uses it: it takes seconds. */
  readonly express?: true;
  /** Whether the disk supports the method, and the settings allow it. */
  fits(erasing: Erasing): Promise<boolean>;
  erase(device: Device, erasing: Erasing): Promise<void>;
}

export const blockName = ({ name }: Pick<Target, 'name'>): string => name.slice('/dev/'.length).replaceAll('/', '!');

const POLL_MS = 5000;
const LONGEST_MS = 7 * 86_400_000;
/** Asks a disk again and again until its own work is over. @param state undefined: it still works */
export async function untilOver<State>(clock: Erasing['clock'], state: () => Promise<State | undefined>): Promise<State> {
  const end = clock.now() + LONGEST_MS;
  for (;;) {
    const over = await state();
    if (over !== undefined) return over;
    if (clock.now() >= end) throw new Error('the disk still works after a week');
    await clock.sleep(POLL_MS);
  }
}
