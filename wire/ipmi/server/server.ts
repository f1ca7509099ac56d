/**
 * The BMC's side of IPMI over LAN: sessions, users and the commands for them (IPMI 2.0 §13, §22). The caller runs all other commands, and
 * owns the socket: packets in, packets out.
 */
import { type Bmc, type BmcAnswer, type BmcOptions, type Oddities, type RecentRequest } from '../bmc';
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
import { COMPLETION } from '../constants';
import { createLanSessions, isActivation } from './lan';
import { createRmcpPlusSessions, type RmcpPlusSessions } from './rmcp-plus';
import { createSessionCommands } from './session-commands';
import { createSolServer } from './sol';
import { CIPHER_SUITES, acceptSequence, nextSequence, seal, unseal, type CipherSuite } from '../suites';

type RmcpPlusPacket = Packet & { readonly kind: 'rmcp+' };

/** Milliseconds within which an equal request with the same rqSeq is a repetition (§5.5: 5 s on the IPMB). */
const SAME_REQUEST = 5000;
/** Requests that are remembered for that. Older ones are outside the window of session sequence numbers. */
const MAX_RECENT = 16;

const answerTo = (message: LanMessage, { completionCode, data = Buffer.alloc(0) }: BmcAnswer): Buffer =>
  encodeLanMessage({
    ...message,
    networkFunction: message.networkFunction + 1,
    data: Buffer.concat([Buffer.from([completionCode]), completionCode === COMPLETION.ok ? data : Buffer.alloc(0)]),
  });
/** @returns the packets: the response, and the message that follows it */
const packets = (message: LanMessage, answer: BmcAnswer, sealed: (payload: Buffer) => Buffer, odd: Oddities): readonly Buffer[] => {
  const response = answerTo(message, answer);
  return [...(odd.responses?.(response) ?? [response]), ...(answer.after ? [answer.after] : [])].map(sealed);
};
/** Decodes a request; undefined for a response. */
function requestIn(payload: Buffer): LanMessage | undefined {
  const message = decodeLanMessage(payload);
  return message && (message.networkFunction & 1) === 0 ? message : undefined;
}

/** Runs each request once. A repetition, sent because a response was lost, gets the same response: the request may be a power cycle. */
function onceOnly(
  session: { recent: readonly RecentRequest[] },
  request: Buffer,
  now: number,
  work: () => Promise<BmcAnswer>,
): Promise<BmcAnswer> {
  const known = session.recent.find((candidate) => now - candidate.at <= SAME_REQUEST && candidate.request.equals(request));
  if (known) return known.answer;
  const it = { request: Buffer.from(request), at: now, answer: work() };
  session.recent = [...session.recent.slice(1 - MAX_RECENT), it];
  return it.answer;
}

/** The response to a packet outside of sessions: a message that opens a session, or a command before that. */
function outsideSession(
  packet: RmcpPlusPacket,
  sessions: RmcpPlusSessions,
  beforeSession: (message: LanMessage) => BmcAnswer,
): Buffer | undefined {
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
}

export function createBmc(options: BmcOptions): Bmc {
  const { clock, random, oddities = {} } = options;
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
  const { beforeSession, run } = createSessionCommands({
    options,
    suites,
    lan,
    closeSession: (id) => {
      sol?.forget(id);
      return sessions.close(id) || (lan?.close(id) ?? false);
    },
  });

  const inSession = async (packet: RmcpPlusPacket, push: (packet: Buffer) => void): Promise<readonly Buffer[] | undefined> => {
    const session = sessions.sessionOf(packet.sessionId);
    if (!session?.keys) return undefined;
    const payload = unseal(session.keys, packet);
    const received = payload && acceptSequence(session.received, packet.sequence);
    if (!payload || !received) return undefined;
    session.received = received;
    const { keys, consoleId } = session;
    const sealed = (payloadType: number, body: Buffer): Buffer => {
      session.sent = nextSequence(session.sent);
      const sequence = oddities.sequence?.(session.sent) ?? session.sent;
      return seal(keys, { payloadType, sessionId: consoleId, sequence }, body, random);
    };
    const sendSol = (body: Buffer): void => push(sealed(PAYLOAD.sol, body));
    if (packet.payloadType === PAYLOAD.sol) {
      session.usedAt = clock.now();
      sol?.receive(session.id, payload, sendSol);
    }
    const message = packet.payloadType === PAYLOAD.ipmi ? requestIn(payload) : undefined;
    if (!message) return undefined;
    session.usedAt = clock.now();
    const answer = await onceOnly(session, payload, clock.now(), () => solCommand(session.id, message, sendSol) ?? run(session, message));
    return packets(message, answer, (body) => sealed(PAYLOAD.ipmi, body), oddities);
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
      ? await onceOnly(session, packet.payload, clock.now(), () => run(session, message))
      : lan.activate(session, message.data);
    return packets(message, answer, (payload) => lan.seal(session, payload), oddities);
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
      if (packet.kind === 'rmcp+') return outsideSession(packet, sessions, beforeSession);
      const message = requestIn(packet.payload);
      return message && encodePlain(answerTo(message, beforeSession(message)));
    },
    reset: () => {
      sessions.reset();
      lan?.reset();
    },
  };
}
