/** The system event log of a BMC as observations for the rules of health, read from where the last reading ended. */
import { isObject } from '../../model/json';
import type { JsonObject } from '../../model/records';
import { kindOf, type Signal } from '../../model/rules/health-rules';
import { readNewSel, type SelEntry, type SelPosition } from '../../wire/ipmi/records/sel';
import { sensorTypeName } from '../../wire/ipmi/records/sensor-names';
import { partStateOfEvent, type PartState } from '../../wire/ipmi/records/sensor-states';
import type { LogPosition, LogReading, Task } from '../interfaces';
import { asFault, ipmiCommandSender } from './target';

/** Sensors of one machine whose states are kept. */
const MAX_SENSORS = 64;
/** Milliseconds of one reading: the next one goes on. */
const READING_MS = 40_000;
/** The log has no path. */
const KEY = 'sel';

/** By sensor: the states that the log has asserted. */
type States = Readonly<Record<string, readonly PartState[]>>;
interface EventsRead {
  /** One for each entry about a part, with all states of the part after it. */
  readonly signals: readonly Signal[];
  /** Of parts that are not well. */
  readonly states: States;
}
/** @param before the states before these entries */
export function eventSignals(entries: readonly SelEntry[], before: States): EventsRead {
  const bySensor = new Map(Object.entries(before).map(([subject, states]) => [subject, new Set(states)]));
  const signals = entries.flatMap(({ event }): readonly Signal[] => {
    const state = event && partStateOfEvent(event.eventType, event.sensorType, event.data[0] & 0x0f);
    if (!event || state === undefined) return [];
    const type = sensorTypeName(event.sensorType);
    const subject = `${type} 0x${event.sensor.toString(16).padStart(2, '0')}`;
    const states = bySensor.get(subject) ?? new Set();
    if (event.deassertion) states.delete(state);
    else states.add(state);
    if (states.size === 0) bySensor.delete(subject);
    else if (bySensor.has(subject) || bySensor.size < MAX_SENSORS) bySensor.set(subject, states);
    return [{ source: 'log', kind: kindOf(type.split(' ')[0]!.toLowerCase()), subject, states: [...states] }];
  });
  return { signals, states: Object.fromEntries([...bySensor].map(([subject, states]) => [subject, [...states]])) };
}

/** Undefined: the position is that of another kind of log. */
function positionOf(given: LogPosition | undefined): (SelPosition & { readonly states: States }) | undefined {
  if (!isObject(given) || typeof given['added'] !== 'number' || typeof given['erased'] !== 'number') return undefined;
  return given as unknown as SelPosition & { readonly states: States };
}
/** Throws Fault. */
export async function ipmiLogs(task: Task, positions: Readonly<Record<string, LogPosition>>): Promise<LogReading> {
  const { clock, connections } = task;
  // Each request would be a process.
  if (connections.ipmi.runProgram) return { signals: [], positions, wasCleared: false };
  const before = positionOf(positions[KEY]);
  const until = clock.now() + READING_MS;
  const read = await asFault(
    'sel list',
    readNewSel(ipmiCommandSender(task), before, () => clock.now() > until),
  );
  const { signals, states } = eventSignals(read.fresh, read.wasCleared ? {} : (before?.states ?? {}));
  const position: JsonObject = { ...read.position, states };
  return { signals, positions: { [KEY]: position }, wasCleared: read.wasCleared };
}
