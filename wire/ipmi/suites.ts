/** Cipher suites of RMCP+ as rows, the keys made from them, and sealing packets with those keys (IPMI 2.0 §13.28–13.33, table 22-20). */
import { createCipheriv, createDecipheriv, createHash, createHmac, timingSafeEqual } from 'node:crypto';
import { encodeRmcpPlus, type Algorithms, type Packet, type Rakp1, type SessionHeader } from './codec';

/** What a cipher suite is made of. Hash names are node:crypto's; null: none. Lengths in bytes. */
export interface CipherSuite extends Algorithms {
  readonly hash: 'sha1' | 'md5' | 'sha256' | null;
  /** Of the integrity check value in RAKP 4. */
  readonly checkLength: number;
  /** Of the AuthCode of each packet; 0: packets are not signed. */
  readonly signatureLength: number;
  /** The AuthCode is a plain MD5 over password, packet and password, as IPMI 1.5 has it, instead of an HMAC with K1 (§13.28.4). */
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

/** Suite number → row (table 22-20). The xRC4 suites (4, 5, 9, 10, 13, 14, 18, 19) are left out: OpenSSL 3 has no RC4 any more. */
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
const uint32 = (value: number): Buffer => {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value);
  return bytes;
};
/** Zeros behind it; what is longer is cut. */
export const padded = (bytes: Buffer, length: number): Buffer => Buffer.concat([bytes], length);
/** Constant in time for equal lengths. */
export const sameBytes = (a: Buffer, b: Buffer): boolean => a.length === b.length && timingSafeEqual(a, b);

/** All that both ends know once RAKP 2 was sent, and what the codes of the handshake are made of. */
export interface Handshake {
  readonly suite: CipherSuite;
  /** The user's password as bytes (K_uid; HMAC pads it with zeros itself). */
  readonly password: Buffer;
  /** K_g; absent: the password takes its place (one-key login, §13.31). */
  readonly kg?: Buffer;
  readonly consoleId: number;
  readonly bmcId: number;
  readonly consoleRandom: Buffer;
  readonly bmcRandom: Buffer;
  readonly guid: Buffer;
  readonly role: Rakp1['role'];
  readonly username: Buffer;
}
const user = ({ role, username }: Handshake): Buffer => Buffer.concat([Buffer.from([role, username.length]), username]);

/** The BMC proves with it that it knows the password (§13.21). */
export const rakp2Code = (it: Handshake): Buffer =>
  keyed(it.suite, it.password, uint32(it.consoleId), uint32(it.bmcId), it.consoleRandom, it.bmcRandom, it.guid, user(it));
/** The console proves with it that it knows the password (§13.22). */
export const rakp3Code = (it: Handshake): Buffer => keyed(it.suite, it.password, it.bmcRandom, uint32(it.consoleId), user(it));
const sessionIntegrityKey = (it: Handshake): Buffer => {
  const kg = it.kg?.length ? it.kg : it.password;
  return keyed(it.suite, kg, it.consoleRandom, it.bmcRandom, user(it));
};
/** Both have the same session integrity key (§13.23). */
export const rakp4Code = (it: Handshake): Buffer =>
  keyed(it.suite, sessionIntegrityKey(it), it.consoleRandom, uint32(it.bmcId), it.guid).subarray(0, it.suite.checkLength);

export interface SessionKeys {
  readonly suite: CipherSuite;
  /** K1; the password in 20 bytes when the suite signs with that. */
  readonly integrity: Buffer;
  /** 16 bytes. */
  readonly confidentiality: Buffer;
}
/** K1 and K2 (§13.32). The constants are 20 bytes whatever the hash. */
export function sessionKeys(it: Handshake): SessionKeys {
  const key = sessionIntegrityKey(it);
  return {
    suite: it.suite,
    integrity: it.suite.signsWithPassword ? padded(it.password, 20) : keyed(it.suite, key, Buffer.alloc(20, 0x01)),
    confidentiality: keyed(it.suite, key, Buffer.alloc(20, 0x02)).subarray(0, 16),
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
  // The bytes of the pad itself are not looked at: some BMCs fill it with zeros.
  return pad < AES_BLOCK ? clear.subarray(0, clear.length - 1 - pad) : undefined;
}

/** A payload as a packet of the session: encrypted and signed as its suite says. */
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
/** @returns the payload; undefined when it is not protected as the suite says, or its AuthCode or padding is wrong */
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

/** Which session sequence numbers came already (§6.12.13): the highest, and which of the 15 below it. */
export interface SequenceWindow {
  readonly highest: number;
  /** Bit n: `highest - n` was seen. */
  readonly seen: number;
}
export const newWindow: SequenceWindow = { highest: 0, seen: 0 };
/** @returns the window with this number in it; undefined: it came already, or lies outside (15 below to 16 above) */
export function acceptSequence({ highest, seen }: SequenceWindow, sequence: number): SequenceWindow | undefined {
  if (sequence === 0) return undefined;
  // Where the other end begins is its own choice.
  if (highest === 0) return { highest: sequence, seen: 1 };
  const ahead = (sequence - highest) | 0;
  if (ahead > 16 || ahead < -15) return undefined;
  if (ahead > 0) return { highest: sequence, seen: ((seen << ahead) | 1) & 0xffff };
  return (seen >> -ahead) & 1 ? undefined : { highest, seen: seen | (1 << -ahead) };
}
/** 32 bits, and never 0, which means "outside a session". */
export const nextSequence = (sequence: number): number => (sequence >= 0xffffffff ? 1 : sequence + 1);
