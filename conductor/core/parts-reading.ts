/** Reads the sensors of a machine for the rules of health: what Ironic's fields say, and what drivers note beside them. */
import { noteKey, sensorSignals, type SensorNote } from '../../drivers/common/health-signals';
import type { SensorNotes, Task } from '../../drivers/interfaces';
import type { JsonObject } from '../../model/records';
import { kindOf, type FoundParts, type Signal } from '../../model/rules/health-rules';

interface PartsReading {
  /** Sensor kind → sensor → fields; only of the kinds that were asked for. */
  readonly payload: JsonObject;
  readonly signals: readonly Signal[];
  /** Undefined: nothing is known of parts that are gone. */
  readonly found: FoundParts | undefined;
}
/** Notes of one machine. */
const MAX_NOTES = 1024;
/** A kind of each interval: alerts of rules for all kinds end when all of these were read. */
const ALL: readonly string[] = ['fan', 'temperature', 'power', 'drive', 'voltage'];

/**
 * Throws FailedToGetSensorData. Undefined: the driver reads no sensors. Without [health]enabled, the payload is all: notes cost requests.
 * @param isRead by the kind, in any case of its letters
 */
export async function readParts(task: Task, isRead: (kind: string) => boolean): Promise<PartsReading | undefined> {
  const { management } = task.driver;
  if (!management.sensors) return undefined;
  const isJudged = task.options['health.enabled'];
  const notes = new Map<string, SensorNote>();
  const unread = new Set<string>();
  const noting: SensorNotes = {
    part: (kind, sensor, states, reading) => {
      if (notes.size < MAX_NOTES) notes.set(noteKey(kind, sensor), { states, reading });
    },
    unread: (kind) => void unread.add(kindOf(kind.toLowerCase())),
  };
  const read = await management.sensors(task, isRead, isJudged ? noting : undefined);
  const payload = Object.fromEntries(Object.entries(read).filter(([kind]) => isRead(kind)));
  if (!isJudged) return { payload, signals: [], found: undefined };
  const { signals, present } = sensorSignals(payload, notes);
  const found: FoundParts | undefined = present && {
    source: 'sensor',
    present,
    isRead: (kind) => (kind === undefined ? unread.size === 0 && ALL.every(isRead) : !unread.has(kind) && isRead(kind)),
  };
  return { payload, signals, found };
}
