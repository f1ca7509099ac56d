/**
 * Interfaces and connections that check, right before each call for a held node, that the node is still held. A process that was suspended may wake up
 * after its nodes were taken over: it must not send anything any more.
 */
import { UNFENCED, type Connections, type Task } from '../../drivers/interfaces';

/** The checks of an exclusive task. */
export interface Holding extends Required<Pick<Task, 'stillHeld'>> {
  /** As `stillHeld`, for a call of an interface. A node that only is checked before its first write need not be reserved for it. */
  readonly beforeCall?: () => true | Promise<void>;
}
const isHolding = (value: unknown): value is Holding => typeof value === 'object' && value !== null && 'stillHeld' in value;

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

/**
 * The connections of an exclusive task. A driver may send many requests during one call, so each function of each client makes the check,
 * except those of UNFENCED. A client is wrapped when it is used: many tasks send nothing.
 */
export const fencedConnections = (connections: Connections, { stillHeld }: Holding): Connections => {
  const checked =
    (client: object, work: Work): Work =>
    (...given) => {
      const held = stillHeld();
      return held === true ? work.apply(client, [...given]) : held.then(() => work.apply(client, [...given]));
    };
  const client = (made: object): object =>
    Object.fromEntries(
      Object.entries(made).map(([name, part]: [string, unknown]) => [
        name,
        typeof part === 'function' ? checked(made, part as Work) : part,
      ]),
    );
  return new Proxy(connections, {
    get: (all, name) => {
      const made: unknown = Reflect.get(all, name);
      return typeof made !== 'object' || made === null || UNFENCED.includes(name as keyof Connections) ? made : client(made);
    },
  });
};
