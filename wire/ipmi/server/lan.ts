/** The BMC's side of IPMI 1.5 sessions (IPMI 2.0 §13.6–13.14, §22.16–22.17). */
import {
  MAX_SESSIONS,
  SESSION_SILENCE,
  refuse,
  type BmcAnswer,
  type BmcUser,
  type Oddities,
  type Privileged,
  type RecentRequest,
} from '../bmc';
import { AUTHENTICATION_TYPE, encodeLan, type LanMessage, type Packet } from '../codec';
import { COMPLETION, PRIVILEGE } from '../constants';
import { lanCode } from '../lan-code';
import { acceptSequence, newWindow, nextSequence, padded, sameBytes, type SequenceWindow } from '../suites';

type LanPacket = Packet & { readonly kind: 'lan' };
interface LanSession extends Privileged {
  readonly user: BmcUser;
  readonly authenticationType: number;
  readonly challenge: Buffer;
  active: boolean;
  usedAt: number;
  received: SequenceWindow;
  sent: number;
  /** The latest requests with their responses, the oldest first. */
  recent: readonly RecentRequest[];
}
interface LanSessions {
  /** Get Session Challenge. */
  challenge(data: Buffer): BmcAnswer;
  /** @returns the session of an authentic packet; undefined: no response */
  sessionOf(packet: LanPacket): LanSession | undefined;
  activate(session: LanSession, data: Buffer): BmcAnswer;
  /** Makes a packet of a response. */
  seal(session: LanSession, payload: Buffer): Buffer;
  close(id: number): boolean;
  /** Ends all sessions. */
  reset(): void;
}

const TYPES: readonly number[] = [AUTHENTICATION_TYPE.none, AUTHENTICATION_TYPE.md5, AUTHENTICATION_TYPE.password];
const numbers = (...values: readonly number[]): Buffer => {
  const bytes = Buffer.alloc(4 * values.length);
  values.forEach((value, index) => bytes.writeUInt32LE(value, 4 * index));
  return bytes;
};
/** Activate Session. It is handled apart from the other commands of a session. */
export const isActivation = (message: LanMessage): boolean => message.networkFunction === 0x06 && message.command === 0x3a;

export function createLanSessions(options: {
  readonly users: readonly BmcUser[];
  readonly clock: { now(): number };
  readonly random: (bytes: number) => Buffer;
  readonly oddities?: Oddities;
}): LanSessions {
  const { users, clock, random, oddities = {} } = options;
  const { perMessage } = oddities;
  /** Packets of this session may be without a code. */
  const isUnsigned = ({ active }: LanSession, { authenticationType }: LanPacket): boolean =>
    active && perMessage !== undefined && perMessage !== 'required' && authenticationType === AUTHENTICATION_TYPE.none;
  const sessions = new Map<number, LanSession>();
  const alive = ({ usedAt }: LanSession): boolean => clock.now() - usedAt <= SESSION_SILENCE;
  const makeRoom = (): boolean => {
    if (sessions.size >= MAX_SESSIONS) for (const [id, session] of sessions) if (!alive(session)) sessions.delete(id);
    return sessions.size < MAX_SESSIONS;
  };
  const keyOf = ({ user }: LanSession): Buffer => padded(Buffer.from(user.password), 16);
  return {
    challenge: (data) => {
      if (data.length !== 17) return refuse(COMPLETION.lengthInvalid);
      const authenticationType = data[0]! & 0x0f;
      const user = users.find(({ name }) => padded(Buffer.from(name), 16).equals(data.subarray(1)));
      if (!user) return refuse(0x81);
      if (!TYPES.includes(authenticationType) || (authenticationType === AUTHENTICATION_TYPE.none && user.password !== ''))
        return refuse(COMPLETION.invalidField);
      if (!makeRoom()) return refuse(COMPLETION.outOfSpace);
      let id = 0;
      while (id === 0 || sessions.has(id)) id = random(4).readUInt32LE();
      const challenge = random(16);
      const state = { active: false, usedAt: clock.now(), received: newWindow, sent: 0, recent: [], limit: user.privilege, privilege: 0 };
      sessions.set(id, { id, user, authenticationType, challenge, ...state });
      return { completionCode: COMPLETION.ok, data: Buffer.concat([numbers(id), challenge]) };
    },
    sessionOf: (packet) => {
      const session = sessions.get(packet.sessionId);
      if (!session || !alive(session)) return undefined;
      if (packet.authenticationType !== session.authenticationType && !isUnsigned(session, packet)) return undefined;
      if (!sameBytes(packet.code, lanCode(packet.authenticationType, keyOf(session), packet))) return undefined;
      if (session.active) {
        const received = acceptSequence(session.received, packet.sequence);
        if (!received) return undefined;
        session.received = received;
      }
      session.usedAt = clock.now();
      return session;
    },
    activate: (session, data) => {
      if (data.length !== 22) return refuse(COMPLETION.lengthInvalid);
      if (!data.subarray(2, 18).equals(session.challenge)) return refuse(COMPLETION.invalidField);
      const level = data[1]! & 0x0f;
      if (level > session.user.privilege) return refuse(0x86);
      session.active = true;
      session.limit = level === 0 ? session.user.privilege : level;
      session.privilege = Math.min(session.limit, PRIVILEGE.USER);
      session.sent = data.readUInt32LE(18) - 1;
      return {
        completionCode: COMPLETION.ok,
        data: Buffer.concat([Buffer.from([session.authenticationType]), numbers(session.id, 1), Buffer.from([session.limit])]),
      };
    },
    seal: (session, payload) => {
      session.sent = session.active ? nextSequence(session.sent) : 0;
      const header = {
        authenticationType: session.active && perMessage === 'off' ? AUTHENTICATION_TYPE.none : session.authenticationType,
        sessionId: session.active && oddities.sessionIdZero ? 0 : session.id,
        sequence: oddities.sequence?.(session.sent) ?? session.sent,
      };
      return encodeLan({ ...header, code: lanCode(header.authenticationType, keyOf(session), { ...header, payload }) }, payload);
    },
    close: (id) => sessions.delete(id),
    reset: () => sessions.clear(),
  };
}
