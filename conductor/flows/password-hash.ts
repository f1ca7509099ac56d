/**
 * crypt(3) of the SHA family, in the form that /etc/shadow has (`$5$salt$…`, `$6$salt$…`): what a rescue system sets as root's password.
 * After "Unix crypt using SHA-256 and SHA-512" by Ulrich Drepper, version 0.6; 5000 rounds.
 */
import { createHash } from 'node:crypto';

type HashAlgorithm = 'sha256' | 'sha512';
const ROUNDS = 5000;
const SALT_LENGTH = 16;
const ALPHABET = './0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';

/** Algorithm → prefix, length of the digest, and how its bytes are taken three by three (clause 22). */
const FORMS = {
  sha256: { prefix: '5', length: 32, next: ([a, b, c]: Triple): Triple => [c + 1, a + 1, b + 1], last: [-1, 31, 30] },
  sha512: { prefix: '6', length: 64, next: ([a, b, c]: Triple): Triple => [b + 1, c + 1, a + 1], last: [-1, -1, 63] },
} as const;
type Triple = readonly [number, number, number];

const digest = (algorithm: HashAlgorithm, ...parts: readonly Buffer[]): Buffer =>
  createHash(algorithm).update(Buffer.concat(parts)).digest();
/** Repeats the bytes up to this length. */
const repeated = (bytes: Buffer, length: number): Buffer =>
  Buffer.concat(Array.from({ length: Math.ceil(length / bytes.length) }, () => bytes)).subarray(0, length);

/** Three bytes as four letters, fewer at the end. */
function letters(bytes: Buffer, [a, b, c]: Triple): string {
  const value = ((bytes[a] ?? 0) << 16) | ((bytes[b] ?? 0) << 8) | bytes[c]!;
  const count = a >= 0 ? 4 : b >= 0 ? 3 : 2;
  return Array.from({ length: count }, (_, index) => ALPHABET[(value >> (6 * index)) & 0x3f]).join('');
}

/** @internal @param salt up to 16 characters of `./0-9A-Za-z` */
export function shaCrypt(password: string, salt: string, algorithm: HashAlgorithm): string {
  const { prefix, length, next, last } = FORMS[algorithm];
  const key = Buffer.from(password);
  const salted = Buffer.from(salt);
  const sum = (...parts: readonly Buffer[]): Buffer => digest(algorithm, ...parts);
  // Clauses 1 to 12.
  const alternate = sum(key, salted, key);
  const bits = Array.from(key.length.toString(2))
    .reverse()
    .filter(() => key.length > 0);
  let bytes = sum(key, salted, repeated(alternate, key.length), ...bits.map((bit) => (bit === '1' ? alternate : key)));
  // Clauses 13 to 20.
  const p = repeated(sum(...Array.from({ length: key.length }, () => key)), key.length);
  const s = repeated(sum(...Array.from({ length: 16 + bytes[0]! }, () => salted)), salted.length);
  // Clause 21.
  for (let round = 0; round < ROUNDS; round++) {
    const odd = round % 2 === 1;
    bytes = sum(odd ? p : bytes, round % 3 === 0 ? EMPTY : s, round % 7 === 0 ? EMPTY : p, odd ? bytes : p);
  }
  const third = Math.floor(length / 3);
  let triple: Triple = [0, third, 2 * third];
  let text = '';
  for (let index = 0; index < third; index++) {
    text += letters(bytes, triple);
    triple = next(triple);
  }
  return `$${prefix}$${salt}$${text}${letters(bytes, last)}`;
}
const EMPTY = Buffer.alloc(0);

export const hashPassword = (password: string, algorithm: HashAlgorithm, random: (bytes: number) => Buffer): string =>
  shaCrypt(password, [...random(SALT_LENGTH)].map((byte) => ALPHABET[byte & 0x3f]).join(''), algorithm);
