/** The servers that are killed: three conductors on one PostgreSQL, or one process with its embedded database. */
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { systemClock } from '../../model/clock';
import { silentLog } from '../../model/log';
import { startEmbedded } from '../../store/embedded/embedded';
import { readPidFile } from '../../store/embedded/postmaster';
import type { Sections } from '../../demo/lab/server';
import { childrenOf } from '../support/cpu-time';
import type { Chance } from './chance';
import { startProcess, type Process } from './process';

export interface Victim {
  readonly name: string;
  /** Kills or suspends the victim, waits, and restores it. @returns a description of what was done */
  strike(chance: Chance): Promise<string>;
}
export interface Site {
  readonly name: string;
  readonly urls: readonly string[];
  readonly stepLog: string;
  readonly folder: string;
  readonly victims: readonly Victim[];
  /** The end of every server's log. */
  logs(): string;
  /** @param keep keeps the logs, for an investigation */
  stop(keep: boolean): Promise<void>;
}

const FAKE = ['bios', 'boot', 'console', 'deploy', 'firmware', 'inspect', 'management', 'power', 'raid', 'rescue', 'storage', 'vendor'];
const sections = (host: string, port: number, stepLog: string, connection?: string): Sections => ({
  DEFAULT: {
    my_ip: '127.0.0.1',
    host,
    enabled_hardware_types: 'fake-hardware',
    enabled_network_interfaces: 'noop',
    ...Object.fromEntries(FAKE.map((kind) => [`enabled_${kind}_interfaces`, 'fake'])),
  },
  api: { host_ip: '127.0.0.1', port },
  json_rpc: { host_ip: '127.0.0.1' },
  ...(connection === undefined ? {} : { database: { connection } }),
  conductor: {
    heartbeat_interval: 1,
    heartbeat_timeout: 3,
    sync_power_state_interval: 2,
    check_allocations_interval: 2,
    check_provision_state_interval: 2,
    service_callback_timeout: 15,
  },
  agent: { require_tls: 'false' },
  fake: { step_log: stepLog, vendor_delay: '0,1', deploy_delay: '0,1', power_delay: '0,1', inspect_delay: '0,1', rescue_delay: '0,1' },
});

/** Milliseconds until the victim is restored: soon, or late enough that the others have noticed. */
const pause = (chance: Chance): number => (chance.percent(70) ? chance.between(0, 1500) : chance.between(4500, 7000));

const killed = (value: Process, name: string, whileDead: () => void = () => {}): Victim => ({
  name,
  strike: async (chance) => {
    await value.kill();
    whileDead();
    const milliseconds = pause(chance);
    await delay(milliseconds);
    await value.start();
    return `killed, back after ${milliseconds} ms`;
  },
});
/** A host that was suspended: its clock jumps, and by then another conductor has its work. */
const suspended = (processes: readonly Process[], name: string): Victim => ({
  name,
  strike: async (chance) => {
    const one = chance.pick(processes);
    const milliseconds = chance.between(2000, 7000);
    one.signal('SIGSTOP');
    await delay(milliseconds);
    one.signal('SIGCONT');
    return `suspended for ${milliseconds} ms`;
  },
});

const end = (pid: number): void => {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // The process has ended already.
  }
};
/** The main process of PostgreSQL, or one of its children, whose death ends the others too. */
const database = (name: string, postmaster: () => Promise<number | undefined>): Victim => ({
  name,
  strike: async (chance) => {
    const pid = await postmaster();
    if (pid === undefined) return 'it was not running';
    const sessions = childrenOf(pid);
    if (chance.percent(50) && sessions.length > 0) {
      end(chance.pick(sessions));
      return 'one of its processes killed';
    }
    end(pid);
    return 'the postmaster killed';
  },
});

const endOf = (file: string): string => (existsSync(file) ? readFileSync(file, 'utf8').slice(-20_000) : '');
const folderFor = (name: string): string => mkdtempSync(join(tmpdir(), `bloomery-chaos-${name}-`));

/** Host → roles. carl is a conductor without an API, which only the other servers call; dora has only the API. */
const ROLES = { anna: 'api,conductor', bert: 'api,conductor', carl: 'conductor', dora: 'api' };
/** @param ports of their APIs */
export async function threeConductors(ports: readonly number[]): Promise<Site> {
  const folder = folderFor('three');
  const stepLog = join(folder, 'steps');
  mkdirSync(join(folder, 'database'));
  const postgres = await startEmbedded({ stateDir: join(folder, 'database'), log: silentLog, clock: systemClock });
  const begun = new Map<string, Process>();
  // The first server creates the schema.
  for (const [index, [host, roles]] of Object.entries(ROLES).entries())
    begun.set(
      host,
      await startProcess(join(folder, host), ports[index]!, sections(host, ports[index]!, stepLog, postgres.connection), roles),
    );
  const processes = [...begun.values()];
  const conductors = processes.slice(0, 3);
  return {
    name: 'three conductors',
    urls: [begun.get('anna')!, begun.get('bert')!, begun.get('dora')!].map(({ url }) => url),
    stepLog,
    folder,
    victims: [
      ...conductors.map((conductor) => killed(conductor, 'one conductor of three')),
      killed(begun.get('dora')!, 'an API of its own'),
      suspended(conductors, 'one conductor of three, suspended'),
      database('PostgreSQL', async () => postgres.pid),
      database('PostgreSQL', async () => postgres.pid),
    ],
    logs: () => processes.map(({ log }) => endOf(log)).join('\n'),
    stop: async (keep) => {
      await Promise.all(processes.map((process) => process.stop()));
      await postgres.stop();
      if (!keep) rmSync(folder, { recursive: true, force: true });
    },
  };
}

export async function onlyProcess(port: number): Promise<Site> {
  const folder = folderFor('one');
  const stepLog = join(folder, 'steps');
  const one = await startProcess(join(folder, 'only'), port, sections('only', port, stepLog));
  const postmaster = async (): Promise<number | undefined> => (await readPidFile(join(folder, 'only/state/postgres/data')))?.pid;
  let orphan: number | undefined;
  const both = killed(one, 'the only process, with its database', () => orphan !== undefined && end(orphan));
  return {
    name: 'the only process',
    urls: [one.url],
    stepLog,
    folder,
    victims: [
      killed(one, 'the only process'),
      { ...both, strike: async (chance) => ((orphan = await postmaster()), both.strike(chance)) },
      database('PostgreSQL of the only process', postmaster),
    ],
    logs: () => endOf(one.log),
    stop: async (keep) => {
      await one.stop();
      if (!keep) rmSync(folder, { recursive: true, force: true });
    },
  };
}
