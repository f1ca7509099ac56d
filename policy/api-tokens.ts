/**
 * Tokens of the API for machines (`bloomery token`): `blm_`, 24 random bytes, and a code that only this installation can compute. Made-up
 * tokens are therefore refused without a query. The database has their hashes only.
 */
import { createHash, createHmac, timingSafeEqual } from 'node:crypto';

export const API_TOKEN_PREFIX = 'blm_';
/** The name of the shared secret that the codes are computed with. */
export const API_TOKEN_KEY = 'api-token-key';
/** Base64url without padding. */
const API_TOKEN = /^blm_[\w-]{48}$/;
const RANDOM_BYTES = 24;
const CODE_BYTES = 12;

const codeOf = (random: Buffer, key: string): Buffer =>
  createHmac('sha256', key).update('api token').update(random).digest().subarray(0, CODE_BYTES);

export function makeApiToken(key: string, random: (bytes: number) => Buffer): string {
  const bytes = random(RANDOM_BYTES);
  return API_TOKEN_PREFIX + Buffer.concat([bytes, codeOf(bytes, key)]).toString('base64url');
}
/** Whether this installation made the token. It may be revoked. */
export function isApiToken(text: string, key: string): boolean {
  if (!API_TOKEN.test(text)) return false;
  const bytes = Buffer.from(text.slice(API_TOKEN_PREFIX.length), 'base64url');
  return timingSafeEqual(codeOf(bytes.subarray(0, RANDOM_BYTES), key), bytes.subarray(RANDOM_BYTES));
}
/** The database stores only this hash of a token. A token has enough random bytes for a hash without salt. */
export const apiTokenHash = (token: string): string => createHash('sha256').update(token).digest('hex');
