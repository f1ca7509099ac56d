/**
 * The BMC's side of IPMI over LAN: sessions, users and the commands that belong to them (IPMI 2.0 §13, §22). What the other commands do
 * is the caller's. Packets in, packets out: the socket is the caller's too.
 */
import {
  ok,
  refuse,
  type Bmc,
  type BmcAnswer,
  type BmcOptions,
  type BmcRequest,
  type Privileged,
  type Recent,
  type Satellite,
} from '../bmc';
import {
  PAYLOAD,
  decodeLanMessage,
  decodePacket,
  encodeLanMessage,
  encodePlain,
  encodePong,
  encodeRmcpPlus,
  type LanMessage,
  type Packet,
} from '../codec';
import { COMMANDS, COMPLETION, PRIVILEGE } from '../constants';
import { createLanSessions, isActivation } from './lan';
import { createRmcpPlusSessions } from './rmcp-plus';
import { createSolServer } from './sol';
import { CIPHER_SUITES, acceptSequence, nextSequence, seal, unseal, type CipherSuite } from '../suites';

/** Milliseconds within which a request with the same rqSeq is the same request, sent again (§5.5: 5 s on the IPMB). */
const SAME_REQUEST = 5000;
/** Requests that are remembered for that: an older one is outside the window of session sequence numbers. */
const MAX_RECENT = 16;

const is = (message: LanMessage, [networkFunction, command]: readonly [number, number]): boolean =>
  message.networkFunction === networkFunction && message.command === command;
const THIS_CHANNEL = 0x0e;
/** The one LAN channel of this BMC. */
const CHANNEL = 1;

export function createBmc(options: BmcOptions): Bmc {
  const { users, guid, clock, random } = options;
  const lan = options.lan ? createLanSessions(options) : undefined;
  const sol = options.sol ? createSolServer(options.sol) : undefined;
  const suites = options.cipherSuites
    .map((number) => [number, CIPHER_SUITES[number]] as const)
    .filter((row): row is [number, CipherSuite] => row[1] !== undefined);
  const sessions = createRmcpPlusSessions(
    options,
    suites.map(([, suite]) => suite),
    (id) => sol?.forget(id),
  );

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
    suites.flatMap(([number, row]) => [0xc0, number, row.authentication, 0x40 | row.integrity, 0x80 | row.confidentiality]),
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
    return sessions.close(id) || lan?.close(id) ? ok() : refuse(0x87);
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
    const session = sessions.sessionOf(packet.sessionId);
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
        return reply(PAYLOAD.openSessionResponse, sessions.openSession(packet.payload));
      case PAYLOAD.rakp1:
        return reply(PAYLOAD.rakp2, sessions.rakp2(packet.payload));
      case PAYLOAD.rakp3:
        return reply(PAYLOAD.rakp4, sessions.rakp4(packet.payload));
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
      sessions.reset();
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
