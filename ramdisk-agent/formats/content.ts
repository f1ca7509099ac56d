/** The content of an image file that may be compressed as a whole. */
import { AgentError } from '../../model/agent/errors';
import { reasonOf } from '../../model/errors';
import { unpack } from '../../wire/compression/unpack';
import { WRAPPER_LENGTH, wrapperOf, type Wrapper } from '../../wire/images/inspection';

interface Unpacking {
  /** False: [conductor]disable_zstandard_decompression. */
  readonly allowsZstd: boolean;
  /** Bytes of content after which the file is a bomb: its format may ignore them, so that no writer complains. */
  readonly most: number;
}
interface Content {
  readonly wrapper: Wrapper | undefined;
  readonly chunks: AsyncIterable<Buffer>;
}

async function* continued(first: Buffer, rest: AsyncIterator<Buffer>): AsyncGenerator<Buffer> {
  try {
    if (first.length > 0) yield first;
    for (let next = await rest.next(); !next.done; next = await rest.next()) yield next.value;
  } finally {
    await rest.return?.();
  }
}

async function* unpacked(chunks: AsyncIterable<Buffer>, wrapper: Wrapper, most: number): AsyncGenerator<Buffer> {
  let size = 0;
  try {
    for await (const chunk of unpack(chunks, wrapper)) {
      size += chunk.length;
      if (size > most) throw new AgentError('InvalidImage', `Security: the image unpacks to more than ${most} bytes`);
      yield chunk;
    }
  } catch (error) {
    if (error instanceof AgentError) throw error;
    // What arrived may be damaged, so the download is repeated.
    throw new AgentError('ImageDownloadError', `Unpacking the image (${wrapper}) failed: ${reasonOf(error)}`, { cause: error });
  }
}

/** Unpacks a file that begins as a compressed one does. Throws AgentError. */
export async function contentOf(chunks: AsyncIterable<Buffer>, { allowsZstd, most }: Unpacking): Promise<Content> {
  const rest = chunks[Symbol.asyncIterator]();
  let first: Buffer = Buffer.alloc(0);
  while (first.length < WRAPPER_LENGTH) {
    const next = await rest.next();
    if (next.done) break;
    first = first.length === 0 ? next.value : Buffer.concat([first, next.value]);
  }
  const wrapper = wrapperOf(first);
  const all = continued(first, rest);
  if (wrapper === undefined) return { wrapper, chunks: all };
  if (wrapper === 'zstd' && !allowsZstd)
    throw new AgentError('InvalidImage', 'The image is compressed with zstd, and [conductor]disable_zstandard_decompression is set');
  return { wrapper, chunks: unpacked(all, wrapper, most) };
}
