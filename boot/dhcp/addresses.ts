/** The addresses of a DHCP pool: their states, and which machine has which. No operation scans the pool. */

export type BindingState = 'free' | 'offered' | 'bound' | 'ended' | 'declined';
export interface Binding<Note> {
  readonly address: number;
  readonly state: BindingState;
  /** Empty if no machine has the address (free, declined). */
  readonly mac: string;
  readonly until: number;
  /** What the caller decided with the offer; returned when the machine requests the address. */
  readonly note: Note | undefined;
}
/** An address with its binding; always in exactly one queue. */
export interface PoolAddress<Note> extends Binding<Note> {
  state: BindingState;
  mac: string;
  until: number;
  note: Note | undefined;
  /** The MAC address of the machine that has the address, or that declined it. */
  machine: string;
  /** Its offer is not displaced. */
  isPreferred: boolean;
  /** The store has a lease of this address. The machine then keeps the address even if it does not accept an offer. */
  stored: boolean;
  before: PoolAddress<Note> | undefined;
  after: PoolAddress<Note> | undefined;
}

/** A linked list with removal in constant time. (Finding the first key of a Map takes time for the keys deleted before it.) */
function createQueue<Note>() {
  let head: PoolAddress<Note> | undefined;
  let tail: PoolAddress<Note> | undefined;
  return {
    head: () => head,
    push(entry: PoolAddress<Note>): void {
      entry.before = tail;
      if (tail) tail.after = entry;
      else head = entry;
      tail = entry;
    },
    remove(entry: PoolAddress<Note>): void {
      if (entry.before) entry.before.after = entry.after;
      else head = entry.after;
      if (entry.after) entry.after.before = entry.before;
      else tail = entry.before;
      entry.before = entry.after = undefined;
    },
  };
}

/** FNV-1a: spreads MAC addresses over the pool, so that a machine gets the same address even if the store was lost. */
function hashedOffset(mac: string, size: number): number {
  let hash = 0x811c9dc5;
  for (let index = 0; index < mac.length; index += 1) hash = Math.imul(hash ^ mac.charCodeAt(index), 0x01000193) >>> 0;
  return hash % size;
}

/** RFC 2131 §3.1: an offered address should not be given to another client meanwhile. */
export const OFFER_MS = 30_000;

export interface PoolRange {
  readonly first: number;
  readonly last: number;
  /** Addresses that must not be given, such as the server's own. */
  readonly excluded: readonly number[];
  readonly leaseMs: number;
  /** Addresses that only one machine may have, by its MAC address. They may be outside the range. */
  readonly reserved?: ReadonlyMap<string, number>;
}

/** The names of a machine's bindings begin with its MAC address (`Identity.key`). */
export const machineOf = (name: string): string => name.slice(0, 17);

/** All addresses of a range, with their bindings. */
export interface AddressTable<Note> {
  /** Addresses that were ever used. */
  readonly known: ReadonlyMap<number, PoolAddress<Note>>;
  ofMac(mac: string): PoolAddress<Note> | undefined;
  /** Undefined if the machine does not have this address. */
  ofMachine(mac: string, address: number): PoolAddress<Note> | undefined;
  /** The addresses that a machine has or has declined, the latest change last. */
  held(machine: string): readonly PoolAddress<Note>[];
  /** How many addresses are declined. */
  declined(): number;
  at(address: number): PoolAddress<Note>;
  isFree(address: number): boolean;
  move(entry: PoolAddress<Note>, state: BindingState, mac: string, until: number, note?: Note): PoolAddress<Note>;
  /** Takes the address from its machine, in the store too. */
  detach(entry: PoolAddress<Note>, state: 'free' | 'declined', until: number): PoolAddress<Note>;
  /** Ends a binding: the machine keeps the address if it has a lease in the store. */
  end(entry: PoolAddress<Note>): void;
  /** Moves addresses whose time is over to the next state, once per binding. */
  expire(now: number): void;
  /** The address of the oldest offer that another machine may displace. */
  oldestOffered(): PoolAddress<Note> | undefined;
  /** Makes the address free that was declined longest ago. */
  undecline(): void;
  /** An address for a machine without one. Undefined if the pool is exhausted. */
  choose(mac: string, requested: number): PoolAddress<Note> | undefined;
}

/** The addresses of each machine. */
function createMachineIndex<Note>() {
  const byMachine = new Map<string, Set<PoolAddress<Note>>>();
  return {
    held: (machine: string): PoolAddress<Note>[] => [...(byMachine.get(machine) ?? [])],
    /** Enters the address under the machine; '' takes it out. */
    enter(entry: PoolAddress<Note>, machine: string): void {
      const former = byMachine.get(entry.machine);
      former?.delete(entry);
      if (former?.size === 0) byMachine.delete(entry.machine);
      entry.machine = machine;
      if (machine === '') return;
      const own = byMachine.get(machine);
      if (own) own.add(entry);
      else byMachine.set(machine, new Set([entry]));
    },
  };
}

/** @param removed called for each address whose lease must be removed from the store */
export function createAddressTable<Note>(
  { first, last, excluded, reserved = new Map() }: PoolRange,
  removed: (address: number) => void,
): AddressTable<Note> {
  const byMac = new Map<string, PoolAddress<Note>>();
  const known = new Map<number, PoolAddress<Note>>();
  const machines = createMachineIndex<Note>();
  let declined = 0;
  /** Ordered by `until`: all addresses in a state stay in it equally long, so the head leaves first. */
  const queues = {
    free: createQueue<Note>(),
    offered: createQueue<Note>(),
    bound: createQueue<Note>(),
    ended: createQueue<Note>(),
    declined: createQueue<Note>(),
  };
  /** Addresses from here on have no entry yet, except those that a machine requested or that its MAC address hashed to. */
  let fresh = first;

  const withheld = new Set([...excluded, ...reserved.values()]);
  const isFree = (address: number): boolean =>
    address >= first && address <= last && !withheld.has(address) && (known.get(address)?.state ?? 'free') === 'free';
  function at(address: number): PoolAddress<Note> {
    const existing = known.get(address);
    if (existing) return existing;
    const unbound = { state: 'free', mac: '', until: 0, note: undefined, machine: '', isPreferred: false, stored: false } as const;
    const entry: PoolAddress<Note> = { address, ...unbound, before: undefined, after: undefined };
    known.set(address, entry);
    queues.free.push(entry);
    return entry;
  }
  function move(entry: PoolAddress<Note>, state: BindingState, mac: string, until: number, note?: Note): PoolAddress<Note> {
    queues[entry.state].remove(entry);
    declined += Number(state === 'declined') - Number(entry.state === 'declined');
    if (byMac.get(entry.mac) === entry) byMac.delete(entry.mac);
    machines.enter(entry, state === 'declined' ? entry.machine : machineOf(mac));
    Object.assign(entry, { state, mac, until, note });
    if (mac !== '') byMac.set(mac, entry);
    queues[state].push(entry);
    return entry;
  }
  function detach(entry: PoolAddress<Note>, state: 'free' | 'declined', until: number): PoolAddress<Note> {
    if (entry.stored) removed(entry.address);
    entry.stored = false;
    return move(entry, state, '', until);
  }
  const end = (entry: PoolAddress<Note>): void => {
    if (entry.stored) move(entry, 'ended', entry.mac, entry.until);
    else detach(entry, 'free', 0);
  };

  const freeOldest = (state: BindingState): PoolAddress<Note> | undefined => {
    const oldest = queues[state].head();
    return oldest && detach(oldest, 'free', 0);
  };

  return {
    known,
    at,
    isFree,
    move,
    detach,
    end,
    undecline: () => freeOldest('declined'),
    held: machines.held,
    declined: () => declined,
    oldestOffered: () => {
      let entry = queues.offered.head();
      while (entry?.isPreferred) entry = entry.after;
      return entry;
    },
    ofMac: (mac) => byMac.get(mac),
    ofMachine: (mac, address) => {
      const entry = byMac.get(mac);
      return entry?.address === address ? entry : undefined;
    },
    expire: (now) => {
      for (const state of ['offered', 'bound', 'declined'] as const)
        for (let entry = queues[state].head(); entry && entry.until <= now; entry = queues[state].head()) end(entry);
    },
    choose: (mac, requested) => {
      const preferred = [requested, first + hashedOffset(mac, last - first + 1)].find(isFree);
      if (preferred !== undefined) return at(preferred);
      while (fresh <= last && !isFree(fresh)) fresh += 1;
      if (fresh <= last) return at(fresh);
      // A declined address may be free by now. If it is not, the machine finds that out, as the one before did (RFC 2131 §4.4.1).
      return queues.free.head() ?? freeOldest('ended') ?? freeOldest('declined');
    },
  };
}
