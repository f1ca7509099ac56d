/**
 * Bounds JSON before it is parsed. JSON.parse blocks the process for seconds, and takes a hundred times the memory of the text, when the
 * text has millions of values. One linear scan of the bytes counts values and depth: in slices if the JSON is large, and other work has its
 * turn in between. What is too much for one turn is parsed in a thread.
 */
import { isUtf8 } from 'node:buffer';
import { parseInThread } from './json-thread';
import { storableBytes } from './storable-json';
import { createTurns } from './turns';

export interface JsonLimits {
  /** Elements of arrays, names and values of objects, and containers. */
  readonly values: number;
  /** Containers within containers. */
  readonly depth: number;
  /** A machine or a server sends it: texts and names lose the characters that the database refuses, and the NULs at their end. */
  readonly foreign?: true;
}
/** Characters of one number. IEEE 754 needs at most 767 significant digits. */
const MAX_NUMBER = 1024;

/** Most blanks in a row, counted from the beginning of a slice. JSON.parse would read megabytes of them without a pause. */
const MAX_BLANKS = 16 * 1024;

/** Limits by kind of document. The largest real documents have a tenth of these values. */
export const JSON_LIMITS = {
  /** An ordinary request to the API, or one with a config drive. */
  request: { values: 50_000 },
  /** An inventory with the data of collectors. */
  inspection: { values: 150_000, foreign: true },
  /** A record of a recorder. */
  record: { values: 100_000, foreign: true },
  /** Events of a BMC. */
  event: { values: 5000, depth: 16, foreign: true },
  /** Step lists and results. */
  agent: { values: 50_000, depth: 64, foreign: true },
  /** Redfish registries are the largest resources. */
  bmc: { values: 200_000, depth: 64, foreign: true },
  /** The status of an introspection. */
  introspection: { values: 10_000, depth: 64, foreign: true },
  /** Manifests, indexes and lists of tags. */
  registry: { values: 50_000, depth: 32, foreign: true },
  /** A token with the catalog of a large cloud. */
  openstack: { values: 100_000, depth: 64, foreign: true },
} as const satisfies Readonly<Record<string, Partial<JsonLimits>>>;

export class JsonLimitError extends Error {
  constructor(readonly limit: 'values' | 'depth' | 'number' | 'blanks') {
    super(`the JSON has too many values, too much nesting, too long a number or too many blanks: ${limit}`);
  }
}

const [QUOTE, ESCAPE, COMMA, COLON, OPEN_ARRAY, CLOSE_ARRAY, OPEN_OBJECT, CLOSE_OBJECT] = [
  0x22, 0x5c, 0x2c, 0x3a, 0x5b, 0x5d, 0x7b, 0x7d,
] as const;
/** Digits, sign, point, exponent (RFC 8259 §6). */
const IS_NUMBER = Uint8Array.from({ length: 256 }, (_, byte) => ('0123456789+-.eE'.includes(String.fromCharCode(byte)) ? 1 : 0));

/** Space, tab and line ends (RFC 8259 §2). */
const IS_BLANK = Uint8Array.from({ length: 256 }, (_, byte) => (' \t\r\n'.includes(String.fromCharCode(byte)) ? 1 : 0));

interface ScanState {
  at: number;
  count: number;
  level: number;
  /** Characters of the number at this position. */
  digits: number;
  isInText: boolean;
  /** Blanks at the end of the scanned bytes, if the last slices have nothing else. */
  blanks: number;
}
/** Shorter JSON takes less than a turn. */
const SMALL = 64 * 1024;

/** Scans up to `end`, or a byte further if an escape sequence begins before `end`. */
function scanSlice(bytes: Uint8Array, end: number, { values, depth }: JsonLimits, state: ScanState): void {
  let { at, count, level, digits, isInText } = state;
  if (!isInText) {
    const from = at;
    while (at < end && IS_BLANK[bytes[at]!] === 1) at++;
    const blanks = state.blanks + at - from;
    if (blanks > MAX_BLANKS) throw new JsonLimitError('blanks');
    state.blanks = at < end ? 0 : blanks;
    if (at > from) digits = 0;
  }
  for (; at < end; at++) {
    const byte = bytes[at]!;
    if (isInText) {
      if (byte === QUOTE) isInText = false;
      else if (byte === ESCAPE) at++;
      continue;
    }
    if (IS_NUMBER[byte] === 1) {
      if (++digits > MAX_NUMBER) throw new JsonLimitError('number');
      continue;
    }
    digits = 0;
    switch (byte) {
      case QUOTE:
        isInText = true;
        break;
      case OPEN_OBJECT:
      case OPEN_ARRAY:
        if (++level > depth) throw new JsonLimitError('depth');
        if (++count > values) throw new JsonLimitError('values');
        break;
      case CLOSE_OBJECT:
      case CLOSE_ARRAY:
        level--;
        break;
      case COMMA:
      case COLON:
        if (++count > values) throw new JsonLimitError('values');
    }
  }
  Object.assign(state, { at, count, level, digits, isInText });
}
/** RFC 8259 §8.1 lets parsers drop it. */
const BYTE_ORDER_MARK = [0xef, 0xbb, 0xbf];
const startOf = (bytes: Uint8Array): number => (BYTE_ORDER_MARK.every((byte, at) => bytes[at] === byte) ? BYTE_ORDER_MARK.length : 0);

const start = (): ScanState => ({ at: 0, count: 0, level: 0, digits: 0, isInText: false, blanks: 0 });
const parseAtOnce = (bytes: Uint8Array): unknown =>
  JSON.parse(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('utf8', startOf(bytes))) as unknown;

/** Longer JSON is scanned in slices of this length. */
const SLICE = 16 * 1024;
/** Other work has its turn after this many milliseconds. */
const TURN_MS = 4;
/** A turn of the event loop continues one text, however many are being parsed. */
const nextTurn = createTurns(1);
/** JSON.parse needs some milliseconds for this. The largest real documents have fewer values, and all but config drives fewer bytes. */
const AT_ONCE = { values: 25_000, bytes: 1 << 20 };
/**
 * @param given UTF-8; malformed bytes become U+FFFD, and a byte order mark is dropped
 * @throws JsonLimitError, SyntaxError
 */
export async function parseJson(given: Uint8Array, limits: JsonLimits): Promise<unknown> {
  if (given.length < SMALL) return parseSmallJson(given, limits);
  await nextTurn();
  const bytes = limits.foreign ? storableBytes(given) : given;
  const state = start();
  while (state.at < bytes.length) {
    await nextTurn();
    const began = performance.now();
    while (state.at < bytes.length && performance.now() - began < TURN_MS)
      scanSlice(bytes, Math.min(state.at + SLICE, bytes.length), limits, state);
  }
  await nextTurn();
  const isShort = state.count <= AT_ONCE.values && bytes.length <= AT_ONCE.bytes;
  const value = isShort ? parseAtOnce(bytes) : await parseInThread(bytes.subarray(startOf(bytes)), nextTurn);
  // Other work has a turn before the result is used, which may be much work too.
  await nextTurn();
  return value;
}
/** For small JSON: parses it without letting other work have a turn. */
export function parseSmallJson(given: Uint8Array, limits: JsonLimits): unknown {
  const bytes = limits.foreign ? storableBytes(given) : given;
  for (const state = start(); state.at < bytes.length;) scanSlice(bytes, Math.min(state.at + SMALL, bytes.length), limits, state);
  return parseAtOnce(bytes);
}
/** As parseJson, but throws TypeError for malformed UTF-8. */
export async function parseStrictJson(bytes: Uint8Array, limits: JsonLimits): Promise<unknown> {
  if (!isUtf8(bytes)) throw new TypeError('The encoded data was not valid for encoding utf-8');
  return parseJson(bytes, limits);
}
