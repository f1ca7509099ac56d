import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { findKernel } from '../../ramdisk-agent/kexec/find-kernel';
import { imageFiles } from '../../ramdisk-agent/kexec/image-files';
import { loadImageKernel } from '../../ramdisk-agent/kexec/kexec';
import { kernelCalls } from '../../ramdisk-agent/kexec/kernel-calls';
import { tree } from '../../ramdisk-agent/system/tree';
import { fileDevice, fileTree, folder } from './support';

type Files = Readonly<Record<string, string | Buffer>>;

/** What is found on the file systems, as text. */
async function found(...volumes: readonly Files[]): Promise<string> {
  const mounted = volumes.map((files, at) => ({ name: `/dev/vda${at + 1}`, uuid: null, files: imageFiles(fileTree(files)) }));
  try {
    const { path, from, initrds, commandLine, files } = await findKernel(mounted);
    const read = await Promise.all(
      initrds.map(async ({ file, start, length }) => (await file.read(Buffer.alloc(length), 0, length, start)).buffer),
    );
    for (const file of files) await file.close();
    return `${from} ${path} [${read.map(String).join('+')}] ${commandLine}`;
  } catch (error) {
    return (error as Error).message;
  }
}

const DEBIAN = `
if [ -s $prefix/grubenv ]; then
  set have_grubenv=true
  load_env
fi
if [ "\${next_entry}" ] ; then
   set default="\${next_entry}"
   set next_entry=
   save_env next_entry
   set boot_once=true
else
   set default="0"
fi
function gfxmode {
	set gfxpayload="\${1}"
}
menuentry 'Debian GNU/Linux' --class debian $menuentry_id_option 'gnulinux-simple-1' {
	load_video
	search --no-floppy --fs-uuid --set=root 8e1d
	echo	'Loading Linux ...'
	linux	/boot/vmlinuz-6.1 root=PARTUUID=1-2 ro  console=tty0 console=ttyS0,115200 opt="a b" \\
	  last
	echo	'Loading initial ramdisk ...'
	initrd	/boot/initrd.img-6.1
}
submenu 'Advanced options' $menuentry_id_option 'gnulinux-advanced-1' {
	menuentry 'Debian, with Linux 6.0' --class debian $menuentry_id_option 'old' {
		linux	/boot/vmlinuz-6.0 root=/dev/vda1 ro
		initrd	/boot/initrd.img-6.0
	}
}
`;
const BOOT = { 'boot/vmlinuz-6.1': 'k', 'boot/initrd.img-6.1': 'i61', 'boot/vmlinuz-6.0': 'k', 'boot/initrd.img-6.0': 'i60' };
const FEDORA = `
set default="\${saved_entry}"
if [ -z "\${kernelopts}" ]; then
  set kernelopts="root=UUID=f ro"
fi
insmod blscfg
blscfg
`;
const bls = (version: string): string =>
  `title Fedora\nversion ${version}\nlinux /vmlinuz-${version}\ninitrd /initramfs-${version}.img $tuned_initrd\noptions $kernelopts quiet\ngrub_users $x\n`;
const LOADER = {
  'loader/entries/m-6.9.conf': bls('6.9'),
  'loader/entries/m-6.10.conf': bls('6.10'),
  'loader/entries/m-0-rescue.conf': bls('rescue'),
  'loader/entries/m-6.11+0-3.conf': bls('6.11'),
  'vmlinuz-6.9': 'k',
  'vmlinuz-6.10': 'k',
  'initramfs-6.9.img': 'i69',
  'initramfs-6.10.img': 'i610',
};

it.each<[string, readonly Files[], string]>([
  [
    "Debian's grub.cfg",
    [{ ...BOOT, 'boot/grub/grub.cfg': DEBIAN }],
    '/dev/vda1:/boot/grub/grub.cfg /boot/vmlinuz-6.1 [i61] root=PARTUUID=1-2 ro console=tty0 console=ttyS0,115200 "opt=a b" last',
  ],
  [
    'a default that names an entry of a submenu',
    [{ ...BOOT, 'boot/grub/grub.cfg': DEBIAN.replace('default="0"', 'default="gnulinux-advanced-1>old"') }],
    '/dev/vda1:/boot/grub/grub.cfg /boot/vmlinuz-6.0 [i60] root=/dev/vda1 ro',
  ],
  [
    'a saved default',
    [
      {
        ...BOOT,
        'boot/grub/grub.cfg': DEBIAN.replace('default="0"', 'default="${saved_entry}"'),
        'boot/grub/grubenv': '# GRUB Environment Block\nsaved_entry=1>0\n####',
      },
    ],
    '/dev/vda1:/boot/grub/grub.cfg /boot/vmlinuz-6.0 [i60] root=/dev/vda1 ro',
  ],
  [
    'a boot partition, and a stub on the EFI system partition',
    [
      { 'EFI/debian/grub.cfg': "search.fs_uuid 1 root\nset prefix=($root)'/grub'\nconfigfile $prefix/grub.cfg\n" },
      {
        'grub/grub.cfg': 'linux (hd0,gpt2)/vmlinuz ro\ninitrd /ucode /initrd\nboot\n',
        vmlinuz: 'k',
        ucode: 'u',
        initrd: '->initrd-1',
        'initrd-1': 'i',
      },
    ],
    '/dev/vda2:/grub/grub.cfg /vmlinuz [u+i] ro',
  ],
  [
    'a second command with an initrd',
    [{ 'grub/grub.cfg': 'if [ "${initrdfail}" = 1 ]; then\nlinux /k panic=-1\nelse\nlinux /k ro\ninitrd /i\nfi', k: 'k', i: 'i' }],
    '/dev/vda1:/grub/grub.cfg /k [i] ro',
  ],
  [
    'loader entries for GRUB',
    [{ ...LOADER, 'grub2/grub.cfg': FEDORA }],
    '/dev/vda1:/loader/entries /vmlinuz-6.10 [i610] root=UUID=f ro quiet',
  ],
  [
    'loader entries for GRUB, with a saved default and options',
    [{ ...LOADER, 'grub2/grub.cfg': FEDORA, 'grub2/grubenv': 'saved_entry=m-6.9\nkernelopts=root=/dev/vda4\n' }],
    '/dev/vda1:/loader/entries /vmlinuz-6.9 [i69] root=/dev/vda4 quiet',
  ],
  [
    'loader entries of systemd-boot',
    [
      {
        'loader/loader.conf': 'timeout 3\ndefault arch-*\n',
        'loader/entries/arch-1.conf': 'linux /vmlinuz\ninitrd /a\ninitrd /b\noptions root=/dev/vda2\noptions rw\n',
        'loader/entries/other.conf': 'linux /other\n',
        vmlinuz: 'k',
        a: 'a',
        b: 'b',
      },
    ],
    '/dev/vda1:/loader/entries /vmlinuz [a+b] root=/dev/vda2 rw',
  ],
  [
    'a variable with two values',
    [{ 'grub/grub.cfg': 'set x=1\nset x=2\nlinux /k a=$x\n', k: 'k' }],
    'the value of its variable x depends on a condition',
  ],
  [
    'two configurations',
    [
      { 'grub/grub.cfg': 'linux /k a', k: 'k' },
      { 'grub/grub.cfg': 'linux /k b', k: 'k' },
    ],
    'it has several boot loader configurations: /dev/vda1:/grub/grub.cfg, /dev/vda2:/grub/grub.cfg',
  ],
  ['a kernel that is missing', [{ 'grub/grub.cfg': 'linux /gone a' }], 'the image has no file /gone'],
  ['no configuration', [{ readme: '' }], 'it has no GRUB or systemd-boot configuration that names a kernel, and no unified kernel image'],
  ['no file system', [], 'it has no GRUB or systemd-boot configuration that names a kernel, and no unified kernel image'],
  ['links in a circle', [{ 'grub/grub.cfg': 'linux /k', k: '->/j', j: '->k' }], 'the image has no file /k'],
  [
    'a link that leads out of the image',
    [{ 'grub/grub.cfg': 'linux /k', k: '->../../../../../../etc/passwd' }],
    'the image has no file /k',
  ],
  [
    'a configuration that is too large',
    [{ 'grub/grub.cfg': `linux /k ${'a'.repeat(2 ** 20)}`, k: 'k' }],
    'it has no GRUB or systemd-boot configuration that names a kernel, and no unified kernel image',
  ],
  ['menus that are nested too deeply', [{ 'grub/grub.cfg': 'submenu a {\n'.repeat(20) }], 'its menus are nested too deeply'],
])('findKernel with %s', async (_, volumes, expected) => {
  expect(await found(...volumes)).toBe(expected);
});

/** An EFI program with these sections. */
function program(sections: Readonly<Record<string, string>>): Buffer {
  const head = Buffer.alloc(1024);
  head.write('MZ', 0);
  head.writeUInt32LE(128, 60);
  head.write('PE\0\0', 128);
  head.writeUInt16LE(Object.keys(sections).length, 134);
  const parts = [head];
  let end = head.length;
  for (const [at, [name, content]] of Object.entries(sections).entries()) {
    const entry = 128 + 24 + at * 40;
    head.write(name, entry);
    head.writeUInt32LE(content.length, entry + 8);
    head.writeUInt32LE(512, entry + 16);
    head.writeUInt32LE(end, entry + 20);
    parts.push(Buffer.concat([Buffer.from(content), Buffer.alloc(512 - content.length)]));
    end += 512;
  }
  return Buffer.concat(parts);
}

it('findKernel with a unified kernel image takes the newest one, and the parts of it', async () => {
  const image = program({ '.cmdline': 'root=/dev/vda2 rw\n', '.linux': 'kernel', '.initrd': 'initrd' });
  const files = { 'EFI/Linux/a-9.efi': program({ '.linux': 'old' }), 'EFI/Linux/a-10.efi': image, 'EFI/Linux/a-11.efi': 'MZ' };
  expect(await found(files)).toBe('/dev/vda1:/EFI/Linux/a-10.efi /EFI/Linux/a-10.efi [initrd] root=/dev/vda2 rw');
});

it('reading a grub.cfg takes time in proportion to its size, whatever it contains', async () => {
  for (const part of ['set a=$b\n', 'initrd /i\n', "menuentry 'x' {\n}\n", '${', "'", '\\\n', 'linux /k $\n']) {
    const text = part.repeat(Math.floor(2 ** 20 / part.length));
    const began = process.cpuUsage();
    await found({ 'grub/grub.cfg': text, 'loader/entries/a.conf': text });
    const { user, system } = process.cpuUsage(began);
    expect((user + system) / 1e6).toBeLessThan(20);
  }
});

it('a FIFO or a device of the image is not opened', async () => {
  const root = fileTree({ 'grub/grub.cfg': 'linux /pipe' });
  execFileSync('mkfifo', [join(root, 'pipe')]);
  const files = imageFiles(root);
  expect(await files.open('pipe')).toBeNull();
  expect(await files.open('grub')).toBeNull();
  expect(await files.text('gone')).toBeNull();
  expect(await files.names('gone')).toEqual([]);
});

const KERNEL = Buffer.concat([Buffer.alloc(514), Buffer.from('HdrS'), Buffer.alloc(100)]);
/** Loads from a disk with one ext4 partition of these files. */
async function load(files: Files, { machine = 'x86_64', memory = 1_000_000, broken = '' } = {}) {
  const device = await fileDevice(10 * 2 ** 20);
  const mbr = Buffer.alloc(512);
  mbr[446 + 4] = 0x83;
  mbr.writeUInt32LE(2048, 446 + 8);
  mbr.writeUInt32LE(2048, 446 + 12);
  mbr.writeUInt16LE(0xaa55, 510);
  await device.write(mbr, 0);
  await device.write(Buffer.of(0x53, 0xef), 2 ** 20 + 1080);
  const [ran, loaded]: [string[], string[]] = [[], []];
  const temporary = folder();
  const result: unknown = await loadImageKernel(
    { ...device, path: '/dev/sda' },
    {
      machine,
      temporary,
      tree: tree(fileTree({ 'proc/meminfo': `MemTotal: 1 kB\nMemAvailable:   ${memory} kB\n` })),
      run: async (name, args) => {
        ran.push(
          [name, ...args]
            .join(' ')
            .replaceAll(temporary, '/tmp')
            .replaceAll(/volume-\w+/g, 'volume'),
        );
        if (name === broken) throw new Error('failed');
        if (name === 'mount') execFileSync('cp', ['-a', `${fileTree(files)}/.`, args.at(-1)!]);
        else execFileSync('sh', ['-c', `rm -r ${args[0]!}/*`]);
        return '';
      },
      kernelCalls: {
        load: async (kernel, initrd, commandLine) => {
          loaded.push(`${readFileSync(kernel).length} ${initrd === null ? 'none' : readFileSync(initrd, 'utf8')} ${commandLine}`);
        },
        start: async () => {},
      },
    },
  ).catch((error: unknown) => (error as Error).message);
  return { result, ran, loaded };
}
const IMAGE = { 'grub/grub.cfg': 'linux /vmlinuz ro\ninitrd /a /b', vmlinuz: KERNEL, a: 'one', b: 'two' };

it('loadImageKernel mounts the partitions read-only, and loads the kernel with its initial ramdisks as one', async () => {
  expect(await load(IMAGE)).toEqual({
    result: { kernel: '/vmlinuz', from: '/dev/sda1:/grub/grub.cfg' },
    ran: ['mount -t ext4 -o ro,nosuid,nodev,noexec,noload /dev/sda1 /tmp/volume', 'umount /tmp/volume'],
    loaded: [`${KERNEL.length} onetwo ro`],
  });
  expect((await load({ ...IMAGE, 'grub/grub.cfg': 'linux /vmlinuz ro' })).loaded).toEqual([`${KERNEL.length} none ro`]);
});

it.each<[string, Parameters<typeof load>, string]>([
  ['the kernel of another architecture', [IMAGE, { machine: 'aarch64' }], '/vmlinuz is not a kernel for aarch64'],
  ['a file that is no kernel', [{ ...IMAGE, vmlinuz: 'text' }], '/vmlinuz is not a kernel for x86_64'],
  ['too little memory', [IMAGE, { memory: 1 }], 'too little memory is free'],
  [
    'a command line that is too long',
    [{ ...IMAGE, 'grub/grub.cfg': `linux /vmlinuz ${'a'.repeat(2048)}` }],
    'its kernel command line exceeds 2047 bytes',
  ],
  ['a command line with control characters', [{ ...IMAGE, 'grub/grub.cfg': 'linux /vmlinuz a\u0007b' }], 'has control characters'],
  ['a file system that cannot be mounted', [IMAGE, { broken: 'mount' }], 'it has no GRUB or systemd-boot configuration'],
])('loadImageKernel refuses %s, and leaves nothing mounted', async (_, given, reason) => {
  const { result, ran, loaded } = await load(...given);
  expect(result).toContain(reason);
  expect(loaded).toEqual([]);
  expect(ran.filter((line) => line.startsWith('umount'))).toHaveLength(given[1]?.broken === 'mount' ? 0 : 1);
});

it('kernelCalls names a machine type whose call it does not know', async () => {
  await expect(kernelCalls('riscv64').load(0, null, '')).rejects.toThrow('no kernel can be loaded on a machine of type riscv64');
});
