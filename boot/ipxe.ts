/** iPXE scripts (https://ipxe.org/scripting), made from the row of a boot. */
import type { BootRecord } from '../model/records';

/** Tries before the machine starts over from its firmware: with DHCP anew, so that a server that moved is found. */
const ATTEMPTS = 10;

/** The script for a machine; `httpUrl` without a trailing slash. */
export const ipxeScript = (boot: BootRecord, httpUrl: string): string => ['#!ipxe', ...SCRIPTS[boot.purpose](boot, httpUrl), ''].join('\n');

/** Tries again and again what ends in `|| goto again`. */
const retried = (lines: readonly string[]): readonly string[] => [
  `set attempts:int32 ${ATTEMPTS}`,
  'set tried:int32 0',
  ':start',
  'imgfree',
  ...lines,
  ':again',
  'inc tried',
  'iseq ${tried} ${attempts} && goto failed ||',
  'echo Could not boot, try ${tried} of ${attempts}',
  'sleep ${tried}',
  'goto start',
  ':failed',
  'echo Could not boot, the machine starts over in 30 seconds',
  'sleep 30',
  'reboot',
];

/** UEFI iPXE hands the kernel no initrd unless it is named on both lines. */
const kernelAndRamdisk = ({ node_uuid: uuid, kernel_args: args }: BootRecord, httpUrl: string, ...more: readonly string[]) =>
  retried([
    `kernel ${httpUrl}/boot/${uuid}/kernel ${[...kernelArguments(args), ...more, 'initrd=ramdisk'].join(' ')} || goto again`,
    `initrd --name ramdisk ${httpUrl}/boot/${uuid}/ramdisk || goto again`,
    'boot || goto again',
  ]);

/**
 * To the first disk. A BIOS starts it from here, since many stop when a boot ROM just returns. UEFI tries its next boot entry when
 * this one ends in error.
 */
const disk: readonly string[] = ['iseq ${platform} efi && goto efi ||', 'sanboot --no-describe --drive 0x80 || exit 0', ':efi', 'exit 1'];

/** `${mac}` is the address of the interface that iPXE booted from: iPXE fills it in. */
const SCRIPTS: Readonly<Record<BootRecord['purpose'], (boot: BootRecord, httpUrl: string) => readonly string[]>> = {
  ramdisk: (boot, httpUrl) => kernelAndRamdisk(boot, httpUrl, 'BOOTIF=${mac}'),
  instance: (boot, httpUrl) =>
    boot.files['boot_iso'] === undefined
      ? kernelAndRamdisk(boot, httpUrl)
      : retried([`sanboot --no-describe ${httpUrl}/boot/${boot.node_uuid}/boot_iso || goto again`]),
  disk: () => disk,
};

/** What iPXE takes for the end of a command when it stands alone; anything else is text for the kernel. */
const SEPARATORS = ['||', '&&', ';'];

/** The arguments one by one; nothing among them ends the line or begins another command. */
const kernelArguments = (text: string): readonly string[] =>
  text.split(/[\s\p{Cc}]+/u).filter((one) => one !== '' && !SEPARATORS.includes(one));
