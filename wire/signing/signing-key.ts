/** The key with which a site signs documents: a PEM file with a private key, ECDSA P-256 or Ed25519. */
import { createHash, createPrivateKey, createPublicKey, generateKeyPairSync, sign, verify, type KeyObject } from 'node:crypto';
import { link, mkdir, open, readFile, unlink } from 'node:fs/promises';
import { dirname } from 'node:path';

/** Far more than a key has. */
const MAX_FILE = 16 * 1024;
const CURVES = ['prime256v1'];
/** The digest that the signature needs; null: the algorithm has its own (RFC 8032). Undefined: another kind of key. */
function digestOf({ asymmetricKeyType: type, asymmetricKeyDetails: details }: KeyObject): 'sha256' | null | undefined {
  if (type === 'ed25519') return null;
  return type === 'ec' && CURVES.includes(details?.namedCurve ?? '') ? 'sha256' : undefined;
}
/** @throws Error for the operator */
function digestNeeded(key: KeyObject): 'sha256' | null {
  const digest = digestOf(key);
  if (digest === undefined) throw new Error('the key is neither ECDSA P-256 nor Ed25519');
  return digest;
}

interface SigningKey {
  /** PEM. */
  readonly publicKey: string;
  /** Of the public key: SHA-256 of its DER form (SubjectPublicKeyInfo), in hexadecimal. */
  readonly fingerprint: string;
  /** Base64; of ECDSA in DER, as openssl has it. */
  readonly sign: (text: string) => string;
}

const publicPem = (key: KeyObject): string => key.export({ type: 'spki', format: 'pem' }).toString();
const fingerprintOf = (key: KeyObject): string =>
  createHash('sha256')
    .update(key.export({ type: 'spki', format: 'der' }))
    .digest('hex');

/** Creates the file if it is missing. Of several processes that do so at once, one wins. */
async function create(path: string, random: (bytes: number) => Buffer): Promise<void> {
  await mkdir(dirname(path), { recursive: true });
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'prime256v1' });
  const temporary = `${path}.${random(6).toString('hex')}`;
  const file = await open(temporary, 'wx', 0o600);
  try {
    await file.writeFile(privateKey.export({ type: 'pkcs8', format: 'pem' }));
    await file.sync();
  } finally {
    await file.close();
  }
  try {
    await link(temporary, path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  } finally {
    await unlink(temporary);
  }
}

async function readKey(path: string): Promise<SigningKey> {
  const file = await open(path, 'r');
  let pem: Buffer;
  try {
    if ((await file.stat()).size > MAX_FILE) throw new Error(`it has more than ${MAX_FILE} bytes`);
    pem = await file.readFile();
  } finally {
    await file.close();
  }
  const key = createPrivateKey(pem);
  const digest = digestNeeded(key);
  const shown = createPublicKey(key);
  return {
    publicKey: publicPem(shown),
    fingerprint: fingerprintOf(shown),
    sign: (text) => sign(digest, Buffer.from(text), key).toString('base64'),
  };
}

/**
 * The key in a file.
 * @param random for the name of a temporary file; absent: a missing file is an error
 * @throws Error for the operator, without anything of the file
 */
export async function signingKey(path: string, random?: (bytes: number) => Buffer): Promise<SigningKey> {
  try {
    return await readKey(path).catch(async (error: unknown) => {
      if (!random || (error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
      await create(path, random);
      return readKey(path);
    });
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    const reason = code?.startsWith('ERR_OSSL') ? 'it has no private key in PEM' : message;
    throw new Error(`the signing key ${path} cannot be used: ${reason}`, { cause: error });
  }
}

const MAX_SIGNATURE = 512;
/** A public key in PEM: its fingerprint, and the check of a signature in Base64. @throws Error for something else */
export function verifyingKey(pem: string): { readonly fingerprint: string; readonly signed: (text: string, signature: string) => boolean } {
  const key = createPublicKey(pem);
  const digest = digestNeeded(key);
  return {
    fingerprint: fingerprintOf(key),
    signed: (text, signature) =>
      signature.length <= MAX_SIGNATURE && verify(digest, Buffer.from(text), key, Buffer.from(signature, 'base64')),
  };
}
/** Reads a file with a public key. @throws Error for the operator */
export const readVerifyingKey = async (path: string): Promise<ReturnType<typeof verifyingKey>> =>
  verifyingKey(await readFile(path, 'utf8'));
