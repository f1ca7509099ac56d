/** Limits the downloads at a time. */
export interface DownloadSlots {
  /** Undefined: all are taken. The returned function gives the slot back. */
  tryTake(): (() => void) | undefined;
  /** Waits for a slot, in the order of the calls. */
  take(): Promise<() => void>;
}

export function createDownloadSlots(most: number): DownloadSlots {
  let taken = 0;
  const waiting: (() => void)[] = [];
  const once = (): (() => void) => {
    let isTaken = true;
    return () => {
      if (!isTaken) return;
      isTaken = false;
      const next = waiting.shift();
      if (next) next();
      else taken--;
    };
  };
  return {
    tryTake: () => {
      if (taken === most) return undefined;
      taken++;
      return once();
    },
    take: async () => {
      if (taken < most) taken++;
      else await new Promise<void>((resolve) => waiting.push(resolve));
      return once();
    },
  };
}
