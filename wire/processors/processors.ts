/**
 * The table of processors: the names that others have for them, of EFI boot loaders (UEFI 2.10 §3.5.1.1), of iPXE
 * (https://ipxe.org/cfg/buildarch) and of GRUB.
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
  /** What Debian, Go and others call it. */
  readonly names: readonly string[];
  /** Others whose systems it runs too, by any name. */
  readonly runs: readonly string[];
}
const PROCESSORS = {
  x86_64: {
    efi: 'BOOTX64.EFI',
    pe: 0x8664,
    ipxe: ['x86_64', 'i386'],
    grub: ['x86_64', 'i386'],
    names: ['amd64', 'x64', 'x86-64'],
    runs: ['i386', 'i486', 'i586', 'i686', 'x86'],
  },
  i686: { efi: 'BOOTIA32.EFI', pe: 0x14c, ipxe: ['i386'], grub: ['i386'], names: [], runs: [] },
  aarch64: { efi: 'BOOTAA64.EFI', pe: 0xaa64, ipxe: ['arm64'], grub: ['arm64'], names: ['arm64'], runs: ['arm', 'armv7', 'armv7l'] },
  armv7l: { efi: 'BOOTARM.EFI', pe: 0x1c2, ipxe: ['arm32'], grub: ['arm'], names: [], runs: [] },
  riscv64: { efi: 'BOOTRISCV64.EFI', pe: 0x5064, ipxe: ['riscv64'], grub: ['riscv64'], names: [], runs: [] },
  loongarch64: { efi: 'BOOTLOONGARCH64.EFI', pe: 0x6264, ipxe: ['loong64'], grub: ['loongarch64'], names: [], runs: [] },
} as const satisfies Readonly<Record<string, Processor>>;

const rows = Object.entries(PROCESSORS) as (readonly [Cpu, Processor])[];

export const hasProcessor = (name: string): name is Cpu => Object.hasOwn(PROCESSORS, name);
export const processorOf = (cpu: Cpu): Processor => PROCESSORS[cpu];
/** The name of the loader that firmware starts by default, for a program with this machine type; undefined: of another processor. */
export const defaultLoaderName = (pe: number): string | undefined => rows.find(([, processor]) => processor.pe === pe)?.[1].efi;
/** The processor that iPXE was built for; undefined: another. */
export const cpuOfIpxe = (buildarch: string): Cpu | undefined => rows.find(([, { ipxe }]) => ipxe.includes(buildarch))?.[0];
/** The value of cpu_arch that a name of a processor means: itself, or that of others; undefined: nobody knows. */
export const cpuNamed = (name: string): Cpu | undefined => rows.find(([cpu, { names }]) => cpu === name || names.includes(name))?.[0];
export const isSameProcessor = (one: string, other: string): boolean =>
  one === other || (cpuNamed(one) !== undefined && cpuNamed(one) === cpuNamed(other));
/** Whether a machine with this processor runs systems for that one, by any of their names. */
export function canRun(machine: string, system: string): boolean {
  const cpu = cpuNamed(machine);
  return isSameProcessor(machine, system) || (cpu !== undefined && processorOf(cpu).runs.includes(system));
}
