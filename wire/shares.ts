/** Counts what is taken, in all and by each source, up to limits: at a time, or in a period. */

export interface ShareLimits {
  readonly inAll: number;
  readonly ofSource: number;
}
/** Without `ofSource`, a source may take half of all. */
export const shareLimits = (inAll: number, ofSource: number | null): ShareLimits => ({ inAll, ofSource: ofSource ?? Math.ceil(inAll / 2) });

interface Shares {
  /** @returns false when less than that is left */
  take(source: string, amount: number): boolean;
  /** Returns what was taken. */
  give(source: string, amount: number): void;
  readonly taken: number;
}
export function createShares({ inAll, ofSource }: ShareLimits): Shares {
  let taken = 0;
  const sources = new Map<string, number>();
  return {
    get taken() {
      return taken;
    },
    take(source, amount) {
      const own = (sources.get(source) ?? 0) + amount;
      if (taken + amount > inAll || own > ofSource) return false;
      taken += amount;
      sources.set(source, own);
      return true;
    },
    give(source, amount) {
      taken -= amount;
      const own = sources.get(source)! - amount;
      if (own > 0) sources.set(source, own);
      else sources.delete(source);
    },
  };
}

/** @returns whether a source may have one more in this period, and the period in all. No more than `inAll` sources are remembered. */
export function createRate(limits: ShareLimits, periodMs: number, now: () => number): (source: string) => boolean {
  let ends = -Infinity;
  let shares = createShares(limits);
  return (source) => {
    if (now() >= ends) {
      ends = now() + periodMs;
      shares = createShares(limits);
    }
    return shares.take(source, 1);
  };
}
