/** TFTP packets (RFC 1350, options by RFC 2347): bytes ↔ values. The transfer itself is elsewhere. */

/** Error codes (RFC 1350 appendix I, RFC 2347). */
export const TFTP_ERRORS = {
  notDefined: 0,
  fileNotFound: 1,
  accessViolation: 2,
  diskFull: 3,
  illegalOperation: 4,
  unknownTransfer: 5,
  fileExists: 6,
  noSuchUser: 7,
  optionsRefused: 8,
} as const;

/** Option names are in lower case: they are case-insensitive (RFC 2347). */
export type TftpOptions = ReadonlyMap<string, string>;
export type TftpPacket =
  | { readonly kind: 'rrq' | 'wrq'; readonly file: string; readonly mode: string; readonly options: TftpOptions }
  /** `block` is the number on the wire, 0 to 65535. */
  | { readonly kind: 'data'; readonly block: number; readonly data: Buffer }
  | { readonly kind: 'ack'; readonly block: number }
  | { readonly kind: 'error'; readonly code: number; readonly message: string }
  | { readonly kind: 'oack'; readonly options: TftpOptions };

const OPCODES = { rrq: 1, wrq: 2, data: 3, ack: 4, error: 5, oack: 6 } as const;
/** No boot ROM sends a longer request (RFC 2347: 512 octets). */
const MAX_REQUEST = 1024;

/** Decodes a datagram; undefined if it is malformed. `data` is a view, not a copy. */
export function decodeTftp(bytes: Buffer): TftpPacket | undefined {
  if (bytes.length < 4) return undefined;
  switch (bytes.readUInt16BE(0)) {
    case OPCODES.rrq:
      return request('rrq', bytes);
    case OPCODES.wrq:
      return request('wrq', bytes);
    case OPCODES.data:
      return { kind: 'data', block: bytes.readUInt16BE(2), data: bytes.subarray(4) };
    case OPCODES.ack:
      return { kind: 'ack', block: bytes.readUInt16BE(2) };
    case OPCODES.error:
      // Several clients leave out the zero after the message.
      return { kind: 'error', code: bytes.readUInt16BE(2), message: bytes.subarray(4).toString('latin1').split('\0', 1)[0]! };
    case OPCODES.oack: {
      const options = pairs(strings(bytes.subarray(2)));
      return options && { kind: 'oack', options };
    }
    default:
      return undefined;
  }
}

export function encodeTftp(packet: TftpPacket): Buffer {
  switch (packet.kind) {
    case 'rrq':
    case 'wrq':
      return Buffer.concat([word(OPCODES[packet.kind]), zeroEnded([packet.file, packet.mode, ...[...packet.options].flat()])]);
    case 'data':
      return Buffer.concat([word(OPCODES.data), word(packet.block), packet.data]);
    case 'ack':
      return Buffer.concat([word(OPCODES.ack), word(packet.block)]);
    case 'error':
      return Buffer.concat([word(OPCODES.error), word(packet.code), zeroEnded([packet.message])]);
    case 'oack':
      return Buffer.concat([word(OPCODES.oack), zeroEnded([...packet.options].flat())]);
  }
}

/** Writes the four octets before a DATA packet's data, for callers that build packets in their own buffer. */
export function writeDataHeader(buffer: Buffer, offset: number, block: number): void {
  buffer.writeUInt16BE(OPCODES.data, offset);
  buffer.writeUInt16BE(block, offset + 2);
}

function request(kind: 'rrq' | 'wrq', bytes: Buffer): TftpPacket | undefined {
  if (bytes.length > MAX_REQUEST) return undefined;
  const [file, mode, ...rest] = strings(bytes.subarray(2)) ?? [];
  const options = pairs(rest);
  return file && mode && options ? { kind, file, mode: mode.toLowerCase(), options } : undefined;
}

const word = (value: number): Buffer => Buffer.from([value >> 8, value & 255]);
const zeroEnded = (texts: readonly string[]): Buffer => Buffer.from(texts.map((text) => `${text}\0`).join(''), 'latin1');

/** Zero-terminated strings; undefined when the last one has no terminator. */
function strings(bytes: Buffer): string[] | undefined {
  return bytes.at(-1) === 0 ? bytes.subarray(0, -1).toString('latin1').split('\0') : undefined;
}

/** name, value, name, value…; the first of two equal options counts. */
function pairs(texts: readonly string[] | undefined): TftpOptions | undefined {
  if (!texts || texts.length % 2 !== 0) return undefined;
  const options = new Map<string, string>();
  for (let i = 0; i < texts.length; i += 2) {
    const name = texts[i]!.toLowerCase();
    if (!options.has(name)) options.set(name, texts[i + 1]!);
  }
  return options;
}
