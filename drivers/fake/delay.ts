/** How long the fake interfaces take: `[fake]…_delay`. */
import { Fault } from '../../model/errors';
import type { Task } from '../interfaces';
import type { DriverOptions } from '../options';

type DelayOption = Extract<keyof DriverOptions, `fake.${string}`>;

/** Milliseconds of `N` or `N,M` seconds, parts of one too. `spread` (any integer ≥ 0) picks a value of the range. Throws InvalidParameterValue. */
export function delayOf(text: string, spread: number): number {
  const match = /^\s*(\d+(?:\.\d+)?)\s*(?:,\s*(\d+(?:\.\d+)?)\s*)?$/.exec(text);
  if (!match) throw new Fault('InvalidParameterValue', { message: `A fake delay is N or N,M seconds, not "${text}".` });
  const milliseconds = (seconds: string): number => Math.round(Number(seconds) * 1000);
  const from = milliseconds(match[1]!);
  const to = Math.max(from, milliseconds(match[2] ?? match[1]!));
  return from + (spread % (to - from + 1));
}

/** What every operation does: wait as long as the option says. The clock's own milliseconds spread the waits of a range. */
export const pause =
  (option: DelayOption) =>
  async (task: Task): Promise<void> => {
    const text = task.options[option];
    if (text === '' || text === '0') return;
    await task.clock.sleep(delayOf(text, task.clock.now()), task.signal);
  };
