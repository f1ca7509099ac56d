/**
 * The transfers of the TFTP service, and which of them give way. A request proves nothing, because anybody can forge its source. An
 * acknowledgment proves that its sender receives what we send. So transfers without an acknowledgment are in pools of their own, and
 * requests can never end an acknowledged transfer.
 */
import { isIPv4 } from 'node:net';
import type { Clock } from '../model/clock';
import { createFairWork } from '../wire/fair-queue';
import { networkOf } from '../wire/http/client-limits';
import { createShares, type ShareLimits } from '../wire/shares';

/** `sent`: the first packet was sent. `confirmed`: the client acknowledged it. Before that, the file is searched. */
type State = 'sent' | 'confirmed';
type TransferLimits = Readonly<Record<State, ShareLimits>> & {
  /** Requests that wait for their turn, and files that are searched at once: the whole program shares files and queries. */
  readonly waiting: number;
  readonly opening: number;
};
/** @param most transfers that were acknowledged; each has a socket and a file */
export const transferLimits = (most: number): TransferLimits => ({
  waiting: 512,
  opening: 32,
  sent: { inAll: 512, ofSource: 64 },
  confirmed: { inAll: most, ofSource: Math.ceil(most / 4) },
});
/** Requests that begin in a turn of the event loop. A request costs about twenty times as much as receiving it. */
const BEGUN_IN_TURN = 4;
/** When all places are taken, an acknowledged transfer gives way if it has been without progress for so long. */
const STALLED_MS = 10_000;

/** What the code that serves a request reports. */
export interface Place {
  /** Aborts when the transfer must end. */
  readonly signal: AbortSignal;
  /** The first packet will be sent now. @param repeat sends it again: the client repeated its request */
  sending(repeat: () => void): void;
  /** The client acknowledged a packet that it had not acknowledged before. */
  progressed(): void;
}
interface Entry {
  /** The client's address and port, and ours. */
  readonly key: string;
  readonly source: string;
  readonly request: Buffer;
  readonly serve: (place: Place) => Promise<void>;
  readonly end: AbortController;
  /** Undefined before the first packet, and after the end. */
  state: State | undefined;
  progressAt: number;
  repeat: () => void;
}

interface Transfers {
  /** Serves the request once it has its turn. A repeated request is answered by the transfer that it began. */
  request(from: { readonly key: string; readonly address: string }, request: Buffer, serve: Entry['serve']): void;
  /** Aborts all transfers, and waits for their ends. */
  stop(): Promise<void>;
}
interface TransfersSetup {
  readonly limits: TransferLimits;
  readonly clock: Clock;
  /** Whether the address is in a network of this host. Few forgers can use such addresses. */
  readonly isNear: (address: string) => boolean;
  /** Called for each request that gets no answer, and for each transfer that gave way. */
  readonly dropped: (source: string) => void;
}

/** The transfers whose first packet was sent, in pools. */
function createPools(limits: TransferLimits, clock: Clock, dropped: (source: string) => void) {
  const poolOf = (state: State) => ({ entries: new Map<string, Entry>(), shares: createShares(limits[state]) });
  /** In the order in which the transfers entered the state. */
  const pools = { sent: poolOf('sent'), confirmed: poolOf('confirmed') };

  const leave = (entry: Entry): void => {
    if (entry.state === undefined) return;
    pools[entry.state].entries.delete(entry.key);
    pools[entry.state].shares.give(entry.source, 1);
    entry.state = undefined;
  };
  /** False: the state has no place left for this source. */
  const move = (entry: Entry, state: State): boolean => {
    if (!pools[state].shares.take(entry.source, 1)) return false;
    leave(entry);
    pools[state].entries.set(entry.key, entry);
    entry.state = state;
    return true;
  };
  const end = (entry: Entry): void => {
    leave(entry);
    entry.end.abort();
  };
  const giveWay = (entry: Entry): void => {
    dropped(entry.source);
    end(entry);
  };
  /** The transfers that take the places which one of this source lacks: its own, or all. */
  const rivals = (state: State, source: string): readonly Entry[] => {
    const { entries, shares } = pools[state];
    const all = [...entries.values()];
    return shares.taken >= limits[state].inAll ? all : all.filter((other) => other.source === source);
  };
  return {
    leave,
    end,
    sent: (key: string): Entry | undefined => pools.sent.entries.get(key),
    all: (): readonly Entry[] => Object.values(pools).flatMap(({ entries }) => [...entries.values()]),
    send(entry: Entry): void {
      // The oldest gives way: a client that is there has answered by then.
      while (!move(entry, 'sent')) giveWay(rivals('sent', entry.source)[0]!);
    },
    confirm(entry: Entry): void {
      // Boot ROMs reuse their port for the next file.
      const earlier = pools.confirmed.entries.get(entry.key);
      if (earlier) end(earlier);
      while (!move(entry, 'confirmed')) {
        const slowest = rivals('confirmed', entry.source).reduce((a, b) => (b.progressAt < a.progressAt ? b : a));
        const isStalled = clock.now() - slowest.progressAt >= STALLED_MS;
        giveWay(isStalled ? slowest : entry);
        if (!isStalled) return;
      }
    },
  };
}

export function createTransfers({ limits, clock, isNear, dropped }: TransfersSetup): Transfers {
  /** Those whose first packet was not sent yet, by key. */
  const early = new Map<string, Entry>();
  const pools = createPools(limits, clock, dropped);
  const work = createFairWork({ waiting: limits.waiting, inWork: limits.opening, inTurn: BEGUN_IN_TURN });
  const running = new Set<Promise<void>>();

  const forgetEarly = (entry: Entry): void => {
    if (early.get(entry.key) === entry) early.delete(entry.key);
  };
  /** Resolves when the first packet is sent, or at the end. */
  const open = (entry: Entry): Promise<void> =>
    new Promise((opened) => {
      const { signal } = entry.end;
      const place: Place = {
        signal,
        sending: (repeat) => {
          forgetEarly(entry);
          opened();
          if (signal.aborted) return;
          entry.repeat = repeat;
          pools.send(entry);
        },
        progressed: () => {
          entry.progressAt = clock.now();
          if (entry.state === 'sent') pools.confirm(entry);
        },
      };
      const serving = (signal.aborted ? Promise.resolve() : entry.serve(place)).finally(() => {
        running.delete(serving);
        forgetEarly(entry);
        pools.leave(entry);
        opened();
      });
      running.add(serving);
    });

  return {
    request({ key, address }, request, serve) {
      const earlier = early.get(key) ?? pools.sent(key);
      if (earlier?.request.equals(request)) {
        earlier.repeat();
        return;
      }
      if (earlier) pools.end(earlier);
      const source = networkOf(address);
      const end = new AbortController();
      const entry: Entry = { key, source, request, serve, end, state: undefined, progressAt: clock.now(), repeat: () => {} };
      early.set(key, entry);
      // Fair to the networks of a group, then to their addresses.
      const path = [isNear(address) ? 'near' : 'far', isIPv4(address) ? address.replace(/\.\d+$/, '') : source, address];
      work.add(
        path,
        () => open(entry),
        () => {
          forgetEarly(entry);
          dropped(source);
        },
      );
    },
    async stop() {
      for (const entry of [...early.values(), ...pools.all()]) pools.end(entry);
      await work.stop();
      await Promise.all(running);
    },
  };
}
