/**
 * The processor for which a Linux kernel was built, by its first bytes: the "HdrS" of the x86 boot protocol, and the magic numbers of the
 * image headers of arm64 and RISC-V (Documentation/arch/x86/boot.rst, arm64/booting.rst, riscv/boot-image-header.rst of Linux).
 */

/** Bytes of a kernel that suffice. */
export const KERNEL_HEAD = 1024;
const MAGICS: readonly (readonly [cpu: string, at: number, magic: string])[] = [
  ['x86_64', 0x202, 'HdrS'],
  ['aarch64', 0x38, 'ARM\x64'],
  ['riscv64', 0x38, 'RSC\x05'],
];
/** A value of the property cpu_arch; undefined: another kernel, a compressed one, or none. */
export const kernelProcessor = (head: Buffer): string | undefined =>
  MAGICS.find(([, at, magic]) => head.toString('latin1', at, at + magic.length) === magic)?.[0];
