/**
 * The orders that the fake hardware got ([fake]step_log): no step that may run once ran twice, and no conductor gave an order after its
 * successor.
 */
import { closeSync, existsSync, openSync, readSync } from 'node:fs';
import type { FakeEvent } from '../../drivers/fake/log';
import type { Journal } from './journal';

export interface StepLog {
  /** Reads the new lines, and reports what is wrong in them. */
  check(): void;
  /** How often a counted step began. */
  begun(token: string): number;
}

export function readStepLog(file: string, journal: Journal): StepLog {
  const begun = new Map<string, number>();
  /** Node → the highest fencing number that gave an order, and its line. */
  const highest = new Map<string, FakeEvent>();
  let offset = 0;
  let rest = '';
  const lines = (): readonly string[] => {
    if (!existsSync(file)) return [];
    const handle = openSync(file, 'r');
    const chunk = Buffer.alloc(1 << 20);
    for (;;) {
      const bytes = readSync(handle, chunk, 0, chunk.length, offset);
      if (bytes === 0) break;
      offset += bytes;
      rest += chunk.toString('utf8', 0, bytes);
    }
    closeSync(handle);
    const whole = rest.split('\n');
    rest = whole.pop()!;
    return whole;
  };
  const look = (event: FakeEvent): void => {
    const { node, what, phase, token, fence } = event;
    const isPower = what.startsWith('power ');
    if (phase === 'begin') {
      journal.count(isPower ? 'power orders' : 'steps run');
      if (typeof token === 'string') begun.set(token, (begun.get(token) ?? 0) + 1);
      if (what === 'vendor.count_step') {
        journal.count('steps that may run once');
        if (begun.get(token as string)! > 1) journal.find('a step that may run once ran twice', event);
      }
    }
    const last = highest.get(node);
    // The end of an order from before the takeover is harmless, except that a power order takes effect at its end.
    if (last && last.fence > fence && (phase === 'begin' || isPower))
      journal.find('an order of a conductor that had lost the node', { event, successor: last });
    if (phase === 'begin' && (!last || fence >= last.fence)) highest.set(node, event);
  };
  return {
    check: () => lines().forEach((line) => look(JSON.parse(line) as FakeEvent)),
    begun: (token) => begun.get(token) ?? 0,
  };
}
