/**
 * What a machine that boots from the network says about itself: its processor, its firmware, and how it loads files. DHCPv4 and DHCPv6 (IANA's
 * "Processor Architecture Types", RFC 4578 §2.1, RFC 5970 §3.3).
 */
import type { Cpu } from './processors';

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
