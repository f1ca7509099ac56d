/** What DHCPv4 and DHCPv6 have in common: a client's machine, its kind, and its boot loader. */
import { BOOT_METHODS, type BootMethod } from '../../model/records';

/** What the store knows about a MAC address. */
export interface Machine {
  /** A node has this address. */
  readonly known: boolean;
  /** How the machine is to boot from the network now (boot/discovery.ts); absent: not from the network. */
  readonly boots?: BootMethod | undefined;
}
/** Stored with an offer, so that the following request gets the same answer without a query. */
export interface Decision {
  readonly machine: Machine;
  readonly at: number;
}
/** Older decisions are looked up again. */
export const DECISION_MS = 10_000;

/** No answer. `notable`: the operator should know. There must be few different reasons, because they become messages of `Warn`. */
export interface Silence {
  readonly kind: 'silence';
  readonly reason: string;
  readonly notable?: true;
}
export const silence = (reason: string): Silence => ({ kind: 'silence', reason });

/** The kind of client: firmware with TFTP, firmware with HTTP, iPXE, or an operating system. */
export type Client = 'pxe' | 'http' | 'ipxe' | 'system';

/** Whether a client gets the URL of PXELINUX or GRUB. Firmware knows one protocol; iPXE knows both. */
export const usesUrl = (boots: BootMethod, client: Client): boolean =>
  client === 'http' || (client === 'ipxe' && BOOT_METHODS[boots].byUrl);

/** Names of boot loaders for BIOS mode and UEFI mode. `byArch` has exceptions; its keys are CPU-MODE (`x86_64-bios`) or CPU. */
export interface Loaders {
  readonly bios: string;
  readonly uefi: string;
  readonly byArch: Readonly<Record<string, string>>;
}

/** RFC 4578 §2.1 with later numbers of IANA: the CPU, and whether the firmware is a BIOS. Other numbers are UEFI of an unknown CPU. */
const ARCHITECTURES: Readonly<Record<number, { readonly cpu: string; readonly bios?: true }>> = {
  0: { cpu: 'x86_64', bios: true },
  6: { cpu: 'i686' },
  7: { cpu: 'x86_64' },
  9: { cpu: 'x86_64' },
  10: { cpu: 'armv7l' },
  11: { cpu: 'aarch64' },
  15: { cpu: 'i686' },
  16: { cpu: 'x86_64' },
  18: { cpu: 'armv7l' },
  19: { cpu: 'aarch64' },
  20: { cpu: 'x86_64', bios: true },
  27: { cpu: 'riscv64' },
  30: { cpu: 'riscv64' },
};

/**
 * The architecture is in its own option or in the vendor class (PXEClient:Arch:00007:UNDI:003016). A client that sends neither is a BIOS
 * older than RFC 4578.
 */
export function loaderFor(
  { byArch, ...usual }: Loaders,
  options: { readonly vendorClass?: string | undefined; readonly clientArchitectures?: readonly number[] | undefined },
): string {
  const named = /^(?:PXE|HTTP)Client:Arch:(\d{5})/.exec(options.vendorClass ?? '')?.[1];
  const row = ARCHITECTURES[options.clientArchitectures?.[0] ?? Number(named ?? 0)];
  const mode = row?.bios ? 'bios' : 'uefi';
  return (row && (byArch[`${row.cpu}-${mode}`] ?? byArch[row.cpu])) ?? usual[mode];
}

/** Why this machine gets no answer; undefined: it gets one. */
export function refusalFor(machine: Machine, client: Client): string | undefined {
  if (machine.boots) return undefined;
  if (!machine.known) return 'no node has this MAC address';
  return client === 'system' ? undefined : 'the machine is not meant to boot from the network now';
}
