/** One RMCP+ session from the console's side: opening it, commands in it, closing it (IPMI 2.0 §13.15–13.24). */
import {
  BMC_ADDRESS,
  CONSOLE_ADDRESS,
  PAYLOAD,
  decodeAnswered,
  decodeLanMessage,
  decodeOpenSessionResponse,
  decodeRakp2,
  decodeRakp4,
  encodeLanMessage,
  encodeOpenSessionRequest,
  encodeRakp1,
  encodeRakp3,
  encodeRmcpPlus,
  type Answered,
  type LanMessage,
} from './codec';
import type { IpmiTarget } from './client';
import { COMMANDS, COMPLETION, IpmiError, PRIVILEGE, RAKP_STATUS, completionText, rakpStatusText } from './constants';
import type { ConsoleSockets, Peer, RmcpPlusPacket } from './socket';
import {
  CIPHER_SUITES,
  acceptSequence,
  newWindow,
  nextSequence,
  rakp2Code,
  rakp3Code,
  rakp4Code,
  sameAlgorithms,
  sameBytes,
  seal,
  sessionKeys,
  unseal,
  type Handshake,
  type SequenceWindow,
  type SessionKeys,
} from './suites';

/** What a session needs of the world. */
export interface Link {
  readonly sockets: ConsoleSockets;
  readonly clock: { now(): number };
  readonly random: (bytes: number) => Buffer;
  /** Milliseconds until a packet without an answer is sent again; doubles twice. */
  readonly resendMs: number;
}
/** How long something may take. */
export interface Bounds {
  /** Milliseconds since the epoch. */
  readonly deadline: number;
  readonly signal?: AbortSignal | undefined;
}
export interface Session {
  readonly peer: Peer;
  readonly keys: SessionKeys;
  readonly consoleId: number;
  readonly bmcId: number;
  /** Session sequence number of the packet sent last. */
  sent: number;
  received: SequenceWindow;
  /** rqSeq of the request sent last. */
  request: number;
}

/** Tries for each message of a handshake, after which it begins anew: the BMC may have forgotten about it. */
const HANDSHAKE_TRIES = 3;
/** Handshakes that may fail in a way that a lost packet explains. */
const HANDSHAKES = 3;
/** Refusals that come when a packet of ours was lost or doubled and the BMC already went on. */
const MAY_BE_LOSS: readonly number[] = [RAKP_STATUS.invalidSessionId, 0x08, RAKP_STATUS.invalidIntegrityCheck];

/** Sends until `read` makes something of an answer. @returns undefined after so many tries, or when the time is over */
async function exchange<T>(
  link: Link,
  to: { readonly peer: Peer; readonly consoleId: number },
  make: () => Buffer,
  read: (packet: RmcpPlusPacket) => T | undefined,
  tries: number,
  { deadline, signal }: Bounds,
): Promise<{ readonly answer: T; readonly resent: boolean } | undefined> {
  for (let n = 0; n < tries; n++) {
    const left = deadline - link.clock.now();
    if (left <= 0) return undefined;
    const milliseconds = Math.min(left, link.resendMs * 2 ** Math.min(n, 2));
    const answer = await link.sockets.ask(to.peer, to.consoleId, make(), read, { milliseconds, signal });
    if (answer !== undefined) return { answer, resent: n > 0 };
  }
  return undefined;
}

export const unreachable = ({ address, port }: IpmiTarget): IpmiError =>
  new IpmiError('unreachable', `the BMC at ${address} port ${port} does not answer`);

/** A handshake that came to nothing, as a lost packet explains: another one may succeed. */
const again = Symbol('again');

async function handshake(link: Link, target: IpmiTarget, peer: Peer, bounds: Bounds): Promise<Session | typeof again> {
  const suite = CIPHER_SUITES[target.cipherSuite];
  if (!suite) throw new IpmiError('refused', `cipher suite ${target.cipherSuite} is not supported`);
  const [username, password] = [Buffer.from(target.username), Buffer.from(target.password)];
  if (username.length > 16) throw new IpmiError('refused', 'wrong user name: longer than the 16 bytes of IPMI');
  if (password.length > 20) throw new IpmiError('refused', 'wrong password: longer than the 20 bytes of IPMI');
  const consoleId = (link.random(4).readUInt32LE() || 1) >>> 0;
  const to = { peer, consoleId };
  let resent = false;
  let tag = link.random(1)[0]!;

  /** One message and its answer; whatever carries another tag is late. */
  const say = async <T extends Answered>(
    request: number,
    response: number,
    encode: (tag: number) => Buffer,
    decode: (payload: Buffer) => T | undefined,
    tries: number,
  ): Promise<T | undefined> => {
    tag = (tag + 1) & 0xff;
    const bytes = encodeRmcpPlus({ payloadType: request, sessionId: 0, sequence: 0 }, encode(tag));
    const read = ({ payloadType, payload }: RmcpPlusPacket): T | { readonly refused: number } | undefined => {
      const head = payloadType === response ? decodeAnswered(payload) : undefined;
      if (head?.tag !== tag) return undefined;
      return head.status === RAKP_STATUS.ok ? decode(payload) : { refused: head.status };
    };
    const got = await exchange(link, to, () => bytes, read, tries, bounds);
    resent ||= got?.resent ?? true;
    if (!got) return undefined;
    const { answer } = got;
    if (!('refused' in answer)) return answer;
    if (resent && MAY_BE_LOSS.includes(answer.refused)) return undefined;
    throw new IpmiError('refused', `the BMC refused a session: ${rakpStatusText(answer.refused)}`, { rakpStatus: answer.refused });
  };

  const privilege = PRIVILEGE[target.privilege];
  const opened = await say(
    PAYLOAD.openSessionRequest,
    PAYLOAD.openSessionResponse,
    (tag) => encodeOpenSessionRequest({ tag, privilege, consoleId, algorithms: suite }),
    decodeOpenSessionResponse,
    Infinity,
  );
  if (!opened) return again;
  if (!sameAlgorithms(opened.algorithms, suite)) throw new IpmiError('protocol', 'the BMC chose another cipher suite than asked for');
  const [bmcId, consoleRandom, role] = [opened.bmcId, link.random(16), 0x10 | privilege];
  const second = await say(
    PAYLOAD.rakp1,
    PAYLOAD.rakp2,
    (tag) => encodeRakp1({ tag, bmcId, consoleRandom, role, username }),
    decodeRakp2,
    HANDSHAKE_TRIES,
  );
  if (!second) return again;
  const known: Handshake = {
    ...{ suite, password, consoleId, bmcId, consoleRandom, role, username },
    ...{ bmcRandom: Buffer.from(second.bmcRandom), guid: Buffer.from(second.guid) },
    ...(target.kg ? { kg: target.kg } : {}),
  };
  if (!sameBytes(second.code, rakp2Code(known))) throw new IpmiError('refused', 'wrong password (RAKP 2 HMAC)');
  const fourth = await say(
    PAYLOAD.rakp3,
    PAYLOAD.rakp4,
    (tag) => encodeRakp3({ tag, status: RAKP_STATUS.ok, bmcId, code: rakp3Code(known) }),
    decodeRakp4,
    HANDSHAKE_TRIES,
  );
  if (!fourth) return again;
  if (!sameBytes(fourth.code, rakp4Code(known))) throw new IpmiError('refused', 'wrong K_g key (RAKP 4 integrity check value)');
  return { peer, keys: sessionKeys(known), consoleId, bmcId, sent: 0, received: newWindow, request: 0 };
}

/**
 * Opens a session and raises it to the target's privilege level. Get Channel Authentication Capabilities (§13.14) is left out: a BMC
 * without IPMI 2.0 does not answer the first message, and the rest of what it says is in the target.
 * @throws IpmiError `unreachable`, `refused`, `protocol`, or `completion` when the privilege level is not given
 */
export async function openSession(link: Link, target: IpmiTarget, peer: Peer, bounds: Bounds): Promise<Session> {
  for (let n = 0; n < HANDSHAKES; n++) {
    const session = await handshake(link, target, peer, bounds);
    if (session === again) {
      if (link.clock.now() >= bounds.deadline) break;
      continue;
    }
    const privilege = PRIVILEGE[target.privilege];
    // A session begins at USER, or at CALLBACK when that is the limit (§22.18).
    if (privilege <= PRIVILEGE.USER) return session;
    const answer = await sendCommand(link, session, COMMANDS.setSessionPrivilegeLevel, Buffer.from([privilege]), HANDSHAKE_TRIES, bounds);
    if (!answer) continue;
    if (answer[0] === COMPLETION.ok) return session;
    await closeSession(link, session);
    throw new IpmiError('completion', `the BMC does not give the privilege level ${target.privilege}: ${completionText(answer[0]!)}`, {
      completionCode: answer[0]!,
    });
  }
  throw unreachable(target);
}

/** The next request of a session. */
function request(session: Session, [networkFunction, command]: readonly [number, number], data: Buffer): LanMessage {
  const sequence = (session.request = (session.request + 1) & 0x3f);
  return { responder: BMC_ADDRESS, requester: CONSOLE_ADDRESS, lun: 0, networkFunction, sequence, command, data };
}
/** A request as a packet, each time with a session sequence number of its own. */
function packet({ random }: Link, session: Session, message: LanMessage): Buffer {
  session.sent = nextSequence(session.sent);
  const header = { payloadType: PAYLOAD.ipmi, sessionId: session.bmcId, sequence: session.sent };
  return seal(session.keys, header, encodeLanMessage(message), random);
}

/**
 * One command and its answer. A resent request keeps its rqSeq, by which the BMC may know it, and gets a new session sequence number,
 * without which it would be dropped as a duplicate (§6.12.13); answers to earlier requests, and doubled ones, are dropped.
 * @returns completion code and data; undefined when no answer came
 */
export async function sendCommand(
  link: Link,
  session: Session,
  words: readonly [number, number],
  data: Buffer,
  tries: number,
  bounds: Bounds,
): Promise<Buffer | undefined> {
  const asked = request(session, words, data);
  const read = (came: RmcpPlusPacket): Buffer | undefined => {
    if (came.payloadType !== PAYLOAD.ipmi) return undefined;
    const payload = unseal(session.keys, came);
    const received = payload && acceptSequence(session.received, came.sequence);
    if (!payload || !received) return undefined;
    session.received = received;
    const answer = decodeLanMessage(payload);
    if (answer?.networkFunction !== asked.networkFunction + 1) return undefined;
    return answer.command === asked.command && answer.sequence === asked.sequence ? Buffer.from(answer.data) : undefined;
  };
  return (await exchange(link, session, () => packet(link, session, asked), read, tries, bounds))?.answer;
}

/** Tells the BMC to free the session (§22.19), once: an answer would change nothing, and a BMC that missed it ends the session by itself. */
export async function closeSession(link: Link, session: Session): Promise<void> {
  const id = Buffer.alloc(4);
  id.writeUInt32LE(session.bmcId);
  await link.sockets.send(session.peer, packet(link, session, request(session, COMMANDS.closeSession, id)));
}
