/**
 * The addresses of machines in one range, in memory; no operation scans the pool. Addresses are numbers (`AddressForm`), times are
 * milliseconds since the epoch. A machine is named by its MAC address, or with DHCPv6 by `Identity.key`.
 */
import { isIPv4 } from 'node:net';
import type { LeaseRecord } from '../../model/records';
import { addressToNumber, numberToAddress } from '../../wire/dhcp/dhcp';
import { createAddressTable, type Binding, type BindingState, type PoolAddress, type PoolRange } from './addresses';

/** A larger range is probably a typing error. Also bounds the memory. */
export const LARGEST_POOL = 65_536;
/** RFC 2131 §3.1: an offered address should not be given to another client meanwhile. */
const OFFER_MS = 30_000;
/** How long an address is not offered after a machine found it in use. */
const DECLINED_MS = 3_600_000;

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
   * never used, the one whose lease ended longest ago. Undefined if the pool is exhausted.
   */
  offer(mac: string, requested: number, now: number, note: Note): Binding<Note> | undefined;
  /** Gives the machine this address for the lease time. False if the address is outside the pool or belongs to another machine. */
  bind(mac: string, address: number, now: number): boolean;
  /** The machine releases the address. It gets the same one again, unless the pool runs out of others. */
  release(mac: string, address: number, now: number): void;
  /** The machine accepted another server's offer. */
  withdraw(mac: string, now: number): void;
  /** The machine found the address in use. False if the address was not its own. */
  decline(mac: string, address: number, now: number): boolean;
  /** Number of addresses by state; addresses that were never used count as free. */
  counts(now: number): Readonly<Record<BindingState, number>>;
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
  for (const lease of [...leases].sort((one, other) => one.expires_at - other.expires_at)) {
    const address = toNumber(lease.address);
    if (!addresses.isFree(address)) changes.record(lease.address, undefined);
    else {
      const previous = addresses.ofMac(lease.mac);
      if (previous) addresses.detach(previous, 'free', 0);
      const until = Math.min(lease.expires_at, now + leaseMs);
      addresses.move(addresses.at(address), until > now ? 'bound' : 'ended', lease.mac, until).stored = true;
    }
  }

  return {
    find(mac, at) {
      addresses.expire(at);
      return addresses.ofMac(mac);
    },
    offer(mac, requested, at, note) {
      addresses.expire(at);
      const known = addresses.ofMac(mac);
      if (known?.state === 'bound') {
        // An offer does not shorten a running lease.
        known.note = note;
        return known;
      }
      const entry = known ?? addresses.choose(mac, requested);
      return entry && addresses.move(entry, 'offered', mac, at + OFFER_MS, note);
    },
    bind(mac, address, at) {
      addresses.expire(at);
      if (!addresses.isFree(address) && !addresses.ofMachine(mac, address)) return false;
      const [entry, other] = [addresses.at(address), addresses.ofMac(mac)];
      if (other && other !== entry) addresses.detach(other, 'free', 0);
      addresses.move(entry, 'bound', mac, at + leaseMs, entry.note).stored = true;
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
    decline(mac, address, at) {
      addresses.expire(at);
      const entry = addresses.ofMachine(mac, address);
      if (entry) addresses.detach(entry, 'declined', at + DECLINED_MS);
      return entry !== undefined;
    },
    counts(at) {
      addresses.expire(at);
      const counts = { free: 0, offered: 0, bound: 0, ended: 0, declined: 0 };
      for (const { state } of addresses.known.values()) counts[state] += 1;
      const excluded = range.excluded.filter((address) => address >= first && address <= last).length;
      return { ...counts, free: last - first + 1 - excluded - (addresses.known.size - counts.free) };
    },
  };
}
