/**
 * A machine that really boots, in QEMU: a process while it is on. What it boots is QEMU's command line, so each restart, also one that the
 * machine's own system asks for, is a new process.
 */
import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { copyFile, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import { reasonOf } from '../../model/errors';
import type { Log } from '../../model/log';
import type { BootSetting, MachineControl, PowerAction } from '../hardware/control';
import type { MachineDescription } from '../hardware/description';
import { qemuArguments, type QemuCommand } from './arguments';
import { openMonitor, type QemuMonitor } from './monitor';
import type { QemuNetwork } from './network';
import { uefiFirmware } from './programs';
import { withHttpBoot } from './uefi-variables';

const run = promisify(execFile);
const START_MS = 30_000;

export interface QemuSetup extends Pick<QemuCommand, 'vendor' | 'accelerator'> {
  readonly description: Pick<MachineDescription, 'name' | 'uuid' | 'serial' | 'mode' | 'cpus' | 'memoryMiB' | 'macs' | 'disks'>;
  /** Where its disks, its firmware's variables and what it wrote on its serial line are kept. */
  readonly folder: string;
  /** Called once; closed with the machine. */
  readonly network: () => Promise<QemuNetwork>;
  /** Whom its UEFI firmware trusts when it boots by HTTPS (`signatureLists`); absent: nobody. */
  readonly authorities?: Buffer;
  /** Absent: nothing is set. */
  readonly boot?: BootSetting;
  /** Called at each start of its firmware. */
  readonly starts?: () => Promise<FirmwareStart>;
  /** Called when its power or its boot setting changed. */
  readonly onChange?: () => void;
  readonly log: Log;
  /** Starts QEMU; absent: as a child of this process. */
  readonly spawn?: (program: string, words: readonly string[]) => ChildProcess;
}
/** What its BMC has for a start of its firmware. */
export interface FirmwareStart {
  /** The file that is in its CD drive from then on. */
  readonly cdFile?: string;
  /** What UEFI HTTP boot loads; absent: what DHCP says. */
  readonly httpBootUri?: string;
}
export interface QemuMachine extends MachineControl {
  readonly serial: NonNullable<MachineControl['serial']>;
  readonly diskFiles: readonly string[];
  readonly consoleFile: string;
  /** Of QEMU; undefined: it is off. */
  pid(): number | undefined;
  /** Ends it, as if the power had failed. */
  close(): Promise<void>;
}
interface Running {
  readonly child: ChildProcess;
  readonly ended: Promise<unknown>;
  readonly monitor: QemuMonitor;
  readonly line: Socket;
}

/** A machine that is off. @throws when its files cannot be made */
export async function createQemuMachine(setup: QemuSetup): Promise<QemuMachine> {
  const { description, folder } = setup;
  const log = setup.log.child({ machine: description.name });
  const file = (name: string): string => join(folder, name);
  await mkdir(folder, { recursive: true, mode: 0o700 });
  await endLeftOver(file('qemu.pid'));
  const diskFiles = description.disks.map(({ name }) => file(`${basename(name)}.qcow2`));
  for (const [index, path] of diskFiles.entries())
    if (!existsSync(path)) await run('qemu-img', ['create', '-q', '-f', 'qcow2', path, String(description.disks[index]!.size)]);
  const authorities = setup.authorities && { authoritiesFile: file('authorities') };
  if (authorities) await writeFile(authorities.authoritiesFile, setup.authorities);
  const network = await setup.network();
  // The path of a Unix socket has 107 bytes at most; the folder's may be longer.
  const sockets = await mkdtemp(join(tmpdir(), 'qemu-'));
  const listeners = new Set<(bytes: Buffer) => void>();
  let boot: BootSetting = setup.boot ?? { device: 'none', persistent: false, mode: null };
  let now: Running | undefined;
  let closed = false;
  const changed = (): void => {
    if (!closed) setup.onChange?.();
  };

  const uefi = async (url: string | undefined): Promise<{ readonly uefi: QemuCommand['uefi'] & object }> => {
    const { code, variables } = uefiFirmware();
    const own = file('vars.fd');
    if (!existsSync(own)) await copyFile(variables, own);
    if (url !== undefined) {
      const told = withHttpBoot(await readFile(own), url);
      if (told) await writeFile(own, told);
      else log.warn('the variables of the firmware have no room for the URL that it is to boot');
    }
    return { uefi: { code, variables: own } };
  };
  const start = async (): Promise<void> => {
    const used = boot;
    const { cdFile, httpBootUri } = (await setup.starts?.()) ?? {};
    const [monitorSocket, serialSocket] = [join(sockets, 'monitor'), join(sockets, 'serial')];
    const words = qemuArguments({
      ...{ machine: description, vendor: setup.vendor, accelerator: setup.accelerator, backends: network.backends, diskFiles },
      ...{ boot: used, monitorSocket, serialSocket, consoleFile: file('console.log'), pidFile: file('qemu.pid') },
      ...((used.mode ?? description.mode) === 'uefi' ? await uefi(used.device === 'uefi-http' ? httpBootUri : undefined) : {}),
      ...authorities,
      ...(cdFile === undefined ? {} : { cdFile }),
    });
    const ways = await Promise.all([connectionAt(monitorSocket), connectionAt(serialSocket)]);
    const child = (setup.spawn ?? spawnHere)('qemu-system-x86_64', words);
    const ended = new Promise<void>((done) => {
      child.once('exit', () => done());
      child.once('error', () => done());
    });
    let errors = '';
    child.stderr?.on('data', (data: Buffer) => (errors = `${errors}${data.toString()}`.slice(-2000)));
    child.once('error', (error) => (errors = error.message));
    try {
      const late = AbortSignal.timeout(START_MS);
      const failed = Promise.race([ended, once(late, 'abort')]).then(() => {
        throw new Error('it said nothing');
      });
      const [control, line] = await Promise.race([Promise.all(ways.map(({ socket }) => socket)), failed]);
      const running: Running = { child, ended, line: line!, monitor: await openMonitor(control!, (name, data) => hear(child, name, data)) };
      line!.on('data', (bytes) => {
        for (const listener of [...listeners]) listener(bytes);
      });
      line!.on('error', () => {});
      void ended.then(() => forget(running));
      now = running;
    } catch (error) {
      child.kill('SIGKILL');
      await ended;
      throw new Error(`QEMU did not start: ${errors.trim() || reasonOf(error)}`, { cause: error });
    } finally {
      for (const { close } of ways) close();
    }
    // A setting for one boot is used up by it.
    if (!used.persistent) boot = { device: 'none', persistent: false, mode: used.mode };
    changed();
  };
  const stop = async (): Promise<void> => {
    const running = now;
    if (!running) return;
    running.child.kill('SIGKILL');
    await running.ended;
    forget(running);
  };
  const forget = (running: Running): void => {
    if (now !== running) return;
    now = undefined;
    running.line.destroy();
    changed();
  };

  /** One after the other: two BMCs may ask at once, and the machine itself. */
  let last: Promise<void> = Promise.resolve();
  const inTurn = (work: () => Promise<void>): Promise<void> => {
    const done = last.then(work);
    last = done.catch(() => {});
    return done;
  };
  /** What runs in it has switched it off or restarted it; QEMU waits. */
  const hear = (child: ChildProcess, event: string, { reason }: Readonly<Record<string, unknown>>): void => {
    if (event !== 'SHUTDOWN') return;
    inTurn(async () => {
      if (now?.child !== child) return;
      await stop();
      if (reason === 'guest-reset' && !closed) await start();
    }).catch((error: unknown) => log.error('a machine in QEMU did not restart', { error: reasonOf(error) }));
  };
  const restart = async (): Promise<void> => {
    if (!now) return;
    await stop();
    await start();
  };
  const actions: Readonly<Record<PowerAction, () => Promise<void>>> = {
    on: async () => {
      if (!now) await start();
    },
    off: stop,
    cycle: restart,
    reset: restart,
    soft: async () => now?.monitor.execute('system_powerdown'),
    diagnostic: async () => now?.monitor.execute('inject-nmi'),
  };
  return {
    name: description.name,
    macs: description.macs,
    diskFiles,
    consoleFile: file('console.log'),
    isOn: () => now !== undefined,
    pid: () => now?.child.pid,
    act: (action) => inTurn(actions[action]),
    boot: () => boot,
    setBoot: (setting) => {
      boot = { ...setting, mode: setting.mode ?? boot.mode };
      changed();
    },
    serial: {
      listen: (output) => {
        listeners.add(output);
        return () => listeners.delete(output);
      },
      input: (bytes) => void now?.line.write(bytes),
      break: () => void now?.monitor.execute('chardev-send-break', { id: 'serial' }).catch(() => {}),
    },
    close: async () => {
      closed = true;
      await inTurn(stop);
      await network.close();
      await rm(sockets, { recursive: true, force: true });
    },
  };
}

const spawnHere = (program: string, words: readonly string[]): ChildProcess =>
  spawn(program, words, { stdio: ['ignore', 'ignore', 'pipe'] });

/** The first who connects; nobody after `close`. */
async function connectionAt(path: string): Promise<{ readonly socket: Promise<Socket>; readonly close: () => void }> {
  await rm(path, { force: true });
  const server = createServer();
  const socket = new Promise<Socket>((done) => server.once('connection', done));
  server.listen(path);
  await once(server, 'listening');
  return { socket, close: () => void server.close() };
}

/** A QEMU that a killed simulator left behind still has the disks of this folder. */
async function endLeftOver(pidFile: string): Promise<void> {
  const pid = Number((await readFile(pidFile, 'latin1').catch(() => '')).trim());
  if (!Number.isInteger(pid) || pid <= 1) return;
  const words = await readFile(`/proc/${pid}/cmdline`, 'latin1').catch(() => '');
  if (words.includes('qemu-system') && words.includes(pidFile)) {
    process.kill(pid, 'SIGKILL');
    for (let tries = 0; tries < 100 && existsSync(`/proc/${pid}/exe`); tries++) await delay(50);
  }
  await rm(pidFile, { force: true });
}
