/**
 * A machine that boots from the network although its disk has a system. Its firmware and iPXE (third-party programs) load the boot loader
 * and the script from us, and then boot from the disk. BIOS, UEFI by TFTP, UEFI by HTTP.
 */
import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { ServedBoot } from '../../../model/records';
import type { BootServerSetup } from './boot-server';
import { startBootServer } from './booted';
import { consoleEnd, openLab, until, type Lab, type LabMachine } from '../../../demo/lab/machines';
import { needs } from '../support/needs';

const run = promisify(execFile);
const REPORT_PORT = 8099;
/** Seconds; alone it takes 15 to 30. */
const PATIENCE = 900;
const FIRMWARES = ['bios', 'uefi', 'uefi-http'] as const;
let lab: Lab;
let log = '';
const machines: LabMachine[] = [];
const report = (): string => join(lab.folder, 'report');

beforeAll(async () => {
  needs({
    'qemu-system-x86_64': 'qemu-system-x86',
    'qemu-img': 'qemu-utils',
    'grub-mkimage': 'grub-common',
    mcopy: 'mtools',
    ip: 'iproute2',
  });
  lab = await openLab('bloomery-disk');
  const image = join(lab.folder, 'disk.raw');
  await run('bash', [join(__dirname, '../../../demo/lab/image.sh'), image, `http://${lab.address}:${REPORT_PORT}/`, 'from-disk'], {
    timeout: 300_000,
  });
  for (const firmware of FIRMWARES) {
    const machine = await lab.machine({ name: firmware, firmware, memoryMiB: 768, cpus: 1, diskGiB: 1 });
    await run('qemu-img', ['convert', '-O', 'qcow2', image, machine.diskFile]);
    machine.setBoot({ device: 'pxe', persistent: true, mode: null });
    machines.push(machine);
  }
  const folder = join(lab.folder, 'served');
  mkdirSync(folder);
  const boots = machines.map(({ uuid, macs, firmware }): ServedBoot => ({
    node_uuid: uuid,
    token: uuid.replaceAll('-', ''),
    macs,
    method: firmware === 'uefi-http' ? 'http-ipxe' : 'ipxe',
    purpose: 'disk',
    kernel_args: '',
    files: {},
  }));
  const setup: BootServerSetup = { address: lab.address, interface: lab.bridge, folder, boots };
  await startBootServer(lab, setup, (text) => (log += text));
  lab.start(process.execPath, join(__dirname, '../../../demo/lab/report-server.mjs'), lab.address, String(REPORT_PORT), report());
}, 400_000);
afterAll(() => lab.close(), 60_000);

it.each(FIRMWARES)(
  'a %s machine loads iPXE and its script from the boot services, and then boots from its disk',
  async (firmware) => {
    const machine = machines.find((candidate) => candidate.firmware === firmware)!;
    await machine.act('on');
    await until(
      PATIENCE,
      () => `a report of the system on the disk\n${log}\n${consoleEnd(machine)}`,
      () => existsSync(report()) && readFileSync(report(), 'utf8').includes(machine.mac),
    );
    await machine.act('off');
    expect(readFileSync(report(), 'utf8')).toContain('image=from-disk');
    // The machine asked us first, by its firmware's protocol.
    const asked = {
      bios: /TFTP: sent[^\n]*undionly|\/ipxe\//,
      uefi: /TFTP: sent[^\n]*snponly\.efi/,
      'uefi-http': /HTTP boot: sent[^\n]*\/snponly\.efi/,
    };
    expect(log).toMatch(asked[firmware]);
    expect(log).toContain(`/ipxe/${machine.mac.replaceAll(':', '-')}`);
  },
  (PATIENCE + 20) * 1000,
);
