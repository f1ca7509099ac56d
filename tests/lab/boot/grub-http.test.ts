/** A machine with UEFI that boots a kernel all by HTTP: the firmware loads a GRUB, which has HTTP itself and loads the files of the boot row. */
import { execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ServedBoot } from '../../../model/records';
import type { BootServerSetup } from './boot-server';
import { consoleEnd, openLab, until, type Lab, type LabMachine } from '../../../demo/lab/machines';
import { needs } from '../support/needs';
import { bootedFiles, REACHED, startBootServer } from './booted';

/** Seconds; alone it takes 30. */
const PATIENCE = 900;
const MODULES = 'http efinet net normal linux configfile echo sleep reboot test'.split(' ');
let lab: Lab;
let machine: LabMachine;
let log = '';

/** As an operator makes it: Debian's GRUB without HTTP is signed, and this one is not. */
function makeGrub(folder: string, server: string): string {
  const [start, grub] = [join(folder, 'start.cfg'), join(folder, 'grub-http.efi')] as const;
  // GRUB 2.06 does not take the address that the firmware has.
  writeFileSync(start, `net_dhcp\nset net_default_mac=$net_efinet0_dhcp_mac\nset root=(http,${server})\nconfigfile /grub.cfg\n`);
  execFileSync('grub-mkimage', ['-O', 'x86_64-efi', '-c', start, '-p', '/', '-o', grub, ...MODULES]);
  return grub;
}

beforeAll(async () => {
  needs({ 'qemu-system-x86_64': 'qemu-system-x86', 'qemu-img': 'qemu-utils', cpio: 'cpio', ip: 'iproute2', 'grub-mkimage': 'grub-common' });
  lab = await openLab('bloomery-grub');
  const files = await bootedFiles(lab.folder);
  machine = await lab.machine({ name: 'grub', firmware: 'uefi-http', memoryMiB: 512, cpus: 1, diskGiB: 1 });
  machine.setBoot({ device: 'pxe', persistent: true, mode: null });
  const folder = join(lab.folder, 'served');
  mkdirSync(folder);
  const boot: ServedBoot = {
    node_uuid: machine.uuid,
    token: machine.uuid.replaceAll('-', ''),
    macs: machine.macs,
    method: 'http',
    purpose: 'ramdisk',
    kernel_args: 'console=ttyS0 no_timer_check said="by the row"',
    files,
  };
  const loaders = { 'bootx64.efi': makeGrub(lab.folder, `${lab.address}:8080`) };
  const setup: BootServerSetup = { address: lab.address, interface: lab.bridge, folder, boots: [boot], loaders };
  await startBootServer(lab, setup, (text) => (log += text));
}, 400_000);
afterAll(() => lab.close(), 60_000);

it(
  'the kernel of the boot row starts, and nothing comes by TFTP',
  async () => {
    await machine.act('on');
    await until(
      PATIENCE,
      () => `the ramdisk's first process\n${log}\n${consoleEnd(machine)}`,
      () => REACHED.test(consoleEnd(machine)),
    );
    const [reached] = REACHED.exec(consoleEnd(machine))!;
    await machine.act('off');
    expect(reached).toMatch(/said="by the row"|"said=by the row"/);
    expect(reached).toContain(`BOOTIF=${machine.mac}`);
    for (const file of ['/bootx64\\.efi', '/boot/\\*\\*\\*/kernel', '/boot/\\*\\*\\*/ramdisk'])
      expect(log).toMatch(new RegExp(`HTTP boot: sent[^\n]*${file}`));
    expect(log).not.toContain('TFTP: sent');
  },
  (PATIENCE + 20) * 1000,
);
