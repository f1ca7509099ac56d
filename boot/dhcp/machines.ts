/** Looks up what the store knows about MAC addresses. Concurrent lookups share a query. */
import { silentBootRequests, type BootRequestLog } from '../requests';
import { createShares } from '../../wire/shares';
import { OFFER_MS } from './addresses';
import type { Machine } from './clients';
import { chooseBoots, type BootChoiceStore, type PxeFilter } from '../discovery';

/** Machines per query; also bounds the parallel queries for boot records. */
const MAX_BATCH = 64;

/** @param circuit the relay and its port that the packet came through, if the relay names one */
export type MachineLookup = (mac: string, circuit?: string) => Promise<Machine>;
interface UnknownLimit {
  /** Unknown machines that may have an address; half of them through one circuit. */
  readonly max: number;
  /** The time of a lease. */
  readonly periodMs: number;
  readonly clock: { now(): number };
  /** Whether the machine has a lease. */
  readonly hasLease: (mac: string) => boolean;
  /** The address that was offered to the machine is needed for another. */
  readonly evict: (mac: string) => void;
  /** Called for each machine beyond the limit. */
  readonly refused: (mac: string) => void;
}
interface Admitted {
  readonly at: number;
  readonly circuit: string | undefined;
}
/**
 * Unknown machines beyond the limit get no address and boot nothing: anybody can invent MAC addresses, and each takes an address for a
 * lease time. A machine that has not accepted its offer gives way to others, the oldest first. An admitted machine with a lease counts
 * until it has been silent for the period, or is known.
 */
export function limitUnknownMachines(
  lookup: (mac: string) => Promise<Machine>,
  { max, periodMs, clock, hasLease, evict, refused }: UnknownLimit,
): MachineLookup {
  /** In the order in which they were heard last. */
  const offered = new Map<string, Admitted>();
  const leased = new Map<string, Admitted>();
  const circuits = createShares({ inAll: Infinity, ofSource: Math.ceil(max / 2) });

  const forget = (mac: string): void => {
    const admitted = offered.get(mac) ?? leased.get(mac);
    if (admitted?.circuit !== undefined) circuits.give(admitted.circuit, 1);
    offered.delete(mac);
    leased.delete(mac);
  };
  /** Removes machines whose time is over. */
  function expire(now: number): void {
    for (const [mac, admitted] of offered) {
      if (now - admitted.at < OFFER_MS) break;
      if (hasLease(mac)) leased.set(mac, admitted);
      else forget(mac);
      offered.delete(mac);
    }
    for (const [mac, { at }] of leased) {
      if (now - at < periodMs) break;
      forget(mac);
    }
  }
  /** The oldest machine without a lease, through this circuit if it is given. Those with a lease are not offered one any more. */
  function oldestOffered(circuit?: string): string | undefined {
    for (const [mac, admitted] of offered) {
      if (circuit !== undefined && admitted.circuit !== circuit) continue;
      if (!hasLease(mac)) return mac;
      offered.delete(mac);
      leased.set(mac, admitted);
    }
    return undefined;
  }
  function admit(mac: string, circuit: string | undefined, now: number): boolean {
    const giveWay = (other: string | undefined): boolean => {
      if (other === undefined) return false;
      forget(other);
      evict(other);
      return true;
    };
    if (offered.size + leased.size >= max && !giveWay(oldestOffered())) return false;
    if (circuit !== undefined && !circuits.take(circuit, 1) && !(giveWay(oldestOffered(circuit)) && circuits.take(circuit, 1)))
      return false;
    offered.set(mac, { at: now, circuit });
    return true;
  }

  return async (mac, circuit) => {
    const machine = await lookup(mac);
    if (machine.known) forget(mac);
    if (machine.known || !machine.boots) return machine;
    const now = clock.now();
    expire(now);
    // A renewed lease takes its address for another lease time.
    const earlier = leased.get(mac);
    if (earlier) {
      leased.delete(mac);
      leased.set(mac, { ...earlier, at: now });
      return machine;
    }
    forget(mac);
    if (admit(mac, circuit, now)) return machine;
    refused(mac);
    return { known: false };
  };
}

interface PendingLookup {
  readonly mac: string;
  readonly answer: Promise<Machine>;
  readonly resolve: (machine: Machine) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Runs one batch at a time; lookups that arrive meanwhile form the next one. Nothing is cached, so new nodes and boot records take effect
 * at once.
 */
export function createMachineLookup(
  store: BootChoiceStore,
  filter: PxeFilter,
  requests: Pick<BootRequestLog, 'note'> = silentBootRequests,
): (mac: string) => Promise<Machine> {
  const waiting = new Map<string, PendingLookup>();
  let asking = false;

  async function ask(batch: readonly PendingLookup[]): Promise<void> {
    const choices = await chooseBoots(
      store,
      filter,
      batch.map(({ mac }) => mac),
    );
    for (const { mac, resolve } of batch) {
      const { known, boots } = choices.get(mac)!;
      if (typeof boots === 'object') requests.note(boots.node_uuid, 'DHCP');
      resolve({ known, boots: typeof boots === 'string' ? filter.reportsBy : boots?.method });
    }
  }
  async function run(): Promise<void> {
    asking = true;
    while (waiting.size > 0) {
      const batch = [...waiting.values()].slice(0, MAX_BATCH);
      for (const { mac } of batch) waiting.delete(mac);
      // Rejecting a promise that is already resolved has no effect.
      await ask(batch).catch((error: unknown) => batch.forEach(({ reject }) => reject(error)));
    }
    asking = false;
  }
  return async (mac) => {
    const same = waiting.get(mac);
    if (same) return same.answer;
    let resolve!: PendingLookup['resolve'];
    let reject!: PendingLookup['reject'];
    const answer = new Promise<Machine>((done, fail) => {
      resolve = done;
      reject = fail;
    });
    waiting.set(mac, { mac, answer, resolve, reject });
    if (!asking) void run();
    return answer;
  };
}
