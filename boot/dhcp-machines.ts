/** What the store knows about a MAC address, asked for many machines at once when many ask at once. */
import type { Machine } from './dhcp';
import { chooseBoots, type BootChoiceStore, type PxeFilter } from './discovery';

/** Machines in one query for where they stand; also bounds the queries for boot rows that run side by side. */
const LARGEST_BATCH = 64;

interface PendingLookup {
  readonly mac: string;
  readonly answer: Promise<Machine>;
  readonly resolve: (machine: Machine) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * One batch is asked at a time; what arrives meanwhile is the next one. Nothing is remembered: a node enrolled or a boot row written a
 * moment ago counts.
 */
export function createMachineLookup(store: BootChoiceStore, filter: PxeFilter): (mac: string) => Promise<Machine> {
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
      resolve({ known, boots: typeof boots === 'string' ? 'ipxe' : boots?.method });
    }
  }
  async function run(): Promise<void> {
    asking = true;
    while (waiting.size > 0) {
      const batch = [...waiting.values()].slice(0, LARGEST_BATCH);
      for (const { mac } of batch) waiting.delete(mac);
      // A second answer to a question changes nothing.
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
