/**
 * The conductor's row as a lease: reservations of this host count while its row gives signs of life. A machine is only ordered about
 * while the last of them is so young that no other conductor can have taken the node over; see docs/decisions/0006.
 */
import type { Clock } from '../../model/clock';
import { Fault, reasonOf } from '../../model/errors';
import { newUuid } from '../../model/idents';
import type { Log } from '../../model/log';
import type { ConductorRecord, NodeRecord } from '../../model/records';
import type { Store } from '../../store/store';

/** Another process that runs under this name, as far as can be told from here. */
export type Probed = 'answers' | 'gone' | 'silent';
export interface Lease {
  /**
   * The number of this registration. What was reserved under an earlier one may be another conductor's now.
   */
  readonly term: number;
  /**
   * Registers. Answers the nodes that an earlier life of this conductor held and holds no more; undefined: another process has the name.
   * @param probe asked about a holder of the name that is alive by its row; absent: such a one is left alone
   */
  register(probe?: (holder: ConductorRecord) => Promise<boolean>): Promise<readonly NodeRecord[] | undefined>;
  /** A sign of life. A conductor that was given up registers anew; `returned` is then told of its nodes. */
  renew(): Promise<void>;
  /** Whether what was reserved in this term is surely still held: at once while the last sign of life is young, else it is tried to give one. */
  holds(term: number): true | Promise<boolean>;
  /**
   * For how many seconds signs of life were given without a gap, a new conductor's since ever: after a gap that may have been the
   * database's, the others must have had their turn before they count as gone.
   */
  secondsUnbroken(): number;
  /** Shown as offline, gets nothing new, holds what it holds. */
  leave(): Promise<void>;
  /** Holds nothing any more, and orders nothing. */
  end(): Promise<void>;
}

/** Of the time after which others give this conductor up, the share in which it is sure that they have not: the rest is for orders under way. */
const SURE = 0.75;

export interface LeaseSetup {
  readonly store: Store;
  readonly clock: Clock;
  readonly log: Log;
  readonly random: (bytes: number) => Buffer;
  /** Seconds: [conductor]heartbeat_timeout. */
  readonly timeout: number;
  readonly conductor: Pick<ConductorRecord, 'hostname' | 'conductor_group' | 'drivers' | 'address'>;
  /** Registered anew after it was given up: what it held was taken from it. */
  readonly returned: () => Promise<void>;
}

export function createLease({ store, clock, log, random, timeout, conductor, returned }: LeaseSetup): Lease {
  const { hostname } = conductor;
  let term = 0;
  let instance: string | undefined;
  let isLeaving = false;
  /** When the last successful sign of life began. */
  let since: readonly number[] | undefined;
  let renewing: Promise<void> | undefined;
  let backSince = Number.NEGATIVE_INFINITY;

  // Both clocks: the one does not run while the host sleeps, the other may be put.
  const moment = (): readonly number[] => [clock.now(), clock.monotonic?.() ?? 0];
  const isSure = (): boolean => {
    const now = moment();
    return since !== undefined && since.every((then, index) => now[index]! - then < timeout * 1000 * SURE);
  };

  const join: Lease['register'] = async (probe) => {
    const begun = moment();
    const row = (await store.conductors.list(timeout)).find((one) => one.hostname === hostname);
    if (row?.holds && !(await probe?.(row))) return undefined;
    const mine = newUuid(random);
    const released = await store.transaction(async (inner) =>
      (await inner.conductors.register({ ...conductor, instance: mine }, row?.instance ?? null))
        ? inner.nodes.releaseAll(hostname)
        : undefined,
    );
    if (!released) return undefined;
    // From here on, what tasks of an earlier term hold counts as lost.
    term++;
    instance = mine;
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
      log.error(`conductor ${hostname} was given up by the others: it leaves its nodes`);
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
    holds: (wanted) => {
      if (wanted !== term) return Promise.resolve(false);
      if (isSure()) return true;
      return renew().then(
        () => wanted === term && isSure(),
        (error: unknown) => {
          log.warn('no sign of life could be given', { reason: reasonOf(error) });
          return false;
        },
      );
    },
    leave: async () => {
      isLeaving = true;
      if (instance !== undefined) await store.conductors.leave(hostname, instance);
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
