/**
 * Bounds JSON before it is parsed. JSON.parse blocks the process for seconds, and takes a hundred times the memory of the text, when the
 * text has millions of values. One linear scan of the bytes counts what costs.
 */

export interface JsonLimits {
  /** Elements of arrays, names and values of objects, and containers. */
  readonly values: number;
  /** Containers within containers. */
  readonly depth: number;
}
/** Characters of one number. IEEE 754 needs at most 767 significant digits. */
const LONGEST_NUMBER = 1024;

/** What each sender needs, with room: the largest real documents have a tenth of these values. */
export const JSON_LIMITS = {
  /** An ordinary request to the API, or one with a config drive. */
  request: { values: 50_000 },
  /** An inventory with the data of collectors. */
  inspection: { values: 150_000 },
  /** A record of a recorder. */
  record: { values: 100_000 },
  /** Step lists and results. */
  agent: { values: 50_000, depth: 64 },
  /** Redfish registries are the largest resources. */
  bmc: { values: 200_000, depth: 64 },
  /** The status of an introspection. */
  introspection: { values: 10_000, depth: 64 },
} as const satisfies Readonly<Record<string, Partial<JsonLimits>>>;

export class JsonLimitError extends Error {
  constructor(readonly limit: 'values' | 'depth' | 'number') {
    super(`the JSON has too many values, too much nesting or too long a number: ${limit}`);
  }
}

const [QUOTE, ESCAPE, COMMA, COLON, OPEN_ARRAY, CLOSE_ARRAY, OPEN_OBJECT, CLOSE_OBJECT] = [
  0x22, 0x5c, 0x2c, 0x3a, 0x5b, 0x5d, 0x7b, 0x7d,
] as const;
/** Digits, sign, point, exponent (RFC 8259 §6). */
const IS_NUMBER = Uint8Array.from({ length: 256 }, (_, byte) => ('0123456789+-.eE'.includes(String.fromCharCode(byte)) ? 1 : 0));

/** Throws JsonLimitError. Text that is no JSON passes: JSON.parse refuses it at its first error. */
export function checkJson(bytes: Uint8Array, { values, depth }: JsonLimits): void {
  let [count, level, digits] = [0, 0, 0];
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at]!;
    if (IS_NUMBER[byte] === 1) {
      if (++digits > LONGEST_NUMBER) throw new JsonLimitError('number');
      continue;
    }
    digits = 0;
    switch (byte) {
      case QUOTE:
        for (at++; at < bytes.length && bytes[at] !== QUOTE; at++) if (bytes[at] === ESCAPE) at++;
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
}

/**
 * @param bytes UTF-8; malformed bytes become U+FFFD, and a byte order mark is dropped
 * @throws JsonLimitError, SyntaxError
 */
export function parseJson(bytes: Uint8Array, limits: JsonLimits): unknown {
  checkJson(bytes, limits);
  return JSON.parse(new TextDecoder().decode(bytes)) as unknown;
}
