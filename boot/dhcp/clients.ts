/** What DHCPv4 and DHCPv6 have in common: a client's machine, its kind, and its boot loader. */
import { BOOT_METHODS, type BootMethod } from '../../model/records';
import { clientArchitecture, type ArchitectureOptions } from '../../wire/processors/client-architectures';

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

export function loaderFor({ byArch, ...usual }: Loaders, options: ArchitectureOptions): string {
  const { cpu, firmware } = clientArchitecture(options);
  return (cpu && (byArch[`${cpu}-${firmware}`] ?? byArch[cpu])) ?? usual[firmware];
}

/** Why this machine gets no answer; undefined: it gets one. */
export function refusalFor(machine: Machine, client: Client): string | undefined {
  if (machine.boots) return undefined;
  if (!machine.known) return 'no node has this MAC address';
  return client === 'system' ? undefined : 'the machine is not meant to boot from the network now';
}
