/**
 * Interfaces that check, right before each call for a held node, that the node is still held. A process that was suspended may wake up
 * after its nodes were taken over: it must not send anything any more.
 */
import type { Task } from '../../drivers/interfaces';

/** The checks of an exclusive task. */
export interface Holding extends Required<Pick<Task, 'stillHeld'>> {
  /** As `stillHeld`, for a call of an interface. A node that only is checked before its first write need not be reserved for it. */
  readonly beforeCall?: () => true | Promise<void>;
}
const isHolding = (value: unknown): value is Holding => typeof value === 'object' && value !== null && 'stillHeld' in value;

interface Pool<Args extends readonly unknown[], Answer> {
  request(...args: Args): Promise<Answer>;
}
/** A pool of connections with the same check before each request. A driver may send many requests during one call. */
export const fencedPool = <Args extends readonly unknown[], Answer, Made extends Pool<Args, Answer>>(
  pool: Made & Pool<Args, Answer>,
  { stillHeld }: Pick<Holding, 'stillHeld'>,
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
    const held = isHolding(task) ? (task.beforeCall?.() ?? task.stillHeld()) : true;
    return held === true ? work.apply(owner, [...given]) : held.then(() => work.apply(owner, [...given]));
  };
};
const isPlain = (value: object): boolean => Object.getPrototypeOf(value) === Object.prototype;

/** A copy whose functions, also those of nested objects, make this check when their first argument is an exclusive task. */
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
