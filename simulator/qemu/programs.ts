/** Finds the programs and the firmware that machines in QEMU need. */
import { accessSync, constants, existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';

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

export interface FirmwareFiles {
  readonly code: string;
  /** The file with its variables. */
  readonly variables: string;
}
/** The paths of OVMF in several distributions. Each machine gets its own copy of the file with the variables. */
const OVMF: readonly FirmwareFiles[] = [
  { code: '/usr/share/OVMF/OVMF_CODE_4M.fd', variables: '/usr/share/OVMF/OVMF_VARS_4M.fd' },
  { code: '/usr/share/OVMF/OVMF_CODE.fd', variables: '/usr/share/OVMF/OVMF_VARS.fd' },
  { code: '/usr/share/edk2/ovmf/OVMF_CODE.fd', variables: '/usr/share/edk2/ovmf/OVMF_VARS.fd' },
  { code: '/usr/share/edk2/x64/OVMF_CODE.4m.fd', variables: '/usr/share/edk2/x64/OVMF_VARS.4m.fd' },
];
/** OVMF with Secure Boot, and variables with the keys of Microsoft, which sign the boot loaders of distributions. */
const SECURE_OVMF: readonly FirmwareFiles[] = [
  { code: '/usr/share/OVMF/OVMF_CODE_4M.secboot.fd', variables: '/usr/share/OVMF/OVMF_VARS_4M.ms.fd' },
  { code: '/usr/share/edk2/ovmf/OVMF_CODE.secboot.fd', variables: '/usr/share/edk2/ovmf/OVMF_VARS.secboot.fd' },
];
/** Undefined: the host has no such firmware. */
export const secureFirmware = (files: readonly FirmwareFiles[] = SECURE_OVMF): FirmwareFiles | undefined =>
  files.find(({ code, variables }) => existsSync(code) && existsSync(variables));

/** @throws an Error when there is none */
export function uefiFirmware(files: readonly FirmwareFiles[] = OVMF): FirmwareFiles {
  const found = files.find(({ code, variables }) => existsSync(code) && existsSync(variables));
  if (!found) throw new Error('there is no UEFI firmware for QEMU (OVMF): it is in the Debian package ovmf');
  return found;
}

const QEMU_PROGRAMS = { 'qemu-system-x86_64': 'qemu-system-x86', 'qemu-img': 'qemu-utils' } as const;

/** @throws an Error that names what is missing on this host @param bridge the machines' bridge; absent: user-mode networks */
export function checkQemu({ bridge, accelerator }: { readonly bridge?: string | undefined; readonly accelerator: 'kvm' | 'tcg' }): void {
  const missing = missingPrograms({ ...QEMU_PROGRAMS, ...(bridge === undefined ? {} : { ip: 'iproute2' }) });
  if (missing.length > 0) throw new Error(missing.join('\n'));
  uefiFirmware();
  if (accelerator === 'kvm' && !mayUse('/dev/kvm', constants.R_OK | constants.W_OK)) throw new Error('this user may not use /dev/kvm');
  if (bridge === undefined) return;
  if (!existsSync(`/sys/class/net/${bridge}/bridge`)) throw new Error(`there is no bridge ${bridge}: ip link add ${bridge} type bridge`);
  if (process.getuid?.() !== 0) throw new Error('only root can connect machines to a bridge');
}
