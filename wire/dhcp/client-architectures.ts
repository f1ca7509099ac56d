/**
 * What a machine that boots from the network says about itself: its processor, its firmware, and how it loads files. The one table of
 * architectures: DHCPv4 and DHCPv6 (IANA's "Processor Architecture Types", RFC 4578 §2.1, RFC 5970 §3.3), the names of EFI boot loaders
 * (UEFI 2.10 §3.5.1.1) and iPXE's names (https://ipxe.org/cfg/buildarch).
 */

/** The processors that have a row below, by the names of the node's property cpu_arch. */
export type Cpu = keyof typeof PROCESSORS;
interface Processor {
  /** The loader of the UEFI fallback path, below EFI/BOOT. */
  readonly efi: string;
  /** The machine type in the header of an EFI program (PE). */
  readonly pe: number;
  /** iPXE's `${buildarch}`. iPXE for a BIOS is a 32-bit program, on 64-bit processors too. */
  readonly ipxe: readonly string[];
  /** GRUB's `$grub_cpu`. */
  readonly grub: readonly string[];
}
const PROCESSORS = {
  x86_64: { efi: 'BOOTX64.EFI', pe: 0x8664, ipxe: ['x86_64', 'i386'], grub: ['x86_64', 'i386'] },
  i686: { efi: 'BOOTIA32.EFI', pe: 0x14c, ipxe: ['i386'], grub: ['i386'] },
  aarch64: { efi: 'BOOTAA64.EFI', pe: 0xaa64, ipxe: ['arm64'], grub: ['arm64'] },
  armv7l: { efi: 'BOOTARM.EFI', pe: 0x1c2, ipxe: ['arm32'], grub: ['arm'] },
  riscv64: { efi: 'BOOTRISCV64.EFI', pe: 0x5064, ipxe: ['riscv64'], grub: ['riscv64'] },
  loongarch64: { efi: 'BOOTLOONGARCH64.EFI', pe: 0x6264, ipxe: ['loong64'], grub: ['loongarch64'] },
} as const satisfies Readonly<Record<string, Processor>>;

interface ClientArchitecture {
  /** Absent: of no row, or none that Linux boots with UEFI or a BIOS. */
  readonly cpu?: Cpu | undefined;
  readonly firmware: 'bios' | 'uefi';
  /** The firmware loads its boot file by HTTP; absent: by TFTP. */
  readonly http?: true | undefined;
}

/** By the number in option 93 of DHCPv4 and option 61 of DHCPv6. 9 is EFI byte code for IANA, and x86_64 in RFC 4578 and older firmware. */
const NUMBERS: Readonly<Record<number, ClientArchitecture>> = {
  0x00: { cpu: 'x86_64', firmware: 'bios' },
  0x06: { cpu: 'i686', firmware: 'uefi' },
  0x07: { cpu: 'x86_64', firmware: 'uefi' },
  0x09: { cpu: 'x86_64', firmware: 'uefi' },
  0x0a: { cpu: 'armv7l', firmware: 'uefi' },
  0x0b: { cpu: 'aarch64', firmware: 'uefi' },
  0x0f: { cpu: 'i686', firmware: 'uefi', http: true },
  0x10: { cpu: 'x86_64', firmware: 'uefi', http: true },
  0x11: { cpu: 'x86_64', firmware: 'uefi', http: true },
  0x12: { cpu: 'armv7l', firmware: 'uefi', http: true },
  0x13: { cpu: 'aarch64', firmware: 'uefi', http: true },
  0x14: { cpu: 'x86_64', firmware: 'bios', http: true },
  0x1b: { cpu: 'riscv64', firmware: 'uefi' },
  0x1c: { cpu: 'riscv64', firmware: 'uefi', http: true },
  0x27: { cpu: 'loongarch64', firmware: 'uefi' },
  0x28: { cpu: 'loongarch64', firmware: 'uefi', http: true },
};

/** The options of a request that tell its architecture. */
export interface ArchitectureOptions {
  readonly vendorClass?: string | undefined;
  readonly clientArchitectures?: readonly number[] | undefined;
}
/**
 * The architecture is in its own option or in the vendor class (PXEClient:Arch:00007:UNDI:003016). A client that sends neither is a BIOS
 * older than RFC 4578. Numbers without a row are UEFI of an unknown processor.
 */
export function clientArchitecture({ vendorClass = '', clientArchitectures }: ArchitectureOptions): ClientArchitecture {
  const named = /^(PXE|HTTP)Client(?::Arch:(\d{5}))?/.exec(vendorClass);
  const http = named?.[1] === 'HTTP' ? ({ http: true } as const) : {};
  return { ...(NUMBERS[clientArchitectures?.[0] ?? Number(named?.[2] ?? 0)] ?? { firmware: 'uefi' }), ...http };
}

export const hasProcessor = (name: string): name is Cpu => Object.hasOwn(PROCESSORS, name);
export const processorOf = (cpu: Cpu): Processor => PROCESSORS[cpu];
/** The name of the loader that firmware starts by default, for a program with this machine type; undefined: of another processor. */
export const defaultLoaderName = (pe: number): string | undefined =>
  Object.values(PROCESSORS).find((processor) => processor.pe === pe)?.efi;
/** The processor that iPXE was built for; undefined: another. */
export const cpuOfIpxe = (buildarch: string): Cpu | undefined =>
  (Object.keys(PROCESSORS) as Cpu[]).find((cpu) => processorOf(cpu).ipxe.includes(buildarch));
