/** Writes leases to the store after the answers were sent. The pool in memory answers; the rows are only read at a start. */
import type { Clock } from '../../model/clock';
import { reasonOf } from '../../model/errors';
import type { Store } from '../../store/store';
import type { LeaseChanges } from './pool';

/**
 * Changes within this time are written together. If a crash loses them, machines ask again for their address, or get the one that their
 * MAC address hashes to.
 */
const WRITE_AFTER_MS = 200;
const WRITE_AGAIN_MS = 5000;
const CHANGES_PER_WRITE = 250;
/** How long a stop waits for work that may hang, such as writes to an unreachable database. */
const STOP_MS = 3000;

/** Waits for the work, but no longer than a stop may take. */
export async function waitWithinStopTimeout(clock: Clock, work: Promise<unknown>): Promise<void> {
  const late = new AbortController();
  await Promise.race([work, clock.sleep(STOP_MS, late.signal).catch(() => {})]);
  late.abort();
}

/** @param warn called for each failed write */
export function createLeaseWriter(
  store: Pick<Store, 'transaction'>,
  source: Pick<LeaseChanges, 'changes' | 'retry'>,
  clock: Clock,
  warn: (message: string, fields: object) => void,
): { schedule(): void; stop(): Promise<void> } {
  const ended = new AbortController();
  let running: Promise<void> | undefined;

  async function write(): Promise<'nothing' | 'written' | 'failed'> {
    const changes = source.changes();
    if (changes.length === 0) return 'nothing';
    for (let at = 0; at < changes.length; at += CHANGES_PER_WRITE) {
      try {
        await store.transaction(async ({ leases }) => {
          for (const { address, lease } of changes.slice(at, at + CHANGES_PER_WRITE))
            await (lease ? leases.put(lease) : leases.remove(address));
        });
      } catch (error) {
        source.retry(changes.slice(at));
        warn('DHCP leases could not be written', { reason: reasonOf(error) });
        return 'failed';
      }
    }
    return 'written';
  }
  async function run(): Promise<void> {
    for (let result = 'written'; result !== 'nothing'; result = await write())
      await clock.sleep(result === 'failed' ? WRITE_AGAIN_MS : WRITE_AFTER_MS, ended.signal);
  }
  return {
    schedule() {
      if (ended.signal.aborted) return;
      running ??= run()
        .catch(() => {})
        .finally(() => (running = undefined));
    },
    async stop() {
      ended.abort();
      await waitWithinStopTimeout(clock, (running ?? Promise.resolve()).then(write));
    },
  };
}
