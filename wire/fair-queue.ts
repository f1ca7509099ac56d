/**
 * Bounded queues for work whose sources may be forged. Groups take turns, then the groups within a group, and so on. If the queue is full,
 * the largest group loses its newest item. So a flood delays and displaces little but what comes from its own groups.
 */
interface Group<Item> {
  size: number;
  /** In the order of their turns. */
  readonly groups: Map<string, Group<Item>>;
  readonly items: Item[];
}
interface FairQueue<Item> {
  /** @param path the groups that the item is in, the outermost first @returns the item that lost its place, perhaps this one */
  push(path: readonly string[], item: Item): Item | undefined;
  /** The item that has its turn; it leaves the queue. */
  shift(): Item | undefined;
  readonly size: number;
}
const emptyGroup = <Item>(): Group<Item> => ({ size: 0, groups: new Map(), items: [] });

/** @internal */
export function createFairQueue<Item>(most: number): FairQueue<Item> {
  const root = emptyGroup<Item>();

  interface Taking {
    /** The name of the group to take from. */
    readonly choose: (group: Group<Item>) => string | undefined;
    readonly pick: (items: Item[]) => Item | undefined;
    /** Groups that had their turn go to the end of the order. */
    readonly isTurn?: true;
  }
  /** Takes an item out, and forgets groups that become empty. */
  function take(group: Group<Item>, taking: Taking): Item | undefined {
    if (group.groups.size === 0) {
      const item = taking.pick(group.items);
      group.size = group.items.length;
      return item;
    }
    const name = taking.choose(group)!;
    const inner = group.groups.get(name);
    if (!inner) return undefined;
    const before = inner.size;
    const item = take(inner, taking);
    group.size += inner.size - before;
    if (taking.isTurn || inner.size === 0) group.groups.delete(name);
    if (taking.isTurn && inner.size > 0) group.groups.set(name, inner);
    return item;
  }
  const first = (group: Group<Item>): string | undefined => group.groups.keys().next().value;
  /** Of several, the last one. */
  function largest(group: Group<Item>): string | undefined {
    let name: string | undefined;
    let longest = 0;
    for (const [each, { size }] of group.groups) if (size >= longest) [name, longest] = [each, size];
    return name;
  }

  return {
    get size() {
      return root.size;
    },
    push(path, item) {
      let group = root;
      group.size += 1;
      for (const name of path) {
        const inner = group.groups.get(name) ?? emptyGroup<Item>();
        group.groups.set(name, inner);
        group = inner;
        group.size += 1;
      }
      group.items.push(item);
      return root.size > most ? take(root, { choose: largest, pick: (items) => items.pop() }) : undefined;
    },
    shift: () => (root.size === 0 ? undefined : take(root, { choose: first, pick: (items) => items.shift(), isTurn: true })),
  };
}

interface FairWork {
  /**
   * Does the work when it has its turn. It must not reject.
   * @param dropped called instead if too much waits
   */
  add(path: readonly string[], work: () => Promise<void>, dropped: () => void): void;
  /** Begins no other work. Resolves when the work that has begun is done. */
  stop(): Promise<void>;
}
interface FairWorkSetup {
  /** Work that may wait, and that may be done at the same time. */
  readonly waiting: number;
  readonly inWork: number;
  /** Work that begins in a turn of the event loop: in between, the program receives packets and does its other work. */
  readonly inTurn: number;
}
export function createFairWork({ waiting, inWork, inTurn }: FairWorkSetup): FairWork {
  const queue = createFairQueue<{ readonly work: () => Promise<void>; readonly dropped: () => void }>(waiting);
  const running = new Set<Promise<void>>();
  let begun = 0;
  let isPlanned = false;
  let isStopped = false;
  function beginNext(): void {
    while (!isStopped && begun < inTurn && running.size < inWork) {
      const next = queue.shift();
      if (!next) return;
      begun += 1;
      const promise = next.work().finally(() => {
        running.delete(promise);
        beginNext();
      });
      running.add(promise);
    }
    if (isPlanned || isStopped || begun === 0) return;
    isPlanned = true;
    setImmediate(() => {
      isPlanned = false;
      begun = 0;
      if (queue.size > 0) beginNext();
    });
  }
  return {
    add(path, work, dropped) {
      if (isStopped) return;
      queue.push(path, { work, dropped })?.dropped();
      beginNext();
    },
    stop: async () => {
      isStopped = true;
      await Promise.all(running);
    },
  };
}
