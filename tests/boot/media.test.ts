import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { gzipSync } from 'node:zlib';
import { UpstreamError, type CachedFile } from '../../boot/cache';
import { openMedium } from '../../boot/media';
import type { MediumContent } from '../../model/records';
import { cpioArchive } from '../../wire/images/cpio';

const NOW = Date.parse('2026-02-03T04:05:06Z');
const bytes = (length: number, seed: number): Buffer => Buffer.from(Array.from({ length }, (_, at) => (at * seed + (at >> 8)) & 255));
/** An EFI program for x86-64, as far as its header goes. */
function program(): Buffer {
  const made = bytes(20_000, 11);
  made.write('MZ', 0, 'latin1');
  made.writeUInt32LE(0x80, 0x3c);
  made.writeUInt16LE(0x8664, 0x84);
  return made;
}
const sources: Record<string, Buffer> = {
  kernel: bytes(300_001, 7),
  ramdisk: bytes(700_003, 13),
  'grub.efi': program(),
  'esp.img': bytes(50_000, 17),
  'isolinux.bin': bytes(4096, 19),
  'ldlinux.c32': bytes(1000, 23),
};
let open: string[] = [];
const opening = async (source: string): Promise<CachedFile> => {
  const found = sources[source];
  if (!found) throw new UpstreamError(`no ${source}`);
  open.push(source);
  return {
    size: found.length,
    modified: 1,
    // In small pieces, as a disk or a network gives them.
    read: (start, end) =>
      Readable.from([found.subarray(start, Math.min(start + 1000, end + 1)), found.subarray(Math.min(start + 1000, end + 1), end + 1)], {
        objectMode: false,
      }),
    release: async () => void (open = open.filter((candidate) => candidate !== source)),
  };
};
afterEach(() => expect(open).toEqual([]));

const iso = (more: Partial<Extract<MediumContent, { kind: 'iso' }>> = {}): MediumContent => ({
  kind: 'iso',
  kernel: 'kernel',
  ramdisk: 'ramdisk',
  kernel_args: "console=ttyS0 a='x' ipa-agent-token=s3cret",
  publisher: 'abc',
  files: {},
  ...more,
});
const medium = (content: MediumContent) =>
  openMedium({ token: 't', node_uuid: 'n', role: 'boot', content, made_at: NOW, swift_container: null }, opening);
async function whole(content: MediumContent): Promise<Buffer> {
  const file = await medium(content);
  const read = await buffer(file.read(0, file.size - 1));
  expect(read.length).toBe(file.size);
  await file.release();
  return read;
}

describe('CD image', () => {
  const full = iso({ bootloader: 'grub.efi', isolinux: 'isolinux.bin', ldlinux: 'ldlinux.c32' });
  it('contains kernel, ramdisk, loaders and their configuration', async () => {
    const image = await whole(full);
    for (const name of ['kernel', 'ramdisk', 'grub.efi', 'ldlinux.c32']) expect(image.includes(sources[name]!)).toBe(true);
    expect(image.includes("append initrd=/initrd console=ttyS0 a='x' ipa-agent-token=s3cret\n")).toBe(true);
    expect(image.includes("linux /vmlinuz 'console=ttyS0' 'a='\\''x'\\''' 'ipa-agent-token=s3cret'\ninitrd /initrd\nboot\n")).toBe(true);
    expect(image.includes('BOOTX64 EFI')).toBe(true);
    expect(image.toString('latin1', 0x8028, 0x8028 + 15)).toBe('VMEDIA_BOOT_ISO');
  });
  it('has the same bytes whichever range is read', async () => {
    const image = await whole(full);
    const file = await medium(full);
    for (const [start, end] of [
      [0, 0],
      [0, 4095],
      [32_768, 40_000],
      [image.length - 1, image.length - 1],
      [100_000, 900_000],
      [1, image.length - 2],
    ] as const)
      expect((await buffer(file.read(start, end))).equals(image.subarray(start, end + 1))).toBe(true);
    await file.release();
    expect(file.modified).toBe(NOW);
  });
  it('contains a given image of an EFI system partition unchanged', async () => {
    const image = await whole(iso({ bootloader: 'esp.img' }));
    expect(image.includes(sources['esp.img']!)).toBe(true);
    expect(image.includes('BOOTX64 EFI')).toBe(false);
    expect(image[0x8801 - 1]).toBe(0);
  });
  it('has further files beside an EFI program, in the same folder', async () => {
    const image = await whole(
      iso({ bootloader: 'grub.efi', bootloader_files: { 'grubx64.efi': 'ldlinux.c32', 'MokManager.efi': 'isolinux.bin' } }),
    );
    for (const name of ['grub.efi', 'ldlinux.c32', 'isolinux.bin']) expect(image.includes(sources[name]!)).toBe(true);
    expect(image.includes('BOOTX64 EFI')).toBe(true);
    // A long name, in pieces of UTF-16.
    expect(image.includes(Buffer.from('grubx', 'utf16le'))).toBe(true);
  });
  it('with network data has the label config-2', async () => {
    const image = await whole(iso({ isolinux: 'isolinux.bin', files: { 'openstack/latest/network_data.json': '{"links": []}' } }));
    expect(image.toString('latin1', 0x8028, 0x8028 + 8)).toBe('config-2');
    expect(image.includes('{"links": []}')).toBe(true);
  });
  it('also has its files in the ramdisk, for agents that do not read the CD', async () => {
    const files = { 'etc/a/ca.crt': 'the authority', 'openstack/latest/network_data.json': '{}' };
    const image = await whole(iso({ isolinux: 'isolinux.bin', files }));
    const archive = cpioArchive(Object.fromEntries(Object.entries(files).map(([path, text]) => [path, Buffer.from(text)])));
    // 700003 bytes are not a multiple of 4.
    expect(image.includes(Buffer.concat([sources['ramdisk']!, Buffer.alloc(1), archive]))).toBe(true);
    expect(image.toString('latin1').split('the authority')).toHaveLength(3);
  });
  it.each([
    { kernel: 'no' },
    { ramdisk: 'no' },
    { bootloader: 'no' },
    { isolinux: 'no' },
    { bootloader: 'grub.efi', bootloader_files: { a: 'no' } },
  ])('fails without the source %j', async (lacking) => {
    await expect(medium(iso(lacking))).rejects.toThrow(UpstreamError);
  });
});

it('a medium of kind "image" is served unchanged', async () => {
  expect((await whole({ kind: 'image', source: 'kernel' })).equals(sources['kernel']!)).toBe(true);
});
it('a medium of kind "parameters" is a floppy image with one line per parameter', async () => {
  const image = await whole({ kind: 'parameters', parameters: { 'ipa-api-url': 'http://h', odd: 'a\nb=c' } });
  expect(image.length).toBe(1440 * 1024);
  expect(image.includes('ipa-api-url=http://h\nodd=a b=c\n')).toBe(true);
  expect(image.toString('latin1', 43, 54)).toBe('ir-vfd-dev ');
});
it('a medium of kind "packed" is decompressed', async () => {
  const image = bytes(5000, 29);
  expect((await whole({ kind: 'packed', data: gzipSync(image).toString('base64') })).equals(image)).toBe(true);
});
it('a medium of kind "packed" fails if its data are invalid or too large', async () => {
  await expect(medium({ kind: 'packed', data: 'AAAA' })).rejects.toThrow();
  await expect(medium({ kind: 'packed', data: gzipSync(Buffer.alloc(65 << 20)).toString('base64') })).rejects.toThrow();
});
