/** IPMI client: kept sessions to BMCs, one request at a time in each. */
import { COMMANDS, COMPLETION, IpmiError, completionText } from './constants';
import { openLan } from './lan';
import { inLine, newLine, within, type Line } from './line';
import { openRmcpPlus } from './rmcp-plus';
import { closeSession, sendCommand, unreachable, type Bounds, type Bridge, type Command, type Link, type Session } from './session';
import { createConsoleSockets, resolvePeer } from './socket';
import { startSol, type SolChannel } from './sol';

export { IpmiError } from './constants';

export interface IpmiTarget {
  readonly address: string;
  /** UDP port, 623 unless told. */
  readonly port: number;
  readonly username: string;
  readonly password: string;
  /** Requested maximum privilege level (IPMI 2.0 §13.17): callback, user, operator, administrator. */
  readonly privilege: 'CALLBACK' | 'USER' | 'OPERATOR' | 'ADMINISTRATOR';
  /** Absent: 2.0. */
  readonly version?: '1.5' | '2.0';
  /** RMCP+ cipher suites (IPMI 2.0 table 22-20): the first that the BMC takes. */
  readonly cipherSuites: readonly number[];
  /** K_g key, 20 bytes at most; absent: one-key login. */
  readonly kg?: Buffer;
  /** The controller behind that BMC which is meant. */
  readonly bridge?: Bridge;
}
export interface RequestOptions {
  readonly timeoutMs: number;
  readonly signal?: AbortSignal | undefined;
  /** Logical unit of the controller (§7.2); 0 unless told. */
  readonly lun?: number | undefined;
}
export interface IpmiPool {
  /**
   * Sends one command in the target's kept session (opened when there is none), resent when lost.
   * @returns the answer's data without the completion code
   * @throws IpmiError; the signal's reason when it is aborted
   */
  request(target: IpmiTarget, networkFunction: number, command: number, data: Buffer, options: RequestOptions): Promise<Buffer>;
  /**
   * What a program says of that BMC to a command of its own, where one is used: for what would take too many requests one at a time.
   * Absent: no program is.
   */
  readonly tell?: (target: IpmiTarget, words: readonly string[], options: RequestOptions) => Promise<string>;
  /** Closes the sessions and sockets; requests that still wait fail. */
  close(): Promise<void>;
}
export interface SolPool {
  /** Opens serial-over-LAN in a session of its own. @param deliver gets what the machine writes. Throws IpmiError */
  readonly openSol: (target: IpmiTarget, deliver: (bytes: Buffer) => void, options: RequestOptions) => Promise<SolChannel>;
}
export interface IpmiPoolOptions {
  readonly log: { warn(message: string, fields?: object): void };
  readonly clock: { now(): number };
  readonly random: (bytes: number) => Buffer;
  /** Milliseconds until a packet without an answer is sent again. */
  readonly resendMs?: number;
  /** A session without traffic for so long gets a Get Device ID: BMCs end sessions after 60 s of silence (§6.12.15). */
  readonly keepAliveMs?: number;
  /** A session that nobody used for so long is closed: BMCs have few of them, for others too. */
  readonly idleMs?: number;
  /** Sessions kept at most; above, the one unused for longest is closed. */
  readonly maxSessions?: number;
}

/** Sends in a kept session before it counts as lost (the BMC was reset, or it ended the session) and a new one is opened. */
const TRIES_IN_KEPT_SESSION = 3;
const KEEP_ALIVE: Command = { words: COMMANDS.getDeviceId, data: Buffer.alloc(0) };
/** Requests that may wait for one BMC. */
export const MAX_WAITING = 64;

/** What the pool has of one target. */
interface Kept {
  session?: Session | undefined;
  readonly line: Line;
  usedAt: number;
  heardAt: number;
}

export function createIpmiPool(options: IpmiPoolOptions): IpmiPool & SolPool {
  const { log, clock, random, resendMs = 1000, keepAliveMs = 25_000, idleMs = 60_000, maxSessions = 4096 } = options;
  const link: Link = { sockets: createConsoleSockets(log), clock, random, resendMs };
  const kept = new Map<string, Kept>();
  let closed: IpmiError | undefined;
  let sweeper: NodeJS.Timeout | undefined;

  const open = async (target: IpmiTarget, bounds: Bounds): Promise<Session> => {
    const left = bounds.deadline - clock.now();
    const peer = await within(resolvePeer(target.address, target.port), left, () => unreachable(target), bounds.signal);
    return target.version === '1.5' ? openLan(link, target, peer, bounds) : openRmcpPlus(link, target, peer, bounds);
  };
  const send = async (it: Kept, target: IpmiTarget, command: Command, bounds: Bounds): Promise<Buffer> => {
    for (;;) {
      const fresh = it.session === undefined;
      it.session ??= await open(target, bounds);
      const answer = await sendCommand(link, it.session, command, fresh ? Infinity : TRIES_IN_KEPT_SESSION, bounds);
      if (answer) {
        it.heardAt = clock.now();
        return answer;
      }
      it.session = undefined;
      if (fresh) throw unreachable(target);
    }
  };
  const drop = async (key: string, it: Kept): Promise<void> => {
    kept.delete(key);
    const { session } = it;
    it.session = undefined;
    if (session) await closeSession(link, session);
  };
  const sweep = (): void => {
    const now = clock.now();
    for (const [key, it] of kept) {
      if (it.line.waiting > 0) continue;
      if (!it.session || now - it.usedAt >= idleMs) void drop(key, it);
      else if (now - it.heardAt >= keepAliveMs) {
        const { session } = it;
        const bounds = { deadline: now + 4 * resendMs };
        const work = async (): Promise<void> => {
          const answer = await sendCommand(link, session, KEEP_ALIVE, TRIES_IN_KEPT_SESSION, bounds);
          if (answer) it.heardAt = clock.now();
          else it.session = undefined;
        };
        inLine(it.line, now, () => new Error('late'), bounds, work).catch(() => {});
      }
    }
    if (kept.size > 0) return;
    clearInterval(sweeper);
    sweeper = undefined;
  };
  const keep = (target: IpmiTarget): Kept => {
    // What is behind a BMC is reached in the BMC's own session.
    const key = JSON.stringify({ ...target, bridge: undefined });
    const known = kept.get(key);
    if (known) return known;
    if (kept.size >= maxSessions) {
      const idle = [...kept].filter(([, { line }]) => line.waiting === 0);
      const oldest = idle.reduce<(typeof idle)[number] | undefined>((a, b) => (a && a[1].usedAt <= b[1].usedAt ? a : b), undefined);
      if (!oldest) throw new IpmiError('closed', `all ${maxSessions} IPMI sessions are in use`);
      void drop(...oldest);
    }
    const made: Kept = { line: newLine(), usedAt: clock.now(), heardAt: clock.now() };
    kept.set(key, made);
    sweeper ??= setInterval(sweep, Math.min(keepAliveMs, idleMs) / 4).unref();
    return made;
  };

  return {
    request: async (target, networkFunction, command, data, { timeoutMs, signal, lun }) => {
      if (closed) throw closed;
      const words = [networkFunction, command] as const;
      const it = keep(target);
      if (it.line.waiting >= MAX_WAITING)
        throw new IpmiError('closed', `more than ${MAX_WAITING} requests wait for the BMC at ${target.address}`);
      it.usedAt = clock.now();
      const bounds: Bounds = { deadline: it.usedAt + timeoutMs, signal };
      const answer = await inLine(
        it.line,
        it.usedAt,
        () => unreachable(target),
        bounds,
        () => send(it, target, { words, data, lun, bridge: target.bridge }, bounds),
      );
      it.usedAt = clock.now();
      const code = answer[0]!;
      if (code !== COMPLETION.ok) throw new IpmiError('completion', completionText(code, words), { completionCode: code });
      return answer.subarray(1);
    },
    openSol: async (target, deliver, { timeoutMs, signal }) => {
      if (closed) throw closed;
      if (target.version === '1.5') throw new IpmiError('refused', 'serial-over-LAN needs IPMI 2.0');
      const bounds = { deadline: clock.now() + timeoutMs, signal };
      return startSol(link, target, await open(target, bounds), bounds, keepAliveMs, deliver);
    },
    close: async () => {
      closed ??= new IpmiError('closed', 'the IPMI client is closed');
      link.sockets.interrupt(closed);
      clearInterval(sweeper);
      const open = [...kept];
      await Promise.allSettled(open.map(async ([key, it]) => it.line.end.then(() => drop(key, it))));
      link.sockets.close();
    },
  };
}
