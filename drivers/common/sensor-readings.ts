/** Converts sensor data in Ironic's format to numbers. */
import type { JsonObject } from '../../model/records';

/** One value of a sensor. */
export interface Reading {
  readonly kind: string;
  readonly sensor: string;
  readonly entity: string;
  readonly unit: string;
  readonly value: number;
}
/** Exported as 0 if the health is OK, else as 1. */
export interface SensorHealth {
  readonly kind: 'fan' | 'power' | 'drive';
  readonly sensor: string;
  readonly entity: string;
  readonly bad: boolean;
}
export interface Readings {
  readonly readings: readonly Reading[];
  readonly health: readonly SensorHealth[];
}

/** Readings of one machine; further ones are in the notification only. */
const MAX = 512;
const MAX_WORDS = 100;
const words = (value: unknown): string => (typeof value === 'string' || typeof value === 'number' ? String(value).slice(0, MAX_WORDS) : '');

/** Units of IPMI (in ipmitool's words) and Redfish → ours. Others become `other`, which bounds the label's values. */
const UNITS: Readonly<Record<string, string>> = {
  'degrees C': 'celsius',
  'degrees F': 'fahrenheit',
  Volts: 'volts',
  Amps: 'amperes',
  Watts: 'watts',
  RPM: 'rpm',
  Percent: 'percent',
  percent: 'percent',
  CFM: 'cfm',
};
export const unitOf = (unit: string): string => (Object.hasOwn(UNITS, unit) ? UNITS[unit]! : 'other');

const numbered = (kind: string, sensor: string, entity: string, values: readonly (readonly [string, unknown])[]): readonly Reading[] =>
  values.flatMap(([unit, value]) => (typeof value === 'number' ? [{ kind, sensor, entity: entity, unit, value }] : []));

/** Kind → readings of a Redfish sensor. */
const REDFISH: Readonly<Record<string, (sensor: string, fields: JsonObject) => readonly Reading[]>> = {
  temperature: (sensor, fields) =>
    numbered('temperature', sensor, words(fields['physical_context']), [['celsius', fields['reading_celsius']]]),
  fan: (sensor, fields) =>
    numbered('fan', sensor, words(fields['physical_context']), [[unitOf(words(fields['reading_units'])), fields['reading']]]),
  power: (sensor, fields) =>
    numbered('power', sensor, 'PSU', [
      ['watts', fields['last_power_output_watts']],
      ['volts', fields['line_input_voltage']],
    ]),
};
const HEALTH: Readonly<Record<string, (sensor: string, fields: JsonObject) => Omit<SensorHealth, 'bad'>>> = {
  fan: (sensor, fields) => ({ kind: 'fan', sensor: words(fields['identity']) || sensor, entity: words(fields['physical_context']) }),
  power: (sensor) => ({ kind: 'power', sensor, entity: 'PSU' }),
  drive: (sensor) => ({ kind: 'drive', sensor, entity: 'HDD' }),
};

/** `45 (+/- 0.500) degrees C`, `12.1 Volts`. Values without a number (`No Reading`, `0h`) are skipped. */
const ANALOG = /^(-?\d+(?:\.\d+)?)(?: \(\+\/- \d+(?:\.\d+)?\))? (\S.*)$/;
function ipmi(kind: string, fields: JsonObject): readonly Reading[] {
  const [, value, unit] = ANALOG.exec(words(fields['Sensor Reading'])) ?? [];
  if (value === undefined) return [];
  return [{ kind, sensor: words(fields['Sensor ID']), entity: words(fields['Entity ID']), unit: unitOf(unit!), value: Number(value) }];
}

/** @param payload kind → sensor → fields */
export function readingsOf(payload: JsonObject): Readings {
  const readings: Reading[] = [];
  const health: SensorHealth[] = [];
  for (const [name, sensors] of Object.entries(payload)) {
    const kind = words(name).toLowerCase();
    if (typeof sensors !== 'object' || sensors === null) continue;
    for (const [sensor, given] of Object.entries(sensors)) {
      if (typeof given !== 'object' || given === null) continue;
      const fields: JsonObject = given as JsonObject;
      const key = words(sensor);
      if ('Sensor Reading' in fields) readings.push(...ipmi(kind, fields));
      else if (Object.hasOwn(REDFISH, kind)) readings.push(...REDFISH[kind]!(key, fields));
      if ('health' in fields && Object.hasOwn(HEALTH, kind)) health.push({ ...HEALTH[kind]!(key, fields), bad: fields['health'] !== 'OK' });
    }
  }
  return { readings: readings.slice(0, MAX), health: health.slice(0, MAX) };
}
