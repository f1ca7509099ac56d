/** The conductor in this process: registered, its nodes recovered, its periodic work running, and what the API may ask of it. */
import { setMaxListeners } from 'node:events';
import { Fault, reasonOf } from '../model/errors';
import { macLists } from '../model/mac-lists';
import { silentNotifier } from '../model/notifications';
import { createBmcTurns } from './core/bmc-turns';
import { createHeartbeatBuffer } from './core/heartbeat-buffer';
import { finishAllocations, unfinishedAllocations } from './requests/allocations';
import type { ConductorApi } from './conductor';
import type { ConductorParts, Context } from './core/context';
import { createHardware } from './core/create-hardware';
import { FLOWS } from './flows';
import { wakeNode } from './engine/heartbeat';
import { readAccelerators } from './inspection/hooks/accelerators';
import { pciAliases } from './inspection/hooks/devices';
import { chosenHooks, hookOf } from './inspection/hooks';
import { readBuiltInRules } from './inspection/rules/built-in';
import { hookNames } from './introspection/hooks';
import { cidrMap } from './inspection/hooks/switches';
import { createLease, type Lease } from './core/lease';
import { createLocks } from './core/locks';
import { conductorApi, performHere, type Perform } from './operations';
import { createOwnership } from './core/ownership';
import { runPeriodics } from './periodic/periodics';
import { resumeAbandoned, takeShare } from './engine/recovery';
import { createTokens } from './core/token';
import { createWorkers } from './core/workers';

export type { ConductorOptions, ConductorParts } from './core/context';

export interface RunningConductor extends ConductorApi {
  /** Its name in `reservation` and in the conductor list. */
  readonly host: string;
  /** A call of the table, done here. */
  readonly perform: Perform;
  /** Whether it takes nothing new: others do. */
  readonly isLeaving: () => boolean;
  /**
   * Takes no new work, lets what runs end, then leaves nodes as they are: another conductor, or the next start, goes on with them.
   * @param drain waits [DEFAULT]drain_shutdown_timeout in the place of [conductor]graceful_shutdown_timeout
   * @param now waits no longer, once it is aborted
   */
  stop(how?: { readonly drain?: boolean; readonly now?: AbortSignal }): Promise<void>;
  /** For tests: until no work is under way. */
  idle(): Promise<void>;
  /** For tests: how many rounds of periodic work are under way, or asking waiting nodes. */
  rounds(): number;
}

/** How long work may take to end after it was told to, until it is left behind. Milliseconds. */
const LEAVE_MS = 10_000;
/** The longest that a timer takes. */
const LONGEST_MS = 2 ** 31 - 1;
/** Between looks whether the name is free. */
const NAME_PAUSE_MS = 1000;

/** Asks waiting nodes again, once each: a later call for a node takes the place of an earlier. */
function createPolls(context: () => Context): Pick<Context, 'pollLater' | 'isPolling' | 'stopPolling'> {
  const waiting = new Map<string, AbortController>();
  return {
    isPolling: (uuid) => waiting.has(uuid),
    stopPolling: (uuid) => {
      waiting.get(uuid)?.abort();
      waiting.delete(uuid);
    },
    pollLater: (uuid, seconds) => {
      const { clock, signal, log } = context();
      waiting.get(uuid)?.abort();
      const mine = new AbortController();
      waiting.set(uuid, mine);
      clock
        .sleep(seconds * 1000, AbortSignal.any([signal, mine.signal]))
        .then(() => {
          waiting.delete(uuid);
          return context().track(wakeNode(context(), uuid, 'poll'));
        })
        .catch((error: unknown) => {
          if (signal.aborted || mine.signal.aborted) return;
          // The database is away, or all places for work are taken: it still waits.
          if (error instanceof Fault && error.status === 503) context().pollLater(uuid, seconds);
          else log.warn(`node ${uuid} was not asked again`, { reason: reasonOf(error) });
        });
    },
  };
}

/**
 * Registers. A process that died lately still has the name by its row: it is gone when its address refuses connections, and waited for
 * until its row is old when nothing answers at all.
 * @throws Error for the operator when another process with the name is alive
 */
async function join(lease: Lease, { clock, log, options, probe }: ConductorParts, signal: AbortSignal) {
  const host = options['DEFAULT.host'];
  for (let tried = 0; ; tried++) {
    const isIn = await lease.register(async ({ address }) => {
      const stands = address === null || !probe ? 'gone' : await probe({ hostname: host, address });
      if (stands === 'answers')
        throw new Error(`a conductor named ${host} runs already and answers at ${address!}: give this one another [DEFAULT]host`);
      return stands === 'gone';
    });
    if (isIn) return;
    if (tried === 0) log.warn(`the conductor that last ran as ${host} may be alive: waiting until it counts as dead`);
    await clock.sleep(NAME_PAUSE_MS, signal);
  }
}

/** Throws an Error for the operator when the options name hardware or hooks that cannot be had, or another process has the name. */
export async function startConductor(rooms: ConductorParts): Promise<RunningConductor> {
  const { store, options, log, clock, random } = rooms;
  const host = options['DEFAULT.host'];
  const timeout = options['conductor.heartbeat_timeout'];
  const stopping = new AbortController();
  // All that waits here listens to it.
  setMaxListeners(0, stopping.signal);
  let isLeaving = false;
  const underWay = new Set<Promise<unknown>>();
  for (const option of ['inspector.hooks', 'redfish.inspection_hooks'] as const) chosenHooks(options[option], option);
  chosenHooks(hookNames(options['processing.processing_hooks']), 'processing.processing_hooks');
  for (const name of options['inspector.overwrite_existing_hooks']) hookOf(name, 'inspector.overwrite_existing_hooks');
  const hardware = createHardware(options, rooms.hardwareTypes, rooms.interfaces, log);
  const builtInRules = await readBuiltInRules(options['inspection_rules.built_in_rules']);
  const accelerators = await readAccelerators(options['inspector.known_accelerators']);
  pciAliases(options['inspector.pci_device_alias']);
  cidrMap(options['inspector.physical_network_cidr_map']);
  const lease = createLease({
    store,
    clock,
    log,
    random,
    timeout,
    conductor: {
      hostname: host,
      conductor_group: options['conductor.conductor_group'].toLowerCase(),
      drivers: hardware.enabled,
      address: rooms.address ?? null,
    },
    returned: () => resumeAbandoned(context),
  });
  const context: Context = {
    ...rooms,
    ...createOwnership(
      host,
      () => store.conductors.alive(timeout),
      () => isLeaving,
    ),
    ...createPolls(() => context),
    track: (work) => {
      const one = work.finally(() => underWay.delete(one));
      underWay.add(one);
      return one;
    },
    notifier: rooms.notifier ?? silentNotifier,
    host,
    hardware,
    flows: FLOWS,
    builtInRules,
    accelerators,
    unknownMacs: macLists(options),
    lease,
    bmcTurns: createBmcTurns(),
    nodesBeingRead: new Set(),
    tokens: createTokens(store, random),
    workers: createWorkers(
      options['conductor.workers_pool_size'],
      log,
      rooms.metrics,
      options['conductor.reserved_workers_pool_percentage'],
    ),
    locks: createLocks(clock, rooms.metrics),
    flowStarts: new Map(),
    heartbeats: createHeartbeatBuffer({ store, clock, log, signal: stopping.signal }),
    signal: stopping.signal,
  };
  await join(lease, rooms, stopping.signal);
  // Taken before nodes are recovered, which may take all the others.
  const place = context.workers.take();
  await resumeAbandoned(context);
  await takeShare(context);
  // Known before clients make new ones.
  const unfinished = await unfinishedAllocations(context, 0);
  place.run(() => finishAllocations(context, unfinished));
  const periodics = runPeriodics(context);

  const stop = async ({ drain = false, now }: { readonly drain?: boolean; readonly now?: AbortSignal } = {}): Promise<void> => {
    isLeaving = true;
    const quietly = (what: string, work: Promise<void>): Promise<void> =>
      work.catch((error: unknown) => log.warn(what, { reason: reasonOf(error) }));
    // From here on the others take what is new, and what waits.
    await quietly('not shown as offline', lease.leave());
    context.workers.close();
    const ended = new AbortController();
    const atMost = (milliseconds: number, ...signals: readonly AbortSignal[]): Promise<void> =>
      clock.sleep(milliseconds, AbortSignal.any([ended.signal, ...signals])).catch(() => {});
    const seconds = options[drain ? 'DEFAULT.drain_shutdown_timeout' : 'conductor.graceful_shutdown_timeout'];
    const idle = context.workers.idle();
    await Promise.race([idle, atMost(seconds === 0 ? LONGEST_MS : seconds * 1000, ...(now ? [now] : []))]);
    stopping.abort(new Error('The conductor is stopping.'));
    await Promise.race([Promise.all([idle, periodics]), atMost(LEAVE_MS)]);
    ended.abort();
    await context.heartbeats.close();
    await quietly('not unregistered', lease.end());
  };
  let stopped: Promise<void> | undefined;
  const perform = performHere(context);
  return Object.assign(conductorApi(perform), {
    host,
    perform,
    isLeaving: () => isLeaving,
    stop: (how: Parameters<RunningConductor['stop']>[0]) => (stopped ??= stop(how)),
    idle: () => context.workers.idle(),
    rounds: () => underWay.size,
  });
}
