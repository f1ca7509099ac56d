/** Opening a session by RMCP+ (IPMI 2.0 §13.15–13.24). */
import {
  BMC_ADDRESS,
  CONSOLE_ADDRESS,
  PAYLOAD,
  decodeResponseHead,
  decodeOpenSessionResponse,
  decodeRakp2,
  decodeRakp4,
  encodeLanMessage,
  encodeOpenSessionRequest,
  encodePlain,
  encodeRakp1,
  encodeRakp3,
  encodeRmcpPlus,
  type ResponseHead,
} from './codec';
import { COMMANDS, COMPLETION, IpmiError, PRIVILEGE, RAKP_STATUS, completionText, rakpStatusText } from './constants';
import {
  closeSession,
  exchange,
  sendCommand,
  unreachable,
  type Bounds,
  type IpmiTarget,
  type SessionResources,
  type Session,
} from './session';
import type { Peer, SessionPacket } from './socket';
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
  type SessionKeys,
} from './suites';

/** Attempts for each message of a handshake. Then the handshake starts again, since the BMC may have dropped it. */
const HANDSHAKE_TRIES = 5;
/** Handshakes that may fail in a way that packet loss explains. */
const HANDSHAKES = 5;
/** Statuses that follow when a packet of ours was lost or duplicated after the BMC had moved on. */
const MAY_BE_LOSS: readonly number[] = [RAKP_STATUS.invalidSessionId, 0x08, RAKP_STATUS.invalidIntegrityCheck];

/** An open session: seals payloads with its keys, and numbers packets in each direction. */
function rmcpPlusSession(
  { random }: SessionResources,
  route: Session['route'],
  bmcId: number,
  cipherSuite: number,
  keys: SessionKeys,
): Session {
  let sent = 0;
  let received = newWindow;
  return {
    route,
    bmcId,
    cipherSuite,
    request: 0,
    requests: 0,
    odd: false,
    seal: (payloadType, payload) => {
      sent = nextSequence(sent);
      return seal(keys, { payloadType, sessionId: bmcId, sequence: sent }, payload, random);
    },
    open: (packet) => {
      if (packet.kind !== 'rmcp+') return undefined;
      const payload = unseal(keys, packet);
      if (!payload) return undefined;
      const window = acceptSequence(received, packet.sequence);
      const isSigned = keys.suite.signatureLength > 0;
      if (!window && !isSigned) return undefined;
      received = window ?? received;
      return { payloadType: packet.payloadType, payload, inOrder: window !== undefined, isSigned };
    },
  };
}

/**
 * Sends Get Channel Authentication Capabilities (§22.13) outside of sessions, as ipmitool does first. Some BMCs (pyghmi, in virtualbmc)
 * identify a session by the console's UDP port. They continue the sequence numbers of an ended session until a message outside of sessions
 * arrives. They must handle it before the next message, so this function waits for the response, but goes on without one. The content of
 * the response is not used: a BMC without IPMI 2.0 does not answer the next message, and the target has the other facts.
 */
async function endEarlierSession(resources: SessionResources, { privilege }: IpmiTarget, peer: Peer, bounds: Bounds): Promise<void> {
  const [networkFunction, command] = COMMANDS.getChannelAuthenticationCapabilities;
  const data = Buffer.from([IPMI_2_0 | THIS_CHANNEL, PRIVILEGE[privilege]]);
  const ends = { responder: BMC_ADDRESS, requester: CONSOLE_ADDRESS };
  const request = encodePlain(encodeLanMessage({ ...ends, networkFunction, command, lun: 0, sequence: 0, data }));
  const left = bounds.deadline - resources.clock.now();
  if (left > 0)
    await resources.sockets.ask({ peer }, request, (packet) => packet.kind === 'lan' || undefined, Math.min(left, resources.resendMs));
}
const IPMI_2_0 = 0x80;
/** Stands for the channel of the request. */
const THIS_CHANNEL = 0x0e;

/** A handshake failed in a way that packet loss explains, so another one may succeed. */
const again = Symbol('again');

async function handshake(
  resources: SessionResources,
  target: IpmiTarget,
  cipherSuite: number,
  peer: Peer,
  bounds: Bounds,
): Promise<Session | typeof again> {
  const suite = CIPHER_SUITES[cipherSuite];
  if (!suite) throw new IpmiError('refused', `cipher suite ${cipherSuite} is not supported`);
  const [username, password] = [Buffer.from(target.username), Buffer.from(target.password)];
  if (username.length > 16) throw new IpmiError('refused', 'wrong user name: longer than the 16 bytes of IPMI');
  if (password.length > 20) throw new IpmiError('refused', 'wrong password: longer than the 20 bytes of IPMI');
  const consoleId = (resources.random(4).readUInt32LE() || 1) >>> 0;
  const route = { peer, consoleId };
  let resent = false;
  let tag = resources.random(1)[0]!;

  /** Sends one message and waits for its response. A response with another tag is late, and is dropped. */
  const send = async <T extends ResponseHead>(
    request: number,
    response: number,
    encode: (tag: number) => Buffer,
    decode: (payload: Buffer) => T | undefined,
    tries: number,
  ): Promise<T | undefined> => {
    tag = (tag + 1) & 0xff;
    const bytes = encodeRmcpPlus({ payloadType: request, sessionId: 0, sequence: 0 }, encode(tag));
    const read = (packet: SessionPacket): T | { readonly refused: number } | undefined => {
      if (packet.kind !== 'rmcp+') return undefined;
      const { payloadType, payload } = packet;
      const head = payloadType === response ? decodeResponseHead(payload) : undefined;
      if (head?.tag !== tag) return undefined;
      return head.status === RAKP_STATUS.ok ? decode(payload) : { refused: head.status };
    };
    const result = await exchange(resources, route, () => bytes, read, tries, bounds);
    resent ||= result?.resent ?? true;
    if (!result) return undefined;
    const { answer } = result;
    if (!('refused' in answer)) return answer;
    if (resent && MAY_BE_LOSS.includes(answer.refused)) return undefined;
    throw new IpmiError('refused', `the BMC refused a session: ${rakpStatusText(answer.refused)}`, { rakpStatus: answer.refused });
  };

  await endEarlierSession(resources, target, peer, bounds);
  const privilege = PRIVILEGE[target.privilege];
  const opened = await send(
    PAYLOAD.openSessionRequest,
    PAYLOAD.openSessionResponse,
    (tag) => encodeOpenSessionRequest({ tag, privilege, consoleId, algorithms: suite }),
    decodeOpenSessionResponse,
    Infinity,
  );
  if (!opened) return again;
  if (!sameAlgorithms(opened.algorithms, suite))
    throw new IpmiError('refused', 'the BMC chose another cipher suite than asked for', { rakpStatus: RAKP_STATUS.noCipherSuiteMatch });
  const [bmcId, consoleRandom, role] = [opened.bmcId, resources.random(16), 0x10 | privilege];
  const second = await send(
    PAYLOAD.rakp1,
    PAYLOAD.rakp2,
    (tag) => encodeRakp1({ tag, bmcId, consoleRandom, role, username }),
    decodeRakp2,
    HANDSHAKE_TRIES,
  );
  if (!second) return again;
  const state: Handshake = {
    suite,
    password,
    consoleId,
    bmcId,
    consoleRandom,
    role,
    username,
    bmcRandom: Buffer.from(second.bmcRandom),
    guid: Buffer.from(second.guid),
    kg: target.kg,
  };
  if (!sameBytes(second.code, rakp2Code(state))) {
    // RAKP 3 with a status ends the session at the BMC, which has few of them, and gets no response (§13.22).
    const rejection = encodeRakp3({ tag: (tag + 1) & 0xff, status: RAKP_STATUS.invalidIntegrityCheck, bmcId, code: Buffer.alloc(0) });
    await resources.sockets.send(peer, encodeRmcpPlus({ payloadType: PAYLOAD.rakp3, sessionId: 0, sequence: 0 }, rejection));
    throw new IpmiError('refused', 'wrong password (RAKP 2 HMAC)');
  }
  const fourth = await send(
    PAYLOAD.rakp3,
    PAYLOAD.rakp4,
    (tag) => encodeRakp3({ tag, status: RAKP_STATUS.ok, bmcId, code: rakp3Code(state) }),
    decodeRakp4,
    HANDSHAKE_TRIES,
  );
  if (!fourth) return again;
  if (!sameBytes(fourth.code, rakp4Code(state))) throw new IpmiError('refused', 'wrong K_g key (RAKP 4 integrity check value)');
  return rmcpPlusSession(resources, route, bmcId, cipherSuite, sessionKeys(state));
}

/** The BMC lacks the algorithms of that suite, or does not allow them at that privilege level. */
const OTHER_SUITE: readonly (number | undefined)[] = [
  RAKP_STATUS.noAuthenticationAlgorithm,
  RAKP_STATUS.noIntegrityAlgorithm,
  RAKP_STATUS.noConfidentialityAlgorithm,
  RAKP_STATUS.noCipherSuiteMatch,
  RAKP_STATUS.invalidRole,
];

/**
 * Opens a session with the first of the target's cipher suites that the BMC accepts, and raises it to the target's privilege level.
 * @throws IpmiError `unreachable`, `refused`, `protocol`, or `completion` when the privilege level is denied
 */
export async function openRmcpPlus(resources: SessionResources, target: IpmiTarget, peer: Peer, bounds: Bounds): Promise<Session> {
  let refusal: IpmiError | undefined;
  for (const cipherSuite of target.cipherSuites) {
    try {
      return await openWith(resources, target, cipherSuite, peer, bounds);
    } catch (error) {
      if (!(error instanceof IpmiError) || !OTHER_SUITE.includes(error.rakpStatus ?? -1)) throw error;
      refusal = error;
    }
  }
  throw refusal ?? new IpmiError('refused', 'no cipher suite was named');
}

async function openWith(
  resources: SessionResources,
  target: IpmiTarget,
  cipherSuite: number,
  peer: Peer,
  bounds: Bounds,
): Promise<Session> {
  for (let n = 0; n < HANDSHAKES; n++) {
    const session = await handshake(resources, target, cipherSuite, peer, bounds);
    if (session === again) {
      if (resources.clock.now() >= bounds.deadline) break;
      continue;
    }
    const privilege = PRIVILEGE[target.privilege];
    // A session begins at USER, or at CALLBACK when that is the limit (§22.18).
    if (privilege <= PRIVILEGE.USER) return session;
    const code = COMMANDS.setSessionPrivilegeLevel;
    const answer = await sendCommand(resources, session, { code, data: Buffer.from([privilege]) }, HANDSHAKE_TRIES, bounds);
    if (answer?.[0] === COMPLETION.ok) return session;
    await closeSession(resources, session);
    if (!answer) continue;
    throw privilegeRefused(target, answer[0]!);
  }
  throw unreachable(target);
}
/** The error of Set Session Privilege Level. */
export const privilegeRefused = ({ privilege }: IpmiTarget, completionCode: number): IpmiError =>
  new IpmiError(
    'completion',
    `the BMC does not give the privilege level ${privilege}: ${completionText(completionCode, COMMANDS.setSessionPrivilegeLevel)}`,
    { completionCode, command: COMMANDS.setSessionPrivilegeLevel },
  );
