/** The open sessions of the IPMI client and the state of their BMCs. Keeps sessions alive, and closes unused ones. */
import { canonicalHost } from '../../model/idents';
import { COMMANDS, IpmiError } from './constants';
import { runInQueue, createRequestQueue, type RequestQueue } from './request-queue';
import { closeSession, sendCommand, type Command, type IpmiTarget, type SessionResources, type Session } from './session';

/** Attempts in an existing session before it counts as lost (the BMC was reset, or ended it) and a new one is opened. */
export const TRIES_IN_OLD_SESSION = 3;
/** The same for a new session: a slow BMC is given longer, since it has just answered. */
export const TRIES_IN_NEW_SESSION = 8;
const KEEP_ALIVE: Command = { code: COMMANDS.getDeviceId, data: Buffer.alloc(0) };

/** The client's state of one BMC, common to all logins. */
export interface Bmc {
  readonly queue: RequestQueue;
  readonly resources: SessionResources;
  /** Open sessions and consoles. */
  users: number;
}
/** The client's state of one target. */
export interface TargetState {
  readonly target: IpmiTarget;
  session?: Session | undefined;
  readonly bmc: Bmc;
  usedAt: number;
  heardAt: number;
}
interface Bmcs {
  /** The state of the target's BMC, which exists until every user has released it. */
  readonly use: (target: IpmiTarget) => Bmc;
  readonly release: (target: IpmiTarget, bmc: Bmc) => void;
}
interface SessionCacheSetup {
  readonly bmcs: Bmcs;
  readonly clock: { now(): number };
  readonly resendMs: number;
  readonly keepAliveMs: number;
  readonly idleMs: number;
  readonly maxSessions: number;
}
interface SessionCache {
  /** Throws IpmiError if all sessions are in use. */
  readonly stateOf: (target: IpmiTarget) => TargetState;
  /** Closes each session after the pending requests of its BMC. */
  readonly close: () => Promise<void>;
}

const nameOf = ({ address, port }: IpmiTarget): string => `${canonicalHost(address) ?? address.toLowerCase()} ${port}`;

export function createBmcs(newResources: () => SessionResources): Bmcs {
  const bmcs = new Map<string, Bmc>();
  const use = (target: IpmiTarget): Bmc => {
    const name = nameOf(target);
    const bmc = bmcs.get(name) ?? { queue: createRequestQueue(), resources: newResources(), users: 0 };
    bmcs.set(name, bmc);
    bmc.users++;
    return bmc;
  };
  const release = (target: IpmiTarget, bmc: Bmc): void => {
    if (--bmc.users === 0) bmcs.delete(nameOf(target));
  };
  return { use, release };
}

/** Has one session for each target. The client opens and uses it. */
export function createSessionCache({ bmcs, clock, resendMs, keepAliveMs, idleMs, maxSessions }: SessionCacheSetup): SessionCache {
  const targets = new Map<string, TargetState>();
  let sweeper: NodeJS.Timeout | undefined;

  const drop = async (key: string, it: TargetState): Promise<void> => {
    if (targets.delete(key)) bmcs.release(it.target, it.bmc);
    const { session } = it;
    it.session = undefined;
    if (session) await closeSession(it.bmc.resources, session);
  };
  const sweep = (): void => {
    const now = clock.now();
    for (const [key, it] of targets) {
      const { queue, resources } = it.bmc;
      if (queue.waiting > 0) continue;
      if (!it.session || now - it.usedAt >= idleMs) void drop(key, it);
      else if (now - it.heardAt >= keepAliveMs) {
        const { session } = it;
        const bounds = { deadline: now + 4 * resendMs };
        const work = async (): Promise<void> => {
          const answer = await sendCommand(resources, session, KEEP_ALIVE, TRIES_IN_OLD_SESSION, bounds);
          if (answer) it.heardAt = clock.now();
          else {
            it.session = undefined;
            await closeSession(resources, session);
          }
        };
        runInQueue(queue, now, () => new Error('late'), bounds, work).catch(() => {});
      }
    }
    if (targets.size > 0) return;
    clearInterval(sweeper);
    sweeper = undefined;
  };
  const stateOf = (target: IpmiTarget): TargetState => {
    // Controllers behind a BMC are reached in the BMC's own session.
    const key = JSON.stringify({ ...target, bridge: undefined });
    const known = targets.get(key);
    if (known) return known;
    if (targets.size >= maxSessions) {
      const idle = [...targets].filter(([, { bmc }]) => bmc.queue.waiting === 0);
      const oldest = idle.reduce<(typeof idle)[number] | undefined>((a, b) => (a && a[1].usedAt <= b[1].usedAt ? a : b), undefined);
      if (!oldest) throw new IpmiError('closed', `all ${maxSessions} IPMI sessions are in use`);
      void drop(...oldest);
    }
    const state: TargetState = { target, bmc: bmcs.use(target), usedAt: clock.now(), heardAt: clock.now() };
    targets.set(key, state);
    sweeper ??= setInterval(sweep, Math.min(keepAliveMs, idleMs) / 4).unref();
    return state;
  };

  return {
    stateOf,
    close: async () => {
      clearInterval(sweeper);
      const open = [...targets];
      await Promise.allSettled(open.map(async ([key, it]) => it.bmc.queue.end.then(() => drop(key, it))));
    },
  };
}
