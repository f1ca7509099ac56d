/**
 * Configuration files of PXELINUX and GRUB for boot records, and the names under which they are requested.
 * https://wiki.syslinux.org/wiki/index.php?title=PXELINUX, https://www.gnu.org/software/grub/manual (Network).
 */
import type { ServedBoot } from '../model/records';

/** What a requested name stands for, besides files below the root. */
type PxeName =
  | { readonly kind: 'pxelinux' | 'grub'; readonly mac: string }
  | { readonly kind: 'grub start' }
  | { readonly kind: 'file'; readonly token: string; readonly name: string };

const HEX = '[0-9a-f]{2}';
const DASHED = `(${HEX}(?:-${HEX}){5})`;
const NAMES: readonly (readonly [pattern: RegExp, name: (match: readonly string[]) => PxeName])[] = [
  // 01: the hardware type Ethernet.
  [new RegExp(`^/?pxelinux\\.cfg/01-${DASHED}$`, 'i'), ([, mac]) => ({ kind: 'pxelinux', mac: plain(mac!) })],
  // GRUB requests its machine's file below its prefix, or by the name in GRUB_START.
  [new RegExp(`(?:^|/)grub\\.cfg-01-${DASHED}$`, 'i'), ([, mac]) => ({ kind: 'grub', mac: plain(mac!) })],
  [new RegExp(`^/?(${HEX}(?::${HEX}){5})\\.conf$`, 'i'), ([, mac]) => ({ kind: 'grub', mac: plain(mac!) })],
  [/^\/?(?:[\w-]+\/)*grub\.cfg$/, () => ({ kind: 'grub start' })],
  [/^\/?boot\/([0-9a-f-]{32,36})\/([^/]+)$/i, ([, token, name]) => ({ kind: 'file', token: token!.toLowerCase(), name: name! })],
];
const plain = (mac: string): string => mac.replaceAll('-', ':').toLowerCase();

export function pxeName(asked: string): PxeName | undefined {
  for (const [pattern, name] of NAMES) {
    const match = pattern.exec(asked);
    if (match) return name(match);
  }
  return undefined;
}

/** Splits the arguments as the kernel does: double quotes protect spaces. Control characters are removed. */
const words = (text: string): readonly string[] => text.replace(/\p{Cc}+/gu, ' ').match(/(?:[^\s"]|"[^"]*")+/g) ?? [];

const lines = (...all: readonly string[]): string => `${all.join('\n')}\n`;

/** The file `pxelinux.cfg/01-MAC`. */
export function pxelinuxConfig({ token, purpose, kernel_args: args }: ServedBoot): string {
  const boot =
    purpose === 'disk'
      ? ['localboot 0']
      : [
          `kernel /boot/${token}/kernel`,
          `initrd /boot/${token}/ramdisk`,
          `append ${kernelWords(args)}`,
          // 2: adds BOOTIF= with the address of the boot interface.
          ...(purpose === 'ramdisk' || purpose === 'installer' ? ['ipappend 2'] : []),
        ];
  return lines('default boot', 'prompt 0', 'label boot', ...boot.map((line) => `  ${line}`));
}

/** Kernel arguments in the syntax of PXELINUX and ISOLINUX. */
export const kernelWords = (args: string): string => words(args).join(' ');

/** Quotes a word for GRUB's shell. GRUB adds quotes for the kernel if it contains spaces. */
const quoted = (word: string): string => `'${word.replaceAll('"', '').replaceAll("'", "'\\''")}'`;

/** Kernel arguments in the syntax of GRUB's shell. */
export const grubWords = (args: string): string => words(args).map(quoted).join(' ');

/** The file `grub.cfg-01-MAC`. GRUB itself adds the address of its boot interface. */
export function grubConfig({ token, purpose, kernel_args: args }: ServedBoot): string {
  // Returns to the firmware, which tries its next boot entry.
  if (purpose === 'disk') return lines('exit 1');
  const bootif = purpose === 'ramdisk' ? ' "BOOTIF=$net_default_mac"' : '';
  return lines(
    `linux /boot/${token}/kernel ${grubWords(args)}${bootif}`,
    `initrd /boot/${token}/ramdisk`,
    'boot',
    'echo "Could not boot, the machine starts over in 30 seconds"',
    'sleep 30',
    'reboot',
  );
}

/** The file `grub.cfg`, for a GRUB that does not request its machine's file itself. */
export const GRUB_START = lines('source /$net_default_mac.conf');
