/** The BMC's side of RMCP+ sessions: opening them (IPMI 2.0 §13.17–13.23), and their lifetime. */
import { MAX_SESSIONS, SESSION_SILENCE, type BmcOptions, type Privileged, type RecentRequest } from '../bmc';
import {
  decodeOpenSessionRequest,
  decodeRakp1,
  decodeRakp3,
  encodeOpenSessionResponse,
  encodeRakp2,
  encodeRakp4,
  encodeRefusal,
} from '../codec';
import { PRIVILEGE, RAKP_STATUS } from '../constants';
import {
  newWindow,
  rakp2Code,
  rakp3Code,
  rakp4Code,
  sameAlgorithms,
  sameBytes,
  sessionKeys,
  type CipherSuite,
  type Handshake,
  type SequenceWindow,
  type SessionKeys,
} from '../suites';

interface RmcpPlusSession extends Privileged {
  readonly consoleId: number;
  readonly suite: CipherSuite;
  usedAt: number;
  handshake?: Handshake;
  /** The response to RAKP 1, for repetitions of the same message. */
  rakp2?: { readonly to: Buffer; readonly answer: Buffer };
  /** Set once the session is open. */
  keys?: SessionKeys;
  received: SequenceWindow;
  sent: number;
  /** The latest requests with their responses, the oldest first. */
  recent: readonly RecentRequest[];
}
export interface RmcpPlusSessions {
  /** The responses to the three messages that open a session; undefined: none. */
  readonly openSession: (payload: Buffer) => Buffer | undefined;
  readonly rakp2: (payload: Buffer) => Buffer | undefined;
  readonly rakp4: (payload: Buffer) => Buffer | undefined;
  /** Only sessions that are alive, including those being opened. */
  readonly sessionOf: (id: number) => RmcpPlusSession | undefined;
  /** @returns whether there was an open session */
  readonly close: (id: number) => boolean;
  readonly reset: () => void;
}

/** Milliseconds after which a stalled handshake may be dropped. */
const HANDSHAKE_SILENCE = 10_000;

interface SessionTable {
  /** Undefined: all sessions are in use. */
  readonly newId: () => number | undefined;
  readonly add: (session: RmcpPlusSession) => void;
  readonly sessionOf: RmcpPlusSessions['sessionOf'];
  /** False while it is being opened. */
  readonly hasOpen: (id: number) => boolean;
  readonly remove: (id: number) => boolean;
  readonly reset: () => void;
}
/** The sessions by ID. Removes those without traffic. */
function createSessionTable(clock: BmcOptions['clock'], random: BmcOptions['random'], ended: (id: number) => void): SessionTable {
  const sessions = new Map<number, RmcpPlusSession>();
  const makeRoom = (): boolean => {
    if (sessions.size < MAX_SESSIONS) return true;
    const now = clock.now();
    for (const [id, { keys, usedAt }] of sessions) if (now - usedAt > (keys ? SESSION_SILENCE : HANDSHAKE_SILENCE)) sessions.delete(id);
    return sessions.size < MAX_SESSIONS;
  };
  return {
    newId: () => {
      if (!makeRoom()) return undefined;
      let id = 0;
      while (id === 0 || sessions.has(id)) id = random(4).readUInt32LE();
      return id;
    },
    add: (session) => void sessions.set(session.id, session),
    sessionOf: (id) => {
      const session = sessions.get(id);
      if (session && clock.now() - session.usedAt <= SESSION_SILENCE) return session;
      sessions.delete(id);
      ended(id);
      return undefined;
    },
    hasOpen: (id) => sessions.get(id)?.keys !== undefined,
    remove: (id) => sessions.delete(id),
    reset: () => {
      for (const id of sessions.keys()) ended(id);
      sessions.clear();
    },
  };
}

/**
 * @param suites the offered suites by number
 * @param ended called with the ID of a session that timed out or was reset
 */
export function createRmcpPlusSessions(
  { users, guid, clock, random, kg }: Pick<BmcOptions, 'users' | 'guid' | 'clock' | 'random' | 'kg'>,
  suites: readonly CipherSuite[],
  ended: (id: number) => void,
): RmcpPlusSessions {
  const table = createSessionTable(clock, random, ended);

  /** §13.17–18. */
  const openSession = (payload: Buffer): Buffer | undefined => {
    const request = decodeOpenSessionRequest(payload);
    if (!request) return undefined;
    const { tag, consoleId } = request;
    const suite = suites.find((row) => sameAlgorithms(row, request.algorithms));
    if (!suite) return encodeRefusal({ tag, consoleId, status: RAKP_STATUS.noCipherSuiteMatch });
    if (request.privilege > PRIVILEGE.ADMINISTRATOR) return encodeRefusal({ tag, consoleId, status: RAKP_STATUS.invalidRole });
    const id = table.newId();
    if (id === undefined) return encodeRefusal({ tag, consoleId, status: RAKP_STATUS.insufficientResources });
    const limit = request.privilege === 0 ? PRIVILEGE.ADMINISTRATOR : request.privilege;
    table.add({ id, consoleId, suite, limit, privilege: 0, usedAt: clock.now(), received: newWindow, sent: 0, recent: [] });
    return encodeOpenSessionResponse({ tag, status: RAKP_STATUS.ok, privilege: limit, consoleId, bmcId: id, algorithms: suite });
  };

  /** §13.20–21. Names are looked up with or without the privilege level: each user has one level here. */
  const rakp2 = (payload: Buffer): Buffer | undefined => {
    const message = decodeRakp1(payload);
    const session = message && table.sessionOf(message.bmcId);
    if (!message || !session || session.keys) return undefined;
    const { tag, role, username } = message;
    const { consoleId } = session;
    if (session.rakp2?.to.equals(payload)) return session.rakp2.answer;
    const refusal = (status: number): Buffer => {
      table.remove(session.id);
      return encodeRefusal({ tag, consoleId, status });
    };
    const user = users.find(({ name }) => Buffer.from(name).equals(username));
    if (!user) return refusal(RAKP_STATUS.unauthorizedName);
    const level = role & 0x0f;
    if (level > PRIVILEGE.ADMINISTRATOR) return refusal(RAKP_STATUS.invalidRole);
    if (level > user.privilege || level > session.limit) return refusal(RAKP_STATUS.unauthorizedRole);
    session.limit = level === 0 ? Math.min(session.limit, user.privilege) : level;
    session.handshake = {
      suite: session.suite,
      password: Buffer.from(user.password),
      consoleId,
      bmcId: session.id,
      consoleRandom: Buffer.from(message.consoleRandom),
      bmcRandom: random(16),
      guid,
      role,
      username: Buffer.from(username),
      kg,
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
    const session = message && table.sessionOf(message.bmcId);
    if (!message || !session?.handshake) return undefined;
    const { tag, status } = message;
    const { consoleId, handshake } = session;
    if (status !== RAKP_STATUS.ok) {
      // The console rejects RAKP 2. There is no response to that.
      if (!session.keys) table.remove(session.id);
      return undefined;
    }
    if (!sameBytes(message.code, rakp3Code(handshake))) {
      // RAKP 3 may come from another console than the one that opened the session, so an open session stays.
      if (!session.keys) table.remove(session.id);
      return encodeRefusal({ tag, consoleId, status: RAKP_STATUS.invalidIntegrityCheck });
    }
    // A repeated RAKP 3 finds the session open.
    if (!session.keys) {
      session.keys = sessionKeys(handshake);
      session.privilege = Math.min(session.limit, PRIVILEGE.USER);
    }
    session.usedAt = clock.now();
    delete session.rakp2;
    return encodeRakp4({ tag, status: RAKP_STATUS.ok, consoleId, code: rakp4Code(handshake) });
  };

  return {
    openSession,
    rakp2,
    rakp4,
    sessionOf: table.sessionOf,
    close: (id) => table.hasOpen(id) && table.remove(id),
    reset: table.reset,
  };
}
