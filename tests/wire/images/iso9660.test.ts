import { isoImage, isoLayout, type IsoContent } from '../../../wire/images/iso9660';

const SECTOR = 2048;
const NOW = Date.parse('2026-02-03T04:05:06Z');
const LOADER = Buffer.alloc(5000, 3);
const files: Record<string, IsoContent> = { 'isolinux/isolinux.bin': LOADER, 'boot/efi.img': 4_000_000, vmlinuz: 10_000, initrd: 1 };
const bios = { firmware: 'bios', path: 'isolinux/isolinux.bin' } as const;
const uefi = { firmware: 'uefi', path: 'boot/efi.img' } as const;
const layout = (...boots: readonly (typeof bios | typeof uefi)[]) =>
  isoLayout({ volume: 'VOLUME', publisher: 'abc', files, boots, now: NOW });
const sector = (image: Buffer, at: number): Buffer => image.subarray(at * SECTOR, (at + 1) * SECTOR);

it('isoLayout puts each file into its own sectors after the head', () => {
  const { head, size, files: placed } = layout(bios, uefi);
  expect(placed[0]!.at).toBe(head.length);
  let end = head.length;
  for (const { at, content } of placed) {
    expect(at).toBe(end);
    end = at + Math.ceil((typeof content === 'number' ? content : content.length) / SECTOR) * SECTOR;
  }
  expect(size).toBe(end);
  expect(sector(head, 16).toString('latin1', 318, 321)).toBe('abc');
});
describe('El Torito boot catalog', () => {
  const placeOf = (made: ReturnType<typeof layout>, path: string): number => made.files.find((file) => file.path === path)!.at / SECTOR;
  const catalogOf = ({ head }: ReturnType<typeof layout>): Buffer => {
    const record = sector(head, 17);
    expect(record.toString('latin1', 0, 30)).toBe('\0CD001\x01EL TORITO SPECIFICATION');
    return sector(head, record.readUInt32LE(0x47));
  };
  it('has a default entry for BIOS and a section for UEFI', () => {
    const made = layout(bios, uefi);
    const catalog = catalogOf(made);
    let sum = 0;
    for (let at = 0; at < 32; at += 2) sum += catalog.readUInt16LE(at);
    expect(sum & 0xffff).toBe(0);
    expect([...catalog.subarray(0, 2), ...catalog.subarray(30, 32)]).toEqual([1, 0, 0x55, 0xaa]);
    expect([catalog[32], catalog.readUInt16LE(38), catalog.readUInt32LE(40)]).toEqual([0x88, 4, placeOf(made, bios.path)]);
    expect([...catalog.subarray(64, 68)]).toEqual([0x91, 0xef, 1, 0]);
    expect([catalog[96], catalog.readUInt16LE(102), catalog.readUInt32LE(104)]).toEqual([
      0x88,
      Math.ceil(4_000_000 / 512),
      placeOf(made, uefi.path),
    ]);
  });
  it('has UEFI as the default entry without BIOS', () => {
    expect(catalogOf(layout(uefi)).subarray(0, 2)).toEqual(Buffer.from([1, 0xef]));
  });
  it('has length 0 if the length does not fit into its field', () => {
    const made = isoLayout({ volume: 'V', files: { e: 40_000_000 }, boots: [{ firmware: 'uefi', path: 'e' }], now: NOW });
    expect(catalogOf(made).readUInt16LE(38)).toBe(0);
  });
  it('comes with the boot information table in the loader of a BIOS', () => {
    const made = layout(bios);
    const program = made.files[0]!.content as Buffer;
    expect(program.length).toBe(LOADER.length);
    expect([program.readUInt32LE(8), program.readUInt32LE(12), program.readUInt32LE(16)]).toEqual([16, placeOf(made, bios.path), 5000]);
    expect(program.readUInt32LE(20)).toBe((0x03030303 * ((5000 - 64) / 4)) % 2 ** 32);
    expect(LOADER.readUInt32LE(8)).toBe(0x03030303);
  });
  it('is missing without a boot program', () => {
    expect(sector(layout().head, 17)[0]).toBe(2);
  });
});

/** A reader written from ECMA-119 and the Joliet specification alone. */
describe('independent reader', () => {
  const texts: Record<string, string> = {
    'a.txt': 'first',
    'folder/inner/deep.conf': 'd'.repeat(3000),
    'folder/b': '',
    'other/c': 'c',
    // So many files that the folder's records need more than one sector.
    ...Object.fromEntries(Array.from({ length: 40 }, (_, at) => [`many/file-number-${at}.txt`, String(at)])),
  };
  const image = isoImage('CD Label', Object.fromEntries(Object.entries(texts).map(([path, text]) => [path, Buffer.from(text)])), NOW);
  const both16 = (block: Buffer, at: number): number => {
    expect(block.readUInt16BE(at + 2)).toBe(block.readUInt16LE(at));
    return block.readUInt16LE(at);
  };
  const both32 = (block: Buffer, at: number): number => {
    expect(block.readUInt32BE(at + 4)).toBe(block.readUInt32LE(at));
    return block.readUInt32LE(at);
  };
  const joliet = (bytes: Buffer): string => Buffer.from(bytes).swap16().toString('utf16le');
  const latin = (bytes: Buffer): string => bytes.toString('latin1');

  interface DirectoryRecord {
    readonly id: Buffer;
    readonly at: number;
    readonly size: number;
    readonly isFolder: boolean;
  }
  function recordAt(bytes: Buffer, at: number): DirectoryRecord {
    const row = bytes.subarray(at, at + bytes[at]!);
    expect(row.length % 2).toBe(0);
    expect([...row.subarray(18, 25)]).toEqual([126, 2, 3, 4, 5, 6, 0]);
    expect([both16(row, 28), row[1], row[26], row[27]]).toEqual([1, 0, 0, 0]);
    expect(row.length).toBe(33 + row[32]! + ((33 + row[32]!) % 2));
    return { id: row.subarray(33, 33 + row[32]!), at: both32(row, 2), size: both32(row, 10), isFolder: row[25] === 2 };
  }
  function rowsOf({ at, size }: DirectoryRecord): DirectoryRecord[] {
    const extent = image.subarray(at * SECTOR, at * SECTOR + size);
    expect(size % SECTOR).toBe(0);
    const rows: DirectoryRecord[] = [];
    for (let place = 0; place < extent.length;) {
      if (extent[place] === 0) place = Math.ceil((place + 1) / SECTOR) * SECTOR;
      else {
        expect((place % SECTOR) + extent[place]!).toBeLessThanOrEqual(SECTOR);
        rows.push(recordAt(extent, place));
        place += extent[place]!;
      }
    }
    return rows;
  }
  it.each([
    ['the primary tree', 16, 1, '', latin, 1],
    ['the Joliet tree', 17, 2, '%/E', joliet, 2],
  ])('finds every file in %s', (_, place, type, escape, text, width) => {
    const block = sector(image, place);
    expect(block[0]).toBe(type);
    expect(block.toString('latin1', 1, 8)).toBe('CD001\x01\0');
    expect([text(block.subarray(8, 40)).trim(), text(block.subarray(40, 72)).trim()]).toEqual(['', 'CD Label']);
    expect(both32(block, 80)).toBe(image.length / SECTOR);
    expect(block.toString('latin1', 88, 120).replace(/\0+$/, '')).toBe(escape);
    expect([both16(block, 120), both16(block, 124), both16(block, 128)]).toEqual([1, 1, SECTOR]);
    for (const [from, to] of [
      [190, 318],
      [318, 446],
      [446, 574],
      [574, 702],
      [702, 738],
    ] as const)
      expect(text(block.subarray(from, to))).toBe(' '.repeat((to - from) / width));
    expect(block.toString('latin1', 813, 881)).toBe(`${'2026020304050600\0'.repeat(2)}${'0000000000000000\0'.repeat(2)}`);
    expect(block[881]).toBe(1);

    const folders: [name: string, at: number, parent: number][] = [];
    const found: Record<string, string> = {};
    const visit = (folder: DirectoryRecord, parent: DirectoryRecord, path: string): void => {
      const [self, above, ...entries] = rowsOf(folder);
      expect([self, above]).toMatchObject([
        { id: Buffer.from([0]), at: folder.at, size: folder.size, isFolder: true },
        { id: Buffer.from([1]), at: parent.at, size: parent.size, isFolder: true },
      ]);
      const names = entries.map(({ id }) => text(id));
      expect(names).toEqual([...names].sort());
      entries.forEach((entry, index) => {
        if (entry.isFolder) visit(entry, folder, `${path}${names[index]}/`);
        else {
          expect(names[index]!.endsWith(';1')).toBe(true);
          found[`${path}${names[index]!.slice(0, -2)}`] = latin(image.subarray(entry.at * SECTOR, entry.at * SECTOR + entry.size));
        }
      });
    };
    const root = recordAt(block, 156);
    expect(root.isFolder).toBe(true);
    visit(root, root, '');
    expect(found).toEqual(texts);

    // The path tables name the same folders, in both orders of bytes.
    const size = both32(block, 132);
    const [little, big] = [block.readUInt32LE(140), block.readUInt32BE(148)].map((at) => image.subarray(at * SECTOR, at * SECTOR + size));
    for (let at = 0; at < size;) {
      const length = little![at]!;
      const [row, other] = [little!.subarray(at), big!.subarray(at)];
      const [extent, parent] = [row.readUInt32LE(2), row.readUInt16LE(6)];
      expect([other[0], other.readUInt32BE(2), other.readUInt16BE(6)]).toEqual([length, extent, parent]);
      folders.push([length === 1 ? '' : text(row.subarray(8, 8 + length)), extent, parent]);
      at += 8 + length + (length % 2);
    }
    expect(folders.slice(1).map(([name, , parent]) => [name, parent])).toEqual([
      ['folder', 1],
      ['many', 1],
      ['other', 1],
      ['inner', 2],
    ]);
    expect(folders[0]!.slice(1)).toEqual([root.at, 1]);
    const below = (folder: DirectoryRecord, name: string): DirectoryRecord =>
      rowsOf(folder)
        .slice(2)
        .find(({ id }) => text(id) === name)!;
    expect(folders[4]![1]).toBe(below(below(root, 'folder'), 'inner').at);
  });
  it('finds the terminator of the volume descriptors', () => {
    expect(sector(image, 18).toString('latin1', 0, 7)).toBe('\xffCD001\x01');
  });
});

describe('names of the primary tree', () => {
  const textOf = (bytes: Buffer): string => bytes.toString('latin1');
  /** The names of the root's entries, in their order. */
  const primaryNames = (...names: readonly string[]): readonly string[] => {
    const image = isoImage('V', Object.fromEntries(names.map((name) => [name, Buffer.from(name)])), NOW);
    const extent = image.subarray(image.readUInt32LE(16 * SECTOR + 158) * SECTOR);
    const found: string[] = [];
    for (let at = 2 * 34; extent[at] !== 0; at += extent[at]!) {
      const text = textOf(extent.subarray(at + 33, at + 33 + extent[at + 32]!));
      expect(text.endsWith(';1')).toBe(true);
      found.push(text.slice(0, -2));
    }
    return found;
  };
  it.each<readonly [string, readonly string[], readonly string[]]>([
    ['are unchanged in ASCII', ['b.tar.gz', 'A b', 'x_y', 'x~1'], ['A b', 'b.tar.gz', 'x_y', 'x~1']],
    ['have other characters replaced by underscores', ['größe', 'ж'], ['_~1', 'gr__e~1']],
    ['are made unique', ['ж', 'щ', '_', '_~1', 'ж~1'], ['_', '_~1', '_~1~1', '_~1~2', '_~2']],
  ])('%s', (_, names, expected) => {
    expect(primaryNames(...names)).toEqual(expected);
  });
  it('fit into a directory record even if their Joliet names are longer', () => {
    expect(primaryNames('ж'.repeat(103))).toEqual([`${'_'.repeat(103)}~1`]);
  });
});

it.each([
  ['a', 'a/b'],
  ['a/b', 'a'],
  ['a/b/c', 'a/b'],
])('isoImage rejects the paths %s and %s, a file and a directory with the same name', (...paths) => {
  expect(() => isoImage('V', Object.fromEntries(paths.map((path) => [path, Buffer.from('x')])), NOW)).toThrow(/is a (file|folder) already/);
});
