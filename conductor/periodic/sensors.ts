/**
 * [sensor_data]: what the machines' sensors say. Each kind is read at its own interval; metrics show what was read last, and Ironic's
 * notification tells all of it once an `interval`.
 */
import { setMaxListeners } from 'node:events';
import type { Options } from '../../config/options';
import { bareTimestamp } from '../../model/clock';
import { reasonOf } from '../../model/errors';
import { newUuid } from '../../model/idents';
import type { JsonObject, NodeRecord } from '../../model/records';
import { bmcOf } from '../core/bmc-turns';
import type { Context } from '../core/context';
import { notifyMeasures, notifySensors } from '../core/notify';
import { inParallel } from '../core/parallel';
import { readingSamples, readingsOf, standingSamples, timeSample, type Readings, type Standing } from './sensor-readings';
import { sharedTaskOf } from '../core/task';
import { validateInterface } from '../core/validate';

/** Kinds with an interval of their own; all others (`Voltage`, `Extra`, …) have `interval`. */
const OWN_INTERVALS = ['power', 'temperature', 'fan', 'drive'] as const;
type Timed = (typeof OWN_INTERVALS)[number] | 'other';
const TIMED: readonly Timed[] = [...OWN_INTERVALS, 'other'];
const timedAs = (kind: string): Timed => OWN_INTERVALS.find((one) => one === kind.toLowerCase()) ?? 'other';
const intervalOf = (options: Options, timed: Timed): number =>
  timed === 'other' ? options['sensor_data.interval'] : options[`sensor_data.interval_${timed}`];

/** Seconds between rounds; 0: none. */
export const sensorRounds = (options: Options): number =>
  options['sensor_data.send_sensor_data'] ? Math.min(...TIMED.map((timed) => intervalOf(options, timed))) : 0;

interface Known {
  readonly node: Pick<NodeRecord, 'uuid' | 'name' | 'instance_uuid'>;
  /** Sensor kind → sensor → fields. */
  readonly payload: JsonObject;
  readonly readings: Readings;
  /** Milliseconds. */
  readonly at: number;
}
/** When rounds that did something began, in milliseconds. */
type Times = Readonly<Partial<Record<Timed, number>>>;
/** What one conductor remembers of sensors. */
export interface SensorMemory {
  readonly nodes: Map<string, Known>;
  /** By node: in which round it was asked last, and each kind was read last. */
  readonly asked: Map<string, { readonly at: number; readonly read: Times }>;
  /** When the conductor's own counts were told last. */
  own: Times;
}
/** Machines of which metrics are shown; there are none of those beyond. */
const MOST_NODES = 20_000;

/** Its metrics are read from there at each scrape. */
export function sensorMemory({ metrics }: Pick<Context, 'metrics'>): SensorMemory {
  const nodes = new Map<string, Known>();
  const all =
    <T>(each: (known: Known) => readonly T[]) =>
    () =>
      [...nodes.values()].flatMap(each);
  metrics.read(
    'baremetal_sensor_reading',
    all(({ node, readings }) => readingSamples(node, readings)),
  );
  const standings = (kind: Standing['kind']) => all(({ node, readings }) => standingSamples(kind, node, readings));
  metrics.read('baremetal_fan_status', standings('fan'));
  metrics.read('baremetal_power_status', standings('power'));
  metrics.read('baremetal_drive_status', standings('drive'));
  metrics.read(
    'baremetal_last_payload_timestamp_seconds',
    all(({ node, at }) => [timeSample(node, at)]),
  );
  return { nodes, asked: new Map(), own: {} };
}

/** The kinds that it is time for. Rounds come a little early and late: half of one is no difference. */
function dueOf(options: Options, read: Times, now: number): ReadonlySet<Timed> {
  const slack = sensorRounds(options) / 2;
  return new Set(TIMED.filter((timed) => (now - (read[timed] ?? -Infinity)) / 1000 >= intervalOf(options, timed) - slack));
}

/**
 * Answers how many machines there are to ask. Ends after [sensor_data]wait_timeout, whether or not all were asked: those are the first of the
 * next round.
 */
export async function collectSensors(context: Context, memory: SensorMemory): Promise<number> {
  const { options, clock, signal, store } = context;
  const { asked } = memory;
  const now = clock.now();
  if (options['sensor_data.enable_for_conductor'] && dueOf(options, memory.own, now).has('other')) {
    memory.own = { other: now };
    await notifyMeasures(context);
  }
  if (!options['sensor_data.enable_for_nodes']) return 0;
  const states = options['sensor_data.enable_for_undeployed_nodes'] ? {} : { provision_state: 'active' };
  const nodes = await context.mine(await store.nodes.list({ where: { maintenance: false, ...states }, children: 'all' }));
  const there = new Set(nodes.map(({ uuid }) => uuid));
  for (const known of [memory.nodes, asked]) for (const uuid of known.keys()) if (!there.has(uuid)) known.delete(uuid);
  const lastAsked = ({ uuid }: NodeRecord): number => asked.get(uuid)?.at ?? -Infinity;
  const inOrder = [...nodes].sort((a, b) => (lastAsked(a) < lastAsked(b) ? -1 : lastAsked(a) > lastAsked(b) ? 1 : 0));

  const over = new AbortController();
  const ended = new AbortController();
  clock.sleep(options['sensor_data.wait_timeout'] * 1000, AbortSignal.any([signal, ended.signal])).then(
    () => over.abort(new Error('it was not read within [sensor_data]wait_timeout')),
    () => {},
  );
  try {
    const until = AbortSignal.any([signal, over.signal]);
    // Each machine that is asked listens to it: no leak.
    setMaxListeners(0, until);
    await inParallel(inOrder, options['sensor_data.workers'], until, (node) =>
      context.bmcTurns
        .alone(bmcOf(node), until, () => context.bmcTurns.alone(node.uuid, until, () => askOne(context, memory, node, now, until)))
        .catch(() => {}),
    );
  } finally {
    ended.abort();
  }
  return nodes.length;
}

async function askOne(context: Context, { nodes, asked }: SensorMemory, node: NodeRecord, now: number, signal: AbortSignal): Promise<void> {
  const { options, clock } = context;
  const types = options['sensor_data.data_types'].map((name) => name.toLowerCase());
  const isWanted = (kind: string): boolean => types.includes('all') || types.includes(kind.toLowerCase());
  const { uuid, name, instance_uuid: instance } = node;
  const { read: times = {} } = asked.get(uuid) ?? {};
  const due = dueOf(options, times, now);
  asked.set(uuid, { at: now, read: times });
  const isRead = (kind: string): boolean => isWanted(kind) && due.has(timedAs(kind));
  const task = sharedTaskOf({ ...context, signal }, node);
  const before = Object.entries(nodes.get(uuid)?.payload ?? {}).filter(([kind]) => !due.has(timedAs(kind)));
  const keep = (payload: JsonObject): void => {
    if (Object.keys(payload).length === 0 || (!nodes.has(uuid) && nodes.size >= MOST_NODES)) nodes.delete(uuid);
    else nodes.set(uuid, { node: { uuid, name, instance_uuid: instance }, payload, readings: readingsOf(payload), at: clock.now() });
  };
  try {
    const { management } = task.driver;
    if (!management.sensors) return;
    await validateInterface(task, 'management');
    const read = Object.entries(await management.sensors(task, isRead)).filter(([kind]) => isRead(kind));
    const payload = Object.fromEntries([...before, ...read]);
    keep(payload);
    asked.set(uuid, { at: now, read: { ...times, ...Object.fromEntries([...due].map((timed) => [timed, now])) } });
    if (!due.has('other') || Object.keys(payload).length === 0) return;
    notifySensors(context, node, {
      message_id: newUuid(context.random),
      instance_uuid: instance,
      node_uuid: uuid,
      // As Python writes it: consumers parse it.
      timestamp: bareTimestamp(clock.now()),
      node_name: name,
      event_type: `hardware.${node.driver}.metrics.update`,
      payload,
    });
  } catch (error) {
    // What was not read is not shown as if it were; it is due again in the next round.
    keep(Object.fromEntries(before));
    if (context.signal.aborted) return;
    task.log.warn(`During get_sensors_data, could not get sensor data for node ${uuid}. Error: ${reasonOf(error)}.`);
  }
}
