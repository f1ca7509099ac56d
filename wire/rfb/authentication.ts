/** VNC Authentication (RFC 6143 §7.2.2). */
import { createCipheriv } from 'node:crypto';

/** Bytes of the challenge, and of the response to it. */
export const CHALLENGE_BYTES = 16;
const KEY_BYTES = 8;
/** The lowest bit of each byte is the first of the key: VNC servers read the bytes of the password in this order. */
const reversed = (byte: number): number => {
  let out = 0;
  for (let bit = 0; bit < 8; bit++) if (byte & (1 << bit)) out |= 0x80 >> bit;
  return out;
};

/**
 * The challenge, encrypted by DES with the password as the key. Only its first eight bytes count.
 * OpenSSL 3 has DES in its legacy provider only. Triple DES with three equal keys is DES.
 */
export function vncResponse(password: string, challenge: Buffer): Buffer {
  const key = Buffer.alloc(KEY_BYTES);
  key.set(Buffer.from(password).subarray(0, KEY_BYTES).map(reversed));
  const cipher = createCipheriv('des-ede3-ecb', Buffer.concat([key, key, key]), null).setAutoPadding(false);
  return Buffer.concat([cipher.update(challenge), cipher.final()]);
}
