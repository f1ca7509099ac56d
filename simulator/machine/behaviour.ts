/** How a machine behaves; times in milliseconds. */
export interface Behaviour {
  /** From power on to the first request of the firmware. */
  readonly firmwareMs: number;
  /** From kernel and ramdisk to the agent's first request. */
  readonly bootMs: number;
  /** That each of the agent's commands in the background takes at least. */
  readonly stepMs: number;
  /** From a soft power off to off; null: it is ignored. */
  readonly softOffMs: number | null;
  /** Between tries of what failed. */
  readonly retryMs: number;
  /** The ramdisk hangs before its agent speaks. */
  readonly neverCalls: boolean;
  /** Its agent sends a token that it was not given. */
  readonly wrongToken: boolean;
  /** Why write_image fails; null: it does not. */
  readonly failWriteImage: string | null;
}
export const WELL_BEHAVED: Behaviour = {
  firmwareMs: 50,
  bootMs: 200,
  stepMs: 0,
  softOffMs: 100,
  retryMs: 500,
  neverCalls: false,
  wrongToken: false,
  failWriteImage: null,
};

const MOST_MS = 3_600_000;
const isMs = (value: unknown): boolean => typeof value === 'number' && value >= 0 && value <= MOST_MS;
const isFlag = (value: unknown): boolean => typeof value === 'boolean';
const KINDS: Readonly<Record<keyof Behaviour, (value: unknown) => boolean>> = {
  firmwareMs: isMs,
  bootMs: isMs,
  stepMs: isMs,
  softOffMs: (value) => value === null || isMs(value),
  retryMs: isMs,
  neverCalls: isFlag,
  wrongToken: isFlag,
  failWriteImage: (value) => value === null || typeof value === 'string',
};
/** Changes of behaviour as JSON has them. Throws an Error that names what is wrong. */
export function readBehaviour(given: unknown): Partial<Behaviour> {
  if (typeof given !== 'object' || given === null) throw new Error('behaviour is an object');
  for (const [name, value] of Object.entries(given)) {
    if (!Object.hasOwn(KINDS, name))
      throw new Error(`there is no behaviour "${name.slice(0, 40)}": they are ${Object.keys(KINDS).join(', ')}`);
    if (!KINDS[name as keyof Behaviour](value)) throw new Error(`the behaviour ${name} cannot be ${JSON.stringify(value).slice(0, 80)}`);
  }
  return given;
}
