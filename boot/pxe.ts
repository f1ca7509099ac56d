/**
 * Configuration files of PXELINUX and GRUB for boot records, and the names under which they are requested.
 * https://wiki.syslinux.org/wiki/index.php?title=PXELINUX, https://www.gnu.org/software/grub/manual (Network).
 */
import type { ServedBoot } from '../model/records';
import { processorOf, type Cpu } from '../wire/processors/processors';
import { hasCommonFiles, NO_RAMDISK, OTHER_MACHINE, ownProcessors, processorOfNode } from './architectures';

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

/** Why a PXELINUX, which runs on x86 only, must not boot the record; undefined: it may. */
function refusalOfX86(boot: ServedBoot): string | undefined {
  const cpu = processorOfNode(boot);
  if (cpu !== undefined && !processorOf(cpu).grub.includes('i386')) return OTHER_MACHINE(boot.node_uuid, cpu, 'x86_64');
  const own = ownProcessors(boot);
  return own.length === 0 || hasCommonFiles(boot) || own.includes('x86_64') ? undefined : NO_RAMDISK('x86_64');
}
/** The file `pxelinux.cfg/01-MAC`. */
export function pxelinuxConfig(record: ServedBoot): string {
  const { token, purpose, kernel_args: args } = record;
  const refusal = refusalOfX86(record);
  if (refusal !== undefined) return lines('prompt 0', `say Bloomery: ${refusal}`, 'default boot', 'label boot', '  localboot 0');
  const suffix = ownProcessors(record).includes('x86_64') ? '.x86_64' : '';
  const boot =
    purpose === 'disk'
      ? ['localboot 0']
      : [
          `kernel /boot/${token}/kernel${suffix}`,
          `initrd /boot/${token}/ramdisk${suffix}`,
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

/** A condition of GRUB's shell: it runs on this processor. */
const runsOn = (cpu: Cpu): string =>
  `[ ${processorOf(cpu)
    .grub.map((name) => `"$grub_cpu" = ${name}`)
    .join(' -o ')} ]`;
const refuses = (why: string): readonly string[] => [`echo "Bloomery: ${why}"`, 'sleep 30', 'exit 1'];
/** GRUB knows its processor, and does not tell it when it asks for its file: the file itself chooses. */
function grubChoice(record: ServedBoot): readonly string[] {
  const cpu = processorOfNode(record);
  const own = ownProcessors(record);
  if (cpu !== undefined) return [`if ! ${runsOn(cpu)}; then`, ...refuses(OTHER_MACHINE(record.node_uuid, cpu, '$grub_cpu')), 'fi'];
  if (own.length === 0) return [];
  return [
    ...own.flatMap((each, index) => [`${index === 0 ? 'if' : 'elif'} ${runsOn(each)}; then`, `set suffix=.${each}`]),
    ...(hasCommonFiles(record) ? [] : ['else', ...refuses(NO_RAMDISK('$grub_cpu'))]),
    'fi',
  ];
}

/** The file `grub.cfg-01-MAC`. GRUB itself adds the address of its boot interface. */
export function grubConfig(record: ServedBoot): string {
  const { token, purpose, kernel_args: args } = record;
  // Returns to the firmware, which tries its next boot entry.
  if (purpose === 'disk') return lines('exit 1');
  const bootif = purpose === 'ramdisk' ? ' "BOOTIF=$net_default_mac"' : '';
  const suffix = ownProcessors(record).length > 0 ? '$suffix' : '';
  return lines(
    ...grubChoice(record),
    `linux /boot/${token}/kernel${suffix} ${grubWords(args)}${bootif}`,
    `initrd /boot/${token}/ramdisk${suffix}`,
    'boot',
    'echo "Could not boot, the machine starts over in 30 seconds"',
    'sleep 30',
    'reboot',
  );
}

/** The file `grub.cfg`, for a GRUB that does not request its machine's file itself. */
export const GRUB_START = lines('source /$net_default_mac.conf');
