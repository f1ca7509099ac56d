/**
 * What a viewer sends after the handshake (RFC 6143 §7.5, and the extensions that noVNC knows). A table says how long each message is, and
 * what it may do: a viewer who only looks sends no input, and nobody sends what is never allowed. Unknown messages end the connection,
 * because their length is not known.
 */
import { RfbError } from './stream';

interface MessageRow {
  /** `view`: anybody sends it. `input`: only who controls the machine. `never`: it is dropped. */
  readonly kind: 'view' | 'input' | 'never';
  /** The bytes that tell the length. */
  readonly head: number;
  /** The whole length in bytes. */
  length(head: Buffer): number;
}
/** The most bytes of a text for the machine's clipboard. */
const MAX_TEXT = 1 << 18;
const MAX_ENCODINGS = 256;
const MAX_SCREENS = 16;
const MAX_FENCE = 64;

const fixed = (kind: MessageRow['kind'], length: number): MessageRow => ({ kind, head: 1, length: () => length });
function counted(what: string, count: number, most: number): number {
  if (count > most) throw new RfbError(`The viewer sent more than ${most} ${what}.`);
  return count;
}
const keyOfQemu: MessageRow = fixed('input', 12);
const soundOfQemu: MessageRow = { kind: 'view', head: 4, length: (head) => (head.readUInt16BE(2) === 2 ? 10 : 4) };

/** By the first byte. */
const MESSAGES: Readonly<Record<number, MessageRow>> = {
  // SetPixelFormat, SetEncodings, FramebufferUpdateRequest.
  0: fixed('view', 20),
  2: { kind: 'view', head: 4, length: (head) => 4 + 4 * counted('encodings', head.readUInt16BE(2), MAX_ENCODINGS) },
  3: fixed('view', 10),
  // KeyEvent, PointerEvent. With the extension for more buttons, the highest bit of the mask announces a further byte.
  4: fixed('input', 8),
  5: { kind: 'input', head: 2, length: (head) => (head[1]! & 0x80 ? 7 : 6) },
  // ClientCutText. A negative length belongs to the extended clipboard.
  6: { kind: 'input', head: 8, length: (head) => 8 + counted('bytes of text', Math.abs(head.readInt32BE(4)), MAX_TEXT) },
  // EnableContinuousUpdates, ClientFence.
  150: fixed('view', 10),
  248: { kind: 'view', head: 9, length: (head) => 9 + counted('bytes in a fence', head[8]!, MAX_FENCE) },
  // xvp: shutdown and reset, which are operations of the API with policies of their own.
  250: fixed('never', 4),
  // SetDesktopSize.
  251: { kind: 'input', head: 8, length: (head) => 8 + 16 * counted('screens', head[6]!, MAX_SCREENS) },
};
const QEMU = 255;

/** Undefined: more bytes are needed. */
function rowOf(bytes: Buffer): MessageRow | undefined {
  const [type, subtype] = bytes;
  if (type === QEMU && subtype === undefined) return undefined;
  const row = type === QEMU ? [keyOfQemu, soundOfQemu][subtype!] : MESSAGES[type!];
  if (!row) throw new RfbError('The viewer sent a message that is not known here.');
  return bytes.length < row.head ? undefined : row;
}

/** The length of the message at the beginning; undefined: more bytes are needed. @throws RfbError */
export const messageLength = (bytes: Buffer): number | undefined => (bytes.length === 0 ? undefined : rowOf(bytes)?.length(bytes));

/**
 * @param mayControl whether the viewer may send input
 * @param onInput called for each message of input that passes
 * @returns a function that gets what the viewer sent, and returns what the machine gets. It throws RfbError
 */
export function createViewerFilter(mayControl: boolean, onInput: () => void = () => {}): (bytes: Buffer) => Buffer {
  /** The beginning of a message whose length is not known yet: fewer than ten bytes. */
  let start: Buffer = Buffer.alloc(0);
  /** Bytes of the running message that are still to come. */
  let left = 0;
  let passes = false;
  return (received) => {
    const out: Buffer[] = [];
    let bytes = start.length > 0 ? Buffer.concat([start, received]) : received;
    start = Buffer.alloc(0);
    while (bytes.length > 0) {
      if (left === 0) {
        const row = rowOf(bytes);
        if (!row) {
          start = bytes;
          break;
        }
        left = row.length(bytes);
        passes = row.kind === 'view' || (row.kind === 'input' && mayControl);
        if (passes && row.kind === 'input') onInput();
      }
      const part = bytes.subarray(0, left);
      if (passes) out.push(part);
      left -= part.length;
      bytes = bytes.subarray(part.length);
    }
    return out.length === 1 ? out[0]! : Buffer.concat(out);
  };
}
