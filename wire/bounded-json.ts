/**
 * Bounds JSON before it is parsed. JSON.parse blocks the process for seconds, and takes a hundred times the memory of the text, when the
 * text has millions of values. One linear scan of the bytes counts values and depth. Large JSON is scanned and parsed in pieces, and other
 * work has its turn in between.
 */
import { isUtf8 } from 'node:buffer';
import { randomUUID } from 'node:crypto';
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
const LONGEST_NUMBER = 1024;

/** Most blanks in a row, counted from the beginning of a piece. JSON.parse would read megabytes of them without a pause. */
const MOST_BLANKS = 16 * 1024;

/** Limits by kind of document. The largest real documents have a tenth of these values. */
export const JSON_LIMITS = {
  /** An ordinary request to the API, or one with a config drive. */
  request: { values: 50_000 },
  /** An inventory with the data of collectors. */
  inspection: { values: 150_000, foreign: true },
  /** A record of a recorder. */
  record: { values: 100_000, foreign: true },
  /** Step lists and results. */
  agent: { values: 50_000, depth: 64, foreign: true },
  /** Redfish registries are the largest resources. */
  bmc: { values: 200_000, depth: 64, foreign: true },
  /** The status of an introspection. */
  introspection: { values: 10_000, depth: 64, foreign: true },
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

/** Gets the positions of brackets and commas outside of strings, and of parts of long strings. */
interface Visitor {
  opened(at: number, isArray: boolean): void;
  closed(at: number, isArray: boolean): void;
  comma(at: number): void;
  /** The string that begins at `textAt` has no end before `to`, where it can be cut. */
  textPart(textAt: number, to: number): void;
  textEnd(at: number): void;
}
const NO_VISITOR: Visitor = { opened: () => {}, closed: () => {}, comma: () => {}, textPart: () => {}, textEnd: () => {} };

interface ScanState {
  at: number;
  count: number;
  level: number;
  /** Characters of the number at this position. */
  digits: number;
  isInText: boolean;
  /** Blanks at the end of the scanned bytes, if the last slices have nothing else. */
  blanks: number;
  /** Positions of the last string's first quote and last backslash. */
  textAt: number;
  escapeAt: number;
}
/** `\u` and four digits. */
const LONGEST_ESCAPE = 6;
const LONGEST_CHARACTER = 4;
/** A position at or before `at` that is not inside an escape sequence or a UTF-8 character. */
function cutBefore(bytes: Uint8Array, at: number, escapeAt: number): number {
  let cut = at - escapeAt < LONGEST_ESCAPE ? escapeAt : at;
  for (let back = 1; back < LONGEST_CHARACTER && (bytes[cut]! & 0xc0) === 0x80; back++) cut--;
  return cut;
}
/** Scans up to `end`, or a byte further if an escape sequence begins before `end`. */
function scanSlice(bytes: Uint8Array, end: number, { values, depth }: JsonLimits, visitor: Visitor, state: ScanState): void {
  let { at, count, level, digits, isInText, textAt, escapeAt } = state;
  if (!isInText) {
    const from = at;
    while (at < end && IS_BLANK[bytes[at]!] === 1) at++;
    const blanks = state.blanks + at - from;
    if (blanks > MOST_BLANKS) throw new JsonLimitError('blanks');
    state.blanks = at < end ? 0 : blanks;
    if (at > from) digits = 0;
  }
  for (; at < end; at++) {
    const byte = bytes[at]!;
    if (isInText) {
      if (byte === QUOTE) {
        isInText = false;
        visitor.textEnd(at);
      } else if (byte === ESCAPE) escapeAt = at++;
      continue;
    }
    if (IS_NUMBER[byte] === 1) {
      if (++digits > LONGEST_NUMBER) throw new JsonLimitError('number');
      continue;
    }
    digits = 0;
    switch (byte) {
      case QUOTE:
        isInText = true;
        textAt = at;
        escapeAt = -LONGEST_ESCAPE;
        break;
      case OPEN_OBJECT:
      case OPEN_ARRAY:
        if (++level > depth) throw new JsonLimitError('depth');
        if (++count > values) throw new JsonLimitError('values');
        visitor.opened(at, byte === OPEN_ARRAY);
        break;
      case CLOSE_OBJECT:
      case CLOSE_ARRAY:
        level--;
        visitor.closed(at, byte === CLOSE_ARRAY);
        break;
      case COMMA:
      case COLON:
        if (++count > values) throw new JsonLimitError('values');
        if (byte === COMMA) visitor.comma(at);
    }
  }
  if (isInText) visitor.textPart(textAt, cutBefore(bytes, at, escapeAt));
  Object.assign(state, { at, count, level, digits, isInText, textAt, escapeAt });
}
/**
 * Counts in slices, and yields after each. Text that is not JSON passes: JSON.parse refuses it.
 * @throws JsonLimitError
 */
function* scan(bytes: Uint8Array, limits: JsonLimits, slice: number, visitor: Visitor): Generator<void, void> {
  const state: ScanState = { at: 0, count: 0, level: 0, digits: 0, isInText: false, blanks: 0, textAt: 0, escapeAt: 0 };
  while (state.at < bytes.length) {
    scanSlice(bytes, Math.min(state.at + slice, bytes.length), limits, visitor, state);
    yield;
  }
}

/** Longer JSON is scanned and parsed in pieces of about the second size. */
const [SMALL, PIECE] = [64 * 1024, 16 * 1024];
/** A container that is open at the scan's position. */
interface Frame {
  readonly isArray: boolean;
  /** The position of its bracket. */
  readonly openedAt: number;
  /** The position from which its text is not parsed yet. */
  from: number;
  /** Where its last member begins. */
  memberAt: number;
  /** What must follow at `from`. */
  expects: 'member' | 'comma' | 'any';
  /** Its members before `from`. Absent: it is parsed together with its parent. */
  members?: unknown[] | Record<string, unknown>;
}
const unexpected = (what: string, at: number): SyntaxError => new SyntaxError(`Unexpected ${what} in JSON at position ${at}`);

/** JSON.parse makes `__proto__` a property like any other; an assignment would not. */
function setMember(members: Record<string, unknown>, name: string, value: unknown): void {
  if (name === '__proto__') Object.defineProperty(members, name, { value, enumerable: true, configurable: true, writable: true });
  else members[name] = value;
}

/** A string that was parsed in parts. */
interface LongText {
  readonly from: number;
  readonly to: number;
  readonly value: string;
  /** A string that replaces it in the JSON around it, and that no sender can guess. */
  readonly mark: string;
}
interface LongTexts extends Pick<Visitor, 'textPart' | 'textEnd'> {
  /** Parses the text from `from` to `to`, with `before` and `after` around it. */
  readonly parse: (before: string, from: number, to: number, after: string) => object;
  /** Drops the strings that begin before this position: they have been parsed. */
  readonly dropBefore: (position: number) => void;
}
/** Parses long strings in parts, before the JSON around them is parsed. */
function createLongTexts(bytes: Uint8Array, piece: number): LongTexts {
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
  /** The string whose end is not found yet. */
  let long: { readonly at: number; to: number; readonly parts: string[] } | undefined;
  let longTexts: readonly LongText[] = [];

  function addPart(to: number): void {
    long!.parts.push(JSON.parse(`"${text.toString('utf8', long!.to, to)}"`) as string);
    long!.to = to;
  }
  function parse(before: string, from: number, to: number, after: string): object {
    const inside = longTexts.filter((one) => one.from >= from && one.to <= to);
    let source = before;
    let at = from;
    for (const one of inside) {
      source += `${text.toString('utf8', at, one.from)}"${one.mark}"`;
      at = one.to;
    }
    source += `${text.toString('utf8', at, to)}${after}`;
    if (inside.length === 0) return JSON.parse(source) as object;
    const values = new Map(inside.map(({ mark, value }) => [mark, value]));
    return JSON.parse(source, (_, value: unknown) => {
      if (typeof value === 'string') return values.get(value) ?? value;
      if (typeof value !== 'object' || value === null || Array.isArray(value) || !Object.keys(value).some((name) => values.has(name)))
        return value;
      const renamed = {};
      for (const [name, one] of Object.entries(value)) setMember(renamed, values.get(name) ?? name, one);
      return renamed;
    }) as object;
  }

  return {
    textPart(textAt, to) {
      if (to - textAt <= piece) return;
      long ??= { at: textAt, to: textAt + 1, parts: [] };
      addPart(to);
    },
    textEnd(at) {
      if (!long) return;
      addPart(at);
      longTexts = [...longTexts, { from: long.at, to: at + 1, value: long.parts.join(''), mark: randomUUID() }];
      long = undefined;
    },
    parse,
    dropBefore: (position) => {
      longTexts = longTexts.filter((one) => one.from >= position);
    },
  };
}

/** Parses the text between commas and brackets in pieces, and assembles their values. */
function createAssembler(bytes: Uint8Array, start: number, piece: number): Visitor & { result(): unknown } {
  const texts = createLongTexts(bytes, piece);
  const frameAt = (openedAt: number, isArray: boolean, from: number): Frame => ({
    isArray,
    openedAt,
    from,
    memberAt: from,
    expects: 'any',
  });
  /** The first frame is an array around the document. */
  const frames: Frame[] = [{ ...frameAt(start, true, start), members: [] }];
  let parsedTo = start;

  /** Adds the members from `from` to `end`, where a comma or the bracket is. */
  function addMembers(frame: Frame, end: number, isLast: boolean): void {
    const { isArray, from, members, expects } = frame;
    const part = (isArray ? texts.parse('[', from, end, ']') : texts.parse('{', from, end, '}')) as unknown[] | Record<string, unknown>;
    texts.dropBefore(end);
    parsedTo = end;
    const names = Object.keys(part);
    const isRight = names.length === 0 ? expects === 'comma' || (isLast && expects === 'any') : expects !== 'comma';
    if (!isRight) throw unexpected('token', end);
    if (Array.isArray(part)) for (const value of part) (members as unknown[]).push(value);
    else for (const name of names) setMember(members as Record<string, unknown>, name, part[name]);
  }
  /** Adds the open container `child` as the last member of `parent`. */
  function attach(parent: Frame, child: Frame): void {
    if (parent.memberAt > parent.from) addMembers(parent, parent.memberAt - 1, false);
    const isFirst = parent.memberAt === parent.from;
    if (isFirst && parent.expects === 'comma') throw unexpected('token', child.openedAt);
    child.members = child.isArray ? [] : {};
    // Before the bracket are the name and the colon, or nothing in an array.
    const [open, close] = parent.isArray ? ['[', ']'] : ['{', 'null}'];
    const [name, ...more] = Object.keys(texts.parse(open, parent.memberAt, child.openedAt, close));
    if ((name === undefined) !== parent.isArray || more.length > 0) throw unexpected('token', child.openedAt);
    if (parent.isArray) (parent.members as unknown[]).push(child.members);
    else setMember(parent.members as Record<string, unknown>, name!, child.members);
  }
  return {
    textPart: texts.textPart,
    textEnd: texts.textEnd,
    opened: (at, isArray) => void frames.push(frameAt(at, isArray, at + 1)),
    closed(at, isArray) {
      const frame = frames.pop()!;
      const parent = frames.at(-1);
      if (!parent || frame.isArray !== isArray) throw unexpected('token', at);
      if (!frame.members) return;
      addMembers(frame, at, true);
      parent.from = at + 1;
      parent.memberAt = at + 1;
      parent.expects = 'comma';
    },
    comma(at) {
      const frame = frames.at(-1)!;
      if (frames.length === 1) throw unexpected('token ,', at);
      if (at - parsedTo >= piece) frames.forEach((one, index) => index > 0 && !one.members && attach(frames[index - 1]!, one));
      if (frame.members && (at - parsedTo >= piece || frame.expects === 'comma')) {
        addMembers(frame, at, false);
        frame.from = at + 1;
        frame.expects = 'member';
      }
      frame.memberAt = at + 1;
    },
    result() {
      const [root, unclosed] = frames;
      if (unclosed) throw new SyntaxError('Unexpected end of JSON input');
      addMembers(root!, bytes.length, true);
      const values = root!.members as unknown[];
      if (values.length !== 1) throw new SyntaxError('Unexpected end of JSON input');
      return values[0];
    },
  };
}

/** RFC 8259 §8.1 lets parsers drop it. */
const BYTE_ORDER_MARK = [0xef, 0xbb, 0xbf];
const startOf = (bytes: Uint8Array): number => (BYTE_ORDER_MARK.every((byte, at) => bytes[at] === byte) ? BYTE_ORDER_MARK.length : 0);

function* inPieces(given: Uint8Array, limits: JsonLimits, piece: number): Generator<void, unknown> {
  const bytes = limits.foreign ? storableBytes(given) : given;
  if (bytes.length < piece) {
    for (const _ of scan(bytes, limits, piece, NO_VISITOR));
    return JSON.parse(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('utf8', startOf(bytes))) as unknown;
  }
  const assembler = createAssembler(bytes, startOf(bytes), piece);
  yield* scan(bytes, limits, piece, assembler);
  return assembler.result();
}

/** Other work has its turn after this many milliseconds. */
const TURN_MS = 4;
/** A turn of the event loop continues one text, however many are being parsed. */
const nextTurn = createTurns(1);
/**
 * @param bytes UTF-8; malformed bytes become U+FFFD, and a byte order mark is dropped
 * @throws JsonLimitError, SyntaxError
 */
export async function parseJson(bytes: Uint8Array, limits: JsonLimits): Promise<unknown> {
  if (bytes.length < SMALL) return parseSmallJson(bytes, limits);
  for (const work = inPieces(bytes, limits, PIECE); ;) {
    await nextTurn();
    const began = performance.now();
    let step = work.next();
    while (!step.done && performance.now() - began < TURN_MS) step = work.next();
    if (!step.done) continue;
    // Other work has a turn before the result is used, which may be much work too.
    await nextTurn();
    return step.value;
  }
}
/** For small JSON: parses it without letting other work have a turn. */
export function parseSmallJson(bytes: Uint8Array, limits: JsonLimits, piece = SMALL): unknown {
  for (const work = inPieces(bytes, limits, piece); ;) {
    const { done, value } = work.next();
    if (done) return value;
  }
}
/** As parseJson, but throws TypeError for malformed UTF-8. */
export async function parseStrictJson(bytes: Uint8Array, limits: JsonLimits): Promise<unknown> {
  if (!isUtf8(bytes)) throw new TypeError('The encoded data was not valid for encoding utf-8');
  return parseJson(bytes, limits);
}
