/** The whole server as users run it: `bin/bloomery serve` with a configuration file, in its own process. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createWriteStream, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from './root';

/** @internal */
export interface RunningServer {
  /** The line that the server printed when it was ready. */
  readonly ready: string;
  readonly log: string;
  readonly pid: number;
  /** The end of the log for an error message, without the lines of single requests. */
  logEnd(): string;
  /** Sends SIGTERM. @returns its exit code */
  stop(): Promise<number | null>;
  /** SIGKILL, as when the host dies. */
  kill(): Promise<void>;
}
export type Sections = Readonly<Record<string, Readonly<Record<string, string | number>>>>;

/**
 * Kernel messages go to the serial line. `no_timer_check`: on a busy host QEMU's timers are late, and a kernel that tests them panics. The
 * other parameters turn off protection from Spectre, tests of the kernel's cryptography, and random addresses: a boot takes a tenth less
 * processor time.
 */
const KERNEL = 'console=ttyS0 no_timer_check mitigations=off cryptomgr.notests nokaslr';
/** A server that boots the machines of a lab with our own ramdisk: DHCP on its bridge, kernel messages on the serial line. */
export const bootingSections = (lab: { readonly address: string; readonly bridge: string }): Sections => ({
  DEFAULT: {
    my_ip: lab.address,
    auth_strategy: 'noauth',
    enabled_hardware_types: 'ipmi,redfish',
    enabled_boot_interfaces: 'ipxe,redfish-virtual-media,redfish-https',
    enabled_deploy_interfaces: 'direct',
    enabled_inspect_interfaces: 'agent',
    enabled_network_interfaces: 'noop',
  },
  conductor: {
    deploy_kernel: `file://${root}/.cache/ramdisk/vmlinuz`,
    deploy_ramdisk: `file://${root}/.cache/ramdisk/initrd`,
    // Debian's GRUB for CDs.
    bootloader: 'file:///usr/lib/grub/x86_64-efi/monolithic/gcdx64.efi',
    file_url_allowed_paths: `${root}/.cache`,
  },
  redfish: { kernel_append_params: KERNEL },
  // A BMC of the lab is a process that competes for the processor with the machines, so it may answer late.
  ipmi: { command_retry_timeout: '600' },
  pxe: { kernel_append_params: KERNEL },
  dhcp: { dhcp_provider: 'builtin' },
  boot: { interface: lab.bridge, dhcp_range: '10.77.0.100-10.77.0.200' },
});

const iniText = (sections: Sections): string =>
  Object.entries(sections)
    .map(([section, values]) => [`[${section}]`, ...Object.entries(values).map(([name, value]) => `${name} = ${value}`), ''].join('\n'))
    .join('\n');

/**
 * @param folder where its configuration, state and log are kept
 * @param namespace a network namespace to run it in
 * @param more words of the command line
 * @throws with the end of its log when it is not ready within 240 s
 */
export async function startServerProcess(
  folder: string,
  sections: Sections,
  namespace?: string,
  more: readonly string[] = [],
): Promise<RunningServer> {
  mkdirSync(folder, { recursive: true });
  const config = join(folder, 'ironic.conf');
  writeFileSync(config, iniText(sections));
  const log = join(folder, 'server.log');
  const file = createWriteStream(log, { flags: 'a' });
  const words = [
    process.execPath,
    join(root, 'bin/bloomery'),
    'serve',
    '--config-file',
    config,
    '--state-dir',
    join(folder, 'state'),
    ...more,
  ];
  const command = namespace === undefined ? words : ['ip', 'netns', 'exec', namespace, ...words];
  // Variables that set options of the user's own server stay out.
  const others = Object.entries(process.env).filter(([name]) => !/^OS_\w+__/.test(name));
  const environment = { ...Object.fromEntries(others), DATABASE_URL: undefined };
  const child = spawn(command[0]!, command.slice(1), { stdio: ['ignore', 'pipe', 'pipe'], env: environment });
  const ended = once(child, 'exit');
  child.stderr.pipe(file);
  const finish = async (signal: NodeJS.Signals): Promise<number | null> => {
    child.kill(signal);
    await ended;
    file.end();
    return child.exitCode;
  };
  const ready = await new Promise<string>((done, fail) => {
    let printed = '';
    const giveUp = (why: string): void => fail(new Error(`the server ${why}\n${printed}\n${readFileSync(log, 'utf8').slice(-3000)}`));
    const late = setTimeout(() => giveUp('was not ready within 240 s'), 240_000);
    child.stdout.on('data', (data: Buffer) => {
      printed += data.toString();
      const line = /^bloomery: ready.*$/m.exec(printed)?.[0];
      if (line === undefined) return;
      clearTimeout(late);
      done(line);
    });
    child.once('exit', () => {
      clearTimeout(late);
      giveUp('ended');
    });
  }).catch(async (error: unknown) => {
    await finish('SIGKILL');
    throw error;
  });
  return {
    ready,
    log,
    pid: child.pid!,
    logEnd: () => {
      const lines = readFileSync(log, 'utf8').split('\n');
      return lines
        .filter((line) => !line.includes('"msg":"request"'))
        .slice(-40)
        .map((line) => line.slice(0, 400))
        .join('\n');
    },
    stop: () => finish('SIGTERM'),
    kill: async () => {
      await finish('SIGKILL');
    },
  };
}
