/** Makes qcow2 files for tests, with the parts in any order. */
import { deflateRawSync } from 'node:zlib';

export type Part = 'l1' | 'l2' | 'data';
export interface Guest {
  /** Cluster number → content; a number is a cluster full of that byte. */
  readonly clusters: Readonly<Record<number, Buffer | number>>;
  readonly compressed?: readonly number[];
  /** The contents of `compressed` are compressed already. */
  readonly packed?: boolean;
  /** Marked as zeros, with a place in the file. */
  readonly zeroed?: readonly number[];
  readonly size: number;
  readonly order?: readonly Part[];
}
export const CLUSTER = 4096;
const BITS = 12;
const PER_TABLE = CLUSTER / 8;

export function qcow2({ clusters, compressed = [], packed = false, zeroed = [], size, order = ['l1', 'l2', 'data'] }: Guest): Buffer {
  const numbers = Object.keys(clusters).map(Number);
  const tables = [...new Set(numbers.map((number) => Math.floor(number / PER_TABLE)))];
  const l1Entries = Math.max(1, Math.ceil(size / CLUSTER / PER_TABLE));
  const places = { l1: 0, l2: new Map<number, number>(), data: new Map<number, number>() };
  const blobs = new Map<number, Buffer>(
    numbers.map((number) => [number, contentOf(clusters[number]!, compressed.includes(number) && !packed)]),
  );
  let at = CLUSTER;
  const place = (length: number, align: number): number => {
    const here = Math.ceil(at / align) * align;
    at = here + length;
    return here;
  };
  for (const part of order) {
    if (part === 'l1') places.l1 = place(l1Entries * 8, CLUSTER);
    if (part === 'l2') for (const table of tables) places.l2.set(table, place(CLUSTER, CLUSTER));
    if (part === 'data')
      for (const number of numbers) places.data.set(number, place(blobs.get(number)!.length, compressed.includes(number) ? 1 : CLUSTER));
  }
  const file = Buffer.alloc(at);
  header(size, l1Entries, places.l1).copy(file);
  for (const table of tables) file.writeBigUInt64BE((1n << 63n) | BigInt(places.l2.get(table)!), places.l1 + table * 8);
  for (const number of numbers) {
    const offset = places.data.get(number)!;
    blobs.get(number)!.copy(file, offset);
    const entry = places.l2.get(Math.floor(number / PER_TABLE))! + (number % PER_TABLE) * 8;
    file.writeBigUInt64BE(entryOf(offset, blobs.get(number)!.length, compressed.includes(number), zeroed.includes(number)), entry);
  }
  return file;
}

export function header(size: number, l1Entries: number, l1Offset: number): Buffer {
  const bytes = Buffer.alloc(104);
  bytes.write('QFI\xfb', 0, 'latin1');
  bytes.writeUInt32BE(3, 4);
  bytes.writeUInt32BE(BITS, 20);
  bytes.writeBigUInt64BE(BigInt(size), 24);
  bytes.writeUInt32BE(l1Entries, 36);
  bytes.writeBigUInt64BE(BigInt(l1Offset), 40);
  bytes.writeUInt32BE(104, 100);
  return bytes;
}

function contentOf(content: Buffer | number, compressed: boolean): Buffer {
  const whole = typeof content === 'number' ? Buffer.alloc(CLUSTER, content) : content;
  return compressed ? deflateRawSync(whole) : whole;
}

function entryOf(offset: number, length: number, compressed: boolean, zeroed: boolean): bigint {
  if (!compressed) return (1n << 63n) | BigInt(offset) | (zeroed ? 1n : 0n);
  const sectors = Math.ceil(((offset % 512) + length) / 512) - 1;
  return (1n << 62n) | (BigInt(sectors) << BigInt(62 - (BITS - 8))) | BigInt(offset);
}
