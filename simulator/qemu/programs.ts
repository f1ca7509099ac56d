/** Finds the programs and the firmware that machines in QEMU need. */
import { accessSync, constants, existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { PLATFORMS, type Architecture, type FirmwareFiles } from './platforms';

/** A message for each program that is not installed. @internal @param programs program → its Debian package */
export function missingPrograms(programs: Readonly<Record<string, string>>): readonly string[] {
  const folders = [...(process.env['PATH'] ?? '').split(delimiter), '/usr/sbin', '/sbin'];
  const isThere = (name: string): boolean => folders.some((folder) => mayUse(join(folder, name), constants.X_OK));
  return Object.entries(programs)
    .filter(([name]) => !isThere(name))
    .map(([name, debian]) => `${name} is not installed: it is in the Debian package ${debian}`);
}
function mayUse(path: string, mode: number): boolean {
  try {
    accessSync(path, mode);
    return true;
  } catch {
    return false;
  }
}

const present = (files: readonly FirmwareFiles[]): FirmwareFiles | undefined =>
  files.find(({ code, variables }) => existsSync(code) && existsSync(variables));
/** Firmware with Secure Boot. Undefined: the host has none for this architecture. */
export const secureFirmware = (architecture: Architecture): FirmwareFiles | undefined => present(PLATFORMS[architecture].firmware.secure);
/** Each machine gets its own copy of the file with the variables. @throws an Error when there is none */
export function uefiFirmware(architecture: Architecture = 'x86_64'): FirmwareFiles {
  const { debian, files } = PLATFORMS[architecture].firmware;
  const found = present(files);
  if (!found) throw new Error(`there is no UEFI firmware for ${architecture} in QEMU: it is in the Debian package ${debian}`);
  return found;
}

interface QemuNeeds {
  /** The machines' bridge; absent: user-mode networks. */
  readonly bridge?: string | undefined;
  readonly accelerator: 'kvm' | 'tcg';
  /** Of the machines. */
  readonly architectures: readonly Architecture[];
}
/** @throws an Error that names what is missing on this host */
export function checkQemu({ bridge, accelerator, architectures }: QemuNeeds): void {
  const programs = architectures.map((architecture): [string, string] => [PLATFORMS[architecture].program, PLATFORMS[architecture].debian]);
  const missing = missingPrograms({
    ...Object.fromEntries(programs),
    'qemu-img': 'qemu-utils',
    ...(bridge === undefined ? {} : { ip: 'iproute2' }),
  });
  if (missing.length > 0) throw new Error(missing.join('\n'));
  for (const architecture of architectures) uefiFirmware(architecture);
  if (accelerator === 'kvm' && !mayUse('/dev/kvm', constants.R_OK | constants.W_OK)) throw new Error('this user may not use /dev/kvm');
  if (bridge === undefined) return;
  if (!existsSync(`/sys/class/net/${bridge}/bridge`)) throw new Error(`there is no bridge ${bridge}: ip link add ${bridge} type bridge`);
  if (process.getuid?.() !== 0) throw new Error('only root can connect machines to a bridge');
}
