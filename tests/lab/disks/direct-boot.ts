/** Machines of the lab that start from their disks, without a server: what their systems report. */
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { copyFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { until } from '../../../demo/lab/machines';
import { type Architecture, PLATFORMS } from '../../../simulator/qemu/platforms';
import { diskFile, PATIENCE } from './disk-machine';

export type Firmware = 'uefi' | 'bios';
/** Of UEFI, the firmware's code, and the variables that it begins with. */
const UEFI = {
  uefi: ['OVMF/OVMF_CODE_4M.fd', 'OVMF/OVMF_VARS_4M.fd'],
  'uefi with secure boot': ['OVMF/OVMF_CODE_4M.secboot.fd', 'OVMF/OVMF_VARS_4M.ms.fd'],
  'uefi of aarch64': ['AAVMF/AAVMF_CODE.fd', 'AAVMF/AAVMF_VARS.fd'],
} as const;
type SystemFirmware = 'bios' | keyof typeof UEFI;
const architectureOf = (firmware: SystemFirmware): Architecture => (firmware === 'uefi of aarch64' ? 'aarch64' : 'x86_64');

/** QEMU's arguments for the firmware, which remembers its boot entries in the folder. */
export function firmwareArguments(firmware: SystemFirmware, place: string): readonly string[] {
  if (firmware === 'bios') return [];
  const [code, original] = UEFI[firmware].map((name) => join('/usr/share', name)) as [string, string];
  const isSecure = firmware === 'uefi with secure boot';
  const variables = join(place, isSecure ? 'secure-vars.fd' : 'vars.fd');
  if (!existsSync(variables)) copyFileSync(original, variables);
  const file = (path: string, more: string) => ['-drive', `if=pflash,format=raw,file=${path}${more}`];
  // Only the firmware's own code, in the mode SMM, may write the variables.
  const smm = isSecure ? ['-machine', 'smm=on', '-global', 'driver=cfi.pflash01,property=secure,value=on'] : [];
  return [...smm, ...file(code, ',readonly=on'), ...file(variables, '')];
}

/** A config drive, made in the folder: base64 of the gzipped volume. */
export function makeConfigDrive(folder: string): string {
  const content = join(folder, 'drive');
  mkdirSync(join(content, 'openstack/latest'), { recursive: true });
  writeFileSync(join(content, 'openstack/latest/meta_data.json'), '{"uuid":"of the instance"}');
  execFileSync('genisoimage', ['-quiet', '-R', '-V', 'config-2', '-o', `${content}.iso`, content]);
  return gzipSync(readFileSync(`${content}.iso`)).toString('base64');
}

export interface Reports {
  /** Where the image of demo/lab/image.sh sends its report, from QEMU's own network. */
  readonly url: string;
  /** Starts a machine with these disks (name → QEMU's device), and returns what its system reports. */
  boot(firmware: SystemFirmware, place: string, disks: Readonly<Record<string, string>>): Promise<string>;
  close(): Promise<void>;
}
export async function startReports(): Promise<Reports> {
  let reported: readonly string[] = [];
  const server = createServer((request, response) => {
    const parts: Buffer[] = [];
    request.on('data', (part: Buffer) => parts.push(part));
    request.on('end', () => {
      reported = [...reported, Buffer.concat(parts).toString()];
      response.end();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://10.0.2.2:${(server.address() as AddressInfo).port}/`,
    async boot(firmware, place, disks) {
      reported = [];
      const consoleFile = join(place, `system-${Object.keys(disks).join('')}.log`);
      const drives = Object.entries(disks).flatMap(([name, device]) => {
        const drive = `if=none,id=${name},format=raw,cache=unsafe,file=${diskFile(place, name)}`;
        return ['-drive', drive, '-device', device];
      });
      const { program, machine: board, cpu } = PLATFORMS[architectureOf(firmware)];
      const machine = spawn(program, [
        ...`-machine ${board},accel=tcg -cpu ${cpu} -m 768 -nodefaults -display none -no-reboot`.split(' '),
        ...`-serial file:${consoleFile} -netdev user,id=n -device virtio-net-pci,netdev=n,romfile=`.split(' '),
        ...firmwareArguments(firmware, place),
        ...drives,
      ]);
      try {
        await until(
          PATIENCE,
          () => readFileSync(consoleFile, 'latin1').slice(-2000),
          () => reported.length > 0,
        );
        return reported[0]!;
      } finally {
        const ended = once(machine, 'exit');
        machine.kill('SIGKILL');
        await ended;
      }
    },
    async close() {
      server.closeAllConnections();
      await new Promise((closed) => server.close(closed));
    },
  };
}
