/**
 * The values that must be there afterwards. Each has one writer, which requests one change at a time. So a value is the one that was
 * acknowledged last, or one that was requested since the last check without an answer: such a request may take effect even after later
 * ones. Any other value is a loss.
 */
import { isDeepStrictEqual } from 'node:util';

interface Finding {
  readonly round: number;
  readonly what: string;
  readonly detail: unknown;
}
export interface Journal {
  readonly findings: readonly Finding[];
  readonly counts: ReadonlyMap<string, number>;
  round: number;
  find(what: string, detail?: unknown): void;
  count(what: string, by?: number): void;
}
export function createJournal(): Journal {
  const findings: Finding[] = [];
  const counts = new Map<string, number>();
  const journal: Journal = {
    findings,
    counts,
    round: 0,
    find: (what, detail = '') => void findings.push({ round: journal.round, what, detail }),
    count: (what, by = 1) => void counts.set(what, (counts.get(what) ?? 0) + by),
  };
  return journal;
}

export interface TrackedValue<T> {
  acknowledged(value: T): void;
  /** The change was requested, and its result is unknown. */
  unsure(value: T): void;
  /** Compares the value with a server's answer, and expects the answered one from then on. */
  seen(value: T): void;
  readonly last: T;
}
export function trackValue<T>(journal: Journal, name: string, first: T): TrackedValue<T> {
  let last = first;
  let maybe: T[] = [];
  return {
    get last() {
      return last;
    },
    acknowledged: (value) => {
      journal.count('acknowledged writes');
      last = value;
    },
    unsure: (value) => {
      journal.count('writes without an answer');
      maybe.push(value);
    },
    seen: (value) => {
      journal.count('checks of acknowledged writes');
      if (![last, ...maybe].some((candidate) => isDeepStrictEqual(candidate, value)))
        journal.find(`lost: ${name}`, { acknowledged: last, unanswered: maybe, found: value });
      last = value;
      maybe = [];
    },
  };
}
