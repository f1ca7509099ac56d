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
  ['no files', {}, undefined, 'FAT12'],
  ['an empty file', { EMPTY: '', 'A.TXT': 'x' }, undefined, 'FAT12'],
  [
    'folders and long names',
    { 'EFI/BOOT/BOOTX64.EFI': 'efi', 'a folder/a file with a long name.text': 'y', 'a folder/another.conf': 'z' },
    undefined,
    'FAT12',
  ],
  ['files larger than a sector', { 'EFI/BOOT/BOOTX64.EFI': 'e'.repeat(100_000), B: 'b'.repeat(513) }, undefined, 'FAT12'],
  ['a file system of FAT16', { 'EFI/BOOT/BOOTX64.EFI': 'e'.repeat(4_000_000) }, undefined, 'FAT16'],
  ['larger clusters', { BIG: 'b'.repeat(40_000_000) }, undefined, 'FAT16'],
])('fatImage with %s can be read by an independent reader', (_, texts, atLeast, kind) => {
  const files = Object.fromEntries(Object.entries(texts).map(([path, text]) => [path, Buffer.from(text)]));
  const image = fatImage({ label: 'ir-vfd-dev', files, now: NOW, ...(atLeast === undefined ? {} : { atLeast }) });
  expect(read(image)).toEqual({ label: 'ir-vfd-dev', kind, files: texts });
  if (atLeast !== undefined) expect(image.length).toBe(atLeast);
});
it.each([
  ['FAT12', { 'openstack/latest/meta_data.json': '{}', BIG: 'b'.repeat(4_000_000) }],
  ['FAT16', { BIG: 'b'.repeat(40_000_000) }],
])('fatImage makes %s with sectors of 4096 bytes', (kind, texts) => {
  const files = Object.fromEntries(Object.entries(texts).map(([path, text]) => [path, Buffer.from(text)]));
  const image = fatImage({ label: 'CONFIG-2', files, sectorSize: 4096, now: NOW });
  expect(image.readUInt16LE(11)).toBe(4096);
  expect(read(image)).toEqual({ label: 'CONFIG-2', kind, files: texts });
});
it('fatImage dates files of a machine with a wrong clock to 1980', () => {
  const files = { A: Buffer.from('a') };
  expect(read(fatImage({ label: 'X', files, now: 0 })).files).toEqual({ A: 'a' });
});
it('fatLayout returns the places of files whose content is not given', () => {
  const bytes = Buffer.from('e'.repeat(5000));
  const whole = fatImage({ label: 'ESP', files: { 'EFI/X': bytes }, now: NOW });
  const { head, size, files } = fatLayout({ label: 'ESP', files: { 'EFI/X': bytes.length }, now: NOW });
  expect(files).toEqual([{ path: 'EFI/X', at: head.length, content: 5000 }]);
  expect(Buffer.concat([head, bytes, Buffer.alloc(size - head.length - bytes.length)]).equals(whole)).toBe(true);
});
it('fatImage has the boot sector, media descriptor, label and timestamps that BIOSes and old readers expect', () => {
  const image = fatImage({ label: 'ESP', files: { 'A.TXT': Buffer.from('x') }, now: NOW });
  expect(image.subarray(0, 11)).toEqual(Buffer.concat([Buffer.from([0xeb, 0x3c, 0x90]), Buffer.from('MSWIN4.1')]));
  expect([image[21], image.readUInt16LE(24), image.readUInt16LE(26), image[36], image[38]]).toEqual([0xf8, 18, 2, 0x80, 0x29]);
  expect(image.readUInt32LE(39)).toBe(NOW % 2 ** 32);
  expect(image.toString('latin1', 43, 54)).toBe('ESP        ');
  const fat = image.subarray(512);
  expect([...fat.subarray(0, 5)]).toEqual([0xf8, 0xff, 0xff, 0xff, 0x0f]);
  const rootAt = (1 + 2 * image.readUInt16LE(22)) * 512;
  // 2026-02-03, 04:05:06.
  const [day, time] = [(46 << 9) | (2 << 5) | 3, (4 << 11) | (5 << 5) | 3];
  for (const row of [image.subarray(rootAt, rootAt + 32), image.subarray(rootAt + 32, rootAt + 64)]) {
    expect([16, 18, 24].map((at) => row.readUInt16LE(at))).toEqual([day, day, day]);
    expect([14, 22].map((at) => row.readUInt16LE(at))).toEqual([time, time]);
  }
});
it('fatImage numbers the entries of a long name and writes the checksum of the short name', () => {
  const image = fatImage({ label: 'ESP', files: { 'a long name of 27 characters': Buffer.from('x') }, now: NOW });
  const rootAt = (1 + 2 * image.readUInt16LE(22)) * 512;
  const row = (index: number): Buffer => image.subarray(rootAt + 32 * index, rootAt + 32 * (index + 1));
  expect(row(4).toString('latin1', 0, 11)).toBe('ALON~1     ');
  const sum = row(4)
    .subarray(0, 11)
    .reduce((before, byte) => ((before >> 1) + ((before & 1) << 7) + byte) & 0xff, 0);
  expect([1, 2, 3].map((index) => [row(index)[0], row(index)[11], row(index)[13]])).toEqual([
    [0x43, 0x0f, sum],
    [2, 0x0f, sum],
    [1, 0x0f, sum],
  ]);
});
it('fatImage gives a file and a directory with similar names different short names', () => {
  const image = fatImage({ label: 'x', files: { 'config.d/A': Buffer.from('x'), 'config.text': Buffer.from('y') }, now: NOW });
  const rootAt = (1 + 2 * image.readUInt16LE(22)) * 512;
  const names = [2, 4].map((index) => image.toString('latin1', rootAt + 32 * index, rootAt + 32 * index + 11));
  expect(names).toEqual(['CONF~1     ', 'CONF~2     ']);
});
/** All but the root folder, in sectors; FAT §4.1 sets the limits. */
it.each([
  [4084, 'FAT12', 1],
  [4085, 'FAT16', 1],
  [65_524, 'FAT16', 1],
  [65_525, 'FAT16', 2],
])('fatLayout of a file of %s clusters is %s', (clusters, kind, perCluster) => {
  // One cluster is left free.
  const { head, size } = fatLayout({ label: 'x', files: { X: (clusters - 1) * 512 }, now: NOW });
  expect([head.toString('latin1', 54, 59), head[13]]).toEqual([kind, perCluster]);
  expect(size).toBe((head.readUInt16LE(19) || head.readUInt32LE(32)) * 512);
});
it.each([1440 * 1024, 4 << 20, 40 << 20, 100 << 20])('fatLayout uses a medium of %s bytes as far as its tables allow', (atLeast) => {
  const { head, size } = fatLayout({ label: 'x', files: {}, atLeast, now: NOW });
  const total = head.readUInt16LE(19) || head.readUInt32LE(32);
  const perCluster = head[13]!;
  expect(size).toBe(atLeast);
  expect(total * 512).toBeLessThanOrEqual(atLeast);
  // Another cluster would need at most one more sector in each of the two tables.
  expect(total + perCluster + 2).toBeGreaterThan(atLeast / 512);
});
it('fatLayout rejects a file that is too large', () => {
  expect(() => fatLayout({ label: 'x', files: { X: 2 ** 33 }, now: NOW })).toThrow('too large');
});
