import { fatImage, fatLayout } from '../../../wire/images/fat';

const NOW = Date.parse('2026-02-03T04:05:06Z');

/** A reader written from the specification alone: label and every file by its path. */
function read(image: Buffer): { readonly label: string; readonly kind: string; readonly files: Record<string, string> } {
  const sector = image.readUInt16LE(11);
  const [perCluster, reserved, copies, rootEntries, fatSectors] = [
    image[13]!,
    image.readUInt16LE(14),
    image[16]!,
    image.readUInt16LE(17),
    image.readUInt16LE(22),
  ];
  const total = image.readUInt16LE(19) || image.readUInt32LE(32);
  expect(total * sector).toBeLessThanOrEqual(image.length);
  expect(image.subarray(510, 512).toString('hex')).toBe('55aa');
  const rootAt = (reserved + copies * fatSectors) * sector;
  const dataAt = rootAt + rootEntries * 32;
  const clusters = Math.floor((total - dataAt / sector) / perCluster);
  const wide = clusters >= 4085;
  const fat = image.subarray(reserved * sector, (reserved + fatSectors) * sector);
  expect(fat.equals(image.subarray((reserved + fatSectors) * sector, (reserved + 2 * fatSectors) * sector))).toBe(true);
  const next = (cluster: number): number => {
    if (wide) return fat.readUInt16LE(cluster * 2);
    const value = fat.readUInt16LE(cluster + (cluster >> 1));
    return cluster % 2 === 0 ? value & 0xfff : value >> 4;
  };
  const chain = (first: number): Buffer => {
    const parts: Buffer[] = [];
    for (let at = first; at >= 2 && at < (wide ? 0xfff8 : 0xff8); at = next(at)) {
      if (at >= clusters + 2) throw new Error('a chain leads out of the file system');
      parts.push(image.subarray(dataAt + (at - 2) * perCluster * sector, dataAt + (at - 1) * perCluster * sector));
    }
    return Buffer.concat(parts);
  };
  const files: Record<string, string> = {};
  let label = '';
  const walk = (rows: Buffer, path: string): void => {
    let long = '';
    for (let at = 0; at < rows.length && rows[at] !== 0; at += 32) {
      const row = rows.subarray(at, at + 32);
      if (row[11] === 0x0f) {
        const units = Buffer.concat([row.subarray(1, 11), row.subarray(14, 26), row.subarray(28, 32)]).toString('utf16le');
        long = units.replace(/\0.*$/s, '').replaceAll('\uffff', '') + long;
        continue;
      }
      const name = row.toString('latin1', 0, 8).trim();
      const extension = row.toString('latin1', 8, 11).trim();
      const shown = long || (extension === '' ? name : `${name}.${extension}`);
      long = '';
      const [first, size] = [row.readUInt16LE(26), row.readUInt32LE(28)];
      if (row[11] === 8) label = row.toString('latin1', 0, 11).trim();
      else if (row[11]! & 0x10) {
        if (!name.startsWith('.')) walk(chain(first), `${path}${shown}/`);
      } else files[path + shown] = chain(first).toString('latin1', 0, size);
    }
  };
  walk(image.subarray(rootAt, dataAt), '');
  return { label, kind: image.toString('latin1', 54, 62).trim(), files };
}

it.each<[string, Record<string, string>, number | undefined, string]>([
  ['a floppy disk with parameters', { 'parameters.txt': 'a=b\n' }, 1440 * 1024, 'FAT12'],
  ['nothing', {}, undefined, 'FAT12'],
  ['an empty file', { EMPTY: '', 'A.TXT': 'x' }, undefined, 'FAT12'],
  [
    'folders and long names',
    { 'EFI/BOOT/BOOTX64.EFI': 'efi', 'a folder/a file with a long name.text': 'y', 'a folder/another.conf': 'z' },
    undefined,
    'FAT12',
  ],
  ['what needs more than a sector each', { 'EFI/BOOT/BOOTX64.EFI': 'e'.repeat(100_000), B: 'b'.repeat(513) }, undefined, 'FAT12'],
  ['a file system of FAT16', { 'EFI/BOOT/BOOTX64.EFI': 'e'.repeat(4_000_000) }, undefined, 'FAT16'],
  ['larger clusters', { BIG: 'b'.repeat(40_000_000) }, undefined, 'FAT16'],
])('%s can be read back', (_, texts, atLeast, kind) => {
  const files = Object.fromEntries(Object.entries(texts).map(([path, text]) => [path, Buffer.from(text)]));
  const image = fatImage({ label: 'ir-vfd-dev', files, now: NOW, ...(atLeast === undefined ? {} : { atLeast }) });
  expect(read(image)).toEqual({ label: 'ir-vfd-dev', kind, files: texts });
  if (atLeast !== undefined) expect(image.length).toBe(atLeast);
});
it('says where a file goes whose bytes are not there yet', () => {
  const bytes = Buffer.from('e'.repeat(5000));
  const whole = fatImage({ label: 'ESP', files: { 'EFI/X': bytes }, now: NOW });
  const { head, size, files } = fatLayout({ label: 'ESP', files: { 'EFI/X': bytes.length }, now: NOW });
  expect(files).toEqual([{ path: 'EFI/X', at: head.length, content: 5000 }]);
  expect(Buffer.concat([head, bytes, Buffer.alloc(size - head.length - bytes.length)]).equals(whole)).toBe(true);
});
it('refuses what does not fit', () => {
  expect(() => fatLayout({ label: 'x', files: { X: 2 ** 33 }, now: NOW })).toThrow('too large');
});
