import { cpioArchive } from '../../../wire/images/cpio';

interface Entry {
  readonly name: string;
  readonly mode: string;
  readonly inode: number;
  readonly text: string;
}
const align = (at: number): number => Math.ceil(at / 4) * 4;
/** Reads an archive as the kernel does: headers of 110 hexadecimal digits, everything aligned to 4 bytes. */
function entriesOf(archive: Buffer): readonly Entry[] {
  const entries: Entry[] = [];
  for (let at = 0; at < archive.length;) {
    const header = archive.toString('latin1', at, at + 110);
    expect(header).toMatch(/^070701[\da-f]{104}$/);
    const field = (index: number): number => parseInt(header.slice(6 + 8 * index, 14 + 8 * index), 16);
    const [size, nameSize] = [field(6), field(11)];
    const start = align(at + 110 + nameSize);
    entries.push({
      name: archive.toString('latin1', at + 110, at + 110 + nameSize - 1),
      mode: field(1).toString(8),
      inode: field(0),
      text: archive.toString('utf8', start, start + size),
    });
    expect(archive[at + 110 + nameSize - 1]).toBe(0);
    at = align(start + size);
  }
  return entries;
}

it('cpioArchive contains each directory once, before its content, and each file once', () => {
  const archive = cpioArchive({ 'etc/a/b.crt': Buffer.from('one'), 'etc/a/c': Buffer.from(''), 'etc/d.d/e': Buffer.from('four') });
  expect(archive.length % 4).toBe(0);
  const entries = entriesOf(archive);
  expect(entries.map(({ name, mode, text }) => [name, mode, text])).toEqual([
    ['etc', '40755', ''],
    ['etc/a', '40755', ''],
    ['etc/d.d', '40755', ''],
    ['etc/a/b.crt', '100644', 'one'],
    ['etc/a/c', '100644', ''],
    ['etc/d.d/e', '100644', 'four'],
    ['TRAILER!!!', '0', ''],
  ]);
  // Files with the same number would be links to each other.
  expect(new Set(entries.map(({ inode }) => inode)).size).toBe(entries.length);
});
