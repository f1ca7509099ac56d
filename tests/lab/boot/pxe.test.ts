/** Machines that boot a kernel over the network by PXELINUX (BIOS) and by GRUB (UEFI), both from Debian: all by TFTP, from a boot row. */
import { existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type { ServedBoot } from '../../../model/records';
import type { BootServerSetup } from './boot-server';
import { consoleEnd, openLab, until, type Lab, type LabMachine } from '../../../demo/lab/machines';
import { needs } from '../support/needs';
import { bootedFiles, REACHED, startBootServer } from './booted';

/** Seconds; alone it takes 20 to 40. */
const PATIENCE = 900;
const FIRMWARES = ['bios', 'uefi'] as const;
const LOADERS = {
  'pxelinux.0': '/usr/lib/PXELINUX/pxelinux.0',
  'ldlinux.c32': '/usr/lib/syslinux/modules/bios/ldlinux.c32',
  'bootx64.efi': '/usr/lib/grub/x86_64-efi/monolithic/grubnetx64.efi',
} as const;
let lab: Lab;
let log = '';
const machines: LabMachine[] = [];

beforeAll(async () => {
  needs({ 'qemu-system-x86_64': 'qemu-system-x86', 'qemu-img': 'qemu-utils', cpio: 'cpio', ip: 'iproute2' });
  for (const path of Object.values(LOADERS)) if (!existsSync(path)) throw new Error(`${path} is missing: see packages.txt`);
  lab = await openLab('bloomery-pxe');
  const files = await bootedFiles(lab.folder);
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
  const setup: BootServerSetup = { address: lab.address, interface: lab.bridge, folder, boots, loaders: LOADERS };
  await startBootServer(lab, setup, (text) => (log += text));
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
      () => REACHED.test(consoleEnd(machine)),
    );
    await machine.act('off');
    const [said] = REACHED.exec(consoleEnd(machine))!;
    expect(said).toMatch(/said="by the row"|"said=by the row"/);
    expect(said).toContain(bootif(machine.mac));
    expect(log.slice(before)).toMatch(asked);
    expect(log.slice(before)).toMatch(/TFTP: sent[^\n]*boot\/\*\*\*\/ramdisk/);
    expect(log).not.toContain(machine.uuid.replaceAll('-', ''));
    expect(log).not.toContain('/ipxe/');
  },
  (PATIENCE + 20) * 1000,
);
