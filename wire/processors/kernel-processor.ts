/**
 * The processors for which a Linux kernel was built, by its first bytes: the "HdrS" of the x86 boot protocol, and the magic numbers of the
 * image headers of arm64 and RISC-V (Documentation/arch/x86/boot.rst, arm64/booting.rst, riscv/boot-image-header.rst of Linux).
 */

/** Bytes of a kernel that suffice. */
export const KERNEL_HEAD = 1024;
const MAGICS: readonly (readonly [cpus: readonly string[], at: number, magic: string])[] = [
  // The boot protocol is the same for 32 bits.
  [['x86_64', 'i686'], 0x202, 'HdrS'],
  [['aarch64'], 0x38, 'ARM\x64'],
  [['riscv64'], 0x38, 'RSC\x05'],
];
/** Values of the property cpu_arch; empty: another kernel, a compressed one, or none. */
export const kernelProcessors = (head: Buffer): readonly string[] =>
  MAGICS.find(([, at, magic]) => head.toString('latin1', at, at + magic.length) === magic)?.[0] ?? [];
