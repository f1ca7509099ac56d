/**
 * Interfaces that ask, right before each call for a node that is held, whether it is held still: a conductor that was stopped and goes
 * on after its nodes were taken over must not send anything any more.
 */

/** What a task says of itself; a task that only looks says nothing. */
export interface Holding {
  /** True: surely. Else it resolves once that is so; throws LockLost. */
  stillHeld(): true | Promise<void>;
}
const isHolding = (value: unknown): value is Holding => typeof value === 'object' && value !== null && 'stillHeld' in value;

type Work = (...given: readonly unknown[]) => unknown;
const fencedFunction = (owner: object, work: Work): Work => {
  return (...given) => {
    const [task] = given;
    const held = isHolding(task) ? task.stillHeld() : true;
    return held === true ? work.apply(owner, [...given]) : held.then(() => work.apply(owner, [...given]));
  };
};
const isPlain = (value: object): boolean => Object.getPrototypeOf(value) === Object.prototype;

/** A copy whose functions, however deep, do so when a task is their first argument. */
export function fenced<T>(made: T, owner: object = {}): T {
  if (typeof made === 'function') return fencedFunction(owner, made as unknown as Work) as T;
  if (Array.isArray(made)) return made.map((item: unknown) => fenced(item)) as T;
  if (typeof made !== 'object' || made === null || !isPlain(made)) return made;
  const parts = Object.entries(Object.getOwnPropertyDescriptors(made)).map(([name, part]) => [
    name,
    part.get
      ? { ...part, get: () => fenced((made as Record<string, unknown>)[name], made) }
      : { ...part, value: fenced(part.value as unknown, made) },
  ]);
  return Object.defineProperties({}, Object.fromEntries(parts) as PropertyDescriptorMap) as T;
}
