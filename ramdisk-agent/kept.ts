/**
 * What the next agent of this boot needs from this one, in the ramdisk's memory: the agent's program may be killed, or end by an error, and
 * init starts it again. Without its token, the server would refuse it until the machine is restarted.
 */
import { appendFileSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { isObject } from '../model/json';
import type { Run } from './system/run';

/** The node that the agent found, its token, and its own certificate with its key (PEM). */
interface Identity {
  readonly node: string;
  readonly address: string;
  readonly token: string;
  readonly certificate: string;
  readonly privateKey: string;
}
export interface Kept {
  /** The lines of the agents before, the oldest first. */
  earlierLines(): readonly string[];
  /** Never throws: the memory may be full. */
  addLine(line: string): void;
  /** Null: this is the first agent since the machine booted, or none found its node before. */
  identity(): Identity | null;
  setIdentity(identity: Identity): void;
  /** A user of the rescue system must not find the token. */
  forget(): void;
  /** Why the agent before ended; null: this is the first. Asked once by each agent. @param pid of this agent */
  howTheLastEnded(run: Run, pid: number): Promise<string | null>;
}

/** Bytes of the log. */
const MAX_LOG = 256 * 1024;
const MAX_LINE = 4096;
/** init writes the exit status of the agent there. */
const ENDED = 'agent-ended';
const PID = 'agent-pid';
const KEYS = ['node', 'address', 'token', 'certificate', 'privateKey'] as const;

/** @param folder in memory, for root only: /run */
export function createKept(folder: string): Kept {
  const [log, identity] = [join(folder, 'agent.log'), join(folder, 'agent-identity.json')];
  const attempt = <T>(work: () => T): T | null => {
    try {
      return work();
    } catch {
      return null;
    }
  };
  const read = (path: string): string | null => attempt(() => readFileSync(path, 'utf8'));
  return {
    earlierLines: () => (read(log) ?? '').split('\n').filter((line) => line !== ''),
    addLine: (line) => {
      attempt(() => {
        const size = attempt(() => statSync(log).size) ?? 0;
        if (size > MAX_LOG) writeFileSync(log, (read(log) ?? '').slice(-MAX_LOG / 2), { mode: 0o600 });
        appendFileSync(log, `${line.slice(0, MAX_LINE)}\n`, { mode: 0o600 });
      });
    },
    identity: () => {
      const found: unknown = attempt(() => JSON.parse(read(identity) ?? 'null') as unknown);
      return isObject(found) && KEYS.every((key) => typeof found[key] === 'string') ? (found as unknown as Identity) : null;
    },
    setIdentity: (known) => void attempt(() => writeFileSync(identity, JSON.stringify(known), { mode: 0o600 })),
    forget: () => {
      for (const path of [log, identity]) attempt(() => rmSync(path, { force: true }));
    },
    async howTheLastEnded(run, pid) {
      const last = (read(join(folder, PID)) ?? '').trim();
      attempt(() => writeFileSync(join(folder, PID), String(pid)));
      const status = Number(read(join(folder, ENDED)) ?? NaN);
      if (Number.isNaN(status)) return null;
      const killed = status > 128 ? ` (killed by signal ${status - 128})` : '';
      const kernel = (await run('dmesg', []).catch(() => ''))
        .split('\n')
        .findLast((line) => line.includes(`ut of memory: Killed process ${last} (`));
      return `The agent before ended with status ${status}${killed}${kernel === undefined ? '' : `; the kernel: ${kernel.trim()}`}`;
    },
  };
}
