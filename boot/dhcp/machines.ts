/** Looks up what the store knows about MAC addresses. Concurrent lookups share a query. */
import { silentBootRequests, type BootRequestLog } from '../requests';
import type { Machine } from './clients';
import { chooseBoots, type BootChoiceStore, type PxeFilter } from '../discovery';

/** Machines per query; also bounds the parallel queries for boot records. */
const LARGEST_BATCH = 64;

type MachineLookup = (mac: string) => Promise<Machine>;
interface UnknownLimit {
  /** Unknown machines that may boot within `periodMs`. */
  readonly max: number;
  readonly periodMs: number;
  readonly clock: { now(): number };
  /** Called for each machine beyond the limit. */
  readonly refused: (mac: string) => void;
}
/**
 * Unknown machines beyond the limit get no address and boot nothing: anybody can invent MAC addresses, and each takes an address for a
 * lease time. An admitted machine counts until it has been silent for the period, or is known.
 */
export function limitUnknownMachines(lookup: MachineLookup, { max, periodMs, clock, refused }: UnknownLimit): MachineLookup {
  /** When each admitted machine was heard last, the earliest first. */
  const admitted = new Map<string, number>();
  return async (mac) => {
    const machine = await lookup(mac);
    if (machine.known) admitted.delete(mac);
    if (machine.known || !machine.boots) return machine;
    const now = clock.now();
    for (const [earliest, at] of admitted) {
      if (now - at < periodMs) break;
      admitted.delete(earliest);
    }
    // A renewed lease takes its address for another lease time.
    if (!admitted.delete(mac) && admitted.size >= max) {
      refused(mac);
      return { known: false };
    }
    admitted.set(mac, now);
    return machine;
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
): MachineLookup {
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
      resolve({ known, boots: typeof boots === 'string' ? 'ipxe' : boots?.method });
    }
  }
  async function run(): Promise<void> {
    asking = true;
    while (waiting.size > 0) {
      const batch = [...waiting.values()].slice(0, LARGEST_BATCH);
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
