/**
 * Interfaces that ask, right before each call for a node that is held, whether it is held still: a conductor that was stopped and goes
 * on after its nodes were taken over must not send anything any more.
 */
import type { Task } from '../../drivers/interfaces';

/** What an exclusive task says of itself. */
export type Holding = Required<Pick<Task, 'stillHeld'>>;
const isHolding = (value: unknown): value is Holding => typeof value === 'object' && value !== null && 'stillHeld' in value;

interface Pool<Args extends readonly unknown[], Answer> {
  request(...args: Args): Promise<Answer>;
}
/** The same for what a driver sends in the course of one call. */
export const fencedPool = <Args extends readonly unknown[], Answer, Made extends Pool<Args, Answer>>(
  pool: Made & Pool<Args, Answer>,
  { stillHeld }: Holding,
): Made => ({
  ...pool,
  request: async (...args: Args): Promise<Answer> => {
    const held = stillHeld();
    if (held !== true) await held;
    return pool.request(...args);
  },
});

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
