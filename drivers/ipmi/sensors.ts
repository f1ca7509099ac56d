/** A BMC's sensors in the shape that Ironic's consumers know: the fields of `ipmitool sdr -v`, by sensor type. */
import { Fault } from '../../model/errors';
import type { JsonObject } from '../../model/records';
import type { SendCommand } from '../../wire/ipmi/record-access';
import { IpmiError, type IpmiTarget } from '../../wire/ipmi/client';
import { THRESHOLDS, type SensorRecord, type Threshold, type Units } from '../../wire/ipmi/records/sdr';
import { readSdrs } from '../../wire/ipmi/records/sdr-repository';
import { entityName, sensorTypeName, unitName } from '../../wire/ipmi/records/sensor-names';
import { partStatesOf } from '../../wire/ipmi/records/sensor-states';
import { distanceOf, hasAnalogReading, readSensor, toleranceOf, valueOf, withLimits, type Reading } from '../../wire/ipmi/records/sensors';
import { sensorsOfText } from './sensor-text';
import { ipmiCommandSender, targetOf } from './target';
import type { SensorNotes, Task } from '../interfaces';

const hex = (value: number, digits = 2): string => value.toString(16).toUpperCase().padStart(digits, '0');
/** Whole numbers without decimals, others with three. */
const short = (value: number): string => (Number.isInteger(value) ? `${value}` : value.toFixed(3));

function unitText({ percent, relation, base, modifier }: Units): string {
  const sign = percent ? '% ' : '';
  if (relation === 1) return `${sign}${unitName(base)}/${unitName(modifier)}`;
  if (relation === 2) return `${sign}${unitName(base)}*${unitName(modifier)}`;
  return percent && base === 0 ? 'percent' : `${sign}${unitName(base)}`;
}

const isThreshold = ({ eventType }: SensorRecord): boolean => eventType === 1;
/** Bits of the threshold comparison (§35.14 byte 4), the worst first. */
const STATUS: readonly (readonly [bit: number, text: string])[] = [
  [0x04, 'Lower Non-Recoverable'],
  [0x20, 'Upper Non-Recoverable'],
  [0x02, 'Lower Critical'],
  [0x10, 'Upper Critical'],
  [0x01, 'Lower Non-Critical'],
  [0x08, 'Upper Non-Critical'],
];
const statusOf = (reading: Reading | undefined): string =>
  reading?.raw === undefined ? 'Not Available' : (STATUS.find(([bit]) => reading.states & bit)?.[1] ?? 'ok');

function readingOf(record: SensorRecord, reading: Reading | undefined): string {
  if (reading?.raw === undefined) return reading?.scanningDisabled ? 'Disabled' : 'No Reading';
  const { raw, factors } = reading;
  const unit = unitText(record.units);
  if (!isThreshold(record))
    return hasAnalogReading(record) ? `${analogText(valueOf(record, raw, factors))} ${unit}` : `${raw.toString(16)}h`;
  if (!record.analog) return `0x${hex(raw)}`;
  if (!hasAnalogReading(record)) return `0x${hex(raw)} (+/- 0x${hex(record.analog.factors.tolerance)})`;
  return `${short(valueOf(record, raw, factors))} (+/- ${short(toleranceOf(record))}) ${unit}`;
}
const analogText = (value: number): string => (Number.isInteger(value) ? `${value}` : value.toFixed(2));

const THRESHOLD_NAMES: readonly (readonly [Threshold, string])[] = [
  ['unr', 'Upper non-recoverable'],
  ['ucr', 'Upper critical'],
  ['unc', 'Upper non-critical'],
  ['lnr', 'Lower non-recoverable'],
  ['lcr', 'Lower critical'],
  ['lnc', 'Lower non-critical'],
];
const bit = (mask: number, threshold: Threshold): boolean => ((mask >> THRESHOLDS.indexOf(threshold)) & 1) === 1;
/** The order in lists of thresholds. */
const ORDER: readonly Threshold[] = ['lnr', 'lcr', 'lnc', 'unc', 'ucr', 'unr'];
const listed = (mask: number): string => ORDER.filter((threshold) => bit(mask, threshold)).join(' ');
const ACCESS = (capabilities: number, mask: number): string =>
  ['No Thresholds', listed(mask), listed(mask), 'Thresholds Fixed'][(capabilities >> 2) & 0x03]!;
const EVENT_CONTROL = ['Per-threshold', 'Entire Sensor Only', 'Global Disable Only', 'No Events From Sensor'];
/** Raw minimum and maximum that mean "not specified", by data format. */
const UNSPECIFIED_RANGE: readonly (readonly [minimum: number, maximum: number])[] = [
  [0x00, 0xff],
  [0xff, 0x00],
  [0x80, 0x7f],
];

function thresholdFields(record: SensorRecord, reading: Reading | undefined): Record<string, string> {
  const { analog, masks, capabilities, units, hysteresis } = record;
  const [lower, upper, access] = masks;
  const analogic = hasAnalogReading(record);
  const value = (raw: number): string => (analogic ? valueOf(record, raw).toFixed(3) : `0x${hex(raw)}`);
  const distance = (raw: number): string => {
    if (raw === 0 || raw === 0xff || (analogic && distanceOf(record, raw) === 0)) return 'Unspecified';
    return analogic ? distanceOf(record, raw).toFixed(3) : `0x${hex(raw)}`;
  };
  const fields: Record<string, string> = { Status: statusOf(reading) };
  const usual = { 'Nominal Reading': analog?.nominal, 'Normal Minimum': analog?.normalMinimum, 'Normal Maximum': analog?.normalMaximum };
  for (const [name, raw] of Object.entries(usual)) if (raw !== undefined) fields[name] = value(raw);
  if (analog) for (const [key, name] of THRESHOLD_NAMES) if (bit(access, key)) fields[name] = value(analog.thresholds[key]);
  fields['Positive Hysteresis'] = distance(hysteresis.positive);
  fields['Negative Hysteresis'] = distance(hysteresis.negative);
  if (analog) {
    const [minimum, maximum] = UNSPECIFIED_RANGE[units.format] ?? [];
    const range = (raw: number, none: number | undefined): string =>
      raw === none || (analogic && valueOf(record, raw) === 0) ? 'Unspecified' : value(raw);
    fields['Minimum sensor range'] = range(analog.minimum, minimum);
    fields['Maximum sensor range'] = range(analog.maximum, maximum);
  }
  fields['Event Message Control'] = EVENT_CONTROL[capabilities & 0x03]!;
  fields['Readable Thresholds'] = ACCESS(capabilities, access & 0xff);
  fields['Settable Thresholds'] = ACCESS(capabilities, access >> 8);
  const status = ((lower >> 12) & 0x07) | (((upper >> 12) & 0x07) << 3);
  if (status !== 0) fields['Threshold Read Mask'] = listed(status);
  return fields;
}
function discreteFields({ capabilities, sensorType, oem }: SensorRecord, reading: Reading | undefined): Record<string, string> {
  return {
    'Event Message Control': EVENT_CONTROL[capabilities & 0x03]!,
    ...(reading && reading.states !== 0 ? { 'States Asserted': sensorTypeName(sensorType) } : {}),
    OEM: oem.toString(16).toUpperCase(),
  };
}

/** One sensor in the form of `ipmitool sdr -v`. */
function sensorFields(record: SensorRecord, reading: Reading | undefined): Record<string, string> {
  const { name, number, entity, sensorType } = record;
  const kind = isThreshold(record) ? 'Threshold' : 'Discrete';
  return {
    'Sensor ID': `${name} (0x${number.toString(16)})`,
    'Entity ID': `${entity.id}.${entity.instance} (${entityName(entity.id)})`,
    [`Sensor Type (${kind})`]: `${sensorTypeName(sensorType)} (0x${hex(sensorType).toLowerCase()})`,
    'Sensor Reading': readingOf(record, reading),
    ...(isThreshold(record) ? thresholdFields(record, reading) : discreteFields(record, reading)),
  };
}

/** A sensor is read from its owner. Sensors of system software (odd IDs) are read from the BMC. */
const BMC = 0x20;
/** Sensors of the BMC itself that it may leave without a response: each costs a whole timeout. */
const MAX_SILENT = 1;
type Sensors = Record<string, Record<string, Record<string, string>>>;
/** The first word of the sensor type, as in Ironic. */
const typeOf = ({ sensorType }: SensorRecord): string => sensorTypeName(sensorType).split(' ')[0]!;
/** The cache key: the same records for every user of the BMC. */
const nameOf = ({ address, port, bridge }: IpmiTarget): string => JSON.stringify([address, port, bridge]);

async function readSensors(task: Task, isWanted: (kind: string) => boolean = () => true, notes?: SensorNotes): Promise<Sensors> {
  const found: Sensors = {};
  /** Controllers behind the BMC that did not answer get no further requests. */
  const unreachable = new Set<number>();
  const ask = ipmiCommandSender(task);
  let silent = 0;
  const read = async (record: SensorRecord): Promise<Record<string, string>> => {
    const { owner, channel } = record;
    const from = async (at: SendCommand): Promise<Record<string, string>> => {
      const reading = await readSensor(at, record);
      const fields = sensorFields(await withLimits(at, record), reading);
      if (reading?.raw !== undefined && !isThreshold(record))
        notes?.part(typeOf(record), fields['Sensor ID']!, partStatesOf(record.eventType, record.sensorType, reading.states));
      return fields;
    };
    if (owner === BMC || (owner & 1) === 1)
      return from(ask).catch((error: unknown) => {
        if (!(error instanceof IpmiError) || error.kind !== 'unreachable' || ++silent > MAX_SILENT) throw error;
        return sensorFields(record, undefined);
      });
    if (unreachable.has((channel << 8) | owner)) return sensorFields(record, undefined);
    return from(ipmiCommandSender(task, { channel, address: owner })).catch((error: unknown) => {
      if (!(error instanceof IpmiError)) throw error;
      unreachable.add((channel << 8) | owner);
      return sensorFields(record, undefined);
    });
  };
  const { sdrCache: cache } = task.connections;
  for (const record of await readSdrs(ask, cache && { cache, bmc: nameOf(targetOf(task)) })) {
    if (record.kind !== 'full' && record.kind !== 'compact') continue;
    const type = typeOf(record);
    if (!isWanted(type)) continue;
    const fields = await read(record);
    (found[type] ??= {})[fields['Sensor ID']!] = fields;
  }
  return found;
}

/** Sensor type → sensor → its fields. Throws FailedToGetSensorData. A sensor that the BMC refuses to read does not stop the others. */
export async function ipmiSensors(task: Task, isWanted?: (kind: string) => boolean, notes?: SensorNotes): Promise<JsonObject> {
  const { node, options, signal, connections } = task;
  const failure = (error: string, cause?: unknown): Fault =>
    new Fault('FailedToGetSensorData', { node: node.uuid, error }, cause === undefined ? {} : { cause });
  const { runProgram } = connections.ipmi;
  const timeoutMs = options['ipmi.command_retry_timeout'] * 1000;
  try {
    // With ipmitool, one process reads all sensors: a process for each portion of each record would take minutes.
    const found = runProgram
      ? sensorsOfText(await runProgram(targetOf(task), ['sdr'], { timeoutMs, signal }))
      : await readSensors(task, isWanted, notes);
    // A selection of kinds may be empty.
    if (!isWanted && Object.keys(found).length === 0) throw failure('the BMC has no sensors');
    return found;
  } catch (error) {
    if (!(error instanceof IpmiError)) throw error;
    throw failure(error.message, error);
  }
}
