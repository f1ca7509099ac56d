/**
 * Formats of images, and what is refused in them. The list of cases are the advisories of Ironic, Nova, Glance and Cinder about images that
 * make a server read other files, and the cases that were found by fuzzing their inspectors: cut and inconsistent headers.
 */
import { formatsOf, HEAD_LENGTH, isDeclared, isPermitted, judge, neededFor, wrapperOf } from '../../../wire/images/inspection';
import { qcow2, header } from '../../ramdisk-agent/qcow2-builder';
import {
  descriptor,
  dynamicVhd,
  vhdFooter,
  vhdx,
  type VhdxChanges,
  vmdkHeader,
  vmdkSparse,
  vmdkStream,
} from '../../ramdisk-agent/image-builders';

const ALL = ['raw', 'gpt', 'qcow2', 'iso', 'vmdk', 'vhd', 'vhdx', 'vdi', 'luks', 'qed'];
const MIB = 2 ** 20;
const DISK = Buffer.alloc(MIB, 1);
const changed = (bytes: Buffer, change: (copy: Buffer) => void): Buffer => {
  const copy = Buffer.from(bytes);
  change(copy);
  return copy;
};
const head = (signature: string, at = 0, length = 70_000): Buffer =>
  changed(Buffer.alloc(length), (bytes) => bytes.write(signature, at, 'latin1'));
const refusalOf = (file: Buffer, declared: string | null = null, permitted: readonly string[] = ALL): string | undefined => {
  const needed = neededFor(file.subarray(0, HEAD_LENGTH));
  const start = file.subarray(0, needed?.offset === 0 ? needed.length : HEAD_LENGTH);
  const then = neededFor(start);
  return judge(start, { permitted, declared, deep: true }, then && file.subarray(then.offset, then.offset + then.length)).refusal;
};

/** @param type of the first partition */
const mbr = (type = 0x83, change: (bytes: Buffer) => void = () => {}): Buffer =>
  changed(Buffer.alloc(70_000), (bytes) => {
    bytes[450] = type;
    if (type === 0xee) bytes.set([0, 0, 2, 0], 446);
    bytes.writeUInt32LE(type === 0xee ? 1 : 2048, 454);
    bytes.writeUInt16LE(0xaa55, 510);
    change(bytes);
  });
const iso = head('CD001', 32769);
const qcow = qcow2({ clusters: { 0: 1 }, size: 4096 });

describe('formats', () => {
  it.each<[string, Buffer]>([
    ['raw', Buffer.alloc(0)],
    ['raw', Buffer.alloc(1000)],
    ['gpt', mbr()],
    ['gpt', mbr(0xee)],
    ['iso', iso],
    ['iso', head('NSR03', 32769)],
    // A disk image that can be started as a CD too.
    ['iso', changed(iso, (bytes) => mbr().copy(bytes, 0, 0, 512))],
    ['qcow2', qcow],
    ['vmdk', vmdkStream(DISK)],
    ['vmdk', vmdkSparse(DISK)],
    ['vmdk', Buffer.from(descriptor('monolithicFlat', 1))],
    ['vmdk', Buffer.from('version=1\nCID=1\ncreateType="twoGbMaxExtentFlat"\nRW 1 FLAT "/etc/passwd" 0\n')],
    ['vhd', dynamicVhd(DISK)],
    ['vhdx', vhdx(DISK)],
    ['vdi', head('\x7f\x10\xda\xbe', 64)],
    ['qed', head('QED\0')],
    ['luks', head('LUKS\xba\xbe')],
    // The boot sector of a FAT file system has the signature of a partition table.
    ['raw', Buffer.concat([Buffer.alloc(16), Buffer.of(2, 0, 0, 0, 0, 0xf8), Buffer.alloc(488), Buffer.of(0x55, 0xaa)])],
  ])('%s', (format, file) => {
    expect(formatsOf(file.subarray(0, HEAD_LENGTH))).toEqual([format]);
  });

  it.each<[string | undefined, Buffer]>([
    ['gzip', Buffer.from('1f8b0800', 'hex')],
    ['xz', Buffer.from('fd377a585a00', 'hex')],
    ['zstd', Buffer.from('28b52ffd', 'hex')],
    [undefined, Buffer.from('28b52f', 'hex')],
  ])('wrapper %s', (wrapper, file) => {
    expect(wrapperOf(file)).toBe(wrapper);
  });
});

it.each<[string, Buffer, string | null]>([
  ['raw', Buffer.alloc(1000), 'raw'],
  ['gpt, declared raw', mbr(), 'raw'],
  ['gpt', mbr(0xee), null],
  ['iso, declared raw', iso, 'raw'],
  ['iso with a partition table', changed(iso, (bytes) => mbr().copy(bytes, 0, 0, 512)), 'iso'],
  ['qcow2', qcow, 'qcow2'],
  ['qcow2, unknown', qcow, 'unknown'],
  ['a kernel', Buffer.alloc(1000), 'aki'],
  ['vmdk', vmdkStream(DISK), 'vmdk'],
  ['vmdk with tables', vmdkSparse(DISK), 'vmdk'],
  ['vhd', dynamicVhd(DISK), 'vhd'],
  ['fixed vhd, which has no sign at its beginning', mbr(), 'vhd'],
  ['vhdx', vhdx(DISK), 'vhdx'],
  // The table of a declared raw image is its own affair.
  ['a hybrid MBR, declared raw', mbr(0xee, (bytes) => bytes.writeUInt8(0x83, 466)), 'raw'],
])('%s is accepted', (_, file, declared) => {
  expect(refusalOf(file, declared)).toBeUndefined();
});

const extension = (type: number, length: number): Buffer =>
  changed(Buffer.concat([header(4096, 1, 4096), Buffer.alloc(8192)]), (bytes) => {
    bytes.writeUInt32BE(type, 104);
    bytes.writeUInt32BE(length, 108);
  });
const withHeader = (change: (bytes: Buffer) => void): Buffer => changed(Buffer.concat([header(4096, 1, 4096), Buffer.alloc(8192)]), change);
const text = (type: string, more = ''): Buffer => vmdkSparse(DISK, descriptor(type, 2048, more));
const described = (lines: string): Buffer => vmdkSparse(DISK, lines);
const vhdxOf = (changes: VhdxChanges): Buffer => vhdx(DISK, changes);

type Case = [what: string, file: Buffer, refusal: RegExp, declared?: string];
describe.each<[string, Case[]]>([
  [
    'CVE-2024-44082, CVE-2024-32498 and CVE-2022-47951: other files',
    [
      [
        'qcow2 with a backing file',
        withHeader((bytes) => bytes.writeBigUInt64BE(512n, 8)),
        /qcow2 image cannot be used: it has a backing file/,
      ],
      [
        'qcow2 version 2 with a backing file',
        withHeader((bytes) => bytes.writeUInt32BE(2, 4) && bytes.writeBigUInt64BE(512n, 8)),
        /a backing file/,
      ],
      ['qcow2 with the format of a backing file', extension(0xe2792aca, 5), /it has a backing file/],
      ['qcow2 with a data file', withHeader((bytes) => bytes.writeUInt32BE(4, 76)), /an external data file/],
      ['qcow2 with the name of a data file only', extension(0x44415441, 11), /an external data file/],
      ['VMDK: a descriptor only', Buffer.from(descriptor('monolithicFlat', 1)), /it is a descriptor without data/],
      ['VMDK: a flat extent', text('monolithicFlat'), /its createType is monolithicflat/],
      ['VMDK: two types', text('monolithicSparse', 'createType="monolithicFlat"'), /its createType is monolithicsparse and monolithicflat/],
      ['VMDK: no type', described('version=1\nRW 1 SPARSE "a"\n'), /its createType is not given/],
      ['VMDK: another extent', text('monolithicSparse', 'RW 1 FLAT "/etc/passwd" 0'), /it.* has 2 extents/],
      [
        'VMDK: an extent elsewhere',
        described('createType="monolithicSparse"\nRW 1 SPARSE "/etc/passwd"\n'),
        /its extent is not in this file/,
      ],
      [
        'VMDK: a flat extent under a sparse type',
        described('createType="monolithicSparse"\nRW 1 FLAT "passwd" 0\n'),
        /its extent is not in this file/,
      ],
      ['VMDK: a device', described('createType="monolithicSparse"\nRW 1 VMFSRDM "sda"\n'), /its extent is not in this file/],
      ['VMDK: no extent', described('createType="monolithicSparse"\n'), /has 0 extents/],
      ['VMDK: a parent', text('monolithicSparse', 'parentFileNameHint="base.vmdk"'), /it has a parent/],
      ['VMDK: the id of a parent', described('createType="monolithicSparse"\nparentCID=12345678\nRW 1 SPARSE "a"\n'), /it has a parent/],
      ['VMDK: a line of another kind', text('monolithicSparse', 'include /etc/passwd'), /a line of an unknown kind/],
      ['VHD with a parent', dynamicVhd(DISK, 4), /it has a parent/],
      ['VHDX with a parent', vhdxOf({ parent: true }), /it has a parent/],
      ['VHDX with the locator of a parent', vhdxOf({ locator: true }), /it has a parent/],
    ],
  ],
  [
    'images that lie about their format',
    [
      ['qcow2, declared raw', qcow, /^Security: Expected format was raw, but image was actually qcow2$/, 'raw'],
      ['raw, declared qcow2', mbr(), /^Security: Expected format was qcow2, but image was actually gpt$/, 'qcow2'],
      ['vmdk, declared qcow2', vmdkSparse(DISK), /Expected format was qcow2, but image was actually vmdk/, 'qcow2'],
      ['a descriptor, declared raw', Buffer.from(descriptor('monolithicFlat', 1)), /actually vmdk/, 'raw'],
      ['qcow2, declared vhd', qcow, /Expected format was vhd, but image was actually qcow2/, 'vhd'],
    ],
  ],
  [
    'several formats at once',
    [
      [
        'qcow2 and a partition table',
        changed(qcow, (bytes) => mbr().copy(bytes, 446, 446, 512)),
        /matched multiple potential formats: qcow2, gpt/,
      ],
      [
        'qcow2 and iso',
        changed(Buffer.concat([qcow, iso]), (bytes) => bytes.write('CD001', 32769)),
        /matched multiple potential formats: qcow2, iso/,
      ],
      [
        'vdi and luks, declared raw',
        changed(head('LUKS\xba\xbe'), (bytes) => bytes.write('\x7f\x10\xda\xbe', 64, 'latin1')),
        /multiple/,
        'raw',
      ],
    ],
  ],
  [
    'features that no reader here has, and headers that make no sense',
    [
      ['qcow2 with unknown features', withHeader((bytes) => bytes.writeUInt32BE(32, 76)), /unknown features/],
      ['qcow2 with unknown features in the upper half', withHeader((bytes) => bytes.writeUInt32BE(1, 72)), /unknown features/],
      ['qcow2 with extended tables', withHeader((bytes) => bytes.writeUInt32BE(16, 76)), /extended tables/],
      ['corrupt qcow2', withHeader((bytes) => bytes.writeUInt32BE(2, 76)), /marked as corrupt/],
      ['encrypted qcow2', withHeader((bytes) => bytes.writeUInt32BE(2, 32)), /encrypted/],
      ['encrypted qcow2, by an extension', extension(0x0537be77, 16), /encrypted/],
      ['qcow2 version 1', withHeader((bytes) => bytes.writeUInt32BE(1, 4)), /version 1 is not supported/],
      ['qcow2 with an extension without an end', extension(1, 0xfffffff0), /header extensions make no sense/],
      ['a cut qcow2', qcow.subarray(0, 60), /header is truncated/],
      ['qcow2 with a tiny header', withHeader((bytes) => bytes.writeUInt32BE(8, 100)), /header makes no sense/],
      [
        'qcow2 with a header that is longer than its first cluster',
        withHeader((bytes) => bytes.writeUInt32BE(4097, 100)),
        /header makes no sense/,
      ],
      ['qcow2 with clusters of 256 bytes', withHeader((bytes) => bytes.writeUInt32BE(8, 20)), /header makes no sense/],
      ['VMDK of another version', changed(vmdkSparse(DISK), (bytes) => bytes.writeUInt32LE(4, 4)), /version 4 is not supported/],
      [
        'VMDK with a descriptor elsewhere',
        changed(vmdkSparse(DISK), (bytes) => bytes.writeBigUInt64LE(99n, 28)),
        /descriptor is not behind its header/,
      ],
      [
        'VMDK with a huge descriptor',
        changed(vmdkSparse(DISK), (bytes) => bytes.writeBigUInt64LE(2n ** 60n, 36)),
        /no length that makes sense/,
      ],
      ['VMDK with no descriptor', changed(vmdkSparse(DISK), (bytes) => bytes.writeBigUInt64LE(0n, 36)), /no length that makes sense/],
      ['VMDK with a descriptor of noise', changed(vmdkSparse(DISK), (bytes) => bytes.fill(0x80, 512, 600)), /descriptor is not text/],
      ['VMDK with grains of no size', changed(vmdkSparse(DISK), (bytes) => bytes.writeBigUInt64LE(0n, 20)), /header makes no sense/],
      ['VMDK with an unknown compression', changed(vmdkStream(DISK), (bytes) => bytes.writeUInt16LE(2, 77)), /unknown compression/],
      ['VMDK with markers only', changed(vmdkStream(DISK), (bytes) => bytes.writeUInt32LE(0x20001, 8)), /compressed without markers/],
      ['a cut VMDK', vmdkSparse(DISK).subarray(0, 600), /descriptor is truncated/],
      ['a VMDK of a few bytes', Buffer.from('KDMV'), /no header of a sparse extent/],
      ['VHD with a wrong checksum', changed(dynamicVhd(DISK), (bytes) => bytes.writeUInt8(9, 50)), /checksum of its footer is wrong/],
      [
        'VHD with a wrong checksum of its header',
        changed(dynamicVhd(DISK), (bytes) => bytes.writeUInt8(9, 600)),
        /checksum of its header is wrong/,
      ],
      ['VHD of an unknown type', vhdFooter(MIB, 7), /type is unknown/],
      ['fixed VHD with its footer at the beginning', vhdFooter(MIB, 2), /its footer is at its beginning/],
      ['a cut VHD', dynamicVhd(DISK).subarray(0, 100), /no footer/],
      ['VHDX that was not closed', vhdxOf({ log: true }), /its log is not empty/],
      ['VHDX with an unknown region', vhdxOf({ region: true }), /unknown region/],
      ['VHDX with wrong checksums', changed(vhdx(DISK), (bytes) => bytes.fill(9, 65560, 65564).fill(9, 131096, 131100)), /no valid header/],
      [
        'VHDX with wrong region tables',
        changed(vhdx(DISK), (bytes) => bytes.fill(9, 196640, 196650).fill(9, 262176, 262190)),
        /no valid region table/,
      ],
      ['VHDX without metadata', changed(vhdx(DISK), (bytes) => bytes.fill(0, 3 * MIB, 3 * MIB + 8)), /no metadata/],
      ['VHDX with too much metadata', changed(vhdx(DISK), (bytes) => bytes.writeUInt16LE(60_000, 3 * MIB + 10)), /metadata makes no sense/],
      ['a cut VHDX', vhdx(DISK).subarray(0, 1000), /no metadata/],
      ['QED', head('QED\0'), /format is not supported/],
      ['an invalid boot flag', mbr(0x83, (bytes) => bytes.writeUInt8(7, 446)), /invalid boot flag/],
      ['no partition', mbr(0), /no partitions/],
      ['a protective MBR with more partitions', mbr(0xee, (bytes) => bytes.writeUInt8(0x83, 466)), /further partitions/],
      ['a protective MBR elsewhere', mbr(0xee, (bytes) => bytes.writeUInt32LE(2, 454)), /invalid start/],
    ],
  ],
])('%s', (_, rows) => {
  it.each<Case>(rows)('%s', (__, file, refusal, ...declared) => {
    expect(refusalOf(file, declared[0] ?? null)).toMatch(refusal);
  });
});

it('the valid header of VHDX that was written last counts', () => {
  const open = (sequences: readonly [number, number]): string | undefined =>
    refusalOf(changed(vhdx(DISK, { sequences, log: true }), (bytes) => vhdx(DISK, { sequences }).copy(bytes, 131072, 131072, 135168)));
  expect(open([1, 2])).toBeUndefined();
  expect(open([3, 2])).toMatch(/log is not empty/);
});

it('formats that are not permitted are refused, except what is declared raw', () => {
  expect(refusalOf(qcow, null, ['raw'])).toBe('Security: Detected image format was qcow2, but only raw are allowed');
  expect(refusalOf(mbr(), null, ['raw'])).toBeUndefined();
  expect(refusalOf(mbr(), 'vhd', ['raw'])).toBe('Security: Detected image format was vhd, but only raw are allowed');
  expect(refusalOf(iso, 'raw', ['qcow2'])).toBeUndefined();
  expect([isPermitted('gpt', ['raw']), isPermitted('raw', ['gpt']), isDeclared('gpt', 'raw')]).toEqual([true, false, false]);
});

it('without deep inspection only the format is told', () => {
  expect(
    judge(
      withHeader((bytes) => bytes.writeBigUInt64BE(512n, 8)),
      { permitted: [], declared: 'raw', deep: false },
    ),
  ).toEqual({
    format: 'qcow2',
    refusal: undefined,
  });
});

it('every cut of a head is judged without an error', () => {
  for (const file of [
    qcow,
    vmdkStream(DISK),
    vmdkSparse(DISK),
    dynamicVhd(DISK),
    vhdx(DISK),
    iso,
    mbr(0xee),
    vmdkHeader({ text: '', sectors: 1, isStream: false, directory: 1n, overhead: 1 }),
  ])
    for (let length = 0; length < 1200; length++) {
      const cut = file.subarray(0, length);
      expect(() => [judge(cut, { permitted: ALL, declared: null, deep: true }), neededFor(cut)]).not.toThrow();
    }
});
