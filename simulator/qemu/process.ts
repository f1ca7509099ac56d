/** A QEMU process with its monitor and its serial line. */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { readFile, rm } from 'node:fs/promises';
import { createServer, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { reasonOf } from '../../model/errors';
import { openMonitor, type QemuMonitor } from './monitor';
import { timeoutSignal } from '../../wire/timeout-signal';

const START_TIMEOUT_MS = 30_000;

export type Spawn = (program: string, words: readonly string[]) => ChildProcess;
export interface QemuProcess {
  readonly child: ChildProcess;
  /** Resolves when the process has ended. */
  readonly ended: Promise<unknown>;
  readonly monitor: QemuMonitor;
  readonly serialLine: Socket;
}
interface ProcessOptions {
  /** Starts QEMU; absent: as a child of this process. */
  readonly spawn?: Spawn | undefined;
  readonly program: string;
  readonly words: readonly string[];
  /** The paths of the Unix sockets that `words` names. */
  readonly monitorSocket: string;
  readonly serialSocket: string;
  readonly onEvent: (child: ChildProcess, name: string, data: Readonly<Record<string, unknown>>) => void;
  readonly onOutput: (bytes: Buffer) => void;
}

/** @throws an Error with QEMU's message; no process is left then */
export async function startProcess({
  program,
  words,
  monitorSocket,
  serialSocket,
  onEvent,
  onOutput,
  ...options
}: ProcessOptions): Promise<QemuProcess> {
  const servers = await Promise.all([acceptOne(monitorSocket), acceptOne(serialSocket)]);
  const child = (options.spawn ?? spawnChild)(program, words);
  const ended = new Promise<void>((done) => {
    child.once('exit', () => done());
    child.once('error', () => done());
  });
  let errors = '';
  child.stderr?.on('data', (data: Buffer) => (errors = `${errors}${data.toString()}`.slice(-2000)));
  child.once('error', (error) => (errors = error.message));
  try {
    const failed = Promise.race([ended, once(timeoutSignal(START_TIMEOUT_MS), 'abort')]).then(() => {
      throw new Error('it did not connect its monitor and its serial line');
    });
    const [control, line] = await Promise.race([Promise.all(servers.map(({ socket }) => socket)), failed]);
    const monitor = await openMonitor(control!, (name, data) => onEvent(child, name, data));
    line!.on('data', onOutput);
    line!.on('error', () => {});
    return { child, ended, monitor, serialLine: line! };
  } catch (error) {
    child.kill('SIGKILL');
    await ended;
    throw new Error(`QEMU did not start: ${errors.trim() || reasonOf(error)}`, { cause: error });
  } finally {
    for (const { close } of servers) close();
  }
}

const spawnChild: Spawn = (program, words) => spawn(program, words, { stdio: ['ignore', 'ignore', 'pipe'] });

/** Accepts the first connection at this path, and none after `close`. */
async function acceptOne(path: string): Promise<{ readonly socket: Promise<Socket>; readonly close: () => void }> {
  await rm(path, { force: true });
  const server = createServer();
  const socket = new Promise<Socket>((done) => server.once('connection', done));
  server.listen(path);
  await once(server, 'listening');
  return { socket, close: () => void server.close() };
}

/** Whether the process holds no files any more. A process of which only the exit status is left is a zombie without other threads. */
async function hasEnded(pid: number): Promise<boolean> {
  const status = await readFile(`/proc/${pid}/status`, 'latin1').catch(() => '');
  return status === '' || (/^State:\tZ/m.test(status) && /^Threads:\t1$/m.test(status));
}

/** Kills the QEMU process that a killed simulator left behind, because that process still uses the disks of the folder. */
export async function killOrphan(pidFile: string): Promise<void> {
  const pid = Number((await readFile(pidFile, 'latin1').catch(() => '')).trim());
  if (!Number.isInteger(pid) || pid <= 1) return;
  const words = await readFile(`/proc/${pid}/cmdline`, 'latin1').catch(() => '');
  if (words.includes('qemu-system') && words.includes(pidFile)) {
    process.kill(pid, 'SIGKILL');
    for (let tries = 0; tries < 600 && !(await hasEnded(pid)); tries++) await delay(50);
  }
  await rm(pidFile, { force: true });
}
