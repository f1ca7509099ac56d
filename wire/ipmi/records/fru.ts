/** FRU inventory: reading it (IPMI 2.0 §34) and decoding it (Platform Management FRU Information Storage Definition 1.0 rev 1.3). */
import { readPortions, type SendCommand } from '../record-access';
import { COMMANDS, IpmiError } from '../constants';
import { textOf } from './sdr';

interface FruBoard {
  /** ISO time; absent: not specified. */
  readonly manufactured?: string;
  readonly manufacturer?: string;
  readonly product?: string;
  readonly serial?: string;
  readonly part?: string;
  readonly extra: readonly string[];
}
interface FruProduct {
  readonly manufacturer?: string;
  readonly product?: string;
  readonly part?: string;
  readonly version?: string;
  readonly serial?: string;
  readonly asset?: string;
  readonly extra: readonly string[];
}
interface FruChassis {
  /** Number of SMBIOS 7.4.1. */
  readonly type: number;
  readonly part?: string;
  readonly serial?: string;
  readonly extra: readonly string[];
}
interface Fru {
  readonly chassis?: FruChassis;
  readonly board?: FruBoard;
  readonly product?: FruProduct;
  /** What could not be decoded, as text. */
  readonly faults: readonly string[];
}

/** Most bytes. The address in Read FRU Data has 16 bits. */
const MAX_SIZE = 0x10000;
const PORTION = 16;
/** The bytes of a FRU device. Throws IpmiError. */
export async function readFruBytes(ask: SendCommand, device = 0): Promise<Buffer> {
  const info = await ask(COMMANDS.getFruInventoryAreaInfo, [device]);
  if (info.length < 3) throw new IpmiError('protocol', 'the BMC answered Get FRU Inventory Area Info with too few bytes');
  // Some devices are accessed by words.
  const byWords = (info[2]! & 1) === 1;
  const size = Math.min(info.readUInt16LE(0), MAX_SIZE);
  const read = async (offset: number, count: number): Promise<Buffer> => {
    const [at, units] = byWords ? [offset >> 1, count >> 1] : [offset, count];
    const answer = await ask(COMMANDS.readFruData, [device, at & 0xff, at >> 8, units]);
    // The first byte is the count.
    return answer.subarray(1, 1 + Math.min(count, (answer[0] ?? 0) * (byWords ? 2 : 1)));
  };
  // Some BMCs claim more bytes than the device has, and refuse to read beyond its end.
  return readPortions(size, PORTION, read, { least: byWords ? 2 : 1, mayEnd: true });
}

const sum = (bytes: Buffer): number => bytes.reduce((total, byte) => (total + byte) & 0xff, 0);
const END = 0xc1;
/** Decodes fields from a type/length byte (§13) up to C1h; undefined for empty fields. */
function fieldsOf(area: Buffer, start: number): (string | undefined)[] {
  const fields: (string | undefined)[] = [];
  for (let at = start; at < area.length && area[at] !== END;) {
    const [type, length] = [area[at]! >> 6, area[at]! & 0x3f];
    const bytes = area.subarray(at + 1, at + 1 + length);
    fields.push(length === 0 ? undefined : type === 0 ? bytes.toString('hex') : textOf(type, bytes).replace(/(?<![\0 ])[\0 ]+$/, ''));
    at += 1 + length;
  }
  return fields;
}
/** Names the first fields ('' drops one); the others become `extra`. */
function named<Name extends string>(
  fields: readonly (string | undefined)[],
  names: readonly Name[],
): { readonly [N in Exclude<Name, ''>]?: string } & { readonly extra: readonly string[] } {
  const known = names.flatMap((name, index) => (name !== '' && fields[index] !== undefined ? [[name, fields[index]]] : []));
  const extra = fields.slice(names.length).filter((text) => text !== undefined);
  return { ...(Object.fromEntries(known) as { readonly [N in Exclude<Name, ''>]?: string }), extra };
}
/** Minutes since 1996-01-01. */
const manufacturedAt = (minutes: number): { readonly manufactured?: string } =>
  minutes === 0 ? {} : { manufactured: new Date(Date.UTC(1996, 0, 1) + minutes * 60_000).toISOString() };

const AREAS = {
  chassis: (area: Buffer): FruChassis => ({ type: area[2]!, ...named(fieldsOf(area, FIELDS.chassis), ['part', 'serial']) }),
  board: (area: Buffer): FruBoard => ({
    ...manufacturedAt(area.readUIntLE(3, 3)),
    ...named(fieldsOf(area, FIELDS.board), ['manufacturer', 'product', 'serial', 'part', '']),
  }),
  product: (area: Buffer): FruProduct =>
    named(fieldsOf(area, FIELDS.product), ['manufacturer', 'product', 'part', 'version', 'serial', 'asset', '']),
} as const;
/** The byte of the common header with the area's start, in units of eight bytes (§8). */
const OFFSETS = { chassis: 2, board: 3, product: 4 } as const;
/** The byte with the start of the area of records that are not decoded here. */
const RECORDS_OFFSET = 5;
/** Where the fields of each area begin. */
const FIELDS = { chassis: 3, board: 6, product: 3 } as const;

/** Whether the fields end with C1h inside the area, so that the area has them even if its length is wrong. */
function hasEnd(area: Buffer, start: number): boolean {
  let at = start;
  while (at < area.length && area[at] !== END) at += 1 + (area[at]! & 0x3f);
  return at < area.length;
}
/** An area whose length is wrong goes up to the next one. */
function upToNext(bytes: Buffer, start: number): Buffer {
  const starts = [...Object.values(OFFSETS), RECORDS_OFFSET].map((at) => bytes[at]! * 8).filter((other) => other > start);
  return bytes.subarray(start, Math.min(bytes.length, ...starts));
}

/** Accepts any bytes. Damaged areas are listed in `faults`. The fields of those that only have a wrong length are decoded. */
export function decodeFru(bytes: Buffer): Fru {
  const header = bytes.subarray(0, 8);
  if (header.length < 8 || (header[0]! & 0x0f) !== 1) return { faults: ['no common header of format 1'] };
  if (sum(header) !== 0) return { faults: ['the checksum of the common header is wrong'] };
  const found: Record<string, unknown> = {};
  const faults: string[] = [];
  for (const name of Object.keys(AREAS) as (keyof typeof AREAS)[]) {
    const start = header[OFFSETS[name]]! * 8;
    if (start === 0) continue;
    const length = (bytes[start + 1] ?? 0) * 8;
    const area = bytes.subarray(start, start + length);
    if (length === 0 || area.length < length || (area[0]! & 0x0f) !== 1) {
      faults.push(`the ${name} area is not whole`);
      const rest = upToNext(bytes, start);
      if ((rest[0] ?? 0) === 1 && hasEnd(rest, FIELDS[name])) found[name] = AREAS[name](rest);
    } else if (sum(area) !== 0) faults.push(`the checksum of the ${name} area is wrong`);
    else found[name] = AREAS[name](area);
  }
  return { ...found, faults };
}
