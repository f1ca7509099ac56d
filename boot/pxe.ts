/**
 * What PXELINUX and GRUB are told, made from the row of a boot, and by which names they ask for it:
 * https://wiki.syslinux.org/wiki/index.php?title=PXELINUX and https://www.gnu.org/software/grub/manual (Network).
 */
import type { BootRecord } from '../model/records';

/** What a name over TFTP stands for, beside the files of the root. */
export type PxeName =
  | { readonly kind: 'pxelinux' | 'grub'; readonly mac: string }
  | { readonly kind: 'grub start' }
  | { readonly kind: 'file'; readonly uuid: string; readonly name: string };

const HEX = '[0-9a-f]{2}';
const DASHED = `(${HEX}(?:-${HEX}){5})`;
const NAMES: readonly (readonly [pattern: RegExp, name: (match: readonly string[]) => PxeName])[] = [
  // 01: the hardware type Ethernet.
  [new RegExp(`^/?pxelinux\\.cfg/01-${DASHED}$`, 'i'), ([, mac]) => ({ kind: 'pxelinux', mac: plain(mac!) })],
  // GRUB asks beside its own prefix, whatever that is; or by what the start file says.
  [new RegExp(`(?:^|/)grub\\.cfg-01-${DASHED}$`, 'i'), ([, mac]) => ({ kind: 'grub', mac: plain(mac!) })],
  [new RegExp(`^/?(${HEX}(?::${HEX}){5})\\.conf$`, 'i'), ([, mac]) => ({ kind: 'grub', mac: plain(mac!) })],
  [/^\/?(?:[\w-]+\/)*grub\.cfg$/, () => ({ kind: 'grub start' })],
  [
    /^\/?boot\/([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\/([^/]+)$/i,
    ([, uuid, name]) => ({ kind: 'file', uuid: uuid!.toLowerCase(), name: name! }),
  ],
];
const plain = (mac: string): string => mac.replaceAll('-', ':').toLowerCase();

export function pxeName(asked: string): PxeName | undefined {
  for (const [pattern, name] of NAMES) {
    const match = pattern.exec(asked);
    if (match) return name(match);
  }
  return undefined;
}

/** Words as the kernel splits them: double quotes keep spaces. Nothing among them ends the line. */
const words = (text: string): readonly string[] => text.replace(/\p{Cc}+/gu, ' ').match(/(?:[^\s"]|"[^"]*")+/g) ?? [];

const lines = (...all: readonly string[]): string => `${all.join('\n')}\n`;

/** The file `pxelinux.cfg/01-MAC`. */
export function pxelinuxConfig({ node_uuid: uuid, purpose, kernel_args: args }: BootRecord): string {
  const boot =
    purpose === 'disk'
      ? ['localboot 0']
      : [
          `kernel /boot/${uuid}/kernel`,
          `initrd /boot/${uuid}/ramdisk`,
          `append ${kernelWords(args)}`,
          // 2: BOOTIF=, the address that it booted from.
          ...(purpose === 'ramdisk' ? ['ipappend 2'] : []),
        ];
  return lines('default boot', 'prompt 0', 'label boot', ...boot.map((line) => `  ${line}`));
}

/** The arguments as PXELINUX and ISOLINUX take them. */
export const kernelWords = (args: string): string => words(args).join(' ');

/** One word to GRUB's shell, which hands it on with quotes of its own where it has spaces. */
const quoted = (word: string): string => `'${word.replaceAll('"', '').replaceAll("'", "'\\''")}'`;

/** The arguments as GRUB's shell takes them. */
export const grubWords = (args: string): string => words(args).map(quoted).join(' ');

/** The file `grub.cfg-01-MAC`. GRUB knows the address that it booted from. */
export function grubConfig({ node_uuid: uuid, purpose, kernel_args: args }: BootRecord): string {
  // To the firmware, which tries its next boot entry.
  if (purpose === 'disk') return lines('exit 1');
  const bootif = purpose === 'ramdisk' ? ' "BOOTIF=$net_default_mac"' : '';
  return lines(
    `linux /boot/${uuid}/kernel ${grubWords(args)}${bootif}`,
    `initrd /boot/${uuid}/ramdisk`,
    'boot',
    'echo "Could not boot, the machine starts over in 30 seconds"',
    'sleep 30',
    'reboot',
  );
}

/** The file `grub.cfg`, for a GRUB that does not look for its machine's by itself. */
export const GRUB_START = lines('source /$net_default_mac.conf');
