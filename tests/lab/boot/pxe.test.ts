/** Machines that boot a kernel over the network by PXELINUX (BIOS) and by GRUB (UEFI), both from Debian: all by TFTP, from a boot row. */
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { buildSync } from 'esbuild';
import type { ServedBoot } from '../../../model/records';
import type { BootServerSetup } from './boot-server';
import { consoleEnd, openLab, until, type Lab, type LabMachine } from '../../../demo/lab/machines';
import { needs } from '../support/needs';
import { root } from '../support/venv';

const run = promisify(execFile);
/** Seconds; alone it takes 20 to 40. */
const PATIENCE = 900;
const FIRMWARES = ['bios', 'uefi'] as const;
const LOADERS = {
  'pxelinux.0': '/usr/lib/PXELINUX/pxelinux.0',
  'ldlinux.c32': '/usr/lib/syslinux/modules/bios/ldlinux.c32',
  'bootx64.efi': '/usr/lib/grub/x86_64-efi/monolithic/grubnetx64.efi',
} as const;
/** Prints the kernel's command line. */
const INIT =
  '#!/bin/busybox sh\n/bin/busybox mount -t proc proc /proc\necho "REACHED $(/bin/busybox cat /proc/cmdline) END"\n/bin/busybox sleep 1000\n';
let lab: Lab;
let log = '';
const machines: LabMachine[] = [];

/** An initramfs that needs no other files. */
async function makeRamdisk(folder: string, out: string): Promise<void> {
  mkdirSync(join(folder, 'bin'), { recursive: true });
  mkdirSync(join(folder, 'proc'));
  writeFileSync(join(folder, 'init'), INIT, { mode: 0o755 });
  await run('bash', ['-c', 'cp /bin/busybox "$0/bin/" && cd "$0" && find . | cpio --quiet -o -H newc | gzip > "$1"', folder, out]);
}
/** Debian's kernel, with which the other tests make their image. */
async function kernel(): Promise<string> {
  const cache = join(root, '.cache/kernel/boot');
  if (!existsSync(cache))
    await run('bash', [join(__dirname, '../../../demo/lab/image.sh'), join(lab.folder, 'image.raw'), 'http://0/'], { timeout: 300_000 });
  return join(
    cache,
    readdirSync(cache).find((name) => name.startsWith('vmlinuz-'))!,
  );
}

beforeAll(async () => {
  needs({ 'qemu-system-x86_64': 'qemu-system-x86', 'qemu-img': 'qemu-utils', cpio: 'cpio', ip: 'iproute2' });
  for (const path of Object.values(LOADERS)) if (!existsSync(path)) throw new Error(`${path} is missing: see packages.txt`);
  lab = await openLab('bloomery-pxe');
  const ramdisk = join(lab.folder, 'ramdisk.gz');
  await makeRamdisk(join(lab.folder, 'ramdisk'), ramdisk);
  const files = { kernel: await kernel(), ramdisk };
  for (const firmware of FIRMWARES) {
    const machine = await lab.machine({ name: firmware, firmware, memoryMiB: 512, cpus: 1, diskGiB: 1 });
    machine.setBoot({ device: 'pxe', persistent: true, mode: null });
    machines.push(machine);
  }
  const folder = join(lab.folder, 'served');
  mkdirSync(folder);
  const boots = machines.map(({ uuid, macs }): ServedBoot => ({
    node_uuid: uuid,
    token: uuid.replaceAll('-', ''),
    macs,
    method: 'pxe',
    purpose: 'ramdisk',
    kernel_args: 'console=ttyS0 tsc=unstable said="by the row"',
    files,
  }));
  const program = join(root, '.cache/lab/pxe-boot-server.js');
  buildSync({
    entryPoints: [join(__dirname, 'boot-server.ts')],
    outfile: program,
    bundle: true,
    platform: 'node',
    packages: 'external',
    logLevel: 'error',
  });
  const setup: BootServerSetup = { address: lab.address, interface: lab.bridge, folder, boots, loaders: LOADERS };
  const server = lab.start(process.execPath, program, JSON.stringify(setup));
  server.stderr!.on('data', (data: Buffer) => (log += data.toString()));
  const [ready] = (await Promise.race([once(server.stdout!, 'data'), once(server, 'exit')])) as [unknown];
  if (String(ready) !== 'ready\n') throw new Error(`the boot services did not start: ${log}`);
}, 400_000);
afterAll(() => lab.close(), 60_000);

it.each([
  ['bios', /TFTP: sent[^\n]*pxelinux\.cfg/, (mac: string) => `BOOTIF=01-${mac.replaceAll(':', '-')}`],
  ['uefi', /TFTP: sent[^\n]*bootx64\.efi/, (mac: string) => `BOOTIF=${mac}`],
] as const)(
  'a %s machine boots by TFTP the kernel of its boot row, with the kernel arguments of the row',
  async (firmware, asked, bootif) => {
    const machine = machines.find((candidate) => candidate.firmware === firmware)!;
    const before = log.length;
    await machine.act('on');
    await until(
      PATIENCE,
      () => `the ramdisk's first process\n${log}\n${consoleEnd(machine)}`,
      () => /REACHED [^\n]* END/.test(consoleEnd(machine)),
    );
    await machine.act('off');
    const [said] = /REACHED [^\n]* END/.exec(consoleEnd(machine))!;
    expect(said).toMatch(/said="by the row"|"said=by the row"/);
    expect(said).toContain(bootif(machine.mac));
    expect(log.slice(before)).toMatch(asked);
    expect(log.slice(before)).toMatch(/TFTP: sent[^\n]*boot\/\*\*\*\/ramdisk/);
    expect(log).not.toContain(machine.uuid.replaceAll('-', ''));
    expect(log).not.toContain('/ipxe/');
  },
  (PATIENCE + 20) * 1000,
);
