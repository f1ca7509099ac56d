/**
 * Debian's signed shim, GRUB and kernel on machines with Secure Boot, whose firmware has the keys of Microsoft: they boot by TFTP, shim loads
 * GRUB by HTTP too, and a boot loader without a signature is refused.
 */
import { existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type { ServedBoot } from '../../../model/records';
import type { BootServerSetup } from './boot-server';
import { consoleEnd, openLab, until, type Lab, type LabMachine } from '../../../demo/lab/machines';
import { needs } from '../support/needs';
import { bootedFiles, REACHED, startBootServer } from './booted';

/** Seconds; alone it takes 20 to 40. */
const PATIENCE = 900;
const SIGNED = {
  'bootx64.efi': '/usr/lib/shim/shimx64.efi.signed',
  'grubx64.efi': '/usr/lib/grub/x86_64-efi-signed/grubnetx64.efi.signed',
} as const;
/** Name → the firmware's protocol, and how the machine boots. */
const MACHINES = {
  'signed-by-tftp': ['uefi', 'pxe'],
  'signed-by-http': ['uefi-http', 'http'],
  'unsigned-by-http': ['uefi-http', 'http-ipxe'],
} as const;
type Name = keyof typeof MACHINES;
let lab: Lab;
let log = '';
const machines = new Map<string, LabMachine>();

beforeAll(async () => {
  needs({
    'qemu-system-x86_64': 'qemu-system-x86',
    'qemu-img': 'qemu-utils',
    cpio: 'cpio',
    ip: 'iproute2',
  });
  for (const path of Object.values(SIGNED)) if (!existsSync(path)) throw new Error(`${path} is missing: see packages.txt`);
  lab = await openLab('bloomery-secure');
  const files = await bootedFiles(lab.folder);
  for (const [name, [firmware]] of Object.entries(MACHINES)) {
    const machine = await lab.machine({ name, firmware, memoryMiB: 768, cpus: 1, diskGiB: 1, secureBoot: true });
    machine.setBoot({ device: 'pxe', persistent: true, mode: null });
    machines.set(name, machine);
  }
  const folder = join(lab.folder, 'served');
  mkdirSync(folder);
  const boots = [...machines.values()].map(({ name, uuid, macs }): ServedBoot => ({
    node_uuid: uuid,
    token: uuid.replaceAll('-', ''),
    macs,
    method: MACHINES[name as Name][1],
    purpose: 'ramdisk',
    kernel_args: 'console=ttyS0 no_timer_check said="by the row"',
    files,
  }));
  const setup: BootServerSetup = { address: lab.address, interface: lab.bridge, folder, boots, loaders: SIGNED };
  await startBootServer(lab, setup, (text) => (log += text));
}, 400_000);
afterAll(() => lab.close(), 60_000);

/** Starts the machine, and returns what it says on its console, up to `end`, and what the boot services log meanwhile. */
async function boot(name: Name, end: RegExp): Promise<{ readonly said: string; readonly logged: string }> {
  const machine = machines.get(name)!;
  const before = log.length;
  await machine.act('on');
  await until(
    PATIENCE,
    () => `${end.source}\n${log.slice(before)}\n${consoleEnd(machine)}`,
    () => end.test(consoleEnd(machine)),
  );
  const said = consoleEnd(machine);
  await machine.act('off');
  return { said, logged: log.slice(before) };
}

it(
  'signed-by-tftp: shim, GRUB and the kernel of the boot row start, and the kernel is locked down',
  async () => {
    const { said, logged } = await boot('signed-by-tftp', REACHED);
    const [reached] = REACHED.exec(said)!;
    expect(reached).toMatch(/said="by the row"|"said=by the row"/);
    expect(reached).toContain(`BOOTIF=${machines.get('signed-by-tftp')!.mac}`);
    expect(reached).toContain('[integrity]');
    for (const file of ['bootx64\\.efi', 'grubx64\\.efi', 'boot/\\*\\*\\*/kernel', 'boot/\\*\\*\\*/ramdisk'])
      expect(logged).toMatch(new RegExp(`TFTP: sent[^\n]*${file}`));
  },
  (PATIENCE + 20) * 1000,
);
it(
  'signed-by-http: the firmware loads shim by the URL from DHCP, and shim loads GRUB from the same server',
  async () => {
    // Debian's signed GRUB itself has no HTTP.
    const { logged } = await boot('signed-by-http', /Welcome to GRUB/);
    for (const file of ['bootx64\\.efi', 'grubx64\\.efi']) expect(logged).toMatch(new RegExp(`HTTP boot: sent[^\n]*/${file}`));
    expect(logged).not.toContain('TFTP: sent');
  },
  (PATIENCE + 20) * 1000,
);
it(
  'unsigned-by-http: the firmware refuses the boot loader',
  async () => {
    const { said, logged } = await boot('unsigned-by-http', /Access Denied|Security Violation/);
    expect(said).not.toMatch(REACHED);
    expect(logged).toMatch(/HTTP boot: sent[^\n]*\/snponly\.efi/);
  },
  (PATIENCE + 20) * 1000,
);
