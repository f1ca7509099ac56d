/** How a simulated machine behaves. Times are in milliseconds. */
export interface Behaviour {
  /** From power on to the first request of the firmware. */
  readonly firmwareMs: number;
  /** From the load of kernel and ramdisk to the agent's first request. */
  readonly bootMs: number;
  /** The least duration of one of the agent's background commands. */
  readonly stepMs: number;
  /** From the soft power off request to power off; null: the machine ignores the request. */
  readonly softOffMs: number | null;
  /** Between tries of a request that failed. */
  readonly retryMs: number;
  /** The ramdisk hangs before its agent sends a request. */
  readonly neverCalls: boolean;
  /** The agent sends a token that the server did not give it. */
  readonly wrongToken: boolean;
  /** The reason with which write_image fails; null: it does not. */
  readonly failWriteImage: string | null;
}
export const DEFAULT_BEHAVIOUR: Behaviour = {
  firmwareMs: 50,
  bootMs: 200,
  stepMs: 0,
  softOffMs: 100,
  retryMs: 500,
  neverCalls: false,
  wrongToken: false,
  failWriteImage: null,
};

const MAX_MS = 3_600_000;
const isMs = (value: unknown): boolean => typeof value === 'number' && value >= 0 && value <= MAX_MS;
const isFlag = (value: unknown): boolean => typeof value === 'boolean';
const VALIDATORS: Readonly<Record<keyof Behaviour, (value: unknown) => boolean>> = {
  firmwareMs: isMs,
  bootMs: isMs,
  stepMs: isMs,
  softOffMs: (value) => value === null || isMs(value),
  retryMs: isMs,
  neverCalls: isFlag,
  wrongToken: isFlag,
  failWriteImage: (value) => value === null || typeof value === 'string',
};
/** Checks changes of behaviour from JSON. @throws an Error that names the first wrong member */
export function readBehaviour(changes: unknown): Partial<Behaviour> {
  if (typeof changes !== 'object' || changes === null) throw new Error('behaviour is an object');
  for (const [name, value] of Object.entries(changes)) {
    if (!Object.hasOwn(VALIDATORS, name))
      throw new Error(`there is no behaviour "${name.slice(0, 40)}": they are ${Object.keys(VALIDATORS).join(', ')}`);
    if (!VALIDATORS[name as keyof Behaviour](value))
      throw new Error(`the behaviour ${name} cannot be ${JSON.stringify(value).slice(0, 80)}`);
  }
  return changes;
}
