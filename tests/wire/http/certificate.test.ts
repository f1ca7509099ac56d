import { createPrivateKey, randomBytes, X509Certificate } from 'node:crypto';
import { ownCertificate } from '../../../wire/http/certificate';

const now = Date.parse('2031-05-06T07:08:09Z');

it.each(['192.0.2.7', '2001:db8::7', 'fd77::', '::1', '2001:db8:1:2:3:4:5:6'])('ownCertificate is valid for the address %s', (address) => {
  const { certificate, privateKey } = ownCertificate(address, 'the machine', now, randomBytes);
  const read = new X509Certificate(certificate);
  expect(read.checkIP(address)).toBeDefined();
  expect(read.checkIP('192.0.2.8')).toBeUndefined();
  expect(read.subject).toBe('CN=the machine');
  expect(read.issuer).toBe(read.subject);
  expect(read.verify(read.publicKey)).toBe(true);
  expect(read.checkPrivateKey(createPrivateKey(privateKey))).toBe(true);
  expect(read.publicKey.asymmetricKeyDetails).toMatchObject({ namedCurve: 'prime256v1' });
});

it('ownCertificate is valid for a host name', () => {
  const read = new X509Certificate(ownCertificate('lab.example', 'x', now, randomBytes).certificate);
  expect(read.checkHost('lab.example')).toBe('lab.example');
  expect(read.checkHost('other.example')).toBeUndefined();
});

it('ownCertificate is valid from one hour ago for 90 days', () => {
  const read = new X509Certificate(ownCertificate('192.0.2.7', 'x', now, randomBytes).certificate);
  expect(new Date(read.validFrom).toISOString()).toBe('2031-05-06T06:08:09.000Z');
  expect(new Date(read.validTo).toISOString()).toBe('2031-08-04T07:08:09.000Z');
});

it('ownCertificate has correct dates after 2049 and at the Unix epoch', () => {
  expect(
    new Date(
      new X509Certificate(ownCertificate('192.0.2.7', 'x', Date.parse('2060-01-01T00:00:00Z'), randomBytes).certificate).validTo,
    ).getUTCFullYear(),
  ).toBe(2060);
  expect(new Date(new X509Certificate(ownCertificate('192.0.2.7', 'x', 0, randomBytes).certificate).validTo).getUTCFullYear()).toBe(1970);
});

it('ownCertificate has a positive serial number from the random bytes', () => {
  const read = new X509Certificate(ownCertificate('192.0.2.7', 'x', now, () => Buffer.alloc(16, 0xff)).certificate);
  expect(read.serialNumber).toBe(`7F${'FF'.repeat(15)}`);
});

it.each([
  ['2031-05-06T07:08:09Z', '170d3331303530363036303830395a'],
  ['2050-01-01T00:59:59Z', '170d3439313233313233353935395a'],
  ['2050-01-01T01:00:00Z', '180f32303530303130313030303030305a'],
])('ownCertificate at %s encodes the start of its validity as UTCTime or, from 2050, as GeneralizedTime', (from, hex) => {
  const { certificate } = ownCertificate('192.0.2.7', 'x', Date.parse(from), randomBytes);
  expect(new X509Certificate(certificate).raw.toString('hex')).toContain(hex);
});
