/**
 * The conductor's row as a lease: the reservations of this host are valid while the row is renewed. The conductor sends requests to
 * machines only while its last renewal is so young that no other conductor can have taken the node over; see docs/decisions/0006.
 */
import type { Clock } from '../../model/clock';
import { Fault, reasonOf } from '../../model/errors';
import { newUuid } from '../../model/idents';
import type { Log } from '../../model/log';
import type { ConductorRecord, NodeRecord } from '../../model/records';
import type { Store } from '../../store/store';

/** The state of another process with this name, as far as this one can tell. */
export type Probed = 'answers' | 'gone' | 'silent';
export interface Lease {
  /**
   * The number of this registration. Another conductor may hold the nodes that were reserved under an earlier registration.
   */
  readonly term: number;
  /**
   * Registers the conductor. Returns the nodes that it released, which an earlier process with the name held. Undefined: another process
   * has the name.
   * @param probe whether a holder whose row is alive is gone; absent: such a holder keeps the name
   */
  register(probe?: (holder: ConductorRecord) => Promise<boolean>): Promise<readonly NodeRecord[] | undefined>;
  /** Renews the row. A conductor that was declared dead registers again, and `returned` is called. */
  renew(): Promise<void>;
  /** Whether reservations of this term are certainly still valid: at once while the last renewal is young, else after a renewal. */
  holds(term: number): true | Promise<boolean>;
  /**
   * For how many seconds the row was renewed without a gap; infinite for a new conductor. After a gap the database may have been
   * unreachable for all: the other conductors need time to renew before they count as dead.
   */
  secondsUnbroken(): number;
  /** Marks the conductor as offline: it gets no new work, and keeps its reservations. */
  leave(): Promise<void>;
  /** Ends the lease: no reservation is valid any more. */
  end(): Promise<void>;
}

/** The share of the timeout during which the lease is certainly valid. The rest is for requests that are under way. */
const SAFE_SHARE = 0.75;

interface LeaseSetup {
  readonly store: Store;
  readonly clock: Clock;
  readonly log: Log;
  readonly random: (bytes: number) => Buffer;
  /** Seconds: [conductor]heartbeat_timeout. */
  readonly timeout: number;
  readonly conductor: Pick<ConductorRecord, 'hostname' | 'conductor_group' | 'drivers' | 'address'>;
  /** Called after a new registration: other conductors took the reservations. */
  readonly returned: () => Promise<void>;
}

export function createLease({ store, clock, log, random, timeout, conductor, returned }: LeaseSetup): Lease {
  const { hostname } = conductor;
  let term = 0;
  let instance: string | undefined;
  let isLeaving = false;
  /** When the last successful renewal began, in milliseconds by both clocks. */
  let since: readonly number[] | undefined;
  let renewing: Promise<void> | undefined;
  let backSince = Number.NEGATIVE_INFINITY;

  // By both clocks: the monotonic clock may stop while the host sleeps, and the wall clock may be changed.
  const moment = (): readonly number[] => [clock.now(), clock.monotonic?.() ?? 0];
  const isSure = (): boolean => {
    const now = moment();
    return since !== undefined && since.every((then, index) => now[index]! - then < timeout * 1000 * SAFE_SHARE);
  };

  const join: Lease['register'] = async (probe) => {
    const begun = moment();
    const row = (await store.conductors.list(timeout)).find((candidate) => candidate.hostname === hostname);
    if (row?.locks_valid && !(await probe?.(row))) return undefined;
    const registered = newUuid(random);
    const released = await store.transaction(async (inner) =>
      (await inner.conductors.register({ ...conductor, instance: registered }, row?.instance ?? null))
        ? inner.nodes.releaseAll(hostname)
        : undefined,
    );
    if (!released) return undefined;
    // From here on the reservations of earlier terms count as lost.
    term++;
    instance = registered;
    since = begun;
    return released;
  };
  const renewOnce = async (): Promise<void> => {
    if (isLeaving && instance === undefined) return;
    if (instance !== undefined) {
      const begun = moment();
      try {
        await store.conductors.touch(hostname, instance);
        if (!isSure()) backSince = clock.now();
        since = begun;
        return;
      } catch (error) {
        if (!(error instanceof Fault) || error.name !== 'ConductorNotFound') throw error;
      }
      since = undefined;
      instance = undefined;
      term++;
      log.error(`another conductor declared conductor ${hostname} dead: ${hostname} stops its work on nodes`);
    }
    if (isLeaving) return;
    const released = await join();
    if (!released) {
      log.error(`another process runs as conductor ${hostname}: give one of them another [DEFAULT]host`);
      return;
    }
    log.warn(`conductor ${hostname} is back`);
    await returned();
  };
  const renew = (): Promise<void> =>
    (renewing ??= renewOnce().finally(() => {
      renewing = undefined;
    }));

  return {
    get term() {
      return term;
    },
    register: join,
    renew,
    secondsUnbroken: () => (clock.now() - backSince) / 1000,
    holds: (asked) => {
      if (asked !== term) return Promise.resolve(false);
      if (isSure()) return true;
      return renew().then(
        () => asked === term && isSure(),
        (error: unknown) => {
          log.warn('the lease could not be renewed', { reason: reasonOf(error) });
          return false;
        },
      );
    },
    leave: async () => {
      isLeaving = true;
      if (instance !== undefined) await store.conductors.drain(hostname, instance);
    },
    end: async () => {
      isLeaving = true;
      term++;
      since = undefined;
      const last = instance;
      instance = undefined;
      if (last !== undefined) await store.conductors.unregister(hostname, last);
    },
  };
}
