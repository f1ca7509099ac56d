/** Encodes the sensor data records of the simulated BMC's repository (IPMI 2.0 §43). */
import type { AnalogDescription, SensorDescription } from '../hardware/sensors';

type SensorSetup = SensorDescription & { readonly number: number };
type AnalogSetup = AnalogDescription & { readonly number: number };
const ORDER = ['lnc', 'lcr', 'lnr', 'unc', 'ucr', 'unr'] as const;
const BMC = 0x20;
/** Table 42-1: sensor-specific offsets. */
const SENSOR_SPECIFIC = 0x6f;

/** @param body from byte 6 up to the name */
function record(id: number, type: number, body: readonly number[], name: string): Buffer {
  const text = Buffer.from(name, 'latin1').subarray(0, 16);
  return Buffer.from([id & 0xff, id >> 8, 0x51, type, body.length + 1 + text.length, ...body, 0xc0 | text.length, ...text]);
}
const ten = (value: number): readonly [low: number, high: number] => [value & 0xff, (value >> 2) & 0xc0];
/** The bytes that full and compact records have in common: owner, channel and LUN 0, sensor, entity, initialization (§43.1 byte 11). */
const head = ({ number, entity, sensorType, owner }: SensorSetup, capabilities: number, eventType: number): readonly number[] => [
  owner?.address ?? BMC,
  (owner?.channel ?? 0) << 4,
  number,
  ...entity,
  0x7f,
  capabilities,
  sensorType,
  eventType,
];

/** A full record with thresholds (§43.1). */
export function fullRecord(id: number, setup: AnalogSetup): Buffer {
  const { unit, m, b = 0, bExponent = 0, rExponent = 0, tolerance = 0, format = 0, linearization = 0, thresholds = {}, nominal } = setup;
  const readable = ORDER.reduce((mask, key, index) => (thresholds[key] === undefined ? mask : mask | (1 << index)), 0);
  const lower = (readable & 0x07) << 4;
  const upper = ((readable >> 3) & 0x07) << 4;
  const raw = (key: (typeof ORDER)[number]): number => thresholds[key] ?? 0;
  const [m0, m1] = ten(m);
  const [b0, b1] = ten(b);
  const [minimum, maximum] = format === 2 ? [0x80, 0x7f] : [0x00, 0xff];
  return record(
    id,
    0x01,
    [
      // Thresholds are readable (01b << 2), or settable with hysteresis; each threshold has event messages.
      ...head(setup, readable === 0 ? 0x00 : setup.settable ? 0x28 : 0x04, 0x01),
      0,
      lower,
      0,
      upper,
      readable,
      setup.settable ? readable : 0,
      format << 6,
      unit,
      0,
      linearization,
      m0,
      m1 | tolerance,
      b0,
      b1,
      0,
      ((rExponent & 0x0f) << 4) | (bExponent & 0x0f),
      nominal === undefined ? 0 : 1,
      nominal ?? 0,
      0,
      0,
      maximum,
      minimum,
      raw('unr'),
      raw('ucr'),
      raw('unc'),
      raw('lnr'),
      raw('lcr'),
      raw('lnc'),
      2,
      2,
      0,
      0,
      0,
    ],
    setup.name,
  );
}
/** A compact record of a discrete sensor (§43.2). `states`: the bit mask of the states that the sensor can have. */
export const compactRecord = (id: number, setup: SensorSetup & { readonly states: number }): Buffer =>
  record(
    id,
    0x02,
    [
      ...head(setup, 0x40, SENSOR_SPECIFIC),
      setup.states & 0xff,
      setup.states >> 8,
      0,
      0,
      setup.states & 0xff,
      setup.states >> 8,
      0xc0,
      0,
      0,
      1,
      0,
      0,
      0,
      0,
      0,
      0,
      0,
    ],
    setup.name,
  );
/** An event-only record (§43.3). */
export const eventOnlyRecord = (id: number, setup: SensorSetup): Buffer =>
  record(id, 0x03, [BMC, 0x00, setup.number, ...setup.entity, setup.sensorType, SENSOR_SPECIFIC, 1, 0, 0, 0], setup.name);
/** The record of a logical FRU device of the BMC (§43.8). */
export const fruLocator = (id: number, device: number, name: string): Buffer =>
  record(id, 0x11, [BMC, device, 0x80, 0x00, 0, 0x10, 0, 7, 1, 0], name);
/** The record of a controller, by default the BMC, with chassis, FRU, SEL, SDR and sensor device (§43.9). */
export const controllerLocator = (id: number, name: string, { address = BMC, channel = 0 } = {}): Buffer =>
  record(id, 0x12, [address, channel, 0, 0x8f, 0, 0, 0, 7, 1, 0], name);
