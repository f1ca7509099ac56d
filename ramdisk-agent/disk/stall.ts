/** Ends the wait for a disk that hangs: some controllers never answer, and the kernel then waits for ever. Says when a disk is gone. */
import type { Clock } from '../../model/clock';
import { reasonOf } from '../../model/errors';

export interface StallLimit {
  readonly clock: Pick<Clock, 'sleep'>;
  /** Milliseconds without any work of the disk after which it counts as hanging. */
  readonly limitMs: number;
  /** /sys/block/…/stat; null: the machine has no such disk. */
  readonly stat: () => string | null;
}
/** Runs an operation. The signal tells it that nobody waits any more. */
export type Limited = <T>(operation: (signal: AbortSignal) => Promise<T>) => Promise<T>;

/** Operations that are short are not measured. */
const FIRST_LOOK_MS = 1000;
/** Numbers of requests and sectors that are complete (Documentation/block/stat.rst). Others change while requests are pending. */
const COMPLETE: readonly number[] = [0, 2, 4, 6, 11, 13, 15];
function complete(stat: string | null): string {
  const fields = (stat ?? '').split(/\s+/);
  return COMPLETE.map((index) => fields[index]).join(' ');
}

export class DiskHangs extends Error {}

/** A flush may write for long: as long as the disk works, nothing ends. */
export function limited({ clock, limitMs, stat }: StallLimit): Limited {
  const isKnown = stat() !== null;
  let stalled: DiskHangs | undefined;
  const silence = async (ended: AbortSignal): Promise<never> => {
    await clock.sleep(Math.min(FIRST_LOOK_MS, limitMs), ended);
    for (let before = complete(stat()); ;) {
      await clock.sleep(limitMs, ended);
      const now = complete(stat());
      if (now === before) break;
      before = now;
    }
    stalled = new DiskHangs(`the disk hangs: it has done nothing for ${limitMs / 1000} s (ipa-disk-timeout)`);
    throw stalled;
  };
  return async (operation) => {
    // What hangs cannot be taken back. Nothing may follow it.
    if (stalled) throw stalled;
    const [ended, gone] = [new AbortController(), new AbortController()];
    try {
      return await Promise.race([operation(gone.signal), silence(ended.signal)]);
    } catch (error) {
      if (!isKnown || stat() !== null) throw error;
      throw new Error(`the disk is gone: it was removed, or its controller lost it (${reasonOf(error)})`, { cause: error });
    } finally {
      ended.abort();
      if (stalled) gone.abort();
    }
  };
}
export const unlimited: Limited = (operation) => operation(new AbortController().signal);
