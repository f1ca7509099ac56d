/** Converts what BMCs report to observations for the rules of health (model/rules/health-rules.ts). */
import type { JsonObject } from '../../model/records';
import { kindOf, subjectText, type Signal, type SignalKind, type SignalState } from '../../model/rules/health-rules';
import { readingsOf, unitOf } from './sensor-readings';

/** Parts of one machine; further ones are not judged. */
const MAX = 512;
const MAX_READING = 100;
const textOf = (value: unknown): string => (typeof value === 'string' || typeof value === 'number' ? String(value) : '');

/** The first words of IPMI's sensor types that differ from our kinds. */
const KINDS: Readonly<Record<string, SignalKind>> = { cooling: 'fan' };
const kindOfWord = (word: string): SignalKind => KINDS[word.toLowerCase()] ?? kindOf(word.toLowerCase());

/** `Status` of a threshold sensor, in ipmitool's words. Others are no problem, or no reading. */
const STATUS: Readonly<Record<string, SignalState>> = {
  'Lower Non-Critical': 'warning',
  'Upper Non-Critical': 'warning',
  'Lower Critical': 'critical',
  'Upper Critical': 'critical',
  'Lower Non-Recoverable': 'critical',
  'Upper Non-Recoverable': 'critical',
};
/** The health of a part or of a machine, in Redfish's words. */
const HEALTH: Readonly<Record<string, SignalState>> = { Warning: 'warning', Critical: 'critical' };
const statesOf = (table: Readonly<Record<string, SignalState>>, word: string): readonly SignalState[] =>
  Object.hasOwn(table, word) ? [table[word]!] : [];
/** States of a Redfish part that is not there or not in use (DSP0268, Status.State): its health says nothing. */
const NOT_IN_USE: readonly string[] = ['Absent', 'Disabled', 'StandbyOffline', 'UnavailableOffline', 'Deferring', 'Starting'];

/** `45 (+/- 0.500) degrees C` */
const ANALOG = /^(-?\d+(?:\.\d+)?)(?: \(\+\/- \d+(?:\.\d+)?\))? (\S.*)$/;
function ipmiSignal(kind: SignalKind, subject: string, fields: JsonObject, states: readonly SignalState[] | undefined): Signal | undefined {
  const status = textOf(fields['Status']);
  const [, value, unit] = ANALOG.exec(textOf(fields['Sensor Reading']).slice(0, MAX_READING)) ?? [];
  // No reading: nothing is known.
  if (value === undefined && states === undefined) return undefined;
  const number = value === undefined ? {} : { value: Number(value), unit: unitOf(unit!) };
  return { source: 'sensor', kind, subject, states: states ?? statesOf(STATUS, status), ...number };
}
/** `0:Power@1` of Ironic's keys: the part, the resource that lists it, the chassis. */
const partOf = (key: string): string => key.replace(/@[^@]*$/, '').replace(/:Power\w*$/, '');
const NAMES: Readonly<Partial<Record<SignalKind, string>>> = { power: 'power supply' };
function redfishSignal(kind: SignalKind, key: string, fields: JsonObject): Signal | undefined {
  const [health, state] = [fields['health'], textOf(fields['state'])];
  if (NOT_IN_USE.includes(state)) return undefined;
  const [reading] = readingsOf({ [kind]: { part: fields } }).readings;
  if (typeof health !== 'string' && reading === undefined) return undefined;
  const subject = `${NAMES[kind] ?? kind} ${partOf(key)}`;
  const number = reading === undefined ? {} : { value: reading.value, unit: reading.unit };
  return { source: 'sensor', kind, subject, states: statesOf(HEALTH, textOf(health)), ...number };
}

/** What a driver notes of a sensor beside its fields: see SensorNotes. */
export interface SensorNote {
  readonly states: readonly SignalState[];
  readonly reading?: { readonly value: number; readonly unit: string } | undefined;
}
/** By kind and sensor: `noteKey`. */
type SensorNoteMap = ReadonlyMap<string, SensorNote>;
export const noteKey = (kind: string, sensor: string): string => `${kind}\0${sensor}`;

/** What one reading says of the parts of a machine. */
interface PartsRead {
  readonly signals: readonly Signal[];
  /** The parts that are there, also those that said nothing. Undefined: there are too many to tell which are not. */
  readonly present: ReadonlySet<string> | undefined;
}
const isAbsent = (fields: JsonObject): boolean => fields['state'] === 'Absent';
const subjectOf = (kind: SignalKind, key: string, fields: JsonObject | undefined): string =>
  fields && 'Sensor Reading' in fields ? subjectText(key) : `${NAMES[kind] ?? kind} ${partOf(subjectText(key))}`;

/** The words of the notes count beside those of the fields. */
function signalOf(kind: SignalKind, key: string, fields: JsonObject, note: SensorNote | undefined): Signal | undefined {
  const name = subjectText(key);
  if ('Sensor Reading' in fields) return ipmiSignal(kind, name, fields, note?.states);
  const signal = redfishSignal(kind, name, fields);
  if (!note || isAbsent(fields)) return signal;
  const { states = [], value, unit } = signal ?? {};
  const reading = value === undefined ? note.reading : { value, unit };
  return { source: 'sensor', kind, subject: subjectOf(kind, key, fields), states: [...new Set([...states, ...note.states])], ...reading };
}
/** @param payload kind → sensor → fields, in Ironic's format */
export function sensorSignals(payload: JsonObject, notes: SensorNoteMap): PartsRead {
  const signals: Signal[] = [];
  const present = new Set<string>();
  const rest = new Map(notes);
  for (const [word, sensors] of Object.entries(payload)) {
    if (typeof sensors !== 'object' || sensors === null) continue;
    const kind = kindOfWord(word);
    for (const [key, given] of Object.entries(sensors)) {
      if (typeof given !== 'object' || given === null) continue;
      if (signals.length >= MAX) return { signals, present: undefined };
      const fields: JsonObject = given as JsonObject;
      const note = rest.get(noteKey(word, key));
      rest.delete(noteKey(word, key));
      if (!isAbsent(fields)) present.add(subjectOf(kind, key, fields));
      const signal = signalOf(kind, key, fields, note);
      if (signal) signals.push(signal);
    }
  }
  // Of parts that the payload does not have.
  for (const [named, { states, reading }] of rest) {
    if (signals.length >= MAX) return { signals, present: undefined };
    const [word = '', key = ''] = named.split('\0');
    const kind = kindOfWord(word);
    const subject = subjectOf(kind, key, undefined);
    present.add(subject);
    signals.push({ source: 'sensor', kind, subject, states, ...reading });
  }
  return { signals, present };
}

/** What the BMC reports with the power state; null and absent: it does not say. */
interface SystemHealth {
  readonly health?: string | null | undefined;
  readonly memoryHealth?: string | null | undefined;
  readonly processorHealth?: string | null | undefined;
}
const SYSTEM_PARTS: readonly (readonly [keyof SystemHealth, SignalKind, string])[] = [
  ['health', 'machine', 'the machine'],
  ['memoryHealth', 'memory', 'the memory'],
  ['processorHealth', 'processor', 'a processor'],
];
export const systemSignals = (health: SystemHealth): readonly Signal[] =>
  SYSTEM_PARTS.flatMap(([member, kind, subject]) => {
    const word = health[member];
    return typeof word === 'string' ? [{ source: 'system' as const, kind, subject, states: statesOf(HEALTH, word) }] : [];
  });
/** The states of a Redfish resource by its Status.Health. */
export const statesOfHealth = (health: unknown): readonly SignalState[] => statesOf(HEALTH, textOf(health));
