/** Cipher suites of RMCP+ as a table, their keys, and sealing packets (IPMI 2.0 §13.28–13.33, table 22-20). */
import { createCipheriv, createDecipheriv, createHash, createHmac, timingSafeEqual } from 'node:crypto';
import { encodeRmcpPlus, uint32, type Algorithms, type Packet, type Rakp1, type SessionHeader } from './codec';

/** The parts of a cipher suite. Hash names are node:crypto's; null: none. Lengths in bytes. */
export interface CipherSuite extends Algorithms {
  readonly hash: 'sha1' | 'md5' | 'sha256' | null;
  /** Length of the integrity check value in RAKP 4. */
  readonly checkLength: number;
  /** Length of each packet's AuthCode; 0: packets are not signed. */
  readonly signatureLength: number;
  /** The AuthCode is a plain MD5 over password, packet and password, as in IPMI 1.5, instead of an HMAC with K1 (§13.28.4). */
  readonly signsWithPassword?: true;
  readonly encrypts: boolean;
}
const NONE = { authentication: 0, hash: null, checkLength: 0 } as const;
const SHA1 = { authentication: 1, hash: 'sha1', checkLength: 12 } as const;
const MD5 = { authentication: 2, hash: 'md5', checkLength: 16 } as const;
const SHA256 = { authentication: 3, hash: 'sha256', checkLength: 16 } as const;
const UNSIGNED = { integrity: 0, signatureLength: 0 } as const;
const SHA1_96 = { integrity: 1, signatureLength: 12 } as const;
const HMAC_MD5_128 = { integrity: 2, signatureLength: 16 } as const;
const MD5_128 = { integrity: 3, signatureLength: 16, signsWithPassword: true } as const;
const SHA256_128 = { integrity: 4, signatureLength: 16 } as const;
const CLEAR = { confidentiality: 0, encrypts: false } as const;
const AES = { confidentiality: 1, encrypts: true } as const;

/** Suite number → row (table 22-20). The xRC4 suites (4, 5, 9, 10, 13, 14, 18, 19) are left out: OpenSSL 3 has no RC4. */
export const CIPHER_SUITES: Readonly<Record<number, CipherSuite>> = {
  0: { ...NONE, ...UNSIGNED, ...CLEAR },
  1: { ...SHA1, ...UNSIGNED, ...CLEAR },
  2: { ...SHA1, ...SHA1_96, ...CLEAR },
  3: { ...SHA1, ...SHA1_96, ...AES },
  6: { ...MD5, ...UNSIGNED, ...CLEAR },
  7: { ...MD5, ...HMAC_MD5_128, ...CLEAR },
  8: { ...MD5, ...HMAC_MD5_128, ...AES },
  11: { ...MD5, ...MD5_128, ...CLEAR },
  12: { ...MD5, ...MD5_128, ...AES },
  15: { ...SHA256, ...UNSIGNED, ...CLEAR },
  16: { ...SHA256, ...SHA256_128, ...CLEAR },
  17: { ...SHA256, ...SHA256_128, ...AES },
};
export const sameAlgorithms = (a: Algorithms, b: Algorithms): boolean =>
  a.authentication === b.authentication && a.integrity === b.integrity && a.confidentiality === b.confidentiality;

const keyed = (suite: CipherSuite, key: Buffer, ...parts: readonly Buffer[]): Buffer =>
  suite.hash === null ? Buffer.alloc(0) : createHmac(suite.hash, key).update(Buffer.concat(parts)).digest();
/** Padded with zeros, or cut. */
export const padded = (bytes: Buffer, length: number): Buffer => Buffer.concat([bytes], length);
/** Constant in time for equal lengths. */
export const sameBytes = (a: Buffer, b: Buffer): boolean => a.length === b.length && timingSafeEqual(a, b);

/** What both sides know after RAKP 2. The codes of the handshake are made from it. */
export interface Handshake {
  readonly suite: CipherSuite;
  /** The user's password as bytes (K_uid; HMAC pads it with zeros itself). */
  readonly password: Buffer;
  /** K_g; absent: the password replaces it (one-key login, §13.31). */
  readonly kg?: Buffer | undefined;
  readonly consoleId: number;
  readonly bmcId: number;
  readonly consoleRandom: Buffer;
  readonly bmcRandom: Buffer;
  readonly guid: Buffer;
  readonly role: Rakp1['role'];
  readonly username: Buffer;
}
const user = ({ role, username }: Handshake): Buffer => Buffer.concat([Buffer.from([role, username.length]), username]);

/** The BMC's proof that it knows the password (§13.21). */
export const rakp2Code = (handshake: Handshake): Buffer =>
  keyed(
    handshake.suite,
    handshake.password,
    uint32(handshake.consoleId),
    uint32(handshake.bmcId),
    handshake.consoleRandom,
    handshake.bmcRandom,
    handshake.guid,
    user(handshake),
  );
/** The console's proof that it knows the password (§13.22). */
export const rakp3Code = (handshake: Handshake): Buffer =>
  keyed(handshake.suite, handshake.password, handshake.bmcRandom, uint32(handshake.consoleId), user(handshake));
const sessionIntegrityKey = (handshake: Handshake): Buffer => {
  const kg = handshake.kg?.length ? handshake.kg : handshake.password;
  return keyed(handshake.suite, kg, handshake.consoleRandom, handshake.bmcRandom, user(handshake));
};
/** The proof that both have the same session integrity key (§13.23). */
export const rakp4Code = (handshake: Handshake): Buffer =>
  keyed(handshake.suite, sessionIntegrityKey(handshake), handshake.consoleRandom, uint32(handshake.bmcId), handshake.guid).subarray(
    0,
    handshake.suite.checkLength,
  );

export interface SessionKeys {
  readonly suite: CipherSuite;
  /** K1; or the password in 20 bytes when the suite signs with it. */
  readonly integrity: Buffer;
  /** 16 bytes. */
  readonly confidentiality: Buffer;
}
/** K1 and K2 (§13.32). The constants are 20 bytes whatever the hash. */
export function sessionKeys(handshake: Handshake): SessionKeys {
  const key = sessionIntegrityKey(handshake);
  return {
    suite: handshake.suite,
    integrity: handshake.suite.signsWithPassword ? padded(handshake.password, 20) : keyed(handshake.suite, key, Buffer.alloc(20, 0x01)),
    confidentiality: keyed(handshake.suite, key, Buffer.alloc(20, 0x02)).subarray(0, 16),
  };
}

/** The AuthCode of a packet. */
function signature({ suite, integrity }: SessionKeys, signed: Buffer): Buffer {
  const code = suite.signsWithPassword
    ? createHash('md5').update(integrity).update(signed).update(integrity).digest()
    : keyed(suite, integrity, signed);
  return code.subarray(0, suite.signatureLength);
}

const AES_BLOCK = 16;
/** AES-CBC-128 payload: initialization vector, then the data padded with 1, 2, 3, … and the pad's length (§13.29). */
function encrypt(key: Buffer, payload: Buffer, random: (bytes: number) => Buffer): Buffer {
  const pad = (AES_BLOCK - ((payload.length + 1) % AES_BLOCK)) % AES_BLOCK;
  const vector = random(AES_BLOCK);
  const cipher = createCipheriv('aes-128-cbc', key, vector).setAutoPadding(false);
  const trailer = Buffer.from([...Array.from({ length: pad }, (_, i) => i + 1), pad]);
  return Buffer.concat([vector, cipher.update(payload), cipher.update(trailer), cipher.final()]);
}
function decrypt(key: Buffer, bytes: Buffer): Buffer | undefined {
  if (bytes.length < 2 * AES_BLOCK || bytes.length % AES_BLOCK !== 0) return undefined;
  const cipher = createDecipheriv('aes-128-cbc', key, bytes.subarray(0, AES_BLOCK)).setAutoPadding(false);
  const clear = Buffer.concat([cipher.update(bytes.subarray(AES_BLOCK)), cipher.final()]);
  const pad = clear[clear.length - 1]!;
  // The pad's bytes are not checked: some BMCs fill it with zeros.
  return pad < AES_BLOCK ? clear.subarray(0, clear.length - 1 - pad) : undefined;
}

/** Makes a packet of a payload, encrypted and signed as its suite says. */
export function seal(
  keys: SessionKeys,
  header: Pick<SessionHeader, 'payloadType' | 'sessionId' | 'sequence'>,
  payload: Buffer,
  random: (bytes: number) => Buffer,
): Buffer {
  const { suite } = keys;
  return encodeRmcpPlus(
    { ...header, encrypted: suite.encrypts, authenticated: suite.signatureLength > 0 },
    suite.encrypts ? encrypt(keys.confidentiality, payload, random) : payload,
    (signed) => signature(keys, signed),
  );
}
/** @returns the payload; undefined when the protection differs from the suite, or AuthCode or padding is wrong */
export function unseal(keys: SessionKeys, packet: Packet & { readonly kind: 'rmcp+' }): Buffer | undefined {
  const { suite } = keys;
  if (packet.encrypted !== suite.encrypts || packet.authenticated !== suite.signatureLength > 0) return undefined;
  if (suite.signatureLength > 0) {
    const end = packet.session.length - suite.signatureLength;
    if (packet.trailer.length < suite.signatureLength + 2 || packet.session[end - 1] !== 0x07) return undefined;
    if (!sameBytes(signature(keys, packet.session.subarray(0, end)), packet.session.subarray(end))) return undefined;
  }
  return suite.encrypts ? decrypt(keys.confidentiality, packet.payload) : packet.payload;
}

/** The session sequence numbers that were received (§6.12.13): the highest, and a bit for each of the 15 below it. */
export interface SequenceWindow {
  readonly highest: number;
  /** Bit n: `highest - n` was received. */
  readonly received: number;
}
export const newWindow: SequenceWindow = { highest: 0, received: 0 };
/** @returns the window with this number; undefined: a duplicate, or outside the window (15 below to 16 above) */
export function acceptSequence({ highest, received }: SequenceWindow, sequence: number): SequenceWindow | undefined {
  if (sequence === 0) return undefined;
  // The other side chooses the first number.
  if (highest === 0) return { highest: sequence, received: 1 };
  const ahead = (sequence - highest) | 0;
  if (ahead > 16 || ahead < -15) return undefined;
  if (ahead > 0) return { highest: sequence, received: ((received << ahead) | 1) & 0xffff };
  return (received >> -ahead) & 1 ? undefined : { highest, received: received | (1 << -ahead) };
}
/** 32 bits, and never 0, which means "outside a session". */
export const nextSequence = (sequence: number): number => (sequence >= 0xffffffff ? 1 : sequence + 1);
