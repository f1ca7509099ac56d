/** Delays of the fake interfaces: `[fake]…_delay`. */
import type { Options } from '../../config/options';
import { Fault } from '../../model/errors';
import type { Task } from '../interfaces';

type DelayOption = Extract<keyof Options, `fake.${string}_delay`>;

/** `N` or `N,M` seconds, with fractions, as milliseconds. `spread` (integer ≥ 0) selects from the range. Throws InvalidParameterValue. */
function delayOf(text: string, spread: number): number {
  const match = /^\s*(\d+(?:\.\d+)?)\s*(?:,\s*(\d+(?:\.\d+)?)\s*)?$/.exec(text);
  if (!match) throw new Fault('InvalidParameterValue', { message: `A fake delay is N or N,M seconds, not "${text}".` });
  const milliseconds = (seconds: string): number => Math.round(Number(seconds) * 1000);
  const from = milliseconds(match[1]!);
  const to = Math.max(from, milliseconds(match[2] ?? match[1]!));
  return from + (spread % (to - from + 1));
}

/** Waits as long as the option says. For a range, the current time in milliseconds selects the duration. */
export const pause =
  (option: DelayOption) =>
  async (task: Task): Promise<void> => {
    const text = task.options[option];
    if (text === '' || text === '0') return;
    await task.clock.sleep(delayOf(text, task.clock.now()), task.signal);
  };
