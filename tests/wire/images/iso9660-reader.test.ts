import { isoImage } from '../../../wire/images/iso9660';
import { filesOfIso } from '../../../wire/images/iso9660-reader';

const SECTOR = 2048;
const MAX = 64 << 20;
const NOW = Date.parse('2026-02-03T04:05:06Z');
const files = {
  'openstack/latest/network_data.json': Buffer.from('{}'),
  'openstack/content/0000': Buffer.alloc(5000, 'z'),
  'a name that is longer than thirty-one characters.tar.gz': Buffer.from('1'),
  'ü/empty': Buffer.alloc(0),
  ...Object.fromEntries(Array.from({ length: 150 }, (_, at) => [`many/file-${at}`, Buffer.from(`${at}`)])),
};
const image = isoImage('config-2', files, NOW);
/** @param change changes a copy of the image @returns what is read of the copy */
const changed = (change: (copy: Buffer) => unknown, most = MAX) => {
  const copy = Buffer.from(image);
  change(copy);
  return filesOfIso(copy, most);
};
const JOLIET = 17 * SECTOR;
const rootAt = image.readUInt32LE(JOLIET + 158) * SECTOR;
/** The root's first entry behind itself and its parent. */
const firstAt = rootAt + 2 * 34;

it('filesOfIso reads every file of an image by isoImage', () => {
  expect(filesOfIso(image, MAX)).toEqual(files);
});
it.each<readonly [string, (copy: Buffer) => unknown]>([
  ['no volume', (copy) => copy.fill(0, 16 * SECTOR, 18 * SECTOR)],
  ['no Joliet tree', (copy) => copy.write('   ', JOLIET + 88, 'latin1')],
  ['sectors of another size', (copy) => copy.writeUInt16LE(512, JOLIET + 128)],
  ['a root outside the image', (copy) => copy.writeUInt32LE(0x7fffffff, JOLIET + 158)],
  ['a folder larger than the image', (copy) => copy.writeUInt32LE(0xffffffff, firstAt + 10)],
  ['a file of several parts', (copy) => copy.writeUInt8(0x80, firstAt + 25)],
  ['an interleaved file', (copy) => copy.writeUInt8(1, firstAt + 26)],
  ['a record shorter than its name', (copy) => copy.writeUInt8(34, firstAt)],
  [
    'a folder that contains itself',
    (copy) => {
      copy.writeUInt8(2, firstAt + 25);
      copy.writeUInt32LE(rootAt / SECTOR, firstAt + 2);
      copy.writeUInt32LE(SECTOR, firstAt + 10);
    },
  ],
  [
    'two files of one name',
    (copy) => {
      const name = Buffer.from('file-1', 'utf16le').swap16();
      copy.write('0', copy.indexOf(name) + name.length - 1, 'latin1');
    },
  ],
  [
    'a file and a folder of one name',
    (copy) => {
      // The folders `many` and `openstack` follow the file; `many` becomes `openstack` by its record, and a file by its flag.
      const [many, openstack] = ['many', 'openstack'].map((name) => copy.indexOf(Buffer.from(name, 'utf16le').swap16(), rootAt));
      expect(copy[many! - 1]).toBe(8);
      copy.writeUInt8(0, many! - 8);
      copy.write('\0o\0p\0e\0n', openstack!, 'latin1');
      copy.writeUInt8(8, openstack! - 1);
      copy.write('\0o\0p\0e\0n', many!, 'latin1');
    },
  ],
  ['a slash in a name', (copy) => copy.write('\0/', firstAt + 33, 'latin1')],
])('filesOfIso returns undefined for an image with %s', (_, change) => {
  expect(changed(change)).toBeUndefined();
});
it('filesOfIso returns undefined beyond the limit, and for a truncated image', () => {
  expect(changed(() => {}, 5000)).toBeUndefined();
  expect(filesOfIso(Buffer.alloc(0), MAX)).toBeUndefined();
  expect(filesOfIso(image.subarray(0, 18 * SECTOR), MAX)).toBeUndefined();
});
