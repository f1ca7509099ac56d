/**
 * JSON of machines and servers, before it is parsed: PostgreSQL refuses U+0000 and lone surrogates, which JSON from outside has only as
 * escapes. Changing the bytes takes one pass without a value for each text, so that a long document does not stop other work.
 */

/** Most documents have none of these: no further search. */
const ESCAPES = ['\\u0000', '\\ud', '\\uD'].map((escape) => Buffer.from(escape));
/** U+FFFD, with which every refused character is replaced. */
const REPLACEMENT = Buffer.from('\\ufffd');
const LENGTH = REPLACEMENT.length;
const [BACKSLASH, LETTER_U, QUOTE] = [0x5c, 0x75, 0x22] as const;

/** The code unit of the escape `\uXXXX` at this position; -1: there is none. */
function unitAt(bytes: Uint8Array, at: number): number {
  if (bytes[at] !== BACKSLASH || bytes[at + 1] !== LETTER_U) return -1;
  let unit = 0;
  for (let digit = at + 2; digit < at + LENGTH; digit++) {
    const byte = bytes[digit] ?? 0;
    const value = byte >= 0x30 && byte <= 0x39 ? byte - 0x30 : (byte | 0x20) >= 0x61 && (byte | 0x20) <= 0x66 ? (byte | 0x20) - 0x57 : -1;
    if (value < 0) return -1;
    unit = unit * 16 + value;
  }
  return unit;
}
const isHigh = (unit: number): boolean => unit >= 0xd800 && unit < 0xdc00;
const isLow = (unit: number): boolean => unit >= 0xdc00 && unit < 0xe000;

/**
 * @param bytes JSON; anything else stays unusable
 * @returns the JSON with U+FFFD for the refused characters, and without the NULs at the end of texts, with which firmware pads fields. The
 * bytes themselves if nothing is to be changed
 */
export function storableBytes(bytes: Uint8Array): Uint8Array {
  const source = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
  if (!ESCAPES.some((escape) => source.includes(escape))) return bytes;
  const clean = Buffer.from(source);
  let to = 0;
  for (let at = 0; at < source.length;) {
    const byte = source[at]!;
    clean[to++] = byte;
    if (byte !== BACKSLASH) {
      at++;
      continue;
    }
    const unit = unitAt(source, at);
    let end = at + 2;
    if (unit < 0) clean[to++] = source[at + 1] ?? byte;
    else {
      end = at + LENGTH;
      const isPair = isHigh(unit) && isLow(unitAt(source, end));
      if (isPair) end += LENGTH;
      if (unit === 0) while (unitAt(source, end) === 0) end += LENGTH;
      to--;
      if (unit === 0 && source[end] === QUOTE) at = end;
      for (; at < end; at += LENGTH) {
        const isRefused = unit === 0 || (!isPair && (isHigh(unit) || isLow(unit)));
        (isRefused ? REPLACEMENT : source.subarray(at, at + LENGTH)).copy(clean, to);
        to += LENGTH;
      }
    }
    at = end;
  }
  return clean.subarray(0, Math.min(to, clean.length));
}
