/** Converts what BMCs report to observations for the rules of health (model/rules/health-rules.ts). */
import type { JsonObject } from '../../model/records';
import { kindOf, type Signal, type SignalKind, type SignalState } from '../../model/rules/health-rules';
import { readingsOf, unitOf } from './sensor-readings';

/** Parts of one machine; further ones are not judged. */
const MAX = 512;
const MAX_SUBJECT = 100;
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
  const [, value, unit] = ANALOG.exec(textOf(fields['Sensor Reading']).slice(0, MAX_SUBJECT)) ?? [];
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

/**
 * @param payload kind → sensor → fields, in Ironic's format
 * @param states what the states of discrete sensors mean, by kind and sensor
 */
export function sensorSignals(payload: JsonObject, states: ReadonlyMap<string, readonly SignalState[]>): readonly Signal[] {
  const signals: Signal[] = [];
  for (const [word, sensors] of Object.entries(payload)) {
    if (typeof sensors !== 'object' || sensors === null) continue;
    const kind = kindOfWord(word);
    for (const [key, given] of Object.entries(sensors)) {
      if (typeof given !== 'object' || given === null) continue;
      if (signals.length >= MAX) return signals;
      const fields: JsonObject = given as JsonObject;
      const name = key.slice(0, MAX_SUBJECT);
      const signal =
        'Sensor Reading' in fields ? ipmiSignal(kind, name, fields, states.get(stateKey(word, key))) : redfishSignal(kind, name, fields);
      if (signal) signals.push(signal);
    }
  }
  return signals;
}
export const stateKey = (kind: string, sensor: string): string => `${kind}\0${sensor}`;

/** @param health as the BMC reports it with the power state; null: it does not say */
export const systemSignals = (health: string | null | undefined): readonly Signal[] =>
  typeof health === 'string' ? [{ source: 'system', kind: 'machine', subject: 'the machine', states: statesOf(HEALTH, health) }] : [];
