/** Packets of IPMI over LAN (IPMI 2.0 rev 1.1, §13): RMCP, session headers, LAN messages and the messages that open a session. */

/** §13.1.3: version 1.0, reserved, no acknowledge, class. */
const RMCP_VERSION = 0x06;
const CLASS = { asf: 0x06, ipmi: 0x07 } as const;
/** §13.6, table 13-8. */
export const AUTHENTICATION_TYPE = { none: 0x00, md5: 0x02, password: 0x04, rmcpPlus: 0x06 } as const;
/** Longer packets are not IPMI: no message is that long. */
const MAX_PACKET = 1024;

/** Payload types (table 13-16). */
export const PAYLOAD = {
  ipmi: 0x00,
  sol: 0x01,
  openSessionRequest: 0x10,
  openSessionResponse: 0x11,
  rakp1: 0x12,
  rakp2: 0x13,
  rakp3: 0x14,
  rakp4: 0x15,
} as const;

/** An RMCP packet. Its layers are not authenticated yet. */
export type Packet =
  | { readonly kind: 'presence-ping'; readonly tag: number }
  /** The session header of IPMI 1.5 (§13.6), also used before a session. */
  | (LanHeader & { readonly kind: 'lan'; readonly payload: Buffer })
  /** RMCP+ session header (§13.28). */
  | {
      readonly kind: 'rmcp+';
      readonly payloadType: number;
      readonly encrypted: boolean;
      readonly authenticated: boolean;
      readonly sessionId: number;
      readonly sequence: number;
      readonly payload: Buffer;
      /** After the payload: integrity pad, pad length, next header, AuthCode. */
      readonly trailer: Buffer;
      /** From the authentication type to the end of the packet: the AuthCode and the data that it authenticates. */
      readonly session: Buffer;
    };

const rmcp = (messageClass: number, ...parts: readonly Buffer[]): Buffer =>
  Buffer.concat([Buffer.from([RMCP_VERSION, 0x00, 0xff, messageClass]), ...parts]);

/** @returns undefined unless it is a known RMCP packet */
export function decodePacket(bytes: Buffer): Packet | undefined {
  if (bytes.length < 8 || bytes.length > MAX_PACKET || bytes[0] !== RMCP_VERSION) return undefined;
  const messageClass = bytes[3]! & 0x9f;
  const session = bytes.subarray(4);
  if (messageClass === CLASS.asf) {
    const ping = session.length >= 8 && session.readUInt32BE(0) === ASF_IANA && session[4] === ASF.ping;
    return ping ? { kind: 'presence-ping', tag: session[5]! } : undefined;
  }
  if (messageClass !== CLASS.ipmi) return undefined;
  const authenticationType = session[0]! & 0x0f;
  if (authenticationType !== AUTHENTICATION_TYPE.rmcpPlus) {
    const start = authenticationType === AUTHENTICATION_TYPE.none ? 9 : 25;
    if (session.length <= start || session.length < start + 1 + session[start]!) return undefined;
    return {
      kind: 'lan',
      authenticationType,
      sequence: session.readUInt32LE(1),
      sessionId: session.readUInt32LE(5),
      code: session.subarray(9, start),
      payload: session.subarray(start + 1, start + 1 + session[start]!),
    };
  }
  if (session.length < 12) return undefined;
  const payloadType = session[1]! & 0x3f;
  // OEM explicit payloads (type 2) have a longer header; we know none.
  if (payloadType === 0x02) return undefined;
  const length = session.readUInt16LE(10);
  if (session.length < 12 + length) return undefined;
  return {
    kind: 'rmcp+',
    payloadType,
    encrypted: (session[1]! & 0x80) !== 0,
    authenticated: (session[1]! & 0x40) !== 0,
    sessionId: session.readUInt32LE(2),
    sequence: session.readUInt32LE(6),
    payload: session.subarray(12, 12 + length),
    trailer: session.subarray(12 + length),
    session,
  };
}

/** Header of an IPMI 1.5 session; outside a session the numbers are 0. */
interface LanHeader {
  readonly authenticationType: number;
  readonly sessionId: number;
  readonly sequence: number;
  /** 16 bytes; none without authentication. */
  readonly code: Buffer;
}
export function encodeLan({ authenticationType, sessionId, sequence, code }: LanHeader, payload: Buffer): Buffer {
  const head = Buffer.alloc(9);
  head[0] = authenticationType;
  head.writeUInt32LE(sequence, 1);
  head.writeUInt32LE(sessionId, 5);
  return rmcp(CLASS.ipmi, head, code, Buffer.from([payload.length]), payload);
}
const OUTSIDE: LanHeader = { authenticationType: AUTHENTICATION_TYPE.none, sessionId: 0, sequence: 0, code: Buffer.alloc(0) };
/** A message outside a session, with the header of IPMI 1.5. */
export const encodePlain = (payload: Buffer): Buffer => encodeLan(OUTSIDE, payload);

export interface SessionHeader {
  readonly payloadType: number;
  readonly encrypted?: boolean;
  readonly authenticated?: boolean;
  readonly sessionId: number;
  readonly sequence: number;
}
/** RMCP+ packet. @param sign returns the AuthCode of the data before it; called when the header says `authenticated` */
export function encodeRmcpPlus(header: SessionHeader, payload: Buffer, sign?: (signed: Buffer) => Buffer): Buffer {
  const head = Buffer.alloc(12);
  head[0] = AUTHENTICATION_TYPE.rmcpPlus;
  head[1] = header.payloadType | (header.encrypted ? 0x80 : 0) | (header.authenticated ? 0x40 : 0);
  head.writeUInt32LE(header.sessionId, 2);
  head.writeUInt32LE(header.sequence, 6);
  head.writeUInt16LE(payload.length, 10);
  if (!header.authenticated || !sign) return rmcp(CLASS.ipmi, head, payload);
  // §13.28: the signed data, with its pad length and next header, is a multiple of four bytes.
  const pad = (4 - ((12 + payload.length + 2) % 4)) % 4;
  const signed = Buffer.concat([head, payload, Buffer.alloc(pad, 0xff), Buffer.from([pad, 0x07])]);
  return rmcp(CLASS.ipmi, signed, sign(signed));
}

const ASF_IANA = 4542;
const ASF = { ping: 0x80, pong: 0x40 } as const;
/** The response to an RMCP presence ping (§13.2.3): IPMI is supported (§13.2.4). */
export const encodePong = (tag: number): Buffer =>
  rmcp(CLASS.asf, Buffer.from([0, 0, 0x11, 0xbe, ASF.pong, tag, 0, 16, 0, 0, 0x11, 0xbe, 0, 0, 0, 0, 0x81, 0, 0, 0, 0, 0, 0, 0]));

/** Addresses in LAN messages: the BMC, and the remote console's software ID (§5.5, §13.8). */
export const BMC_ADDRESS = 0x20;
export const CONSOLE_ADDRESS = 0x81;

/** An IPMI LAN message (§13.8). In a response `data` begins with the completion code, and `networkFunction` is odd. */
export interface LanMessage {
  readonly responder: number;
  readonly requester: number;
  readonly networkFunction: number;
  readonly lun: number;
  /** 6 bits. */
  readonly sequence: number;
  readonly command: number;
  readonly data: Buffer;
}
/** Two's complement of the sum (§13.8). */
const checksum = (bytes: Buffer): number => -bytes.reduce((sum, byte) => sum + byte, 0) & 0xff;

/** On the wire the receiver's address is first: the responder's in a request, the requester's in a response. */
export function encodeLanMessage(message: LanMessage): Buffer {
  const isResponse = (message.networkFunction & 1) === 1;
  const [to, from] = isResponse ? [message.requester, message.responder] : [message.responder, message.requester];
  const head = Buffer.from([to, (message.networkFunction << 2) | (isResponse ? 0 : message.lun)]);
  const body = Buffer.from([from, (message.sequence << 2) | (isResponse ? message.lun : 0), message.command, ...message.data]);
  return Buffer.concat([head, Buffer.from([checksum(head)]), body, Buffer.from([checksum(body)])]);
}
/**
 * @param isChecked false: wrong checksums do not matter
 * @returns undefined when it is too short or a checksum is wrong
 */
export function decodeLanMessage(bytes: Buffer, isChecked = true): LanMessage | undefined {
  if (bytes.length < 7) return undefined;
  const networkFunction = bytes[1]! >> 2;
  const isResponse = (networkFunction & 1) === 1;
  if (isChecked && (checksum(bytes.subarray(0, 3)) !== 0 || checksum(bytes.subarray(3)) !== 0)) return undefined;
  if (isResponse && bytes.length < 8) return undefined;
  return {
    responder: isResponse ? bytes[3]! : bytes[0]!,
    requester: isResponse ? bytes[0]! : bytes[3]!,
    networkFunction,
    lun: (isResponse ? bytes[4]! : bytes[1]!) & 0x03,
    sequence: bytes[4]! >> 2,
    command: bytes[5]!,
    data: bytes.subarray(6, -1),
  };
}

/** The algorithm numbers of a cipher suite, as in the messages that open a session (§13.28.3–5). */
export interface Algorithms {
  readonly authentication: number;
  readonly integrity: number;
  readonly confidentiality: number;
}
const algorithmPayloads = (algorithms: Algorithms): Buffer =>
  Buffer.from(
    [algorithms.authentication, algorithms.integrity, algorithms.confidentiality].flatMap((algorithm, type) => [
      type,
      0,
      0,
      8,
      algorithm,
      0,
      0,
      0,
    ]),
  );
const decodeAlgorithms = (bytes: Buffer): Algorithms | undefined => {
  const rows = [0, 8, 16].map((start) => bytes.subarray(start, start + 8));
  if (rows.some((row, type) => row[0] !== type || row[3] !== 8)) return undefined;
  return { authentication: rows[0]![4]! & 0x3f, integrity: rows[1]![4]! & 0x3f, confidentiality: rows[2]![4]! & 0x3f };
};
export const uint32 = (value: number): Buffer => {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value);
  return bytes;
};

/** RMCP+ Open Session Request (§13.17). `privilege` 0: the highest that the suite allows. */
interface OpenSessionRequest {
  readonly tag: number;
  readonly privilege: number;
  readonly consoleId: number;
  readonly algorithms: Algorithms;
}
export const encodeOpenSessionRequest = (message: OpenSessionRequest): Buffer =>
  Buffer.concat([Buffer.from([message.tag, message.privilege, 0, 0]), uint32(message.consoleId), algorithmPayloads(message.algorithms)]);
export function decodeOpenSessionRequest(bytes: Buffer): OpenSessionRequest | undefined {
  const algorithms = bytes.length >= 32 ? decodeAlgorithms(bytes.subarray(8, 32)) : undefined;
  return algorithms && { tag: bytes[0]!, privilege: bytes[1]! & 0x0f, consoleId: bytes.readUInt32LE(4), algorithms };
}

/** The head of each response that opens a session. A refusal may end there. */
export interface ResponseHead {
  readonly tag: number;
  readonly status: number;
  readonly consoleId: number;
}
export const encodeRefusal = ({ tag, status, consoleId }: ResponseHead): Buffer =>
  Buffer.concat([Buffer.from([tag, status, 0, 0]), uint32(consoleId)]);
/** The head of an Open Session Response, RAKP 2 or RAKP 4. Some BMCs leave out the session ID in refusals: then it is 0. */
export function decodeResponseHead(bytes: Buffer): ResponseHead | undefined {
  return bytes.length < 2 ? undefined : { tag: bytes[0]!, status: bytes[1]!, consoleId: bytes.length < 8 ? 0 : bytes.readUInt32LE(4) };
}

/** RMCP+ Open Session Response (§13.18). */
interface OpenSessionResponse extends ResponseHead {
  readonly privilege: number;
  readonly bmcId: number;
  readonly algorithms: Algorithms;
}
export const encodeOpenSessionResponse = (message: OpenSessionResponse): Buffer =>
  Buffer.concat([
    Buffer.from([message.tag, message.status, message.privilege, 0]),
    uint32(message.consoleId),
    uint32(message.bmcId),
    algorithmPayloads(message.algorithms),
  ]);
export function decodeOpenSessionResponse(bytes: Buffer): OpenSessionResponse | undefined {
  const head = decodeResponseHead(bytes);
  const algorithms = bytes.length >= 36 ? decodeAlgorithms(bytes.subarray(12, 36)) : undefined;
  return head && algorithms && { ...head, privilege: bytes[2]! & 0x0f, bmcId: bytes.readUInt32LE(8), algorithms };
}

/** RAKP message 1 (§13.20). `role` is byte 25 unchanged: bits 3:0 the privilege level, bit 4 lookup by name alone. */
export interface Rakp1 {
  readonly tag: number;
  readonly bmcId: number;
  readonly consoleRandom: Buffer;
  readonly role: number;
  readonly username: Buffer;
}
export const encodeRakp1 = (message: Rakp1): Buffer =>
  Buffer.concat([
    Buffer.from([message.tag, 0, 0, 0]),
    uint32(message.bmcId),
    message.consoleRandom,
    Buffer.from([message.role, 0, 0, message.username.length]),
    message.username,
  ]);
export function decodeRakp1(bytes: Buffer): Rakp1 | undefined {
  if (bytes.length < 28 || bytes[27]! > 16 || bytes.length < 28 + bytes[27]!) return undefined;
  return {
    tag: bytes[0]!,
    bmcId: bytes.readUInt32LE(4),
    consoleRandom: bytes.subarray(8, 24),
    role: bytes[24]!,
    username: bytes.subarray(28, 28 + bytes[27]!),
  };
}

/** RAKP message 2 (§13.21). */
interface Rakp2 extends ResponseHead {
  readonly bmcRandom: Buffer;
  readonly guid: Buffer;
  readonly code: Buffer;
}
export const encodeRakp2 = (message: Rakp2): Buffer =>
  Buffer.concat([encodeRefusal(message), message.bmcRandom, message.guid, message.code]);
export function decodeRakp2(bytes: Buffer): Rakp2 | undefined {
  const head = decodeResponseHead(bytes);
  if (!head || bytes.length < 40) return undefined;
  return { ...head, bmcRandom: bytes.subarray(8, 24), guid: bytes.subarray(24, 40), code: bytes.subarray(40) };
}

/** RAKP message 3 (§13.22). */
interface Rakp3 {
  readonly tag: number;
  readonly status: number;
  readonly bmcId: number;
  readonly code: Buffer;
}
export const encodeRakp3 = (message: Rakp3): Buffer =>
  Buffer.concat([Buffer.from([message.tag, message.status, 0, 0]), uint32(message.bmcId), message.code]);
export function decodeRakp3(bytes: Buffer): Rakp3 | undefined {
  return bytes.length < 8 ? undefined : { tag: bytes[0]!, status: bytes[1]!, bmcId: bytes.readUInt32LE(4), code: bytes.subarray(8) };
}

/** RAKP message 4 (§13.23). */
interface Rakp4 extends ResponseHead {
  readonly code: Buffer;
}
export const encodeRakp4 = (message: Rakp4): Buffer => Buffer.concat([encodeRefusal(message), message.code]);
export function decodeRakp4(bytes: Buffer): Rakp4 | undefined {
  const head = decodeResponseHead(bytes);
  return head && bytes.length >= 8 ? { ...head, code: bytes.subarray(8) } : undefined;
}
