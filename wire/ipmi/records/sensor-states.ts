/** What the states of discrete sensors mean for the health of a part (IPMI 2.0 tables 42-2 and 42-3). Others say nothing about it. */

export type PartState =
  | 'warning'
  | 'critical'
  | 'failed'
  | 'predicted failure'
  | 'redundancy lost'
  | 'redundancy degraded'
  | 'input lost'
  | 'correctable errors'
  | 'uncorrectable errors'
  | 'thermal trip';
/** Offset → its meaning. */
type Offsets = Readonly<Record<number, PartState>>;

/** Table 42-2: by event/reading type, for sensors of any type. */
const GENERIC: Readonly<Record<number, Offsets>> = {
  0x04: { 1: 'predicted failure' },
  0x05: { 1: 'warning' },
  // Transitions between severities.
  0x07: { 1: 'warning', 2: 'critical', 3: 'critical', 4: 'warning', 5: 'critical', 6: 'critical' },
  0x0b: {
    1: 'redundancy lost',
    2: 'redundancy degraded',
    3: 'redundancy lost',
    4: 'redundancy lost',
    5: 'redundancy lost',
    6: 'redundancy degraded',
    7: 'redundancy degraded',
  },
};
/** Table 42-3: by sensor type, for the event/reading type 6Fh. */
const SPECIFIC: Readonly<Record<number, Offsets>> = {
  // Processor
  0x07: {
    0: 'failed',
    1: 'thermal trip',
    2: 'failed',
    3: 'failed',
    4: 'failed',
    5: 'failed',
    6: 'uncorrectable errors',
    10: 'warning',
    11: 'uncorrectable errors',
    12: 'correctable errors',
  },
  // Power supply
  0x08: { 1: 'failed', 2: 'predicted failure', 3: 'input lost', 4: 'input lost', 5: 'input lost', 6: 'warning' },
  // Power unit
  0x09: { 4: 'input lost', 6: 'failed', 7: 'predicted failure' },
  // Memory
  0x0c: {
    0: 'correctable errors',
    1: 'uncorrectable errors',
    2: 'uncorrectable errors',
    3: 'failed',
    4: 'failed',
    5: 'correctable errors',
    7: 'failed',
    10: 'critical',
  },
  // Drive slot
  0x0d: { 1: 'failed', 2: 'predicted failure', 5: 'redundancy lost', 6: 'failed', 7: 'redundancy degraded', 8: 'warning' },
  // Critical interrupt: PCI PERR and SERR, bus errors
  0x13: {
    4: 'uncorrectable errors',
    5: 'uncorrectable errors',
    7: 'correctable errors',
    8: 'uncorrectable errors',
    10: 'uncorrectable errors',
    11: 'warning',
  },
  // Battery
  0x29: { 0: 'predicted failure', 1: 'failed' },
};
const THRESHOLD = 0x01;
/** Table 42-2, event type 01h: the offset says which threshold was crossed, in which direction. */
const CROSSED: Offsets = {
  0: 'warning',
  2: 'critical',
  4: 'critical',
  7: 'warning',
  9: 'critical',
  11: 'critical',
};
const SENSOR_SPECIFIC = 0x6f;
/** States have 15 bits. */
const OFFSETS = 15;

const meaningsOf = (eventType: number, sensorType: number): Offsets =>
  (eventType === SENSOR_SPECIFIC ? SPECIFIC[sensorType] : GENERIC[eventType]) ?? {};

/** @param states the asserted states of a discrete sensor, a bit each */
export const partStatesOf = (eventType: number, sensorType: number, states: number): readonly PartState[] => {
  const meanings = meaningsOf(eventType, sensorType);
  const found = Array.from({ length: OFFSETS }, (_, offset) => offset).filter((offset) => (states >> offset) & 1);
  return [...new Set(found.flatMap((offset) => meanings[offset] ?? []))];
};
/** The meaning of an event of the log, by the offset in its first byte of data (§29.7). */
export const partStateOfEvent = (eventType: number, sensorType: number, offset: number): PartState | undefined =>
  (eventType === THRESHOLD ? CROSSED : meaningsOf(eventType, sensorType))[offset];
