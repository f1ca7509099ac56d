/**
 * What must be true afterwards. Each thing has one writer, which asks for one change at a time: so a thing holds what was acknowledged
 * last, or what was asked for without an answer since the last look: nobody said that it was not done, so it may be done later than what
 * was asked for after it. Any other value is a loss.
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

export interface Thing<T> {
  acknowledged(value: T): void;
  /** It was asked for, and nobody said what came of it. */
  unsure(value: T): void;
  /** Held against what a server answers; from then on that counts. */
  seen(value: T): void;
  readonly last: T;
}
export function thing<T>(journal: Journal, name: string, first: T): Thing<T> {
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
      if (![last, ...maybe].some((one) => isDeepStrictEqual(one, value)))
        journal.find(`lost: ${name}`, { acknowledged: last, unanswered: maybe, found: value });
      last = value;
      maybe = [];
    },
  };
}
