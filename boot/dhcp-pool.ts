/**
 * Which machine has which address. All in memory, every question answered without a scan; what has to outlive the process is handed out
 * by `changes`. Addresses are numbers here (wire/dhcp/dhcp.ts: addressToNumber), times milliseconds since the epoch.
 */
import type { LeaseRecord } from '../model/records';
import { addressToNumber, numberToAddress } from '../wire/dhcp/dhcp';

/** More would be a mistyped range rather than a network of machines; bounds the memory. */
export const LARGEST_POOL = 65_536;
/** An offer that no one took: RFC 2131 §3.1 asks not to give it away meanwhile. */
const OFFER_MS = 30_000;
/** Another machine was seen to use the address. */
const DECLINED_MS = 3_600_000;

export type BindingState = 'free' | 'offered' | 'bound' | 'ended' | 'declined';
export interface Binding<Note> {
  readonly address: number;
  readonly state: BindingState;
  /** Empty: no machine's (free, declined). */
  readonly mac: string;
  readonly until: number;
  /** What the caller decided when it offered, to be found again when the machine takes the offer. */
  readonly note: Note | undefined;
}
/** What the store has to learn: the machine's lease as it is now; undefined: it has none. */
export interface LeaseChange {
  readonly mac: string;
  readonly lease: LeaseRecord | undefined;
}
export interface Pool<Note> {
  /** What this machine has or had last. */
  find(mac: string, now: number): Binding<Note> | undefined;
  /**
   * Keeps an address for the machine: its own, else the one it asks for, else the one its MAC address points at, else one that no machine
   * has or had, else the one whose lease ended longest ago. Undefined: the pool is exhausted.
   */
  offer(mac: string, wanted: number, now: number, note: Note): Binding<Note> | undefined;
  /** Gives the machine this address for the lease time. False: it is outside the pool, or not for this machine. */
  bind(mac: string, address: number, now: number): boolean;
  /** The machine gives the address back; it gets the same one next time, while there are others for the others. */
  release(mac: string, address: number, now: number): void;
  /** The machine took another server's offer. */
  withdraw(mac: string, now: number): void;
  /** The machine found the address in use. False: it was not this machine's. */
  decline(mac: string, address: number, now: number): boolean;
  /** What changed since this was last asked, a machine at most once. */
  changes(): LeaseChange[];
  /** Hands back what could not be written; later changes of the same machines win. */
  retry(changes: readonly LeaseChange[]): void;
  /** Addresses by state; those that were never asked for are free too. */
  counts(now: number): Readonly<Record<BindingState, number>>;
}

/** An address and what is known of it; in exactly one queue at a time. */
interface PoolAddress<Note> extends Binding<Note> {
  state: BindingState;
  mac: string;
  until: number;
  note: Note | undefined;
  /** The machine has a lease in the store: after an offer that no one took the address stays the machine's. */
  stored: boolean;
  before: PoolAddress<Note> | undefined;
  after: PoolAddress<Note> | undefined;
}

/** A list that gives up any member at once (a Map's head costs a walk over what was deleted before it). */
function createQueue<Note>() {
  let head: PoolAddress<Note> | undefined;
  let tail: PoolAddress<Note> | undefined;
  return {
    head: () => head,
    push(cell: PoolAddress<Note>): void {
      cell.before = tail;
      if (tail) tail.after = cell;
      else head = cell;
      tail = cell;
    },
    remove(cell: PoolAddress<Note>): void {
      if (cell.before) cell.before.after = cell.after;
      else head = cell.after;
      if (cell.after) cell.after.before = cell.before;
      else tail = cell.before;
      cell.before = cell.after = undefined;
    },
  };
}

/** FNV-1a: spreads the MAC addresses over the pool, so that a machine finds its address again even when the store was lost. */
function spread(mac: string, size: number): number {
  let hash = 0x811c9dc5;
  for (let index = 0; index < mac.length; index += 1) hash = Math.imul(hash ^ mac.charCodeAt(index), 0x01000193) >>> 0;
  return hash % size;
}

export interface PoolRange {
  readonly first: number;
  readonly last: number;
  /** Addresses in the range that are not to be given (the server's own). */
  readonly excluded: readonly number[];
  readonly leaseMs: number;
}

/** @param leases of an earlier run; those that the range does not hold are forgotten */
export function createPool<Note>(range: PoolRange, leases: readonly LeaseRecord[], now: number): Pool<Note> {
  const { first, last, leaseMs } = range;
  const byMac = new Map<string, PoolAddress<Note>>();
  const cells = new Map<number, PoolAddress<Note>>();
  /** Each in the order of its end, since all in one state stay in it equally long: the head is the next to leave it. */
  const queues = {
    free: createQueue<Note>(),
    offered: createQueue<Note>(),
    bound: createQueue<Note>(),
    ended: createQueue<Note>(),
    declined: createQueue<Note>(),
  };
  /** Addresses from here on have no cell yet, unless a machine asked for one by itself. */
  let fresh = first;
  let changed = new Map<string, LeaseChange>();

  const inside = (address: number): boolean => address >= first && address <= last && !range.excluded.includes(address);

  function cellOf(address: number): PoolAddress<Note> {
    const known = cells.get(address);
    if (known) return known;
    const cell: PoolAddress<Note> = {
      address,
      state: 'free',
      mac: '',
      until: 0,
      note: undefined,
      stored: false,
      before: undefined,
      after: undefined,
    };
    cells.set(address, cell);
    queues.free.push(cell);
    return cell;
  }
  function move(cell: PoolAddress<Note>, state: BindingState, mac: string, until: number, note?: Note): PoolAddress<Note> {
    queues[cell.state].remove(cell);
    if (byMac.get(cell.mac) === cell) byMac.delete(cell.mac);
    Object.assign(cell, { state, mac, until, note });
    if (mac !== '') byMac.set(mac, cell);
    queues[state].push(cell);
    return cell;
  }
  const record = (mac: string, lease: LeaseRecord | undefined): void => void changed.set(mac, { mac, lease });
  /** The address is no machine's any more, in the store neither. */
  function strip(cell: PoolAddress<Note>, state: 'free' | 'declined', until: number): PoolAddress<Note> {
    if (cell.stored) record(cell.mac, undefined);
    cell.stored = false;
    return move(cell, state, '', until);
  }
  const end = (cell: PoolAddress<Note>): unknown => (cell.stored ? move(cell, 'ended', cell.mac, cell.until) : strip(cell, 'free', 0));
  const save = ({ mac, address, until }: PoolAddress<Note>): void =>
    record(mac, { mac, address: numberToAddress(address), expires_at: until });

  /** Takes what is over out of its state: each cell is touched once for each time it was given. */
  function settle(at: number): void {
    for (const state of ['offered', 'bound', 'declined'] as const)
      for (let cell = queues[state].head(); cell && cell.until <= at; cell = queues[state].head()) end(cell);
  }

  const isFree = (address: number): boolean => inside(address) && (cells.get(address)?.state ?? 'free') === 'free';
  function choose(mac: string, wanted: number): PoolAddress<Note> | undefined {
    const preferred = [wanted, first + spread(mac, last - first + 1)].find(isFree);
    if (preferred !== undefined) return cellOf(preferred);
    while (fresh <= last && !isFree(fresh)) fresh += 1;
    if (fresh <= last) return cellOf(fresh);
    const [unused, oldest] = [queues.free.head(), queues.ended.head()];
    return unused ?? (oldest && strip(oldest, 'free', 0));
  }
  const own = (mac: string, address: number): PoolAddress<Note> | undefined => {
    const cell = byMac.get(mac);
    return cell?.address === address ? cell : undefined;
  };

  // Ends beyond a lease time (it was longer before, the clock was set back) are cut, so that the queue keeps its order.
  for (const lease of [...leases].sort((one, other) => one.expires_at - other.expires_at)) {
    const address = addressToNumber(lease.address);
    if (!isFree(address)) record(lease.mac, undefined);
    else {
      const until = Math.min(lease.expires_at, now + leaseMs);
      move(cellOf(address), until > now ? 'bound' : 'ended', lease.mac, until).stored = true;
    }
  }

  return {
    find(mac, at) {
      settle(at);
      return byMac.get(mac);
    },
    offer(mac, wanted, at, note) {
      settle(at);
      const known = byMac.get(mac);
      if (known?.state === 'bound') {
        // A lease that runs is not shortened by an offer.
        known.note = note;
        return known;
      }
      const cell = known ?? choose(mac, wanted);
      return cell && move(cell, 'offered', mac, at + OFFER_MS, note);
    },
    bind(mac, address, at) {
      settle(at);
      if (!isFree(address) && !own(mac, address)) return false;
      const [cell, other] = [cellOf(address), byMac.get(mac)];
      if (other && other !== cell) {
        // The machine's row in the store is written over, not removed.
        other.stored = false;
        strip(other, 'free', 0);
      }
      move(cell, 'bound', mac, at + leaseMs, cell.note).stored = true;
      save(cell);
      return true;
    },
    release(mac, address, at) {
      settle(at);
      const cell = own(mac, address);
      if (cell?.state === 'bound') save(move(cell, 'ended', mac, at));
    },
    withdraw(mac, at) {
      settle(at);
      const cell = byMac.get(mac);
      if (cell?.state === 'offered') end(cell);
    },
    decline(mac, address, at) {
      settle(at);
      const cell = own(mac, address);
      if (cell) strip(cell, 'declined', at + DECLINED_MS);
      return cell !== undefined;
    },
    changes() {
      const taken = [...changed.values()];
      changed = new Map();
      return taken;
    },
    counts(at) {
      settle(at);
      const counts = { free: 0, offered: 0, bound: 0, ended: 0, declined: 0 };
      for (const { state } of cells.values()) counts[state] += 1;
      const excluded = range.excluded.filter((address) => address >= first && address <= last).length;
      return { ...counts, free: last - first + 1 - excluded - (cells.size - counts.free) };
    },
    retry(changes) {
      changed = new Map([...changes.map((change) => [change.mac, change] as const), ...changed]);
    },
  };
}
