/** DNS messages for multicast DNS (RFC 1035 §4, RFC 2782, RFC 6762 §18). Names are in lower case, without the last dot. */
import { addressBytes, ipv6At } from '../ipv6';

export const RECORD_TYPE = { A: 1, PTR: 12, TXT: 16, AAAA: 28, SRV: 33, ANY: 255 } as const;
const CLASS_IN = 1;
/** In a question: a unicast response is accepted. In a record: it replaces cached ones (RFC 6762 §18.12, §18.13). */
const TOP_BIT = 0x8000;
const RESPONSE = 0x8400;
const MAX_NAME = 255;
const MAX_RECORDS = 256;
/** Compression pointers of one name. Encoders need one or two; a packet full of pointers would take a second to decode. */
const MAX_POINTERS = 16;

export interface Question {
  readonly name: string;
  readonly type: number;
  readonly unicast?: boolean;
}
export type Data =
  | { readonly type: typeof RECORD_TYPE.A | typeof RECORD_TYPE.AAAA; readonly address: string }
  | { readonly type: typeof RECORD_TYPE.PTR; readonly target: string }
  | { readonly type: typeof RECORD_TYPE.SRV; readonly port: number; readonly target: string }
  | { readonly type: typeof RECORD_TYPE.TXT; readonly text: Readonly<Record<string, string>> };
export type DnsRecord = Data & { readonly name: string; readonly ttl: number; readonly flush?: boolean | undefined };
export interface DnsMessage {
  readonly id: number;
  readonly response: boolean;
  readonly questions: readonly Question[];
  readonly answers: readonly DnsRecord[];
  /** The records that a prober wants to claim. */
  readonly authorities: readonly DnsRecord[];
  readonly additionals: readonly DnsRecord[];
}
export const message = (more: Partial<DnsMessage>): DnsMessage => ({
  id: 0,
  response: false,
  questions: [],
  answers: [],
  authorities: [],
  additionals: [],
  ...more,
});

/** A dot inside a label is written `\.`. */
function encodeName(name: string): Buffer {
  const labels = name.split(/(?<!\\)\./).map((label) => Buffer.from(label.replaceAll('\\.', '.')));
  return Buffer.concat([...labels.flatMap((label) => [Buffer.from([Math.min(label.length, 63)]), label.subarray(0, 63)]), Buffer.alloc(1)]);
}
/** RFC 6763 §6: strings `key=value`; an empty record is one empty string. */
function textBytes(text: Readonly<Record<string, string>>): Buffer {
  const strings = Object.entries(text).map(([key, value]) => Buffer.from(`${key}=${value}`).subarray(0, 255));
  return strings.length === 0 ? Buffer.alloc(1) : Buffer.concat(strings.flatMap((string) => [Buffer.from([string.length]), string]));
}
/** A record's data without its name. Records with equal data do not conflict. */
export function dataBytes(record: Data): Buffer {
  switch (record.type) {
    case RECORD_TYPE.PTR:
      return encodeName(record.target);
    case RECORD_TYPE.SRV:
      return Buffer.concat([Buffer.from([0, 0, 0, 0, record.port >> 8, record.port & 255]), encodeName(record.target)]);
    case RECORD_TYPE.TXT:
      return textBytes(record.text);
    default:
      return addressBytes(record.address);
  }
}
const words = (...values: readonly number[]): Buffer => Buffer.from(values.flatMap((value) => [value >> 8, value & 255]));

export function encodeDns(sent: DnsMessage): Buffer {
  const records = [...sent.answers, ...sent.authorities, ...sent.additionals].map((record) => {
    const data = dataBytes(record);
    const ttl = Buffer.alloc(4);
    ttl.writeUInt32BE(record.ttl);
    const head = words(record.type, CLASS_IN | (record.flush ? TOP_BIT : 0));
    return Buffer.concat([encodeName(record.name), head, ttl, words(data.length), data]);
  });
  const { questions, answers, authorities, additionals } = sent;
  return Buffer.concat([
    words(sent.id, sent.response ? RESPONSE : 0, questions.length, answers.length, authorities.length, additionals.length),
    ...questions.map(({ name, type, unicast }) => Buffer.concat([encodeName(name), words(type, CLASS_IN | (unicast ? TOP_BIT : 0))])),
    ...records,
  ]);
}

interface Reader {
  readonly bytes: Buffer;
  at: number;
}
class Malformed extends Error {}
const take = (reader: Reader, size: number): Buffer => {
  if (reader.at + size > reader.bytes.length) throw new Malformed();
  return reader.bytes.subarray(reader.at, (reader.at += size));
};
const word = (reader: Reader): number => take(reader, 2).readUInt16BE();

/** RFC 1035 §4.1.4. Pointers only lead backwards, so that every name ends. */
function readName(reader: Reader): string {
  const labels: string[] = [];
  let length = 0;
  let place: Reader = reader;
  let pointers = 0;
  for (let before = reader.at; ;) {
    const size = take(place, 1)[0]!;
    if (size === 0) return labels.join('.').toLowerCase();
    if (size >= 0xc0) {
      const target = ((size & 0x3f) << 8) | take(place, 1)[0]!;
      if (target >= before || ++pointers > MAX_POINTERS) throw new Malformed();
      before = target;
      place = { bytes: reader.bytes, at: target };
      continue;
    }
    length += size + 1;
    if (size > 63 || length > MAX_NAME) throw new Malformed();
    labels.push(take(place, size).toString('utf8').replaceAll('.', '\\.'));
  }
}
function readText(bytes: Buffer): Readonly<Record<string, string>> {
  const reader = { bytes, at: 0 };
  const entries: [string, string][] = [];
  while (reader.at < bytes.length) {
    const [key = '', ...value] = take(reader, take(reader, 1)[0]!).toString('utf8').split('=');
    if (key !== '') entries.push([key, value.join('=')]);
  }
  return Object.fromEntries(entries);
}
/** Undefined: a type that is not supported. */
function readRecord(reader: Reader): DnsRecord | undefined {
  const name = readName(reader);
  const [type, kind] = [word(reader), word(reader)];
  const head = { name, ttl: take(reader, 4).readUInt32BE(), flush: (kind & TOP_BIT) !== 0 };
  const end = word(reader) + reader.at;
  const start = reader.at;
  const bytes = take(reader, end - start);
  const inside: Reader = { bytes: reader.bytes.subarray(0, end), at: start };
  if ((kind & ~TOP_BIT) !== CLASS_IN) return undefined;
  if (type === RECORD_TYPE.A && bytes.length === 4) return { ...head, type, address: bytes.join('.') };
  if (type === RECORD_TYPE.AAAA && bytes.length === 16) return { ...head, type, address: ipv6At(bytes) };
  if (type === RECORD_TYPE.PTR) return { ...head, type, target: readName(inside) };
  if (type === RECORD_TYPE.TXT) return { ...head, type, text: readText(bytes) };
  if (type !== RECORD_TYPE.SRV) return undefined;
  take(inside, 4);
  return { ...head, type, port: word(inside), target: readName(inside) };
}

/** Undefined: malformed, or to be ignored. */
export function decodeDns(bytes: Buffer): DnsMessage | undefined {
  try {
    const reader = { bytes, at: 0 };
    const [id, flags, ...counts] = Array.from({ length: 6 }, () => word(reader)) as [number, number, number, number, number, number];
    // RFC 6762 §18.3, §18.11: other operations, and responses with an error, are ignored.
    if ((flags & 0x780f) !== 0 || counts.reduce((sum, count) => sum + count) > MAX_RECORDS) return undefined;
    const times = <T>(count: number, read: () => T): T[] => Array.from({ length: count }, read);
    const records = (count: number): readonly DnsRecord[] => times(count, () => readRecord(reader)).filter((time) => time !== undefined);
    return {
      id,
      response: (flags & 0x8000) !== 0,
      questions: times(counts[0], () => {
        const [name, type, kind] = [readName(reader), word(reader), word(reader)];
        return { name, type, unicast: (kind & TOP_BIT) !== 0 };
      }),
      answers: records(counts[1]),
      authorities: records(counts[2]),
      additionals: records(counts[3]),
    };
  } catch (error) {
    if (error instanceof Malformed || error instanceof TypeError || error instanceof RangeError) return undefined;
    throw error;
  }
}
