/** Random choices that can be repeated: the same seed gives the same choices. */
export interface Chance {
  /** An integer from `from` to `to`, both included. */
  between(from: number, to: number): number;
  pick<T>(items: readonly T[]): T;
  /** True in so many of a hundred cases. */
  percent(likely: number): boolean;
  shuffled<T>(items: readonly T[]): T[];
  uuid(): string;
}

export function chanceOf(seed: number): Chance {
  let state = seed >>> 0;
  /** Mulberry32: 32 bits of state are plenty for choices. */
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = state;
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return (mixed ^ (mixed >>> 14)) >>> 0;
  };
  const between = (from: number, to: number): number => from + (next() % (to - from + 1));
  const hex = (digits: number): string => Array.from({ length: digits }, () => between(0, 15).toString(16)).join('');
  const shuffled = <T>(items: readonly T[]): T[] => {
    const left = [...items];
    return items.map(() => left.splice(between(0, left.length - 1), 1)[0]!);
  };
  return {
    between,
    shuffled,
    pick: (items) => items[between(0, items.length - 1)]!,
    percent: (likely) => between(1, 100) <= likely,
    uuid: () => `${hex(8)}-${hex(4)}-4${hex(3)}-a${hex(3)}-${hex(12)}`,
  };
}
