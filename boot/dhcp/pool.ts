/**
 * The addresses of machines in one range, in memory; no operation scans the pool. Addresses are numbers (`AddressForm`), times are
 * milliseconds since the epoch. A machine is named by its MAC address, or with DHCPv6 by `Identity.key`.
 */
import { isIPv4 } from 'node:net';
import type { LeaseRecord } from '../../model/records';
import { addressToNumber, numberToAddress } from '../../wire/dhcp/dhcp';
import {
  createAddressTable,
  machineOf,
  OFFER_MS,
  type AddressTable,
  type Binding,
  type BindingState,
  type PoolAddress,
  type PoolRange,
} from './addresses';

/** A larger range is probably a typing error. Also bounds the memory. */
export const MAX_POOL = 65_536;
/**
 * How long an address is not offered after a machine found it in use (RFC 2131 §4.3.3, RFC 8415 §18.3.8), unless no other is left. Anybody
 * can send such messages. So few addresses are declined at once: of each machine, and a part of the pool. Others return earlier.
 */
const DECLINED_MS = 3_600_000;
const DECLINED_OF_MACHINE = 3;
const DECLINED_PART = 4;
/** Addresses of a machine that names several interfaces (RFC 8415 §12). */
const MAX_INTERFACES = 4;
/** How long an offer is valid if no other address is left, and a machine of no node needs one. */
const PRESSED_OFFER_MS = 8000;
/** Offers whose addresses were needed for others; their machines may still accept them. */
const MAX_EVICTED = 4096;

/** A lease to be written to the store; undefined: the address is to be removed from it. */
interface LeaseChange {
  readonly address: string;
  readonly lease: LeaseRecord | undefined;
}
/** What must be written to the store, of all pools together: at most one change per address. */
export interface LeaseChanges {
  record(address: string, lease: LeaseRecord | undefined): void;
  /** The changes since the last call. */
  changes(): LeaseChange[];
  /** Takes back changes that could not be written; later changes of the same addresses win. */
  retry(changes: readonly LeaseChange[]): void;
}
export function createLeaseChanges(): LeaseChanges {
  let changed = new Map<string, LeaseChange>();
  return {
    record: (address, lease) => void changed.set(address, { address, lease }),
    changes: () => {
      const taken = [...changed.values()];
      changed = new Map();
      return taken;
    },
    retry: (changes) => (changed = new Map([...changes.map((change) => [change.address, change] as const), ...changed])),
  };
}

/** Addresses as the numbers of a pool, and as texts. */
export interface AddressForm {
  /** For an address of another range or family, the number is outside the pool's range. */
  readonly toNumber: (address: string) => number;
  readonly toText: (value: number) => string;
  readonly isOfFamily: (address: string) => boolean;
}
export const IPV4: AddressForm = { toNumber: addressToNumber, toText: numberToAddress, isOfFamily: isIPv4 };

export interface Pool<Note> {
  /** The machine's current or last address. */
  find(mac: string, now: number): Binding<Note> | undefined;
  /**
   * Reserves an address for the machine. In this order: its own, the requested one, the one that its MAC address hashes to, one that was
   * never used, the one whose lease ended longest ago, the one that was declined longest ago, the one of the oldest offer.
   * Undefined if the pool is exhausted.
   * @param isPreferred the machine belongs to a node: it may displace an offer that was just made to one that does not
   */
  offer(mac: string, requested: number, now: number, note: Note, isPreferred?: boolean): Binding<Note> | undefined;
  /** Gives the machine this address for the lease time. False if the address is outside the pool or belongs to another machine. */
  bind(mac: string, address: number, now: number): boolean;
  /** The machine releases the address. It gets the same one again, unless the pool runs out of others. */
  release(mac: string, address: number, now: number): void;
  /** The machine accepted another server's offer. */
  withdraw(mac: string, now: number): void;
  /** Another machine needs what was offered to this one, which may still accept its offer while nobody else does. */
  evict(machine: string, now: number): void;
  /** Whether the machine has a lease now. */
  hasLease(machine: string, now: number): boolean;
  /** The machine found the address in use. False if the address was not its own. */
  decline(mac: string, address: number, now: number): boolean;
  /** Number of addresses by state; addresses that were never used count as free. */
  counts(now: number): Readonly<Record<BindingState, number>>;
}

/** Which offers give way to others. */
function createOffers<Note>(addresses: AddressTable<Note>) {
  /** Offers that gave way: machine → address. */
  const evicted = new Map<string, number>();
  function evict(entry: PoolAddress<Note>): void {
    evicted.delete(entry.mac);
    evicted.set(entry.mac, entry.address);
    const [earliest] = evicted.keys();
    if (evicted.size > MAX_EVICTED) evicted.delete(earliest!);
    addresses.end(entry);
  }
  return {
    evict,
    /** Takes the address of the oldest offer if there is no other, and the offer ends by `latest`. */
    choose(mac: string, requested: number, latest: number): PoolAddress<Note> | undefined {
      const chosen = addresses.choose(mac, requested);
      const oldest = chosen ? undefined : addresses.oldestOffered();
      if (!oldest || oldest.until > latest) return chosen;
      evict(oldest);
      return addresses.choose(mac, requested);
    },
    /** The address was offered to this machine once, and nobody has accepted it since. */
    isOpen: (mac: string, address: number): boolean => evicted.get(mac) === address && addresses.known.get(address)?.state === 'offered',
    accepted: (mac: string): void => void evicted.delete(mac),
    /** Whether the machine may have an address by one more name. The oldest that it does not use gives way. */
    hasRoom(name: string): boolean {
      const machine = machineOf(name);
      if (name === machine) return true;
      const own = addresses.held(machine).filter(({ mac }) => mac !== '' && mac !== machine);
      if (own.length < MAX_INTERFACES) return true;
      const unused = own.find(({ state }) => state !== 'bound');
      if (unused) addresses.detach(unused, 'free', 0);
      return unused !== undefined;
    },
  };
}

/**
 * @param leases leases of an earlier run; those outside the range are dropped
 * @param changes the pool's changes are recorded there
 */
export function createPool<Note>(
  range: PoolRange,
  leases: readonly LeaseRecord[],
  now: number,
  changes: LeaseChanges,
  { toNumber, toText }: AddressForm = IPV4,
): Pool<Note> {
  const { first, last, leaseMs } = range;
  const save = ({ mac, address, until }: PoolAddress<Note>): void =>
    changes.record(toText(address), { mac, address: toText(address), expires_at: until });
  const addresses = createAddressTable<Note>(range, (address) => changes.record(toText(address), undefined));

  // An `until` beyond the lease time (shortened option, changed clock) is cut, to keep the queue ordered.
  for (const lease of [...leases].sort((left, right) => left.expires_at - right.expires_at)) {
    const address = toNumber(lease.address);
    if (!addresses.isFree(address)) changes.record(lease.address, undefined);
    else {
      const previous = addresses.ofMac(lease.mac);
      if (previous) addresses.detach(previous, 'free', 0);
      const until = Math.min(lease.expires_at, now + leaseMs);
      addresses.move(addresses.at(address), until > now ? 'bound' : 'ended', lease.mac, until).stored = true;
    }
  }

  const offers = createOffers(addresses);
  const size = last - first + 1;

  return {
    find(mac, at) {
      addresses.expire(at);
      return addresses.ofMac(mac);
    },
    offer(mac, requested, at, note, isPreferred = false) {
      const displaced = at + OFFER_MS - (isPreferred ? 0 : PRESSED_OFFER_MS);
      addresses.expire(at);
      const known = addresses.ofMac(mac);
      if (known?.state === 'bound') {
        // An offer does not shorten a running lease.
        known.note = note;
        return known;
      }
      const entry = known ?? (offers.hasRoom(mac) ? offers.choose(mac, requested, displaced) : undefined);
      return entry && Object.assign(addresses.move(entry, 'offered', mac, at + OFFER_MS, note), { isPreferred });
    },
    bind(mac, address, at) {
      addresses.expire(at);
      const own = addresses.ofMac(mac);
      if (own?.address !== address && !offers.isOpen(mac, address) && !addresses.isFree(address)) return false;
      if (!own && !offers.hasRoom(mac)) return false;
      const entry = addresses.at(address);
      offers.accepted(mac);
      if (own && own !== entry) addresses.detach(own, 'free', 0);
      addresses.move(entry, 'bound', mac, at + leaseMs, entry.mac === mac ? entry.note : undefined).stored = true;
      save(entry);
      return true;
    },
    release(mac, address, at) {
      addresses.expire(at);
      const entry = addresses.ofMachine(mac, address);
      if (entry?.state === 'bound') save(addresses.move(entry, 'ended', mac, at));
    },
    withdraw(mac, at) {
      addresses.expire(at);
      const entry = addresses.ofMac(mac);
      if (entry?.state === 'offered') addresses.end(entry);
    },
    evict(machine, at) {
      addresses.expire(at);
      for (const entry of addresses.held(machine)) if (entry.state === 'offered') offers.evict(entry);
    },
    hasLease(machine, at) {
      addresses.expire(at);
      return addresses.held(machine).some(({ state }) => state === 'bound');
    },
    decline(mac, address, at) {
      addresses.expire(at);
      const entry = addresses.ofMachine(mac, address);
      if (!entry) return false;
      addresses.detach(entry, 'declined', at + DECLINED_MS);
      const own = addresses.held(entry.machine).filter(({ state }) => state === 'declined');
      if (own.length > DECLINED_OF_MACHINE) addresses.detach(own[0]!, 'free', 0);
      if (addresses.declined() > Math.max(size / DECLINED_PART, 1)) addresses.undecline();
      return true;
    },
    counts(at) {
      addresses.expire(at);
      const counts = { free: 0, offered: 0, bound: 0, ended: 0, declined: 0 };
      for (const { state } of addresses.known.values()) counts[state] += 1;
      const withheld = new Set([...range.excluded, ...(range.reserved?.values() ?? [])]);
      const inRange = [...withheld].filter((address) => address >= first && address <= last).length;
      const free = size - inRange - (addresses.known.size - counts.free);
      return { ...counts, free };
    },
  };
}
