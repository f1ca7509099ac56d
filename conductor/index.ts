/** The conductor in this process: registered, its nodes recovered, its periodic work running, and what the API may ask of it. */
import { reasonOf } from '../model/errors';
import { INTERFACE_KINDS } from '../model/records';
import { createBeats } from './beats';
import { setBootMode, setSecureBoot } from './boot-mode';
import { createAllocation, deleteAllocation, finishAllocations, unfinishedAllocations } from './allocations';
import { getBootDevice, setBootDevice, supportedBootDevices } from './boot-device';
import type { Conductor } from './conductor';
import { consoleInfo, setConsole } from './console';
import type { ConductorRooms, Context } from './context';
import { createHardware, defaultInterface } from './hardware';
import { goOn, heartbeat } from './heartbeat';
import { continueInspection } from './inspection/continue';
import { chosenHooks } from './inspection/hooks';
import { getIndicator, injectNmi, listIndicators, setIndicator } from './indicators';
import { createLocks } from './locks';
import { createOwnership } from './ownership';
import { runPeriodics } from './periodics';
import { deletePortgroup, updatePortgroup } from './portgroups';
import { createPort, deletePort, updatePort } from './ports';
import { setPower } from './power';
import { provision } from './provision';
import { setRaidConfig } from './raid';
import { recover } from './recovery';
import { createTokens } from './token';
import { createNode, deleteNode, setMaintenance, setTraits, updateNode } from './update';
import { validateNode } from './validate';
import { deleteVolume, updateVolume } from './volumes';
import { callDriverVendor, callVendor, driverVendorMethods, vendorMethods } from './vendor';
import { attachVirtualMedia, detachVirtualMedia, getVirtualMedia } from './virtual-media';
import { attachVif, detachVif, listVifs } from './vifs';
import { createWorkers } from './workers';

export type { ConductorOptions, ConductorRooms } from './context';

export interface RunningConductor extends Conductor {
  /** Its name in `reservation` and in the conductor list. */
  readonly host: string;
  /** Takes no new work, lets running work end for a moment, then leaves nodes as they are: the next start goes on with them. */
  stop(): Promise<void>;
  /** For tests: until no work is under way. */
  idle(): Promise<void>;
}

/** How long work may go on after `stop` before it is told to end, and then until it is left behind. Milliseconds. */
const GRACE_MS = 2000;
const LEAVE_MS = 10_000;

/** Asks a waiting node again, once: a later call for the node takes the place of an earlier. */
function createAskLater(context: () => Context): Context['askLater'] {
  const waiting = new Map<string, AbortController>();
  return (uuid, seconds) => {
    const { clock, signal, log } = context();
    waiting.get(uuid)?.abort();
    const mine = new AbortController();
    waiting.set(uuid, mine);
    clock
      .sleep(seconds * 1000, AbortSignal.any([signal, mine.signal]))
      .then(() => {
        waiting.delete(uuid);
        return goOn(context(), uuid, 'poll');
      })
      .catch((error: unknown) => {
        if (!signal.aborted && !mine.signal.aborted) log.warn(`node ${uuid} was not asked again`, { reason: reasonOf(error) });
      });
  };
}

/** driver_info key → description, over all interfaces that the type takes by default. */
const propertiesOf = (context: Context, driver: string): Readonly<Record<string, string>> =>
  Object.fromEntries(
    INTERFACE_KINDS.flatMap((kind) => Object.entries(defaultInterface(context, driver, kind).properties ?? {})).map(([key, property]) => [
      key,
      property.description,
    ]),
  );

/** Throws an Error for the operator when the options name hardware or hooks that cannot be had. */
export async function startConductor(rooms: ConductorRooms): Promise<RunningConductor> {
  const { store, options, log, clock } = rooms;
  const host = options['DEFAULT.host'];
  const stopping = new AbortController();
  chosenHooks(options['inspector.hooks']);
  const context: Context = {
    ...rooms,
    ...createOwnership(host, () => store.conductors.alive(clock.now() - options['conductor.heartbeat_timeout'] * 1000)),
    host,
    hardware: createHardware(options, rooms.hardwareTypes, rooms.interfaces, log),
    workers: createWorkers(
      options['conductor.workers_pool_size'],
      log,
      rooms.metrics,
      options['conductor.reserved_workers_pool_percentage'],
    ),
    locks: createLocks(clock, rooms.metrics),
    flowStarts: new Map(),
    beats: createBeats({ store, clock, log, signal: stopping.signal }),
    signal: stopping.signal,
    askLater: createAskLater(() => context),
  };
  await store.conductors.register({
    hostname: host,
    conductor_group: options['conductor.conductor_group'].toLowerCase(),
    drivers: context.hardware.enabled,
  });
  const tokens = createTokens(store, rooms.random);
  // Taken before nodes are recovered, which may take all the others.
  const place = context.workers.take();
  await recover(context);
  // Known before clients make new ones.
  const unfinished = await unfinishedAllocations(context, 0);
  place.run(() => finishAllocations(context, unfinished));
  const periodics = runPeriodics(context);

  let stopped: Promise<void> | undefined;
  const stop = async (): Promise<void> => {
    context.workers.close();
    const ended = new AbortController();
    const atMost = (milliseconds: number): Promise<void> => clock.sleep(milliseconds, ended.signal).catch(() => {});
    const idle = context.workers.idle();
    await Promise.race([idle, atMost(GRACE_MS)]);
    stopping.abort(new Error('The conductor is stopping.'));
    await Promise.race([Promise.all([idle, periodics]), atMost(LEAVE_MS)]);
    ended.abort();
    await context.beats.close();
    await store.conductors.unregister(host).catch((error: unknown) => log.warn('not unregistered', { reason: reasonOf(error) }));
  };

  return {
    host,
    stop: () => (stopped ??= stop()),
    idle: () => context.workers.idle(),
    createNode: (node) => createNode(context, node),
    updateNode: (uuid, changes, resetInterfaces) => updateNode(context, uuid, changes, resetInterfaces),
    deleteNode: (uuid) => deleteNode(context, uuid),
    setMaintenance: (uuid, on, reason) => setMaintenance(context, uuid, on, reason),
    validate: (uuid) => validateNode(context, uuid),
    provision: (uuid, verb, args) => provision(context, uuid, verb, args),
    setPower: (uuid, target, timeoutSeconds) => setPower(context, uuid, target, timeoutSeconds),
    getBootDevice: (uuid) => getBootDevice(context, uuid),
    setBootDevice: (uuid, device, persistent) => setBootDevice(context, uuid, device, persistent),
    supportedBootDevices: (uuid) => supportedBootDevices(context, uuid),
    setRaidConfig: (uuid, config, objection) => setRaidConfig(context, uuid, config, objection),
    setBootMode: (uuid, mode) => setBootMode(context, uuid, mode),
    setSecureBoot: (uuid, on) => setSecureBoot(context, uuid, on),
    setConsole: (uuid, on) => setConsole(context, uuid, on),
    attachVirtualMedia: (uuid, device, imageUrl) => attachVirtualMedia(context, uuid, device, imageUrl),
    detachVirtualMedia: (uuid, devices) => detachVirtualMedia(context, uuid, devices),
    getVirtualMedia: (uuid) => getVirtualMedia(context, uuid),
    consoleInfo: (uuid) => consoleInfo(context, uuid),
    injectNmi: (uuid) => injectNmi(context, uuid),
    listIndicators: (uuid) => listIndicators(context, uuid),
    getIndicator: (uuid, component, indicator) => getIndicator(context, uuid, component, indicator),
    setIndicator: (uuid, component, indicator, state) => setIndicator(context, uuid, component, indicator, state),
    vendorMethods: async (driver) => vendorMethods(context, driver),
    callVendor: (uuid, method, http, args) => callVendor(context, uuid, method, http, args),
    driverVendorMethods: async (driver) => driverVendorMethods(context, driver),
    callDriverVendor: (driver, method, http, args) => callDriverVendor(context, driver, method, http, args),
    setTraits: (uuid, change) => setTraits(context, uuid, change),
    createPort: (port) => createPort(context, port),
    updatePort: (uuid, changes) => updatePort(context, uuid, changes),
    deletePort: (uuid) => deletePort(context, uuid),
    updateVolume: (kind, uuid, changes) => updateVolume(context, kind, uuid, changes),
    deleteVolume: (kind, uuid) => deleteVolume(context, kind, uuid),

    updatePortgroup: (uuid, changes) => updatePortgroup(context, uuid, changes),
    deletePortgroup: (uuid) => deletePortgroup(context, uuid),
    listVifs: (uuid) => listVifs(context, uuid),
    attachVif: (uuid, vif) => attachVif(context, uuid, vif),
    detachVif: (uuid, id) => detachVif(context, uuid, id),
    createAllocation: (allocation, node) => createAllocation(context, allocation, node),
    deleteAllocation: (uuid) => deleteAllocation(context, uuid),

    driverProperties: async (driver) => propertiesOf(context, driver),
    agentToken: (uuid) => tokens.give(uuid),
    heartbeat: (uuid, beat) => heartbeat(context, uuid, beat),
    continueInspection: (lookup, inventory, pluginData) => continueInspection(context, tokens, lookup, inventory, pluginData),
  };
}
