/**
 * What a GRUB is told to boot the system of a partition image: its own configuration. An image without one gets an entry for its newest kernel,
 * which its own configuration replaces as soon as there is one. No program of the image runs.
 */
import { newestFirst } from '../kexec/boot-entry';
import type { ImageFiles } from '../kexec/image-files';

const FOLDERS = ['boot/grub', 'boot/grub2'] as const;
const CONFIGURATION = 'grub.cfg';

/** Whether GRUB's own configuration is in the image, and its folder: that of its distribution otherwise. */
async function ownConfiguration(files: ImageFiles): Promise<{ readonly folder: string; readonly text: string | null }> {
  for (const folder of FOLDERS) {
    const text = await files.text(`${folder}/${CONFIGURATION}`);
    if (text !== null) return { folder, text };
  }
  return { folder: (await files.names(FOLDERS[1])).length > 0 ? FOLDERS[1] : FOLDERS[0], text: null };
}

/** Kernel → the names of its initial ramdisk, by distribution. */
const RAMDISKS = ['initrd.img-#', 'initramfs-#.img', 'initrd-#', 'initrd-#.img', 'initramfs-#'];
const KERNEL = /^vmlinuz-([\w.+~-]{1,120})$/;
interface OwnKernel {
  readonly kernel: string;
  readonly ramdisk: string | undefined;
}
async function newestKernel(files: ImageFiles): Promise<OwnKernel | undefined> {
  const names = await files.names('boot');
  const kernel = newestFirst(names.filter((name) => KERNEL.test(name) && !name.includes('rescue')))[0];
  if (kernel === undefined) return undefined;
  const version = KERNEL.exec(kernel)![1]!;
  return { kernel, ramdisk: RAMDISKS.map((name) => name.replace('#', version)).find((name) => names.includes(name)) };
}

/** The words of /etc/default/grub for the kernel, as GRUB's grub-mkconfig joins them. Words that GRUB's scripts would not take as they are, are left out. */
async function defaultWords(files: ImageFiles): Promise<readonly string[]> {
  const text = (await files.text('etc/default/grub')) ?? '';
  const valueOf = (name: string): string => {
    const line = text.split('\n').findLast((candidate) => candidate.startsWith(`${name}=`)) ?? '';
    return line
      .slice(name.length + 1)
      .trim()
      .replace(/^(["'])(.*)\1$/, '$2');
  };
  return ['GRUB_CMDLINE_LINUX', 'GRUB_CMDLINE_LINUX_DEFAULT']
    .flatMap((name) => valueOf(name).split(/\s+/))
    .filter((word) => /^[\w.,:;/=@%+-]+$/.test(word));
}

/**
 * @param setRoot commands that set GRUB's variable `root` to the root partition
 * @param rootUuid of its file system
 * @param leadTo the commands for a configuration of the image; absent: the image's own GRUB reads it
 */
export async function grubCommands(
  files: ImageFiles,
  setRoot: string,
  rootUuid: string,
  leadTo?: (text: string) => Promise<string | undefined>,
): Promise<string> {
  const { folder, text } = await ownConfiguration(files);
  const lead = text === null ? undefined : await leadTo?.(text);
  if (lead !== undefined) return `${setRoot}\n${lead}`;
  const own = [`set prefix=($root)/${folder}`, `if [ -e $prefix/${CONFIGURATION} ]; then configfile $prefix/${CONFIGURATION}; fi`];
  if (text !== null) return `${[setRoot, ...own].join('\n')}\n`;
  const found = await newestKernel(files);
  if (!found) throw new Error('the image has no configuration of GRUB, and no kernel /boot/vmlinuz-VERSION');
  const words = [`root=UUID=${rootUuid}`, 'ro', ...(await defaultWords(files))].map((word) => `'${word}'`);
  const boot = [
    `linux ($root)/boot/${found.kernel} ${words.join(' ')}`,
    ...(found.ramdisk ? [`initrd ($root)/boot/${found.ramdisk}`] : []),
    'boot',
  ];
  return `${[setRoot, ...own, ...boot].join('\n')}\n`;
}
