/** What a disk does for a while after the command: a sanitize operation, which a test may hold. */
export interface Work {
  /** Commands that erase, in the order in which the disk took them. */
  readonly taken: string[];
  state(): 'idle' | 'working' | 'done' | 'failed';
  /** 65536ths. */
  progress(): number;
  begin(name: string, erase: () => void): Promise<void>;
  /** Resolves when nothing is at work. */
  over(): Promise<void>;
  /** The next operation goes on until `release`. */
  hold(): void;
  /** Ends what is held, well or with an error. */
  release(outcome?: 'done' | 'failed'): void;
  /** Leaves the failed state. */
  leave(): void;
}
export function createWork(): Work {
  const taken: string[] = [];
  let state: ReturnType<Work['state']> = 'idle';
  let isHeld = false;
  let current = Promise.resolve();
  let end: ((outcome: 'done' | 'failed') => void) | undefined;
  return {
    taken,
    state: () => state,
    progress: () => (state === 'working' ? 0x40_00 : 0xff_ff),
    over: () => current,
    begin: (name, erase) => {
      taken.push(name);
      state = 'working';
      const ended = isHeld ? new Promise<'done' | 'failed'>((resolve) => (end = resolve)) : Promise.resolve('done' as const);
      return (current = ended.then((outcome) => {
        if (outcome === 'done') erase();
        state = outcome;
      }));
    },
    hold: () => (isHeld = true),
    release: (outcome = 'done') => {
      isHeld = false;
      end?.(outcome);
      end = undefined;
    },
    leave: () => (state = 'idle'),
  };
}
