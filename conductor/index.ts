/** Starts the conductor of this process: registers it, recovers its nodes, runs its periodic work, and serves the calls of the API. */
import type { LoadedOptions, Options } from '../config/options';
import { setMaxListeners } from 'node:events';
import type { HooksOption, Interfaces, Screen } from '../drivers/interfaces';
import { waitUntil } from '../model/clock';
import { reasonOf } from '../model/errors';
import { silentLog } from '../model/log';
import { macLists } from '../wire/mac-lists';
import { silentNotifier } from '../model/notifications';
import { timeLimits } from '../model/rules/time-limits';
import { createBmcTurns } from './runtime/bmc-turns';
import { createNovaEvents } from './runtime/nova-events';
import { createEventReads } from './runtime/event-reads';
import { createHeartbeatBuffer } from './runtime/heartbeat-buffer';
import { finishAllocations, unfinishedAllocations } from './requests/allocations';
import { openScreen } from './requests/console';
import type { ConductorApi } from './conductor';
import { readAfterEvents } from './core/bmc-watch';
import type { ConductorParts, Context } from './core/context';
import { readHealthRules } from './core/health';
import type { Hardware } from './hardware/hardware';
import { createHardware } from './hardware/create-hardware';
import { FLOWS } from './flows';
import { createPolls } from './engine/polls';
import { readAccelerators } from './inspection/hooks/accelerators';
import { pciAliases } from './inspection/hooks/devices';
import { chosenHooks, hookOf } from './inspection/hooks';
import { readBuiltInRules } from './inspection/rules/built-in';
import { hookNames } from './introspection/hooks';
import { cidrMap } from './inspection/hooks/switches';
import { createLease, type Lease } from './runtime/lease';
import { createLocks } from './runtime/locks';
import { conductorApi, performLocally, type Perform } from './operations';
import { createOwnership } from './runtime/ownership';
import { runPeriodics } from './periodic/periodics';
import { resumeAbandoned, takeOverNodes } from './engine/recovery';
import { createWorkers } from './runtime/workers';

export { readHealthRules };

export interface RunningConductor extends ConductorApi {
  /** Its name in `reservation` and in the conductor list. */
  readonly host: string;
  /** Runs an operation in this process. */
  readonly perform: Perform;
  /** Connects to the screen of a node whose console is on. @param signal aborted when the viewer has gone */
  readonly openScreen: (uuid: string, signal: AbortSignal) => Promise<Screen>;
  /** Whether the conductor is stopping: then only other conductors take new work. */
  readonly isLeaving: () => boolean;
  /**
   * Takes no new work, waits for running work, then leaves the nodes as they are: another conductor, or the next start, continues them.
   * @param drain waits [DEFAULT]drain_shutdown_timeout instead of [conductor]graceful_shutdown_timeout
   * @param now ends the wait when it is aborted
   */
  stop(how?: { readonly drain?: boolean; readonly now?: AbortSignal }): Promise<void>;
  /** For tests: resolves when no work is running. */
  idle(): Promise<void>;
  /** For tests: how much background work is running: rounds of periodic work, polls of waiting nodes, events for Nova. */
  rounds(): number;
}

/** How long work may take to end after the conductor stops; then it is abandoned. Milliseconds. */
const ABANDON_MS = 10_000;
/** The longest timer of Node.js. */
const MAX_MS = 2 ** 31 - 1;
/** Pause between two attempts to register the name. */
const REGISTER_PAUSE_MS = 1000;

/**
 * Registers the conductor. A process that died lately may still hold its name. Then the address of that process refuses connections, or its
 * row becomes too old after a while.
 * @throws Error for the operator when another process with the name is alive
 */
async function register(lease: Lease, { clock, log, options, probe }: ConductorParts, signal: AbortSignal): Promise<void> {
  const host = options['DEFAULT.host'];
  const isRegistered = async (): Promise<boolean> => {
    const own = await lease.register(async ({ address }) => {
      const holder = address === null || !probe ? 'gone' : await probe({ hostname: host, address });
      if (holder === 'answers')
        throw new Error(`a conductor named ${host} runs already and answers at ${address!}: give this one another [DEFAULT]host`);
      return holder === 'gone';
    });
    return own !== undefined;
  };
  await waitUntil({ clock, signal }, isRegistered, (tries) => {
    if (tries === 1) log.warn(`the conductor that last ran as ${host} may be alive: waiting until it counts as dead`);
    return REGISTER_PAUSE_MS;
  });
}

type InspectionOptions = Pick<
  LoadedOptions,
  | HooksOption
  | 'processing.processing_hooks'
  | 'inspector.overwrite_existing_hooks'
  | 'inspector.pci_device_alias'
  | 'inspector.physical_network_cidr_map'
  | 'pxe_filter.allow_macs'
  | 'pxe_filter.deny_macs'
>;
/** Checks the options that name hooks and devices. Throws an Error for the operator, with a line for each problem. */
export function checkInspectionOptions(options: InspectionOptions, inspectors: Interfaces['inspect']): void {
  const hooks = Object.values(inspectors).map(({ hooksOption = 'inspector.hooks' }) => hooksOption);
  const checks: readonly (() => unknown)[] = [
    ...[...new Set<HooksOption>(['inspector.hooks', ...hooks])].map((option) => () => chosenHooks(options[option], option)),
    () => chosenHooks(hookNames(options['processing.processing_hooks']), 'processing.processing_hooks'),
    ...options['inspector.overwrite_existing_hooks'].map((name) => () => hookOf(name, 'inspector.overwrite_existing_hooks')),
    () => pciAliases(options['inspector.pci_device_alias']),
    () => cidrMap(options['inspector.physical_network_cidr_map']),
    () => macLists(options),
  ];
  const problems = checks.flatMap((check) => {
    try {
      check();
      return [];
    } catch (error) {
      return [(error as Error).message];
    }
  });
  if (problems.length > 0) throw new Error(problems.join('\n'));
}
/** Reads the files that options of inspection and of health name, and the time limits. Throws an Error for the operator. */
export async function readInspectionFiles(
  options: Options,
): Promise<Pick<Context, 'builtInRules' | 'accelerators' | 'healthRules' | 'timeLimits'>> {
  return {
    builtInRules: await readBuiltInRules(options['inspection_rules.built_in_rules']),
    accelerators: await readAccelerators(options['inspector.known_accelerators']),
    healthRules: await readHealthRules(options['health.rules']),
    timeLimits: timeLimits(options['health.time_limits']),
  };
}

/** What changes while a conductor runs, and what stops it. */
interface Running {
  readonly stopping: AbortController;
  isLeaving: boolean;
  /** Running background work: rounds of periodic work, polls, events for Nova. */
  readonly rounds: Set<Promise<unknown>>;
}

function createContext(
  parts: ConductorParts,
  hardware: Hardware,
  inspection: Pick<Context, 'builtInRules' | 'accelerators' | 'healthRules' | 'timeLimits' | 'unknownMacs'>,
  running: Running,
): Context {
  const { store, options, log, clock, random, metrics } = parts;
  const host = options['DEFAULT.host'];
  const timeout = options['conductor.heartbeat_timeout'];
  const { signal } = running.stopping;
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
      address: parts.address ?? null,
    },
    returned: () => resumeAbandoned(context),
  });
  const context: Context = {
    ...parts,
    ...createOwnership(
      host,
      () => store.conductors.alive(timeout),
      () => running.isLeaving,
    ),
    ...createPolls(() => context),
    ...inspection,
    track: (work) => {
      const round = work.finally(() => running.rounds.delete(round));
      running.rounds.add(round);
      return round;
    },
    notifier: parts.notifier ?? silentNotifier,
    host,
    hardware,
    flows: FLOWS,
    lease,
    bmcTurns: createBmcTurns(),
    nova: createNovaEvents({
      nova: parts.connections.services.nova,
      enabled: options['nova.send_power_notifications'],
      log,
      clock,
      signal,
      track: (work) => context.track(work),
    }),
    nodesBeingRead: new Set(),
    healthWatch: { standings: new Map(), isCurrent: false },
    eventReads: createEventReads({
      clock,
      log,
      signal,
      track: (work) => context.track(work),
      read: (uuid, events) => readAfterEvents(context, uuid, events),
    }),
    workers: createWorkers(options['conductor.workers_pool_size'], log, metrics, options['conductor.reserved_workers_pool_percentage']),
    locks: createLocks(clock, metrics),
    flowStarts: new Map(),
    heartbeats: createHeartbeatBuffer({ store, clock, log, signal }),
    signal,
  };
  return context;
}

async function stopConductor(
  { options, log, clock, lease, workers, heartbeats }: Context,
  running: Running,
  periodics: Promise<void>,
  { drain = false, now }: NonNullable<Parameters<RunningConductor['stop']>[0]> = {},
): Promise<void> {
  running.isLeaving = true;
  const logFailure = (what: string, work: Promise<void>): Promise<void> =>
    work.catch((error: unknown) => log.warn(what, { reason: reasonOf(error) }));
  // From here on the other conductors take new work, and the waiting nodes.
  await logFailure('could not mark the conductor as offline', lease.leave());
  workers.close();
  const ended = new AbortController();
  const atMost = (milliseconds: number, ...signals: readonly AbortSignal[]): Promise<void> =>
    clock.sleep(milliseconds, AbortSignal.any([ended.signal, ...signals])).catch(() => {});
  const seconds = options[drain ? 'DEFAULT.drain_shutdown_timeout' : 'conductor.graceful_shutdown_timeout'];
  const idle = workers.idle();
  await Promise.race([idle, atMost(seconds === 0 ? MAX_MS : seconds * 1000, ...(now ? [now] : []))]);
  running.stopping.abort(new Error('The conductor is stopping.'));
  await Promise.race([Promise.all([idle, periodics]), atMost(ABANDON_MS)]);
  ended.abort();
  await heartbeats.close();
  await logFailure('could not unregister the conductor', lease.end());
}

/** Throws an Error for the operator when the options name hardware or hooks that do not exist, or another process has the name. */
export async function startConductor(parts: ConductorParts): Promise<RunningConductor> {
  const running: Running = { stopping: new AbortController(), isLeaving: false, rounds: new Set() };
  // Every wait of the conductor listens to this signal.
  setMaxListeners(0, running.stopping.signal);
  checkInspectionOptions(parts.options, parts.interfaces.inspect);
  const inspection = { ...(await readInspectionFiles(parts.options)), unknownMacs: macLists(parts.options) };
  // The checks of the options have logged its warnings.
  const hardware = createHardware(parts.options, parts.hardwareTypes, parts.interfaces, silentLog);
  const context = createContext(parts, hardware, inspection, running);
  await register(context.lease, parts, running.stopping.signal);
  // Taken before the recovery of nodes, which may take all other workers.
  const place = context.workers.take();
  await resumeAbandoned(context);
  await takeOverNodes(context);
  // Listed before clients create new allocations.
  const unfinished = await unfinishedAllocations(context, 0);
  place.run(() => finishAllocations(context, unfinished));
  const periodics = runPeriodics(context);
  let stopped: Promise<void> | undefined;
  const perform = performLocally(context);
  return Object.assign(conductorApi(perform), {
    host: context.host,
    perform,
    openScreen: (uuid: string, signal: AbortSignal) => openScreen(context, uuid, signal),
    isLeaving: () => running.isLeaving,
    stop: (how: Parameters<RunningConductor['stop']>[0]) => (stopped ??= stopConductor(context, running, periodics, how)),
    idle: () => context.workers.idle(),
    rounds: () => running.rounds.size,
  });
}
