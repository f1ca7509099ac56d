/** Opening a session of IPMI 1.5 over LAN, for BMCs without RMCP+ (IPMI 2.0 §13.6–13.14, §22.13–22.18). */
import { AUTHENTICATION_TYPE, PAYLOAD, encodeLan, type Packet } from './codec';
import { COMMANDS, COMPLETION, IpmiError, PRIVILEGE, completionText, type CommandCode } from './constants';
import { privilegeRefused } from './rmcp-plus';
import { closeSession, sendCommand, unreachable, type Bounds, type IpmiTarget, type SessionResources, type Session } from './session';
import type { Peer } from './socket';
import { acceptSequence, newWindow, nextSequence, padded, sameBytes } from './suites';
import { lanCode } from './lan-code';

/** Bit of Get Channel Authentication Capabilities → type, the best first (table 22-15). MD2 is left out: node:crypto does not have it. */
const TYPES: readonly (readonly [bit: number, type: number])[] = [
  [0x04, AUTHENTICATION_TYPE.md5],
  [0x10, AUTHENTICATION_TYPE.password],
  [0x01, AUTHENTICATION_TYPE.none],
];
/** Stands for the channel of the request. */
const THIS_CHANNEL = 0x0e;
const NAME_LENGTH = 16;
/** Bit 4 of the authentication status (table 22-15): packets after Activate Session need no code. */
const PER_MESSAGE_OFF = 0x10;

interface Numbers {
  bmcId: number;
  /** Of the packets to the BMC. */
  authenticationType: number;
  /** The type of authentication codes in this session. */
  codeType: number;
  /** The BMC says that packets of a session need no code. */
  codeIsOptional: boolean;
  /** The next packet's number; 0 until the session is active, when the BMC sets the start. */
  next: number;
}

function lanSession(peer: Peer, password: Buffer, numbers: Numbers): Session {
  let received = newWindow;
  const expected = (packet: Packet & { readonly kind: 'lan' }): Buffer => lanCode(packet.authenticationType, password, packet);
  return {
    route: { peer },
    get bmcId() {
      return numbers.bmcId;
    },
    request: 0,
    requests: 0,
    odd: false,
    seal: (_, payload) => {
      const header = { authenticationType: numbers.authenticationType, sessionId: numbers.bmcId, sequence: numbers.next };
      if (numbers.next !== 0) numbers.next = nextSequence(numbers.next);
      return encodeLan({ ...header, code: lanCode(header.authenticationType, password, { ...header, payload }) }, payload);
    },
    open: (packet) => {
      if (packet.kind !== 'lan') return undefined;
      const { authenticationType, sessionId, sequence, payload } = packet;
      const isCoded = authenticationType !== AUTHENTICATION_TYPE.none;
      // Some BMCs add a code to each packet although they say that none is needed.
      if (isCoded ? authenticationType !== numbers.codeType : numbers.codeType !== AUTHENTICATION_TYPE.none && !numbers.codeIsOptional)
        return undefined;
      // Some BMCs use the session ID 0 in each session. The code says that the packet is theirs.
      if (sessionId !== numbers.bmcId && !(isCoded && sessionId === 0)) return undefined;
      if (!sameBytes(packet.code, expected(packet))) return undefined;
      // The type `password` has the password itself as its code.
      const opened = { payloadType: PAYLOAD.ipmi, payload, isSigned: authenticationType === AUTHENTICATION_TYPE.md5 };
      // Outside a session, and without authentication, a BMC may use 0 as the number (§6.12.10).
      if (sequence === 0 && (!isCoded || numbers.next === 0)) return { ...opened, inOrder: true };
      const window = acceptSequence(received, sequence);
      if (!window && !isCoded) return undefined;
      received = window ?? received;
      return { ...opened, inOrder: window !== undefined };
    },
  };
}

/** @throws IpmiError `unreachable`, `refused`, or `completion` when the privilege level is denied */
export async function openLan(resources: SessionResources, target: IpmiTarget, peer: Peer, bounds: Bounds): Promise<Session> {
  const [username, secret] = [Buffer.from(target.username), Buffer.from(target.password)];
  if (username.length > NAME_LENGTH) throw new IpmiError('refused', 'wrong user name: longer than the 16 bytes of IPMI');
  if (secret.length > 16) throw new IpmiError('refused', 'wrong password: longer than the 16 bytes of IPMI 1.5');
  const privilege = PRIVILEGE[target.privilege];
  const numbers: Numbers = {
    bmcId: 0,
    authenticationType: AUTHENTICATION_TYPE.none,
    codeType: AUTHENTICATION_TYPE.none,
    codeIsOptional: false,
    next: 0,
  };
  const session = lanSession(peer, padded(secret, 16), numbers);
  // Before the session, rqSeq alone identifies a response. It starts at a random number.
  session.request = resources.random(1)[0]! & 0x3f;
  /** @returns the response's data */
  const ask = async (code: CommandCode, data: Buffer, tries: number): Promise<Buffer> => {
    const answer = await sendCommand(resources, session, { code, data }, tries, bounds);
    if (!answer) throw unreachable(target);
    const completionCode = answer[0]!;
    if (completionCode === COMPLETION.ok) return answer.subarray(1);
    if (code === COMMANDS.setSessionPrivilegeLevel) throw privilegeRefused(target, completionCode);
    throw new IpmiError('refused', `the BMC refused a session: ${completionText(completionCode, code)}`, { completionCode, command: code });
  };

  const capabilities = await ask(COMMANDS.getChannelAuthenticationCapabilities, Buffer.from([THIS_CHANNEL, privilege]), Infinity);
  const type = TYPES.find(([bit]) => capabilities[1]! & bit)?.[1];
  if (type === undefined) throw new IpmiError('refused', 'the BMC offers no authentication type of IPMI 1.5 that is known here');
  const codeIsOptional = (capabilities[2]! & PER_MESSAGE_OFF) !== 0;
  const challenge = await ask(COMMANDS.getSessionChallenge, Buffer.concat([Buffer.from([type]), padded(username, NAME_LENGTH)]), TRIES);
  if (challenge.length < 20) throw new IpmiError('protocol', 'the BMC answered Get Session Challenge with too few bytes');
  numbers.bmcId = challenge.readUInt32LE(0);
  numbers.authenticationType = numbers.codeType = type;
  numbers.codeIsOptional = codeIsOptional;
  const ours = resources.random(4).readUInt32LE() || 1;
  const first = Buffer.alloc(4);
  first.writeUInt32LE(ours);
  const request = Buffer.concat([Buffer.from([type, privilege]), challenge.subarray(4, 20), first]);
  // A BMC that finds the code wrong does not answer, or answers without a code. Here, both are a timeout.
  const active = await ask(COMMANDS.activateSession, request, TRIES).catch((error: unknown) => {
    if (error instanceof IpmiError && error.kind === 'unreachable' && type !== AUTHENTICATION_TYPE.none)
      throw new IpmiError('refused', 'the BMC does not answer Activate Session: wrong password, most likely');
    throw error;
  });
  if (active.length < 10) throw new IpmiError('protocol', 'the BMC answered Activate Session with too few bytes');
  numbers.bmcId = active.readUInt32LE(1);
  numbers.next = active.readUInt32LE(5) || 1;
  numbers.codeType = active[0]! & 0x0f;
  numbers.authenticationType = codeIsOptional ? AUTHENTICATION_TYPE.none : numbers.codeType;
  // A session begins at USER, or at CALLBACK when that is the limit (§22.18). PRESENT_LEVEL only asks which level it is.
  const level = privilege <= PRIVILEGE.USER ? PRESENT_LEVEL : privilege;
  if (level === PRESENT_LEVEL && !codeIsOptional) return session;
  const setLevel = (tries: number): Promise<unknown> => ask(COMMANDS.setSessionPrivilegeLevel, Buffer.from([level]), tries);
  try {
    if (!codeIsOptional) await setLevel(TRIES);
    else
      await setLevel(TRIES_WITHOUT_CODE).catch((error: unknown) => {
        if (!(error instanceof IpmiError) || error.kind !== 'unreachable') throw error;
        // Some BMCs ignore packets without a code although they say that none is needed.
        numbers.authenticationType = numbers.codeType;
        return setLevel(TRIES);
      });
  } catch (error) {
    // Any answer about the present level will do.
    if (level === PRESENT_LEVEL && error instanceof IpmiError && error.kind === 'completion') return session;
    // The session is open without the privilege level, and BMCs have few sessions.
    await closeSession(resources, session);
    throw error;
  }
  return session;
}
/** Attempts for each message after the first. */
const TRIES = 4;
const TRIES_WITHOUT_CODE = 2;
/** Set Session Privilege Level with this level changes nothing (§22.18). */
const PRESENT_LEVEL = 0;
