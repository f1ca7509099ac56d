/** The authentication code of a packet of IPMI 1.5 (§22.17.1). */
import { createHash } from 'node:crypto';
import { AUTHENTICATION_TYPE } from './codec';

/** @param password in 16 bytes. @returns nothing for type none and for unknown types */
export function lanCode(
  type: number,
  password: Buffer,
  { sessionId, sequence, payload }: { readonly sessionId: number; readonly sequence: number; readonly payload: Buffer },
): Buffer {
  if (type === AUTHENTICATION_TYPE.password) return password;
  if (type !== AUTHENTICATION_TYPE.md5) return Buffer.alloc(0);
  const numbers = Buffer.alloc(8);
  numbers.writeUInt32LE(sessionId);
  numbers.writeUInt32LE(sequence, 4);
  return createHash('md5')
    .update(Buffer.concat([password, numbers.subarray(0, 4), payload, numbers.subarray(4), password]))
    .digest();
}
