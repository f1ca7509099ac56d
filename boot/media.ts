/**
 * Media that BMCs read over HTTP. They are generated from their records while they are read, and never written to disk. A CD consists of
 * generated folders, followed by the bytes of the kernel and the ramdisk from their sources.
 */
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { promisify } from 'node:util';
import { gunzip } from 'node:zlib';
import type { MediumContent, MediumRecord } from '../model/records';
import { defaultLoaderName } from '../wire/processors/processors';
import { fatImage, fatLayout } from '../wire/images/fat';
import { isoLayout, type IsoBoot, type IsoContent } from '../wire/images/iso9660';
import { UpstreamError, type CachedFile } from './cache';
import { ramdiskWith, sizeOf, streamPieces, type Piece } from './composed-files';
import { grubWords, kernelWords } from './pxe';

/** Opens a source. Throws UpstreamError. */
type OpenSource = (source: string) => Promise<CachedFile>;
/** The largest config drive in bytes (the agent has the same limit), and the largest boot loader. */
const MAX_PACKED = 64 << 20;
const MAX_LOADER = 16 << 20;
/** The size of a 3.5" floppy disk. */
const FLOPPY = 1440 * 1024;
/** The volume label and file name that ironic-python-agent and our ramdisk look for. */
const PARAMETERS = { label: 'ir-vfd-dev', file: 'parameters.txt' } as const;

/** Opens the medium; the caller releases it. Throws UpstreamError. */
export async function openMedium(medium: MediumRecord, open: OpenSource): Promise<CachedFile> {
  const { content, made_at: made } = medium;
  if (content.kind === 'image') return open(content.source);
  if (content.kind === 'iso') return openIso(content, made, open);
  return ofBytes(content.kind === 'packed' ? await unpacked(content.data) : parametersImage(content.parameters, made), made);
}

/** One line per parameter; control characters are removed. */
const parametersImage = (parameters: Readonly<Record<string, string>>, now: number): Buffer => {
  const lines = Object.entries(parameters).map(([name, value]) => `${name}=${value.replace(/\p{Cc}+/gu, ' ')}\n`);
  return fatImage({ label: PARAMETERS.label, files: { [PARAMETERS.file]: Buffer.from(lines.join('')) }, atLeast: FLOPPY, now });
};

const unpacked = (data: string): Promise<Buffer> => promisify(gunzip)(Buffer.from(data, 'base64'), { maxOutputLength: MAX_PACKED });

const ofBytes = (bytes: Buffer, modified: number): CachedFile => ({
  size: bytes.length,
  modified,
  read: (start, end) => Readable.from([bytes.subarray(start, end + 1)], { objectMode: false }),
  release: async () => {},
});

type Iso = Extract<MediumContent, { readonly kind: 'iso' }>;
const ESP = 'boot/grub/efiboot.img';
const ISOLINUX = 'isolinux/isolinux.bin';
/** The configuration files that the GRUBs of distributions read from a CD. Some of them identify the CD by .disk/info. */
const GRUB_CONFIGS = [
  'boot/grub/grub.cfg',
  ...['BOOT', 'debian', 'ubuntu', 'centos', 'redhat', 'rocky', 'almalinux', 'fedora', 'opensuse'].map((name) => `EFI/${name}/grub.cfg`),
];

async function openIso(iso: Iso, now: number, open: OpenSource): Promise<CachedFile> {
  const opened: CachedFile[] = [];
  const release = async (): Promise<void> => {
    await Promise.all(opened.map((item) => item.release()));
  };
  const opening = async (source: string): Promise<CachedFile> => {
    const file = await open(source);
    opened.push(file);
    return file;
  };
  try {
    const [kernel, ramdisk] = [await opening(iso.kernel), await opening(iso.ramdisk)];
    // The files are added to the ramdisk and, below, to the CD, where ironic-python-agent looks for them.
    const initrd: readonly Piece[] =
      Object.keys(iso.files).length === 0 ? [{ at: 0, size: ramdisk.size, from: ramdisk }] : ramdiskWith(ramdisk, iso.files);
    const files: Record<string, IsoContent> = { vmlinuz: kernel.size, initrd: sizeOf(initrd) };
    const sources = new Map<string, readonly Piece[]>([
      ['vmlinuz', [{ at: 0, size: kernel.size, from: kernel }]],
      ['initrd', initrd],
    ]);
    const boots: IsoBoot[] = [];
    if (iso.isolinux !== undefined) {
      files[ISOLINUX] = await whole(await opening(iso.isolinux), iso.isolinux);
      if (iso.ldlinux !== undefined) files['isolinux/ldlinux.c32'] = await whole(await opening(iso.ldlinux), iso.ldlinux);
      files['isolinux/isolinux.cfg'] = isolinuxConfig(iso.kernel_args);
      boots.push({ firmware: 'bios', path: ISOLINUX });
    }
    if (iso.bootloader !== undefined) {
      const beside: (readonly [string, CachedFile])[] = [];
      for (const [name, source] of Object.entries(iso.bootloader_files ?? {})) beside.push([name, await opening(source)]);
      const pieces = await systemPartition(await opening(iso.bootloader), beside, now);
      sources.set(ESP, pieces);
      files[ESP] = sizeOf(pieces);
      boots.push({ firmware: 'uefi', path: ESP });
    }
    const grub = grubConfig(iso.kernel_args);
    const own = iso.grub_config_path?.replace(/^\/+/, '');
    for (const path of [...GRUB_CONFIGS, ...(own ? [own] : [])]) files[path] = grub;
    files['.disk/info'] = Buffer.from('Bloomery\n');
    for (const [path, text] of Object.entries(iso.files)) files[path] = Buffer.from(text);
    // ironic-python-agent reads openstack/ from a volume of this name.
    const volume = Object.keys(iso.files).some((path) => path.startsWith('openstack/')) ? 'config-2' : 'VMEDIA_BOOT_ISO';
    const layout = isoLayout({ volume, publisher: iso.publisher, files, boots, now });
    const pieces: Piece[] = [{ at: 0, size: layout.head.length, from: layout.head }];
    for (const { path, at, content } of layout.files) {
      if (Buffer.isBuffer(content)) pieces.push({ at, size: content.length, from: content });
      else for (const piece of sources.get(path) ?? []) pieces.push({ ...piece, at: at + piece.at });
    }
    return { size: layout.size, modified: now, read: (start, end) => streamPieces(pieces, start, end), release };
  } catch (error) {
    await release();
    throw error;
  }
}

async function whole(file: CachedFile, name: string): Promise<Buffer> {
  if (file.size > MAX_LOADER) throw new UpstreamError(`${name} is too large for a boot loader`);
  return buffer(file.read(0, file.size - 1));
}

/**
 * An image of an EFI system partition is used as it is; for an EFI program, a partition is generated.
 * @param beside further files in the program's folder, by their names
 */
async function systemPartition(
  loader: CachedFile,
  beside: readonly (readonly [string, CachedFile])[],
  now: number,
): Promise<readonly Piece[]> {
  const start = await buffer(loader.read(0, Math.min(loader.size, 4096) - 1));
  const header = start.length > 0x40 && start.toString('latin1', 0, 2) === 'MZ' ? start.readUInt32LE(0x3c) : start.length;
  if (header + 6 > start.length) return [{ at: 0, size: loader.size, from: loader }];
  const name = defaultLoaderName(start.readUInt16LE(header + 4)) ?? 'BOOTX64.EFI';
  const sources = new Map([...beside, [name, loader] as const].map(([each, file]) => [`EFI/BOOT/${each}`, file]));
  const sizes = Object.fromEntries([...sources].map(([path, { size }]) => [path, size]));
  const layout = fatLayout({ label: 'ESP', files: sizes, now });
  const files = layout.files.toSorted((one, other) => one.at - other.at);
  const pieces = [
    { at: 0, size: layout.head.length, from: layout.head },
    ...files.map(({ path, at }) => ({ at, size: sources.get(path)!.size, from: sources.get(path)! })),
  ];
  const end = sizeOf(pieces);
  return [...pieces, { at: end, size: layout.size - end, from: Buffer.alloc(layout.size - end) }];
}

const lines = (...all: readonly string[]): Buffer => Buffer.from(`${all.join('\n')}\n`);
const isolinuxConfig = (args: string): Buffer =>
  lines('default boot', 'prompt 0', 'label boot', '  kernel /vmlinuz', `  append initrd=/initrd ${kernelWords(args)}`);
const grubConfig = (args: string): Buffer => lines('set timeout=0', `linux /vmlinuz ${grubWords(args)}`, 'initrd /initrd', 'boot');
