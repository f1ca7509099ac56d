import { decodeTftp, encodeTftp, writeDataHeader, type TftpPacket } from '../../wire/tftp';

const options = new Map([
  ['blksize', '1432'],
  ['tsize', '0'],
]);
const PACKETS: readonly (readonly [string, string, TftpPacket])[] = [
  ['read request', '0001 61 00 6f63746574 00', { kind: 'rrq', file: 'a', mode: 'octet', options: new Map() }],
  [
    'read request with options',
    '0001 612f62 00 6f63746574 00 626c6b73697a65 00 31343332 00 7473697a65 00 30 00',
    { kind: 'rrq', file: 'a/b', mode: 'octet', options },
  ],
  ['write request', '0002 61 00 6e65746173636969 00', { kind: 'wrq', file: 'a', mode: 'netascii', options: new Map() }],
  ['data', '0003 fffe 010203', { kind: 'data', block: 65534, data: Buffer.from([1, 2, 3]) }],
  ['empty data', '0003 0000', { kind: 'data', block: 0, data: Buffer.alloc(0) }],
  ['acknowledgment', '0004 0102', { kind: 'ack', block: 258 }],
  ['error', '0005 0001 6e6f 00', { kind: 'error', code: 1, message: 'no' }],
  ['option acknowledgment', '0006 626c6b73697a65 00 31343332 00 7473697a65 00 30 00', { kind: 'oack', options }],
];
const bytes = (hex: string): Buffer => Buffer.from(hex.replaceAll(' ', ''), 'hex');

it.each(PACKETS)('decodeTftp and encodeTftp: %s', (_, hex, packet) => {
  expect(decodeTftp(bytes(hex))).toEqual(packet);
  expect(encodeTftp(packet)).toEqual(bytes(hex));
});

it.each([
  ['an empty packet', ''],
  ['one octet', '00'],
  ['an opcode alone', '0001'],
  ['half an acknowledgment', '0004 00'],
  ['opcode 0', '0000 0001'],
  ['opcode 7', '0007 0001'],
  ['a file name without a final zero', '0001 6161 6161'],
  ['a file without mode', '0001 6161 00'],
  ['an empty file name', '0001 00 6f63746574 00'],
  ['an option without value', '0001 61 00 6f63746574 00 7473697a65 00'],
  ['a value without a final zero', '0001 61 00 6f63746574 00 7473697a65 00 30'],
  ['a request that is too long', `0001 ${'61'.repeat(2000)} 00 6f63746574 00`],
  ['an option acknowledgment without value', '0006 7473697a65 00'],
])('decodeTftp rejects %s', (_, hex) => expect(decodeTftp(bytes(hex))).toBeUndefined());

it('decodeTftp ignores the case of mode and option names, and accepts an error without its final zero', () => {
  expect(decodeTftp(bytes('0001 61 00 4f43544554 00 5453495a45 00 30 00'))).toEqual({
    kind: 'rrq',
    file: 'a',
    mode: 'octet',
    options: new Map([['tsize', '0']]),
  });
  expect(decodeTftp(bytes('0005 0008 6162'))).toEqual({ kind: 'error', code: 8, message: 'ab' });
});

it('decodeTftp never throws for random bytes, and each packet is unchanged after encode and decode', () => {
  let seed = 1;
  const octet = (): number => (seed = (seed * 48271) % 2147483647) & 255;
  for (let i = 0; i < 5000; i++) {
    const noise = Buffer.from(Array.from({ length: octet() % 40 }, octet));
    if (noise.length > 1) noise[0] = 0;
    if (noise.length > 1) noise[1]! %= 8;
    const packet = decodeTftp(noise);
    if (packet) expect(decodeTftp(encodeTftp(packet))).toEqual(packet);
  }
});

it('writeDataHeader writes a data header in place', () => {
  const buffer = Buffer.alloc(6);
  writeDataHeader(buffer, 1, 513);
  expect(buffer).toEqual(bytes('00 0003 0201 00'));
});
