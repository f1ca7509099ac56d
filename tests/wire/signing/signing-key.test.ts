import { execFileSync } from 'node:child_process';
import { generateKeyPairSync, randomBytes, type KeyObject } from 'node:crypto';
import { mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { readVerifyingKey, signingKey, verifyingKey } from '../../../wire/signing/signing-key';

const folder = mkdtempSync(join(tmpdir(), 'bloomery-signing-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const at = (name: string): string => join(folder, name);
const TEXT = '{\n  "naïve": "✓"\n}\n';
const keyFile = (name: string, { privateKey }: { readonly privateKey: KeyObject }): string => {
  writeFileSync(at(name), privateKey.export({ type: 'pkcs8', format: 'pem' }), { mode: 0o600 });
  return at(name);
};

it.each([
  [
    'P-256',
    () => generateKeyPairSync('ec', { namedCurve: 'prime256v1' }),
    ['dgst', '-sha256', '-verify', 'pem', '-signature', 'sig', 'doc'],
  ],
  [
    'Ed25519',
    () => generateKeyPairSync('ed25519'),
    ['pkeyutl', '-verify', '-pubin', '-inkey', 'pem', '-rawin', '-in', 'doc', '-sigfile', 'sig'],
  ],
] as const)('openssl verifies what a key of %s has signed', async (name, make, words) => {
  const key = await signingKey(keyFile(`key-${name}`, make()));
  const signature = key.sign(TEXT);
  writeFileSync(at('doc'), TEXT);
  writeFileSync(at('sig'), Buffer.from(signature, 'base64'));
  writeFileSync(at('pem'), key.publicKey);
  expect(execFileSync('openssl', [...words], { cwd: folder, encoding: 'utf8' })).toMatch(
    /^(?:Verified OK|Signature Verified Successfully)\n$/,
  );
  const own = await readVerifyingKey(at('pem'));
  expect(own.fingerprint).toBe(key.fingerprint);
  expect(own.signed(TEXT, signature)).toBe(true);
  expect(own.signed(`${TEXT} `, signature)).toBe(false);
  expect(own.signed(TEXT, 'no signature')).toBe(false);
  expect(own.signed(TEXT, signature.repeat(10))).toBe(false);
  const der = execFileSync('openssl', ['pkey', '-pubin', '-in', 'pem', '-outform', 'DER'], { cwd: folder });
  expect(execFileSync('sha256sum', { input: der, encoding: 'utf8' }).slice(0, 64)).toBe(key.fingerprint);
});

it('makes a key that only its user may read, once for all who ask at the same time', async () => {
  const path = join(folder, 'state', 'erasure-key.pem');
  const made = await Promise.all(Array.from({ length: 8 }, () => signingKey(path, randomBytes)));
  expect(new Set(made.map(({ fingerprint }) => fingerprint)).size).toBe(1);
  expect(statSync(path).mode & 0o777).toBe(0o600);
  expect(readdirSync(join(folder, 'state'))).toEqual(['erasure-key.pem']);
});

it.each<[string, string | Buffer | undefined, RegExp]>([
  ['a file that is missing', undefined, /no such file/],
  ['a file without a key', 'hello', /it has no private key in PEM/],
  [
    'a key of another kind',
    generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey.export({ type: 'pkcs8', format: 'pem' }),
    /neither ECDSA P-256 nor Ed25519/,
  ],
  [
    'a key of another curve',
    generateKeyPairSync('ec', { namedCurve: 'secp384r1' }).privateKey.export({ type: 'pkcs8', format: 'pem' }),
    /neither ECDSA/,
  ],
  ['a file of megabytes', 'x'.repeat(2 ** 21), /more than 16384 bytes/],
])('refuses %s, and tells nothing of the file', async (_, content, reason) => {
  const path = at('refused');
  rmSync(path, { force: true });
  if (content !== undefined) writeFileSync(path, content);
  const refused: unknown = await signingKey(path).catch((error: unknown) => error);
  expect((refused as Error).message).toMatch(reason);
  expect((refused as Error).message).toContain(`the signing key ${path} cannot be used`);
  expect((refused as Error).message).not.toContain('hello');
});

it('refuses a public key of another kind', () => {
  const { publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
  expect(() => verifyingKey(publicKey.export({ type: 'spki', format: 'pem' }).toString())).toThrow('neither ECDSA P-256 nor Ed25519');
});
