/** The C library libzstd (RFC 8878), by koffi: Node 20 has no zstd. The calls of `compress` run in Node's thread pool. */
import { promisify } from 'node:util';

export interface Zstd {
  /**
   * Resolves with the bytes that it wrote to the target; undefined: they do not fit. Neither buffer may change meanwhile.
   * @param level of the library: negative ones are faster than 1, and leave more bytes
   */
  compress(source: Buffer, target: Buffer, level: number): Promise<number | undefined>;
  /** Fills the target, never more. Bytes that follow the last frame are ignored. Throws an Error for content that is not zstd or too short. */
  decompress(source: Buffer, target: Buffer): void;
}

const LIBRARY = 'libzstd.so.1';
/** Calls at a time. koffi fails at 256, and each has a context of its own, which takes memory that is slow to get. */
const MOST_CALLS = 64;
const CONTEXT_ARGS = 'void *, void *, size_t, const void *, size_t';
/** A cluster is one frame, or a few. */
const MAX_FRAMES = 64;

type Context = unknown;
/** Sizes are declared as signed numbers: an error is negative. */
type Sized = (context: Context, target: Buffer, room: number, source: Buffer, length: number, level?: number) => number;
interface Asynchronous {
  readonly async: (...args: unknown[]) => void;
}

async function load(): Promise<Zstd> {
  const { default: koffi } = await import('koffi');
  const library = koffi.load(LIBRARY);
  const newCompressor = library.func('void *ZSTD_createCCtx()') as () => Context;
  const newDecompressor = library.func('void *ZSTD_createDCtx()') as () => Context;
  const compressor = library.func(`int64_t ZSTD_compressCCtx(${CONTEXT_ARGS}, int)`);
  const compress = promisify((compressor as unknown as Asynchronous).async) as (...args: Parameters<Sized>) => Promise<number>;
  const decompress = library.func(`int64_t ZSTD_decompressDCtx(${CONTEXT_ARGS})`) as Sized;
  const frameSize = library.func('int64_t ZSTD_findFrameCompressedSize(const void *, size_t)') as (
    source: Buffer,
    length: number,
  ) => number;
  const unused: Context[] = [];
  const waiting: ((context: Context) => void)[] = [];
  let contexts = 0;
  const take = async (): Promise<Context> => {
    if (unused.length > 0) return unused.pop();
    if (contexts === MOST_CALLS) return new Promise((resolve) => waiting.push(resolve));
    contexts++;
    return newCompressor();
  };
  const giveBack = (context: Context): void => {
    const next = waiting.shift();
    if (next) next(context);
    else unused.push(context);
  };
  let decompressing: Context;
  return {
    async compress(source, target, level) {
      const context = await take();
      try {
        const written = await compress(context, target, target.length, source, source.length, level);
        return written < 0 ? undefined : written;
      } finally {
        giveBack(context);
      }
    },
    decompress(source, target) {
      decompressing ??= newDecompressor();
      let [from, to] = [0, 0];
      for (let frames = 0; to < target.length; frames++) {
        const rest = source.subarray(from);
        const length = frameSize(rest, rest.length);
        if (length < 0 || frames === MAX_FRAMES) throw new Error('there is no frame of zstd');
        const room = target.subarray(to);
        const written = decompress(decompressing, room, room.length, rest, length);
        if (written < 0) throw new Error('a frame of zstd is damaged, or has more than its room');
        from += length;
        to += written;
      }
    },
  };
}

let loaded: Promise<Zstd | undefined> | undefined;
/** Undefined: this system has no libzstd. */
export const openZstd = (): Promise<Zstd | undefined> => (loaded ??= load().catch(() => undefined));
