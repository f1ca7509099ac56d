/** iPXE scripts (https://ipxe.org/scripting) for boot records. */
import type { BootRecord, ServedBoot } from '../model/records';

/** Attempts until the machine reboots. It then uses DHCP again, which finds a server that moved. */
const ATTEMPTS = 10;

/**
 * The script of a machine.
 * @param httpUrl without a trailing slash
 */
export const ipxeScript = (boot: ServedBoot, httpUrl: string): string => ['#!ipxe', ...SCRIPTS[boot.purpose](boot, httpUrl), ''].join('\n');

/** Fetches the script of the machine by the address of the interface that iPXE booted from. */
export const startScript = (httpUrl: string): string => ['#!ipxe', `chain ${httpUrl}/ipxe/\${mac:hexhyp}`, ''].join('\n');

/** Repeats commands that end in `|| goto again`. */
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

/** UEFI iPXE passes the initrd to the kernel only if both lines name it. */
const kernelAndRamdisk = ({ token, kernel_args: args }: ServedBoot, httpUrl: string, ...more: readonly string[]) =>
  retried([
    `kernel ${httpUrl}/boot/${token}/kernel ${[...kernelArguments(args), ...more, 'initrd=ramdisk'].join(' ')} || goto again`,
    `initrd --name ramdisk ${httpUrl}/boot/${token}/ramdisk || goto again`,
    'boot || goto again',
  ]);

/**
 * Boots the first disk. With BIOS the script does it, because many BIOSes stop after a boot ROM returns. UEFI tries its next boot entry
 * when this one ends with an error.
 */
const disk: readonly string[] = ['iseq ${platform} efi && goto efi ||', 'sanboot --no-describe --drive 0x80 || exit 0', ':efi', 'exit 1'];

/** iPXE replaces `${mac}` with the address of the interface that it booted from. */
const SCRIPTS: Readonly<Record<BootRecord['purpose'], (boot: ServedBoot, httpUrl: string) => readonly string[]>> = {
  ramdisk: (boot, httpUrl) => kernelAndRamdisk(boot, httpUrl, 'BOOTIF=${mac}'),
  instance: (boot, httpUrl) =>
    boot.files['boot_iso'] === undefined
      ? kernelAndRamdisk(boot, httpUrl)
      : retried([`sanboot --no-describe ${httpUrl}/boot/${boot.token}/boot_iso || goto again`]),
  disk: () => disk,
};

/** iPXE ends a command at one of these words; anything else is passed to the kernel. */
const SEPARATORS = ['||', '&&', ';'];

/** Splits the arguments, without words that would end the command. */
const kernelArguments = (text: string): readonly string[] =>
  text.split(/[\s\p{Cc}]+/u).filter((one) => one !== '' && !SEPARATORS.includes(one));
