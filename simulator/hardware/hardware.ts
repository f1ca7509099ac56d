/**
 * The state that a machine's BMC and firmware share, besides power and boot device: a JSON value for each part of the machine. The module
 * with a part's rules declares the part (`hardwarePart`). Other modules read and change the value through `Hardware`.
 */

/** The stored form: name of a part → its value. */
export type HardwareState = Readonly<Record<string, unknown>>;
interface HardwarePart<T> {
  /** The part's key in the stored state. A renamed part loses its values in existing state folders. */
  readonly name: string;
  /** The value in the factory state. */
  readonly initial: T;
}
/** @param name unique among the parts */
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
