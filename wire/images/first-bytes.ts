/** Reads a part of an image from the answer of a server that may send more, or all. */

interface Answered {
  readonly status: number;
  readonly body: AsyncIterable<unknown>;
}
/** The header field that asks for a part. */
export const rangeOf = (offset: number, length: number): string => `bytes=${offset}-${offset + length - 1}`;
/**
 * The bytes from the answer to a request for this range; fewer at the file's end. The caller destroys the body. Throws the body's error, and an
 * Error for a server that cannot send a part.
 */
export async function partIn({ status, body }: Answered, offset: number, length: number): Promise<Buffer> {
  // RFC 9110 §15.5.17: the file has no such bytes.
  if (status === 416) return Buffer.alloc(0);
  if (status !== 206 && (status !== 200 || offset > 0)) throw new Error(`HTTP ${status} in response to a request for a range`);
  return firstBytes(body, length);
}

/** The first bytes, fewer if the body ends before. The rest stays unread. */
async function firstBytes(body: AsyncIterable<unknown>, length: number): Promise<Buffer> {
  const parts: Uint8Array[] = [];
  let size = 0;
  for await (const part of body as AsyncIterable<Uint8Array>) {
    parts.push(part);
    size += part.length;
    if (size >= length) break;
  }
  return Buffer.concat(parts).subarray(0, length);
}
