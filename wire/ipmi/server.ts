/**
 * The BMC's side of IPMI over LAN: sessions, users and the commands that belong to them (IPMI 2.0 §13, §22). What the other commands do
 * is the caller's. Packets in, packets out: the socket is the caller's too.
 */
import {
  PAYLOAD,
  decodeLanMessage,
  decodeOpenSessionRequest,
  decodePacket,
  decodeRakp1,
  decodeRakp3,
  encodeLanMessage,
  encodeOpenSessionResponse,
  encodePlain,
  encodePong,
  encodeRakp2,
  encodeRakp4,
  encodeRefusal,
  encodeRmcpPlus,
  type LanMessage,
  type Packet,
} from './codec';
import { COMMANDS, COMPLETION, PRIVILEGE, RAKP_STATUS } from './constants';
import { createLanSessions, isActivation } from './server-lan';
import { createSolServer, type SolOptions } from './server-sol';
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
  type CipherSuite,
  type Handshake,
  type SequenceWindow,
  type SessionKeys,
} from './suites';

export interface BmcUser {
  readonly name: string;
  readonly password: string;
  /** Highest privilege level that the user may have (PRIVILEGE). */
  readonly privilege: number;
}
export interface BmcRequest {
  readonly networkFunction: number;
  readonly command: number;
  readonly data: Buffer;
  /** Of the session at this moment. */
  readonly privilege: number;
}
export interface BmcAnswer {
  readonly completionCode: number;
  readonly data?: Buffer;
  /** A message that follows: what a controller behind this one answered. */
  readonly after?: Buffer;
}
/** A controller on one of the BMC's channels (§6.13), that Send Message reaches; others may be behind it. */
export interface Satellite {
  readonly channel: number;
  readonly address: number;
  readonly satellites?: readonly Satellite[];
  command(request: BmcRequest): Promise<BmcAnswer>;
}
/** A session as commands see it. */
export interface Privileged {
  readonly id: number;
  /** The limit that the console asked for. */
  limit: number;
  privilege: number;
}
export interface BmcOptions {
  readonly users: readonly BmcUser[];
  /** Numbers of the cipher suites that are offered, the one that consoles shall prefer last. */
  readonly cipherSuites: readonly number[];
  /** K_g key, 20 bytes at most; absent: one-key login. */
  readonly kg?: Buffer;
  /** System GUID, 16 bytes. */
  readonly guid: Buffer;
  readonly clock: { now(): number };
  readonly random: (bytes: number) => Buffer;
  /** Sessions of IPMI 1.5 are offered too. */
  readonly lan?: boolean;
  readonly satellites?: readonly Satellite[];
  readonly sol?: SolOptions;
  /** Runs a command of a session. What it throws becomes completion code 0xFF. */
  command(request: BmcRequest): Promise<BmcAnswer>;
}
export interface Bmc {
  /**
   * The packet to send back; undefined: silence. Never throws, whatever the bytes are.
   * @param push sends a further packet to where this one came from
   */
  answer(bytes: Buffer, push?: (packet: Buffer) => void): Promise<Buffer | undefined>;
  /** Ends all sessions without a word, as a BMC does that starts again (§20.2). Answers that are on their way still come. */
  reset(): void;
}

/** Sessions at once, opening ones included; then status 0x01, as of real BMCs, which have fewer still. */
const MAX_SESSIONS = 16;
/** Milliseconds: §6.12.15 asks for 60 s ± 3 s of silence; a handshake that stands still goes sooner. */
const SESSION_SILENCE = 60_000;
const HANDSHAKE_SILENCE = 10_000;
/** Milliseconds within which a request with the same rqSeq is the same request, sent again (§5.5: 5 s on the IPMB). */
const SAME_REQUEST = 5000;
/** Requests that are remembered for that: an older one is outside the window of session sequence numbers. */
const MAX_RECENT = 16;

/** A request of a session that was run. */
export interface Recent {
  readonly request: Buffer;
  readonly at: number;
  readonly answer: Promise<BmcAnswer>;
}
interface Session extends Privileged {
  readonly consoleId: number;
  readonly suite: CipherSuite;
  usedAt: number;
  handshake?: Handshake;
  /** The answer to RAKP 1, by its tag and random number: a doubled one gets the same again. */
  rakp2?: { readonly to: Buffer; readonly answer: Buffer };
  /** Once open. */
  keys?: SessionKeys;
  received: SequenceWindow;
  sent: number;
  /** The latest requests with their answers, the oldest first. */
  recent: readonly Recent[];
}

const is = (message: LanMessage, [networkFunction, command]: readonly [number, number]): boolean =>
  message.networkFunction === networkFunction && message.command === command;
const refuse = (completionCode: number): BmcAnswer => ({ completionCode });
const ok = (...bytes: readonly number[]): BmcAnswer => ({ completionCode: COMPLETION.ok, data: Buffer.from(bytes) });
const THIS_CHANNEL = 0x0e;
/** The one LAN channel of this BMC. */
const CHANNEL = 1;

export function createBmc(options: BmcOptions): Bmc {
  const { users, guid, clock, random } = options;
  const sessions = new Map<number, Session>();
  const lan = options.lan ? createLanSessions(options) : undefined;
  const sol = options.sol ? createSolServer(options.sol) : undefined;
  const suites = options.cipherSuites.map((number) => [number, CIPHER_SUITES[number]] as const).filter(([, suite]) => suite !== undefined);

  const makeRoom = (): boolean => {
    if (sessions.size < MAX_SESSIONS) return true;
    const now = clock.now();
    for (const [id, { keys, usedAt }] of sessions) if (now - usedAt > (keys ? SESSION_SILENCE : HANDSHAKE_SILENCE)) sessions.delete(id);
    return sessions.size < MAX_SESSIONS;
  };
  /** Alive ones only. */
  const sessionOf = (id: number): Session | undefined => {
    const session = sessions.get(id);
    if (session && clock.now() - session.usedAt <= SESSION_SILENCE) return session;
    sessions.delete(id);
    sol?.forget(id);
    return undefined;
  };

  /** §13.17–18. */
  const openSession = (payload: Buffer): Buffer | undefined => {
    const asked = decodeOpenSessionRequest(payload);
    if (!asked) return undefined;
    const { tag, consoleId } = asked;
    const suite = suites.find(([, row]) => sameAlgorithms(row!, asked.algorithms))?.[1];
    if (!suite) return encodeRefusal({ tag, consoleId, status: RAKP_STATUS.noCipherSuiteMatch });
    if (asked.privilege > PRIVILEGE.ADMINISTRATOR) return encodeRefusal({ tag, consoleId, status: RAKP_STATUS.invalidRole });
    if (!makeRoom()) return encodeRefusal({ tag, consoleId, status: RAKP_STATUS.insufficientResources });
    let id = 0;
    while (id === 0 || sessions.has(id)) id = random(4).readUInt32LE();
    const limit = asked.privilege === 0 ? PRIVILEGE.ADMINISTRATOR : asked.privilege;
    sessions.set(id, { id, consoleId, suite, limit, privilege: 0, usedAt: clock.now(), received: newWindow, sent: 0, recent: [] });
    return encodeOpenSessionResponse({ tag, status: RAKP_STATUS.ok, privilege: limit, consoleId, bmcId: id, algorithms: suite });
  };

  /** §13.20–21. Names are looked up with or without the privilege level: each user has one level here. */
  const rakp2 = (payload: Buffer): Buffer | undefined => {
    const message = decodeRakp1(payload);
    const session = message && sessionOf(message.bmcId);
    if (!message || !session || session.keys) return undefined;
    const { tag, role, username } = message;
    const { consoleId } = session;
    if (session.rakp2?.to.equals(payload)) return session.rakp2.answer;
    const no = (status: number): Buffer => {
      sessions.delete(session.id);
      return encodeRefusal({ tag, consoleId, status });
    };
    const user = users.find(({ name }) => Buffer.from(name).equals(username));
    if (!user) return no(RAKP_STATUS.unauthorizedName);
    const asked = role & 0x0f;
    if (asked > PRIVILEGE.ADMINISTRATOR) return no(RAKP_STATUS.invalidRole);
    if (asked > user.privilege || asked > session.limit) return no(RAKP_STATUS.unauthorizedRole);
    session.limit = asked === 0 ? Math.min(session.limit, user.privilege) : asked;
    session.handshake = {
      ...{ suite: session.suite, password: Buffer.from(user.password), consoleId, bmcId: session.id },
      ...{ consoleRandom: Buffer.from(message.consoleRandom), bmcRandom: random(16), guid, role, username: Buffer.from(username) },
      ...(options.kg ? { kg: options.kg } : {}),
    };
    const { bmcRandom } = session.handshake;
    const answer = encodeRakp2({ tag, status: RAKP_STATUS.ok, consoleId, bmcRandom, guid, code: rakp2Code(session.handshake) });
    session.rakp2 = { to: Buffer.from(payload), answer };
    session.usedAt = clock.now();
    return answer;
  };

  /** §13.22–23. */
  const rakp4 = (payload: Buffer): Buffer | undefined => {
    const message = decodeRakp3(payload);
    const session = message && sessionOf(message.bmcId);
    if (!message || !session?.handshake) return undefined;
    const { tag, status } = message;
    const { consoleId, handshake } = session;
    if (status !== RAKP_STATUS.ok) {
      // The console found a fault in RAKP 2 and says goodbye; there is no answer to that.
      if (!session.keys) sessions.delete(session.id);
      return undefined;
    }
    if (!sameBytes(message.code, rakp3Code(handshake))) {
      // Not the console that opened it: an open session stays.
      if (!session.keys) sessions.delete(session.id);
      return encodeRefusal({ tag, consoleId, status: RAKP_STATUS.invalidIntegrityCheck });
    }
    // A doubled RAKP 3 finds the session open already.
    if (!session.keys) {
      session.keys = sessionKeys(handshake);
      session.privilege = Math.min(session.limit, PRIVILEGE.USER);
    }
    session.usedAt = clock.now();
    delete session.rakp2;
    return encodeRakp4({ tag, status: RAKP_STATUS.ok, consoleId, code: rakp4Code(handshake) });
  };

  /** §22.13: what consoles ask before they open a session. */
  const authenticationCapabilities = (data: Buffer): BmcAnswer => {
    if (data.length !== 2) return refuse(COMPLETION.lengthInvalid);
    const channel = data[0]! & 0x0f;
    if (channel !== THIS_CHANNEL && channel !== CHANNEL) return refuse(COMPLETION.invalidField);
    const named = users.some(({ name }) => name !== '');
    const status = (options.kg ? 0x20 : 0) | (named ? 0x04 : 0) | (users.some(({ name }) => name === '') ? 0x01 : 0);
    // Bit 7: IPMI 2.0 data follows; then the types of IPMI 1.5 (password, MD5, none). Data 4: IPMI 2.0 sessions, 1.5 sessions.
    return ok(CHANNEL, 0x80 | (lan ? 0x15 : 0), status, lan ? 0x03 : 0x02, 0, 0, 0, 0);
  };
  /** §22.15.1: records in portions of 16 bytes. */
  const cipherSuiteRecords = Buffer.from(
    suites.flatMap(([number, row]) => [0xc0, number, row!.authentication, 0x40 | row!.integrity, 0x80 | row!.confidentiality]),
  );
  const channelCipherSuites = (data: Buffer): BmcAnswer => {
    if (data.length !== 3) return refuse(COMPLETION.lengthInvalid);
    const start = (data[2]! & 0x3f) * 16;
    return ok(CHANNEL, ...cipherSuiteRecords.subarray(start, start + 16));
  };
  const beforeSession = (message: LanMessage): BmcAnswer => {
    if (is(message, COMMANDS.getChannelAuthenticationCapabilities)) return authenticationCapabilities(message.data);
    if (is(message, COMMANDS.getChannelCipherSuites)) return channelCipherSuites(message.data);
    if (is(message, COMMANDS.getSystemGuid)) return ok(...guid);
    if (lan && is(message, COMMANDS.getSessionChallenge)) return lan.challenge(message.data);
    return refuse(COMPLETION.insufficientPrivilege);
  };

  /** §22.18. */
  const setPrivilege = (session: Privileged, data: Buffer): BmcAnswer => {
    if (data.length !== 1) return refuse(COMPLETION.lengthInvalid);
    const level = data[0]! & 0x0f;
    if (level === 0) return ok(session.privilege);
    if (level < PRIVILEGE.USER || level > PRIVILEGE.ADMINISTRATOR) return refuse(COMPLETION.invalidField);
    // 0x81: exceeds the limit of channel or user.
    if (level > session.limit) return refuse(0x81);
    session.privilege = level;
    return ok(level);
  };
  /** §22.19. 0x87: invalid session ID. */
  const close = (session: Privileged, data: Buffer): BmcAnswer => {
    if (data.length !== 4) return refuse(COMPLETION.lengthInvalid);
    const id = data.readUInt32LE();
    if (id !== session.id && session.privilege < PRIVILEGE.ADMINISTRATOR) return refuse(COMPLETION.insufficientPrivilege);
    sol?.forget(id);
    return (sessions.get(id)?.keys && sessions.delete(id)) || lan?.close(id) ? ok() : refuse(0x87);
  };
  const run = async (session: Privileged, message: LanMessage): Promise<BmcAnswer> => {
    if (message.lun !== 0) return refuse(COMPLETION.invalidForLun);
    if (is(message, COMMANDS.setSessionPrivilegeLevel)) return setPrivilege(session, message.data);
    if (is(message, COMMANDS.closeSession)) return close(session, message.data);
    const early = beforeSession(message);
    if (early.completionCode !== COMPLETION.insufficientPrivilege) return early;
    const { networkFunction, command, data } = message;
    try {
      if (is(message, COMMANDS.sendMessage) && options.satellites)
        return await passOn(options.satellites, { ...message, privilege: session.privilege });
      return await options.command({ networkFunction, command, data, privilege: session.privilege });
    } catch {
      return refuse(COMPLETION.unspecified);
    }
  };

  /** @returns the packets: the answer, and what follows it */
  const packets = (message: LanMessage, answer: BmcAnswer, sealed: (payload: Buffer) => Buffer): readonly Buffer[] =>
    [answerTo(message, answer), ...(answer.after ? [answer.after] : [])].map(sealed);
  const answerTo = (message: LanMessage, { completionCode, data = Buffer.alloc(0) }: BmcAnswer): Buffer =>
    encodeLanMessage({
      ...message,
      networkFunction: message.networkFunction + 1,
      data: Buffer.concat([Buffer.from([completionCode]), completionCode === COMPLETION.ok ? data : Buffer.alloc(0)]),
    });
  /** A request, not an answer. */
  const requestIn = (payload: Buffer): LanMessage | undefined => {
    const message = decodeLanMessage(payload);
    return message && (message.networkFunction & 1) === 0 ? message : undefined;
  };

  const inSession = async (
    packet: Packet & { readonly kind: 'rmcp+' },
    push: (packet: Buffer) => void,
  ): Promise<readonly Buffer[] | undefined> => {
    const session = sessionOf(packet.sessionId);
    if (!session?.keys) return undefined;
    const payload = unseal(session.keys, packet);
    const received = payload && acceptSequence(session.received, packet.sequence);
    if (!payload || !received) return undefined;
    session.received = received;
    const { keys, consoleId } = session;
    const sealed = (payloadType: number, body: Buffer): Buffer => {
      session.sent = nextSequence(session.sent);
      return seal(keys, { payloadType, sessionId: consoleId, sequence: session.sent }, body, random);
    };
    const sendSol = (body: Buffer): void => push(sealed(PAYLOAD.sol, body));
    if (packet.payloadType === PAYLOAD.sol) {
      session.usedAt = clock.now();
      sol?.receive(session.id, payload, sendSol);
    }
    const message = packet.payloadType === PAYLOAD.ipmi ? requestIn(payload) : undefined;
    if (!message) return undefined;
    session.usedAt = clock.now();
    const answer = await onceOnly(session, payload, () => solCommand(session.id, message, sendSol) ?? run(session, message));
    return packets(message, answer, (body) => sealed(PAYLOAD.ipmi, body));
  };
  /** A request that came again, because its answer was lost or it took two ways, is not run again: it may be a power cycle. */
  const onceOnly = (session: { recent: readonly Recent[] }, request: Buffer, work: () => Promise<BmcAnswer>): Promise<BmcAnswer> => {
    const now = clock.now();
    const known = session.recent.find((one) => now - one.at <= SAME_REQUEST && one.request.equals(request));
    if (known) return known.answer;
    const it = { request: Buffer.from(request), at: now, answer: work() };
    session.recent = [...session.recent.slice(1 - MAX_RECENT), it];
    return it.answer;
  };
  const solCommand = (id: number, message: LanMessage, send: (payload: Buffer) => void): Promise<BmcAnswer> | undefined => {
    const answer = message.lun === 0 ? sol?.command(id, message, send) : undefined;
    return answer && Promise.resolve(answer);
  };
  const inLanSession = async (packet: Packet & { readonly kind: 'lan' }): Promise<readonly Buffer[] | undefined> => {
    const message = requestIn(packet.payload);
    const session = message && lan?.sessionOf(packet);
    if (!message || !lan || !session) return undefined;
    if (!session.active && !isActivation(message)) return undefined;
    const answer = session.active
      ? await onceOnly(session, packet.payload, () => run(session, message))
      : lan.activate(session, message.data);
    return packets(message, answer, (payload) => lan.seal(session, payload));
  };
  const outside = (packet: Packet & { readonly kind: 'rmcp+' }): Buffer | undefined => {
    const reply = (payloadType: number, payload: Buffer | undefined): Buffer | undefined =>
      payload && encodeRmcpPlus({ payloadType, sessionId: 0, sequence: 0 }, payload);
    if (packet.encrypted || packet.authenticated) return undefined;
    switch (packet.payloadType) {
      case PAYLOAD.openSessionRequest:
        return reply(PAYLOAD.openSessionResponse, openSession(packet.payload));
      case PAYLOAD.rakp1:
        return reply(PAYLOAD.rakp2, rakp2(packet.payload));
      case PAYLOAD.rakp3:
        return reply(PAYLOAD.rakp4, rakp4(packet.payload));
      case PAYLOAD.ipmi: {
        const message = requestIn(packet.payload);
        return message && reply(PAYLOAD.ipmi, answerTo(message, beforeSession(message)));
      }
      default:
        return undefined;
    }
  };

  return {
    answer: async (bytes, push = () => {}) => {
      const packet = decodePacket(bytes);
      if (!packet) return undefined;
      if (packet.kind === 'presence-ping') return encodePong(packet.tag);
      if (packet.sessionId !== 0) {
        const [first, ...more] = (await (packet.kind === 'rmcp+' ? inSession(packet, push) : inLanSession(packet))) ?? [];
        // After the first, which the caller sends.
        if (more.length > 0) setImmediate(() => more.forEach(push));
        return first;
      }
      if (packet.kind === 'rmcp+') return outside(packet);
      const message = requestIn(packet.payload);
      return message && encodePlain(answerTo(message, beforeSession(message)));
    },
    reset: () => {
      for (const id of sessions.keys()) sol?.forget(id);
      sessions.clear();
      lan?.reset();
    },
  };
}

/** Send Message (§22.10): to a controller behind this one. Data 1: channel, and in bits 7:6 that the answer is tracked. */
async function passOn(
  satellites: readonly Satellite[],
  request: BmcRequest & Pick<LanMessage, 'sequence' | 'requester'>,
): Promise<BmcAnswer> {
  const channel = request.data[0] ?? 0;
  const inner = decodeLanMessage(request.data.subarray(1));
  if (!inner || (inner.networkFunction & 1) !== 0) return refuse(COMPLETION.invalidField);
  const to = satellites.find((one) => one.address === inner.responder && one.channel === (channel & 0x0f));
  // 0x83: nothing answers there.
  if (!to) return refuse(0x83);
  const { networkFunction, command, data } = inner;
  const behind =
    is(inner, COMMANDS.sendMessage) && to.satellites
      ? await passOn(to.satellites, { ...inner, privilege: request.privilege })
      : await to.command({ networkFunction, command, data, privilege: request.privilege });
  // What came from behind that one comes within the answer, as some BMCs have it; from that one itself as a message of its own.
  const body = behind.after ? Buffer.concat([behind.data ?? Buffer.alloc(0), behind.after]) : (behind.data ?? Buffer.alloc(0));
  const after = encodeLanMessage({
    ...{ responder: inner.responder, requester: request.requester, lun: inner.lun, sequence: request.sequence, command },
    ...{ networkFunction: networkFunction + 1, data: Buffer.concat([Buffer.from([behind.completionCode]), body]) },
  });
  return { completionCode: COMPLETION.ok, after };
}
