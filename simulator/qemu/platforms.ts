/** What QEMU needs to know of each architecture of machines: its program, its board and the UEFI firmware of distributions. */
import type { MachineDescription } from '../hardware/description';

export interface FirmwareFiles {
  readonly code: string;
  /** The file with its variables. */
  readonly variables: string;
}
/** Of machines. */
export type Architecture = MachineDescription['architecture'];
interface Platform {
  /** QEMU's program and its Debian package. */
  readonly program: string;
  readonly debian: string;
  readonly machine: string;
  /** An option of the board that leaves out its screen; absent: the board has none of its own. */
  readonly withoutScreen?: string;
  /** `max` calculates the authentication of pointers for each call without KVM, which takes most of the time of an aarch64 machine. */
  readonly cpu: string;
  readonly screen: readonly string[];
  /** The drive of the CD, which has the ID cd. */
  readonly cd: readonly string[];
  readonly firmware: {
    readonly debian: string;
    readonly files: readonly FirmwareFiles[];
    /** With Secure Boot, and variables with the keys of Microsoft, which sign the boot loaders of distributions. */
    readonly secure: readonly FirmwareFiles[];
  };
}
export const PLATFORMS: Readonly<Record<Architecture, Platform>> = {
  x86_64: {
    program: 'qemu-system-x86_64',
    debian: 'qemu-system-x86',
    machine: 'q35',
    withoutScreen: 'graphics=off',
    cpu: 'max',
    screen: ['-vga', 'std'],
    cd: ['-device', 'ide-cd,drive=cd,bus=ide.0'],
    firmware: {
      debian: 'ovmf',
      files: [
        { code: '/usr/share/OVMF/OVMF_CODE_4M.fd', variables: '/usr/share/OVMF/OVMF_VARS_4M.fd' },
        { code: '/usr/share/OVMF/OVMF_CODE.fd', variables: '/usr/share/OVMF/OVMF_VARS.fd' },
        { code: '/usr/share/edk2/ovmf/OVMF_CODE.fd', variables: '/usr/share/edk2/ovmf/OVMF_VARS.fd' },
        { code: '/usr/share/edk2/x64/OVMF_CODE.4m.fd', variables: '/usr/share/edk2/x64/OVMF_VARS.4m.fd' },
      ],
      secure: [
        { code: '/usr/share/OVMF/OVMF_CODE_4M.secboot.fd', variables: '/usr/share/OVMF/OVMF_VARS_4M.ms.fd' },
        { code: '/usr/share/edk2/ovmf/OVMF_CODE.secboot.fd', variables: '/usr/share/edk2/ovmf/OVMF_VARS.secboot.fd' },
      ],
    },
  },
  aarch64: {
    program: 'qemu-system-aarch64',
    debian: 'qemu-system-arm',
    machine: 'virt',
    cpu: 'max,pauth-impdef=on',
    screen: ['-device', 'ramfb'],
    cd: ['-device', 'virtio-scsi-pci,id=scsi', '-device', 'scsi-cd,drive=cd,bus=scsi.0'],
    firmware: {
      debian: 'qemu-efi-aarch64',
      files: [
        { code: '/usr/share/AAVMF/AAVMF_CODE.fd', variables: '/usr/share/AAVMF/AAVMF_VARS.fd' },
        { code: '/usr/share/edk2/aarch64/QEMU_EFI-pflash.raw', variables: '/usr/share/edk2/aarch64/vars-template-pflash.raw' },
      ],
      secure: [],
    },
  },
};
