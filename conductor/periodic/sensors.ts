/**
 * [sensor_data]: reads the machines' sensors, each kind at its own interval. Metrics show the latest values. Ironic's notification has
 * all of them and is sent once per `interval`.
 */
import { setMaxListeners } from 'node:events';
import type { Options } from '../../config/options';
import { bareTimestamp } from '../../model/clock';
import { reasonOf } from '../../model/errors';
import { newUuid } from '../../model/idents';
import type { JsonObject, NodeRecord } from '../../model/records';
import type { Context } from '../core/context';
import { notifyMeasures, notifySensors } from '../core/notify';
import { inParallel } from '../runtime/parallel';
import { beginHealthRound, observeHealth } from '../core/health';
import { readParts } from '../core/parts-reading';
import { readingsOf, type Readings, type SensorHealth } from '../../drivers/common/sensor-readings';
import { readingSamples, healthSamples, timeSample } from './sensor-samples';
import { sharedTaskOf } from '../core/task';
import { validateInterface } from '../core/validate';

/** Kinds with their own interval option; all others (`Voltage`, `Extra`, …) use `interval`. */
const OWN_INTERVALS = ['power', 'temperature', 'fan', 'drive'] as const;
type Timed = (typeof OWN_INTERVALS)[number] | 'other';
const TIMED: readonly Timed[] = [...OWN_INTERVALS, 'other'];
const timedAs = (kind: string): Timed => OWN_INTERVALS.find((ownInterval) => ownInterval === kind.toLowerCase()) ?? 'other';
const intervalOf = (options: Options, timed: Timed): number =>
  timed === 'other' ? options['sensor_data.interval'] : options[`sensor_data.interval_${timed}`];

/** Seconds between rounds; 0: none. */
export const sensorRoundInterval = (options: Options): number =>
  options['sensor_data.send_sensor_data'] ? Math.min(...TIMED.map((timed) => intervalOf(options, timed))) : 0;

/** Whether the rounds read the sensors of this node, unless it is in maintenance. */
export const areSensorsRead = (options: Options, { provision_state: state }: Pick<NodeRecord, 'provision_state'>): boolean =>
  sensorRoundInterval(options) > 0 &&
  options['sensor_data.enable_for_nodes'] &&
  (options['sensor_data.enable_for_undeployed_nodes'] || state === 'active');

interface SensorData {
  readonly node: Pick<NodeRecord, 'uuid' | 'name' | 'instance_uuid'>;
  /** Sensor kind → sensor → fields. */
  readonly payload: JsonObject;
  readonly readings: Readings;
  /** Milliseconds. */
  readonly at: number;
}
/** The start of the last round for each kind, in milliseconds. */
type Times = Readonly<Partial<Record<Timed, number>>>;
/** State that a conductor keeps between rounds. */
export interface SensorMemory {
  readonly nodes: Map<string, SensorData>;
  /** By node: the start of its last round, and of the last round that read each kind. */
  readonly rounds: Map<string, { readonly at: number; readonly read: Times }>;
  /** When the conductor's own metrics were last sent. */
  own: Times;
}
/** Metrics cover at most this number of machines. */
const MAX_NODES = 20_000;

/** Registers the metrics that are read from the returned state at each scrape. */
export function sensorMemory({ metrics }: Pick<Context, 'metrics'>): SensorMemory {
  const nodes = new Map<string, SensorData>();
  const all =
    <T>(each: (known: SensorData) => readonly T[]) =>
    () =>
      [...nodes.values()].flatMap(each);
  metrics.read(
    'baremetal_sensor_reading',
    all(({ node, readings }) => readingSamples(node, readings)),
  );
  const healthOf = (kind: SensorHealth['kind']) => all(({ node, readings }) => healthSamples(kind, node, readings));
  metrics.read('baremetal_fan_status', healthOf('fan'));
  metrics.read('baremetal_power_status', healthOf('power'));
  metrics.read('baremetal_drive_status', healthOf('drive'));
  metrics.read(
    'baremetal_last_payload_timestamp_seconds',
    all(({ node, at }) => [timeSample(node, at)]),
  );
  return { nodes, rounds: new Map(), own: {} };
}

/** The kinds that are due. Half a round of tolerance, because rounds have jitter. */
function dueOf(options: Options, read: Times, now: number): ReadonlySet<Timed> {
  const slack = sensorRoundInterval(options) / 2;
  return new Set(TIMED.filter((timed) => (now - (read[timed] ?? -Infinity)) / 1000 >= intervalOf(options, timed) - slack));
}

/**
 * Returns how many machines have sensors to read. Ends after [sensor_data]wait_timeout; machines that were not read come first in the
 * next round.
 */
export async function collectSensors(context: Context, memory: SensorMemory): Promise<number> {
  const { options, clock, signal, store } = context;
  const { rounds } = memory;
  const now = clock.now();
  if (options['sensor_data.enable_for_conductor'] && dueOf(options, memory.own, now).has('other')) {
    memory.own = { other: now };
    await notifyMeasures(context);
  }
  if (!options['sensor_data.enable_for_nodes']) return 0;
  const states = options['sensor_data.enable_for_undeployed_nodes'] ? {} : { provision_state: 'active' };
  const nodes = await context.ownNodes(await store.nodes.list({ where: { maintenance: false, ...states }, children: 'all' }));
  if (nodes.length > 0) await beginHealthRound(context);
  const there = new Set(nodes.map(({ uuid }) => uuid));
  for (const known of [memory.nodes, rounds]) for (const uuid of known.keys()) if (!there.has(uuid)) known.delete(uuid);
  const lastRound = ({ uuid }: NodeRecord): number => rounds.get(uuid)?.at ?? -Infinity;
  const inOrder = [...nodes].sort((a, b) => (lastRound(a) < lastRound(b) ? -1 : lastRound(a) > lastRound(b) ? 1 : 0));

  const over = new AbortController();
  const ended = new AbortController();
  clock.sleep(options['sensor_data.wait_timeout'] * 1000, AbortSignal.any([signal, ended.signal])).then(
    () => over.abort(new Error('it was not read within [sensor_data]wait_timeout')),
    () => {},
  );
  try {
    const until = AbortSignal.any([signal, over.signal]);
    // Each machine adds a listener; this is not a leak.
    setMaxListeners(0, until);
    await inParallel(inOrder, options['sensor_data.workers'], until, (node) =>
      context.bmcTurns
        .alone(context.hardware.bmcOf(node), until, () =>
          context.bmcTurns.alone(node.uuid, until, () => readNodeSensors(context, memory, node, { now, signal: until })),
        )
        .catch(() => {}),
    );
  } finally {
    ended.abort();
  }
  return nodes.length;
}

async function readNodeSensors(
  context: Context,
  { nodes, rounds }: SensorMemory,
  node: NodeRecord,
  { now, signal }: { readonly now: number; readonly signal: AbortSignal },
): Promise<void> {
  const { options, clock } = context;
  const types = options['sensor_data.data_types'].map((name) => name.toLowerCase());
  const isWanted = (kind: string): boolean => types.includes('all') || types.includes(kind.toLowerCase());
  const { uuid, name, instance_uuid: instance } = node;
  const { read: times = {} } = rounds.get(uuid) ?? {};
  const due = dueOf(options, times, now);
  rounds.set(uuid, { at: now, read: times });
  const isRead = (kind: string): boolean => isWanted(kind) && due.has(timedAs(kind));
  const task = sharedTaskOf({ ...context, signal }, node);
  const before = Object.entries(nodes.get(uuid)?.payload ?? {}).filter(([kind]) => !due.has(timedAs(kind)));
  const keep = (payload: JsonObject): void => {
    if (Object.keys(payload).length === 0 || (!nodes.has(uuid) && nodes.size >= MAX_NODES)) nodes.delete(uuid);
    else nodes.set(uuid, { node: { uuid, name, instance_uuid: instance }, payload, readings: readingsOf(payload), at: clock.now() });
  };
  try {
    if (!task.driver.management.sensors) {
      // Its driver has changed: what another one read is not read any more.
      await observeHealth(context, node, [], { source: 'sensor', present: new Set(), isRead: () => true });
      return;
    }
    await validateInterface(task, 'management');
    const parts = (await readParts(task, isRead))!;
    const payload = Object.fromEntries([...before, ...Object.entries(parts.payload)]);
    keep(payload);
    rounds.set(uuid, { at: now, read: { ...times, ...Object.fromEntries([...due].map((timed) => [timed, now])) } });
    await observeHealth(context, node, parts.signals, parts.found);
    if (!due.has('other') || Object.keys(payload).length === 0) return;
    notifySensors(context, node, {
      message_id: newUuid(context.random),
      instance_uuid: instance,
      node_uuid: uuid,
      // In Python's format, because consumers parse it.
      timestamp: bareTimestamp(clock.now()),
      node_name: name,
      event_type: `hardware.${node.driver}.metrics.update`,
      payload,
    });
  } catch (error) {
    // Kinds that could not be read are not exported, and are due again in the next round.
    keep(Object.fromEntries(before));
    if (context.signal.aborted) return;
    task.log.warn(`During get_sensors_data, could not get sensor data for node ${uuid}. Error: ${reasonOf(error)}.`);
  }
}
