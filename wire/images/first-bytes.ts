/** Reads a part of an image from the answer of a server that may send more. */

/** The first bytes, fewer if the body ends before. The rest stays unread: the caller destroys the body. Throws the body's error. */
export async function firstBytes(body: AsyncIterable<unknown>, length: number): Promise<Buffer> {
  const parts: Buffer[] = [];
  let size = 0;
  for await (const part of body as AsyncIterable<Buffer>) {
    parts.push(part);
    size += part.length;
    if (size >= length) break;
  }
  return Buffer.concat(parts).subarray(0, length);
}
