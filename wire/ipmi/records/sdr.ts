/** Sensor data records (IPMI 2.0 §43): decoding. */

/** Converts a raw byte to a value (§36.3). */
export interface Factors {
  readonly m: number;
  readonly b: number;
  readonly bExponent: number;
  readonly rExponent: number;
  /** In half raw counts. */
  readonly tolerance: number;
}
export const THRESHOLDS = ['lnc', 'lcr', 'lnr', 'unc', 'ucr', 'unr'] as const;
export type Threshold = (typeof THRESHOLDS)[number];
/** A readable sensor: a full (§43.1) or a compact record (§43.2). */
export interface SensorRecord {
  readonly kind: 'full' | 'compact';
  readonly name: string;
  /** Slave address of its controller, or a software ID (odd). */
  readonly owner: number;
  readonly channel: number;
  readonly lun: number;
  readonly number: number;
  readonly entity: { readonly id: number; readonly instance: number };
  /** Table 42-3. */
  readonly sensorType: number;
  /** Table 42-1; 1: thresholds. */
  readonly eventType: number;
  /** Bits of byte 12: event message control (1:0), threshold access (3:2), hysteresis support (5:4). */
  readonly capabilities: number;
  /** Masks of §43.1 bytes 15–20, unchanged. */
  readonly masks: readonly [assertion: number, deassertion: number, reading: number];
  readonly units: Units;
  readonly hysteresis: { readonly positive: number; readonly negative: number };
  readonly oem: number;
  /** Full records only. */
  readonly analog?: {
    /** Table 43-1 byte 24. */
    readonly linearization: number;
    readonly factors: Factors;
    /** Raw; absent: not specified. */
    readonly nominal?: number | undefined;
    readonly normalMinimum?: number | undefined;
    readonly normalMaximum?: number | undefined;
    readonly minimum: number;
    readonly maximum: number;
    /** Raw, all six. The mask says which of them can be read. */
    readonly thresholds: Readonly<Record<Threshold, number>>;
  };
}
export interface Units {
  /** 0 unsigned, 1 one's complement, 2 two's complement, 3 no analog reading. */
  readonly format: number;
  readonly percent: boolean;
  /** 0 none, 1 base/modifier, 2 base*modifier. */
  readonly relation: number;
  readonly base: number;
  readonly modifier: number;
}
/** §43.8. */
interface FruLocator {
  readonly kind: 'fru';
  readonly name: string;
  readonly address: number;
  /** FRU device ID at that controller; absent: not a logical device. */
  readonly device?: number | undefined;
}
/** Event-only (§43.3) and other records have only their type, and are skipped. */
export type SensorDataRecord = SensorRecord | FruLocator | { readonly kind: 'other'; readonly type: number };

const TYPE = { full: 0x01, compact: 0x02, fru: 0x11 } as const;
const SIX_BIT = Array.from({ length: 64 }, (_, code) => String.fromCharCode(0x20 + code));
const BCD_PLUS = '0123456789 -.:,_';

/** Decodes a text by its type/length byte (§43.15; also FRU definition §13). The caller handles `type` 0. */
export function textOf(type: number, bytes: Buffer): string {
  if (type === 1) return [...bytes].map((byte) => BCD_PLUS[byte >> 4]! + BCD_PLUS[byte & 0x0f]!).join('');
  if (type === 2) {
    // 6-bit ASCII: four characters in three bytes, the first in the lowest bits.
    const count = Math.floor((bytes.length * 8) / 6);
    const at = (bit: number): number => ((bytes[bit >> 3]! | ((bytes[(bit >> 3) + 1] ?? 0) << 8)) >> (bit & 7)) & 0x3f;
    return Array.from({ length: count }, (_, index) => SIX_BIT[at(index * 6)]!).join('');
  }
  return bytes.toString('latin1');
}
function idString(record: Buffer, at: number): string {
  const code = record[at] ?? 0;
  const [type, bytes] = [code >> 6, record.subarray(at + 1, at + 1 + (code & 0x1f))];
  const text = type === 0 ? bytes.toString('utf16le') : textOf(type, bytes);
  // Some BMCs pad it with zeros.
  return text.split('\0', 1)[0]!;
}

/** Two's complement of this many bits. */
export const signed = (value: number, bits: number): number => (value & (1 << (bits - 1)) ? value - (1 << bits) : value);
/** The six bytes of §43.1 bytes 25–30, also in Get Sensor Reading Factors (§35.5). */
export const decodeFactors = (bytes: Buffer): Factors => ({
  m: signed(bytes[0]! | ((bytes[1]! & 0xc0) << 2), 10),
  tolerance: bytes[1]! & 0x3f,
  b: signed(bytes[2]! | ((bytes[3]! & 0xc0) << 2), 10),
  rExponent: signed(bytes[5]! >> 4, 4),
  bExponent: signed(bytes[5]! & 0x0f, 4),
});

function sensorRecord(kind: 'full' | 'compact', record: Buffer): SensorRecord | undefined {
  const nameAt = kind === 'full' ? 47 : 31;
  if (record.length <= nameAt) return undefined;
  const hysteresisAt = kind === 'full' ? 42 : 25;
  const units = record[20]!;
  const common = {
    kind,
    name: idString(record, nameAt),
    owner: record[5]!,
    channel: record[6]! >> 4,
    lun: record[6]! & 0x03,
    number: record[7]!,
    entity: { id: record[8]!, instance: record[9]! & 0x7f },
    capabilities: record[11]!,
    sensorType: record[12]!,
    eventType: record[13]! & 0x7f,
    masks: [record.readUInt16LE(14), record.readUInt16LE(16), record.readUInt16LE(18)],
    units: { format: units >> 6, relation: (units >> 1) & 0x03, percent: (units & 1) === 1, base: record[21]!, modifier: record[22]! },
    hysteresis: { positive: record[hysteresisAt]!, negative: record[hysteresisAt + 1]! },
    oem: record[nameAt - 1]!,
  } as const;
  if (kind === 'compact') return common;
  const optional = (bit: number, at: number): number | undefined => (record[30]! & bit ? record[at] : undefined);
  const [nominal, normalMaximum, normalMinimum] = [optional(1, 31), optional(2, 32), optional(4, 33)];
  return {
    ...common,
    analog: {
      linearization: record[23]! & 0x7f,
      factors: decodeFactors(record.subarray(24, 30)),
      maximum: record[34]!,
      minimum: record[35]!,
      nominal,
      normalMaximum,
      normalMinimum,
      thresholds: { unr: record[36]!, ucr: record[37]!, unc: record[38]!, lnr: record[39]!, lcr: record[40]!, lnc: record[41]! },
    },
  };
}

/** @param record including its header of five bytes. @returns undefined when it is too short for its type */
export function decodeSdr(record: Buffer): SensorDataRecord | undefined {
  if (record.length < 5) return undefined;
  const type = record[3]!;
  if (type === TYPE.full) return sensorRecord('full', record);
  if (type === TYPE.compact) return sensorRecord('compact', record);
  if (type !== TYPE.fru) return { kind: 'other', type };
  if (record.length < 16) return undefined;
  // Bit 7 of byte 8: a logical FRU device, identified by byte 7.
  return { kind: 'fru', name: idString(record, 15), address: record[5]!, device: record[7]! & 0x80 ? record[6]! : undefined };
}
