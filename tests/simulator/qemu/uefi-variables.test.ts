import { X509Certificate, randomBytes } from 'node:crypto';
import { ownCertificate } from '../../../wire/http/certificate';
import { signatureLists, withHttpBoot, withSecureBoot } from '../../../simulator/qemu/uefi-variables';

const STORE_AT = 0x48;
/** An empty file of edk2: the volume's header, the store's header, and erased flash. */
function emptyFile(storeBytes: number): Buffer {
  const bytes = Buffer.alloc(STORE_AT + storeBytes + 64, 0xff);
  bytes.fill(0, 0, STORE_AT + 28);
  Buffer.from('8d2bf1ff96768b4ca9852747075b4f50', 'hex').copy(bytes, 16);
  bytes.writeUInt16LE(STORE_AT, 48);
  Buffer.from('782cf3aa7b949a43a1802e144ec37792', 'hex').copy(bytes, STORE_AT);
  bytes.writeUInt32LE(storeBytes, STORE_AT + 16);
  return bytes;
}
/** The valid variables: name → value. */
function variables(bytes: Buffer): readonly (readonly [string, Buffer])[] {
  const found: [string, Buffer][] = [];
  for (let at = STORE_AT + 28; bytes.readUInt16LE(at) === 0x55aa;) {
    const [name, data] = [bytes.readUInt32LE(at + 36), bytes.readUInt32LE(at + 40)];
    const value = at + 60 + name;
    if (bytes[at + 2] === 0x3f) found.push([bytes.toString('utf16le', at + 60, value - 2), bytes.subarray(value, value + data)]);
    at = (value + data + 3) & ~3;
  }
  return found;
}

it('withHttpBoot sets a boot entry for the URL and BootNext', () => {
  const told = withHttpBoot(emptyFile(4096), 'http://10.0.0.1/a')!;
  const path = `03181500${Buffer.from('http://10.0.0.1/a').toString('hex')}7fff0400`;
  const title = Buffer.from('Redfish UefiHttp\0', 'utf16le').toString('hex');
  expect(variables(told).map(([name, data]) => [name, data.toString('hex')])).toEqual([
    ['Boot0099', `010000001900${title}${path}`],
    ['BootNext', '9900'],
  ]);
});
it('withHttpBoot replaces an earlier entry', () => {
  const again = withHttpBoot(withHttpBoot(emptyFile(4096), 'http://10.0.0.1/a')!, 'http://10.0.0.1/b')!;
  // BootNext has not changed.
  expect(variables(again).map(([name]) => name)).toEqual(['BootNext', 'Boot0099']);
  expect(variables(again)[1]![1].toString('latin1')).toContain('http://10.0.0.1/b');
});
it.each([
  ['a full store', emptyFile(200), 'http://10.0.0.1/a'],
  ['another file', Buffer.alloc(4096), 'http://10.0.0.1/a'],
  ['another store', emptyFile(4096).fill(0, STORE_AT, STORE_AT + 16), 'http://10.0.0.1/a'],
  ['a URL that is too long', emptyFile(4096), `http://10.0.0.1/${'a'.repeat(3000)}`],
])('withHttpBoot leaves the file unchanged for %s', (_, file, url) => {
  const before = Buffer.from(file);
  expect(withHttpBoot(file, url)).toBeUndefined();
  expect(file).toEqual(before);
});

it('withSecureBoot switches Secure Boot, and changes nothing that is set already', () => {
  const valueIn = (file: Buffer): readonly (readonly [string, string])[] =>
    variables(file).map(([name, data]) => [name, data.toString('hex')]);
  const on = withSecureBoot(emptyFile(4096), true)!;
  expect(valueIn(on)).toEqual([['SecureBootEnable', '01']]);
  expect(withSecureBoot(on, true)).toEqual(on);
  expect(valueIn(withSecureBoot(on, false)!)).toEqual([['SecureBootEnable', '00']]);
  expect(withSecureBoot(emptyFile(40), true)).toBeUndefined();
});

it('signatureLists contains one list for each X.509 certificate', () => {
  const [one, other] = ['10.0.0.1', '10.0.0.2'].map((address) => ownCertificate(address, 'ca', Date.now(), randomBytes).certificate);
  const lists = signatureLists(`A comment\n${one!}\n${other!}`);
  const size = lists.readUInt32LE(16);
  expect(lists.toString('hex', 0, 16)).toBe('a159c0a5e494a74a87b5ab155c2bf072');
  expect([lists.readUInt32LE(20), lists.readUInt32LE(24)]).toEqual([0, size - 28]);
  expect(lists.subarray(44, size)).toEqual(new X509Certificate(one!).raw);
  expect(lists.subarray(size + 44)).toEqual(new X509Certificate(other!).raw);
});
it.each([
  ['an empty text', ''],
  ['a key', '-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----'],
  ['an invalid certificate', '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----'],
])('signatureLists rejects %s', (_, text) => {
  expect(() => signatureLists(text)).toThrow();
});
