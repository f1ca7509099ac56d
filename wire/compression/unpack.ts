/** Whole files that are compressed, as streams. Memory is bounded, whatever the content says; the reader bounds the size. */
import { pipeline, Readable } from 'node:stream';
import { createGunzip } from 'node:zlib';
import { type OpenCodec, openXzCodec, openZstdCodec } from './codec';

type Compression = 'gzip' | 'xz' | 'zstd';

const ROOM = 256 * 2 ** 10;
/** A step that neither takes nor makes anything must not be repeated for ever. */
const MAX_IDLE = 8;

async function* gunzipped(source: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  const gunzip = createGunzip({ chunkSize: ROOM });
  // An error of the source destroys the stream, and the loop throws it.
  pipeline(Readable.from(source, { objectMode: false }), gunzip, () => {});
  for await (const chunk of gunzip) yield chunk as Buffer;
}

const LIBRARIES: Readonly<Record<'xz' | 'zstd', { readonly open: OpenCodec; readonly library: string }>> = {
  xz: { open: openXzCodec, library: 'liblzma' },
  zstd: { open: openZstdCodec, library: 'libzstd' },
};

async function* decoded(source: AsyncIterable<Buffer>, name: 'xz' | 'zstd'): AsyncGenerator<Buffer> {
  const { open, library } = LIBRARIES[name];
  const codec = await open();
  if (!codec) throw new Error(`the image is compressed with ${name}, and this system has no ${library}`);
  let isEnd = true;
  try {
    for await (const chunk of source) {
      let rest = name === 'xz' && isEnd ? withoutPadding(chunk) : chunk;
      for (let idle = 0, isFull = false; rest.length > 0 || isFull;) {
        const room = Buffer.allocUnsafe(ROOM);
        const step = await codec.step(rest, room);
        rest = rest.subarray(step.taken);
        // The end of a frame counts also if nothing of the next one has come.
        if (step.taken > 0 || step.made > 0) isEnd = step.isEnd;
        isFull = step.made === room.length && !step.isEnd;
        idle = step.taken + step.made > 0 ? 0 : idle + 1;
        if (idle === MAX_IDLE) throw new Error(`the ${name} stream is damaged`);
        if (step.made > 0) yield room.subarray(0, step.made);
        if (name === 'xz' && step.isEnd) rest = withoutPadding(rest);
      }
    }
    if (!isEnd) throw new Error(`the ${name} stream is truncated`);
  } finally {
    codec.close();
  }
}
/** Zeros may be between the streams of an xz file, and after the last one (xz file format §2.2). */
function withoutPadding(bytes: Buffer): Buffer {
  let at = 0;
  while (at < bytes.length && bytes[at] === 0) at++;
  return bytes.subarray(at);
}

/** The content of a compressed file. Throws an Error for one that is damaged. */
export const unpack = (source: AsyncIterable<Buffer>, compression: Compression): AsyncGenerator<Buffer> =>
  compression === 'gzip' ? gunzipped(source) : decoded(source, compression);

/** The first bytes of the content, as many as the first bytes of the file have. */
export async function unpackHead(head: Buffer, compression: Compression, length: number): Promise<Buffer> {
  const parts: Buffer[] = [];
  let size = 0;
  // The file goes on behind its head: what is there is good, and its end is missing.
  const content = unpack(only(head), compression);
  try {
    for await (const part of content) {
      parts.push(part);
      size += part.length;
      if (size >= length) break;
    }
  } catch {
    // What came before is the head.
  }
  return Buffer.concat(parts).subarray(0, length);
}
async function* only(bytes: Buffer): AsyncGenerator<Buffer> {
  yield bytes;
}
