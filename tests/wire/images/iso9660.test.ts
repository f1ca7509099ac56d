import { isoLayout, type IsoContent } from '../../../wire/images/iso9660';

const SECTOR = 2048;
const NOW = Date.parse('2026-02-03T04:05:06Z');
const LOADER = Buffer.alloc(5000, 3);
const files: Record<string, IsoContent> = { 'isolinux/isolinux.bin': LOADER, 'boot/efi.img': 4_000_000, vmlinuz: 10_000, initrd: 1 };
const bios = { firmware: 'bios', path: 'isolinux/isolinux.bin' } as const;
const uefi = { firmware: 'uefi', path: 'boot/efi.img' } as const;
const layout = (...boots: readonly (typeof bios | typeof uefi)[]) =>
  isoLayout({ volume: 'VOLUME', publisher: 'abc', files, boots, now: NOW });
const sector = (image: Buffer, at: number): Buffer => image.subarray(at * SECTOR, (at + 1) * SECTOR);

it('puts each file in sectors of its own, behind its head', () => {
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
describe('El Torito', () => {
  const placeOf = (made: ReturnType<typeof layout>, path: string): number => made.files.find((one) => one.path === path)!.at / SECTOR;
  const catalogOf = ({ head }: ReturnType<typeof layout>): Buffer => {
    const record = sector(head, 17);
    expect(record.toString('latin1', 0, 30)).toBe('\0CD001\x01EL TORITO SPECIFICATION');
    return sector(head, record.readUInt32LE(0x47));
  };
  it('has a first entry for a BIOS and a section for UEFI', () => {
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
  it('has UEFI first where there is nothing else', () => {
    expect(catalogOf(layout(uefi)).subarray(0, 2)).toEqual(Buffer.from([1, 0xef]));
  });
  it('leaves the length open that its field cannot hold', () => {
    const made = isoLayout({ volume: 'V', files: { e: 40_000_000 }, boots: [{ firmware: 'uefi', path: 'e' }], now: NOW });
    expect(catalogOf(made).readUInt16LE(38)).toBe(0);
  });
  it('tells the boot program of a BIOS where it is', () => {
    const made = layout(bios);
    const program = made.files[0]!.content as Buffer;
    expect(program.length).toBe(LOADER.length);
    expect([program.readUInt32LE(8), program.readUInt32LE(12), program.readUInt32LE(16)]).toEqual([16, placeOf(made, bios.path), 5000]);
    expect(program.readUInt32LE(20)).toBe((0x03030303 * ((5000 - 64) / 4)) % 2 ** 32);
    expect(LOADER.readUInt32LE(8)).toBe(0x03030303);
  });
  it('is not there where nothing boots', () => {
    expect(sector(layout().head, 17)[0]).toBe(2);
  });
});
