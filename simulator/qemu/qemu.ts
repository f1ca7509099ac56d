/**
 * A machine that really boots: a QEMU process while the machine is on. QEMU's command line determines the boot order, so each restart is a
 * new process, even if the guest itself restarts the machine.
 */
import { execFile, type ChildProcess } from 'node:child_process';
import { existsSync } from 'node:fs';
import { copyFile, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { promisify } from 'node:util';
import { reasonOf } from '../../model/errors';
import type { Log } from '../../model/log';
import type { BootSetting, MachineControl, PowerAction } from '../hardware/control';
import type { MachineDescription } from '../hardware/description';
import { qemuArguments, type QemuCommand, type UefiFiles } from './arguments';
import type { QemuNetwork } from './network';
import { killOrphan, startProcess, type QemuProcess, type Spawn } from './process';
import { PLATFORMS } from './platforms';
import { secureFirmware, uefiFirmware } from './programs';
import { withHttpBoot, withSecureBoot } from './uefi-variables';

const run = promisify(execFile);

interface QemuSetup extends Pick<QemuCommand, 'vendor' | 'accelerator' | 'pxe' | 'screenSocket'> {
  readonly description: Pick<
    MachineDescription,
    'name' | 'uuid' | 'serial' | 'architecture' | 'mode' | 'cpus' | 'memoryMiB' | 'macs' | 'disks'
  >;
  /** The folder for the machine's disks, its firmware's variables and the output of its serial line. */
  readonly folder: string;
  /** Called once; the machine closes the network. */
  readonly network: () => Promise<QemuNetwork>;
  /** The certificate authorities that UEFI firmware trusts for HTTPS boot (`signatureLists`); absent: none. */
  readonly authorities?: Buffer | undefined;
  /** Absent: no boot override. */
  readonly boot?: BootSetting;
  /** Called at each start of its firmware. */
  readonly starts?: () => Promise<FirmwareStart>;
  /** Called when its power or its boot setting has changed. */
  readonly onChange?: () => void;
  readonly log: Log;
  /** Starts QEMU; absent: as a child of this process. */
  readonly spawn?: Spawn;
}
/** What the BMC provides for one start of the firmware. */
export interface FirmwareStart {
  /** The image in the machine's CD drive. */
  readonly cdFile?: string | undefined;
  /** The image of UEFI HTTP boot; absent: the one that DHCP names. */
  readonly httpBootUri?: string | undefined;
  /** Whether UEFI Secure Boot is in force; absent: the firmware has none. */
  readonly secureBoot?: boolean | undefined;
}
interface QemuMachine extends MachineControl {
  readonly serial: NonNullable<MachineControl['serial']>;
  readonly diskFiles: readonly string[];
  readonly consoleFile: string;
  /** The process ID of QEMU; undefined: the machine is off. */
  pid(): number | undefined;
  /** Ends the machine like a power failure. */
  close(): Promise<void>;
}

/** Creates a machine that is off. @throws when its files cannot be created */
export async function createQemuMachine(setup: QemuSetup): Promise<QemuMachine> {
  const { description, folder, accelerator, vendor } = setup;
  const { program } = PLATFORMS[description.architecture];
  const log = setup.log.child({ machine: description.name });
  const file = (name: string): string => join(folder, name);
  const [consoleFile, pidFile] = [file('console.log'), file('qemu.pid')];
  await mkdir(folder, { recursive: true, mode: 0o700 });
  await killOrphan(pidFile);
  const diskFiles = await createDisks(description.disks, folder);
  const authorities = setup.authorities && { authoritiesFile: file('authorities') };
  if (authorities) await writeFile(authorities.authoritiesFile, setup.authorities);
  const network = await setup.network();
  // The path of a Unix socket has at most 107 bytes, and a path in the machine's folder may be longer.
  const sockets = await mkdtemp(join(tmpdir(), 'qemu-'));
  const listeners = new Set<(bytes: Buffer) => void>();
  let boot: BootSetting = setup.boot ?? { device: 'none', persistent: false, mode: null };
  let running: QemuProcess | undefined;
  let closed = false;
  const changed = (): void => {
    if (!closed) setup.onChange?.();
  };

  const start = async (): Promise<void> => {
    const used = boot;
    const { cdFile, httpBootUri, secureBoot } = (await setup.starts?.()) ?? {};
    logStart(log, description, used, cdFile);
    const paths = { monitorSocket: join(sockets, 'monitor'), serialSocket: join(sockets, 'serial') };
    const uefi = isUefi(description, used) ? await uefiFiles(setup, used, httpBootUri, secureBoot, log) : undefined;
    const words = qemuArguments({
      machine: description,
      vendor,
      accelerator,
      pxe: setup.pxe,
      backends: network.backends,
      diskFiles,
      boot: used,
      ...paths,
      consoleFile,
      pidFile,
      screenSocket: setup.screenSocket,
      uefi,
      ...authorities,
      cdFile,
    });
    const onOutput = (bytes: Buffer): void => Array.from(listeners).forEach((listener) => listener(bytes));
    const started = await startProcess({ spawn: setup.spawn, program, words, ...paths, onEvent, onOutput });
    void started.ended.then(() => forget(started));
    running = started;
    // A setting that is not persistent applies to one boot.
    if (!used.persistent) boot = { device: 'none', persistent: false, mode: used.mode };
    changed();
  };
  const stop = async (): Promise<void> => {
    const stopped = running;
    if (!stopped) return;
    stopped.child.kill('SIGKILL');
    await stopped.ended;
    forget(stopped);
  };
  const forget = (ended: QemuProcess): void => {
    if (running !== ended) return;
    running = undefined;
    ended.serialLine.destroy();
    changed();
  };
  const actions = powerActions(() => running, start, stop);

  const inTurn = oneAtATime();
  /** Handles SHUTDOWN: the guest has powered off or restarted the machine, and QEMU has paused. */
  const onEvent = (child: ChildProcess, event: string, { reason }: Readonly<Record<string, unknown>>): void => {
    if (event !== 'SHUTDOWN') return;
    inTurn(async () => {
      if (running?.child !== child) return;
      await stop();
      if (reason === 'guest-reset' && !closed) await start();
    }).catch((error: unknown) => log.error('a machine in QEMU did not restart', { error: reasonOf(error) }));
  };
  return {
    name: description.name,
    macs: description.macs,
    diskFiles,
    consoleFile,
    isOn: () => running !== undefined,
    pid: () => running?.child.pid,
    act: (action) => inTurn(actions[action]),
    boot: () => boot,
    setBoot: (setting) => {
      boot = { ...setting, mode: setting.mode ?? boot.mode };
      changed();
    },
    serial: serialPort(() => running, listeners),
    close: async () => {
      closed = true;
      await inTurn(stop);
      await network.close();
      await rm(sockets, { recursive: true, force: true });
    },
  };
}

const isUefi = ({ architecture, mode }: QemuSetup['description'], used: BootSetting): boolean =>
  architecture !== 'x86_64' || (used.mode ?? mode) === 'uefi';

function logStart(log: Log, description: QemuSetup['description'], used: BootSetting, cdFile: string | undefined): void {
  const medium = cdFile === undefined ? 'no medium' : 'a medium';
  log.info(`starts from ${used.device} with ${medium}`, { mode: isUefi(description, used) ? 'uefi' : 'bios', once: !used.persistent });
}

function powerActions(
  running: () => QemuProcess | undefined,
  start: () => Promise<void>,
  stop: () => Promise<void>,
): Readonly<Record<PowerAction, () => Promise<void>>> {
  const restart = async (): Promise<void> => {
    if (!running()) return;
    await stop();
    await start();
  };
  return {
    on: async () => {
      if (!running()) await start();
    },
    off: stop,
    cycle: restart,
    reset: restart,
    soft: async () => running()?.monitor.execute('system_powerdown'),
    diagnostic: async () => running()?.monitor.execute('inject-nmi'),
  };
}

const serialPort = (running: () => QemuProcess | undefined, listeners: Set<(bytes: Buffer) => void>): QemuMachine['serial'] => ({
  listen: (output) => {
    listeners.add(output);
    return () => listeners.delete(output);
  },
  input: (bytes) => void running()?.serialLine.write(bytes),
  break: () =>
    void running()
      ?.monitor.execute('chardev-send-break', { id: 'serial' })
      .catch(() => {}),
});

async function createDisks(disks: MachineDescription['disks'], folder: string): Promise<readonly string[]> {
  const files = disks.map(({ name }) => join(folder, `${basename(name)}.qcow2`));
  for (const [index, path] of files.entries())
    if (!existsSync(path)) await run('qemu-img', ['create', '-q', '-f', 'qcow2', path, String(disks[index]!.size)]);
  return files;
}

/**
 * The firmware with this machine's own variables.
 * @param httpBootUri the image to boot next, if the setting is UEFI HTTP boot; undefined: the firmware's own order
 * @param secureBoot whether Secure Boot is in force; undefined: firmware without it
 * @throws an Error for a host whose firmware has no Secure Boot
 */
async function uefiFiles(
  { description: { architecture }, folder }: Pick<QemuSetup, 'description' | 'folder'>,
  used: BootSetting,
  httpBootUri: string | undefined,
  secureBoot: boolean | undefined,
  log: Log,
): Promise<UefiFiles> {
  const url = used.device === 'uefi-http' ? httpBootUri : undefined;
  const secure = secureBoot === undefined ? undefined : secureFirmware(architecture);
  if (secureBoot && !secure) throw new Error('the UEFI firmware of this host has no Secure Boot: it is in the Debian package ovmf');
  const { code, variables: original } = secure ?? uefiFirmware(architecture);
  const variables = join(folder, secure ? 'secure-vars.fd' : 'vars.fd');
  if (!existsSync(variables)) await copyFile(original, variables);
  const before = await readFile(variables);
  const switched = secure ? withSecureBoot(before, secureBoot!) : before;
  if (switched === undefined) throw new Error('the variables of the firmware have no room for the setting of Secure Boot');
  const changed = url === undefined ? switched : withHttpBoot(switched, url);
  if (changed === undefined) log.warn('the variables of the firmware have no room for the URL of UEFI HTTP boot');
  await writeFile(variables, changed ?? switched);
  return { code, variables, isSecure: secure !== undefined };
}

/** Runs actions one after the other, since IPMI, Redfish and the guest may request actions at the same time. */
function oneAtATime(): (work: () => Promise<void>) => Promise<void> {
  let last: Promise<void> = Promise.resolve();
  return (work) => {
    const done = last.then(work);
    last = done.catch(() => {});
    return done;
  };
}
