/** IPMI client: reuses sessions to BMCs, with one request at a time for each BMC. */
import { COMMANDS, COMPLETION, IpmiError, completionText } from './constants';
import { openLan } from './lan';
import { runInQueue, withTimeout } from './request-queue';
import { openRmcpPlus } from './rmcp-plus';
import {
  closeSession,
  isUsedUp,
  newPace,
  sendCommand,
  unreachable,
  type Bounds,
  type Command,
  type IpmiTarget,
  type Session,
} from './session';
import { createBmcs, createSessionCache, TRIES_IN_NEW_SESSION, TRIES_IN_OLD_SESSION, type Bmc, type TargetState } from './session-cache';
import { createConsoleSockets, resolvePeer } from './socket';
import { startSol, type KeepAlive, type SolChannel } from './sol';

export { IpmiError } from './constants';
export type { IpmiTarget } from './session';

export interface RequestOptions {
  readonly timeoutMs: number;
  readonly signal?: AbortSignal | undefined;
  /** Logical unit of the controller (§7.2); default 0. */
  readonly lun?: number | undefined;
}
export interface IpmiPool {
  /**
   * Sends one command in the target's session (opened if there is none), and repeats it when packets are lost.
   * @returns the response's data without the completion code
   * @throws IpmiError; the signal's reason when it is aborted
   */
  request(target: IpmiTarget, networkFunction: number, command: number, data: Buffer, options: RequestOptions): Promise<Buffer>;
  /**
   * Runs a command of the external program for the BMC and returns its output. One run replaces many requests, each of which would be a run
   * of its own. Absent: no external program is used.
   */
  readonly runProgram?: ((target: IpmiTarget, args: readonly string[], options: RequestOptions) => Promise<string>) | undefined;
  /** Closes sessions and sockets; pending requests fail. */
  close(): Promise<void>;
}
export interface SolPool {
  /** Opens serial-over-LAN in its own session. @param deliver gets the machine's output. Throws IpmiError */
  readonly openSol: (target: IpmiTarget, deliver: (bytes: Buffer) => void, options: RequestOptions) => Promise<SolChannel>;
}
interface IpmiPoolOptions {
  readonly log: { warn(message: string, fields?: object): void };
  readonly clock: { now(): number };
  readonly random: (bytes: number) => Buffer;
  /** Least milliseconds before a packet without a response is sent again. Slower BMCs get longer. */
  readonly resendMs?: number;
  /** A session without traffic for this time sends Get Device ID: BMCs end sessions after 60 s of silence (§6.12.15). */
  readonly keepAliveMs?: number;
  /** A session unused for this time is closed: BMCs have few of them, and other clients need them too. */
  readonly idleMs?: number;
  /** Most sessions to keep open. Above, the longest unused one is closed. */
  readonly maxSessions?: number;
}

const isControl = ({ code: [networkFunction, command] }: Command): boolean =>
  networkFunction === COMMANDS.chassisControl[0] && command === COMMANDS.chassisControl[1];
/** Requests that may wait for one BMC. */
export const MAX_WAITING = 64;

export function createIpmiPool(options: IpmiPoolOptions): IpmiPool & SolPool {
  const { log, clock, random, resendMs = 1000, keepAliveMs = 25_000, idleMs = 60_000, maxSessions = 4096 } = options;
  const sockets = createConsoleSockets(log);
  const bmcs = createBmcs(() => ({ sockets, clock, random, resendMs, pace: newPace() }));
  const cache = createSessionCache({ bmcs, clock, resendMs, keepAliveMs, idleMs, maxSessions });
  let closed: IpmiError | undefined;

  /** After an abort the caller returns at once. The next request still waits for the end of the work, since the BMC may be busy with it. */
  const inTurn = <T>({ queue }: Bmc, target: IpmiTarget, bounds: Bounds, work: () => Promise<T>): Promise<T> => {
    const [now, late] = [clock.now(), () => unreachable(target)];
    // `work` notices a missing response itself, sometimes with a better error.
    return withTimeout(runInQueue(queue, now, late, bounds, work), bounds.deadline - now + resendMs, late, bounds.signal);
  };
  const open = async ({ resources }: Bmc, target: IpmiTarget, bounds: Bounds): Promise<Session> => {
    const left = bounds.deadline - clock.now();
    const peer = await withTimeout(resolvePeer(target.address, target.port), left, () => unreachable(target), bounds.signal);
    return target.version === '1.5' ? openLan(resources, target, peer, bounds) : openRmcpPlus(resources, target, peer, bounds);
  };
  const send = async (it: TargetState, target: IpmiTarget, command: Command, bounds: Bounds): Promise<Buffer> => {
    for (;;) {
      if (it.session && isUsedUp(it.session)) {
        await closeSession(it.bmc.resources, it.session);
        it.session = undefined;
      }
      const fresh = it.session === undefined;
      it.session ??= await open(it.bmc, target, bounds);
      // A new session numbers requests anew: a BMC that works on a reset could not recognize its repetition, and would do it twice.
      const inNew = isControl(command) ? Infinity : TRIES_IN_NEW_SESSION;
      const { session } = it;
      const answer = await sendCommand(it.bmc.resources, session, command, fresh ? inNew : TRIES_IN_OLD_SESSION, bounds);
      if (answer) {
        it.heardAt = clock.now();
        return answer;
      }
      it.session = undefined;
      // The lost session is closed, because BMCs have few sessions.
      await closeSession(it.bmc.resources, session);
      if (fresh && clock.now() >= bounds.deadline) throw unreachable(target);
    }
  };

  return {
    request: async (target, networkFunction, command, data, { timeoutMs, signal, lun }) => {
      if (closed) throw closed;
      const code = [networkFunction, command] as const;
      const it = cache.stateOf(target);
      const { queue } = it.bmc;
      if (queue.waiting >= MAX_WAITING)
        throw new IpmiError('closed', `more than ${MAX_WAITING} requests wait for the BMC at ${target.address}`);
      it.usedAt = clock.now();
      const bounds: Bounds = { deadline: it.usedAt + timeoutMs, signal };
      const answer = await inTurn(it.bmc, target, bounds, () => send(it, target, { code, data, lun, bridge: target.bridge }, bounds));
      it.usedAt = clock.now();
      const completionCode = answer[0]!;
      if (completionCode !== COMPLETION.ok)
        throw new IpmiError('completion', completionText(completionCode, code), { completionCode, command: code });
      return answer.subarray(1);
    },
    openSol: async (target, deliver, { timeoutMs, signal }) => {
      if (closed) throw closed;
      if (target.version === '1.5') throw new IpmiError('refused', 'serial-over-LAN needs IPMI 2.0');
      const bounds = { deadline: clock.now() + timeoutMs, signal };
      const bmc = bmcs.use(target);
      const keepAlive: KeepAlive = { everyMs: keepAliveMs, inTurn: (limits, work) => inTurn(bmc, target, limits, work) };
      const start = async (): Promise<SolChannel> => {
        const session = await open(bmc, target, bounds);
        const channel = await startSol(bmc.resources, target, session, bounds, keepAlive, deliver);
        if (signal?.aborted) await channel.close();
        return channel;
      };
      try {
        const channel = await inTurn(bmc, target, bounds, start);
        void channel.closed.then(() => bmcs.release(target, bmc));
        return channel;
      } catch (error) {
        bmcs.release(target, bmc);
        throw error;
      }
    },
    close: async () => {
      closed ??= new IpmiError('closed', 'the IPMI client is closed');
      sockets.interrupt(closed);
      await cache.close();
      sockets.close();
    },
  };
}
