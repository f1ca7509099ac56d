/**
 * What a machine's BMC and firmware share besides power and boot device: a JSON value for each part of the machine. A part declares its
 * value beside its own rules (`hardwarePart`), and every other module reaches it through `Hardware`.
 */

/** As it is stored: part → value. */
export type HardwareState = Readonly<Record<string, unknown>>;
export interface HardwarePart<T> {
  /** Its key in stored state. A new name would lose what state folders hold. */
  readonly name: string;
  /** Its value when the machine leaves the factory. */
  readonly initial: T;
}
/** @param name no two parts have the same */
export const hardwarePart = <T>(name: string, initial: T): HardwarePart<T> => ({ name, initial });

export interface Hardware {
  get<T>(part: HardwarePart<T>): T;
  set<T>(part: HardwarePart<T>, value: T): void;
  /** Gives all other parts their initial value. */
  resetExcept(parts: readonly HardwarePart<unknown>[]): void;
  snapshot(): HardwareState;
}
/**
 * @param stored as `snapshot` returned it
 * @param onChange called after each change
 */
export function newHardware(stored: HardwareState = {}, onChange: () => void = () => {}): Hardware {
  let state = stored;
  return {
    get: <T>({ name, initial }: HardwarePart<T>) => (Object.hasOwn(state, name) ? (state[name] as T) : initial),
    set: ({ name }, value) => {
      state = { ...state, [name]: value };
      onChange();
    },
    resetExcept: (parts) => {
      const names = new Set(parts.map(({ name }) => name));
      state = Object.fromEntries(Object.entries(state).filter(([name]) => names.has(name)));
      onChange();
    },
    snapshot: () => state,
  };
}
