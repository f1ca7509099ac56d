/** Decompression in steps by C libraries, which koffi loads: Node 20 has neither xz nor zstd. The calls run in Node's thread pool. */
import { promisify } from 'node:util';

interface Step {
  /** Bytes taken from the input, and written to the room. */
  readonly taken: number;
  readonly made: number;
  /** What was taken ends a frame or a stream: the file may end there, or go on with another. */
  readonly isEnd: boolean;
}
/** Takes some of the input, and fills some of the room. Throws an Error for content that is invalid. */
interface Codec {
  step(input: Buffer, room: Buffer): Promise<Step>;
  close(): void;
}
export type OpenCodec = () => Promise<Codec | undefined>;

/** Memory that the content may ask for: enough for the greatest levels of `xz` and `zstd --long`. */
const MAX_MEMORY = 192 * 2 ** 20;
const WINDOW_LOG = 27;

type Call<R> = (...args: unknown[]) => R;
interface Library {
  readonly address: (bytes: Buffer) => bigint;
  readonly plain: <R>(declaration: string) => Call<R>;
  readonly threaded: <R>(declaration: string) => Call<Promise<R>>;
}
async function openLibrary(name: string): Promise<Library> {
  const { default: koffi } = await import('koffi');
  const library = koffi.load(name);
  return {
    address: (bytes) => koffi.address(bytes),
    plain: (declaration) => library.func(declaration),
    threaded: (declaration) => promisify(library.func(declaration).async) as Call<Promise<never>>,
  };
}
const available = (load: () => Promise<() => Codec>): OpenCodec => {
  let loaded: Promise<(() => Codec) | undefined> | undefined;
  return async () => (await (loaded ??= load().catch(() => undefined)))?.();
};

type Context = unknown;
const WINDOW_LOG_MAX = 100;

/** libzstd (RFC 8878). Undefined: this system has none. */
export const openZstdCodec = available(async () => {
  const { plain, threaded } = await openLibrary('libzstd.so.1');
  const create = plain<Context>('void *ZSTD_createDCtx()');
  const free = plain<number>('size_t ZSTD_freeDCtx(void *)');
  const setParameter = plain<number>('int64_t ZSTD_DCtx_setParameter(void *, int, int)');
  // Sizes are declared as signed numbers: an error is negative.
  const decompress = threaded<number>(
    'int64_t ZSTD_decompressStream_simpleArgs(void *, void *, size_t, void *, const void *, size_t, void *)',
  );
  return () => {
    const context = create();
    setParameter(context, WINDOW_LOG_MAX, WINDOW_LOG);
    const positions = [Buffer.alloc(8), Buffer.alloc(8)] as const;
    return {
      async step(input, room) {
        for (const position of positions) position.fill(0);
        const [made, taken] = positions;
        const left = await decompress(context, room, room.length, made, input, input.length, taken);
        if (left < 0) throw new Error('a frame of zstd is damaged, or needs too much memory');
        return { taken: Number(taken.readBigUInt64LE()), made: Number(made.readBigUInt64LE()), isEnd: left === 0 };
      },
      close: () => void free(context),
    };
  };
});

/** The members of lzma_stream (lzma/base.h), which are pointers and numbers of 8 bytes. */
const [NEXT_IN, AVAIL_IN, NEXT_OUT, AVAIL_OUT, STREAM_LENGTH] = [0, 8, 24, 32, 136] as const;
const [LZMA_OK, LZMA_STREAM_END, LZMA_MEMLIMIT, LZMA_BUF] = [0, 1, 6, 10] as const;
const [RUN, NO_FLAGS] = [0, 0] as const;

/** liblzma. Undefined: this system has none. */
export const openXzCodec = available(async () => {
  const { address, plain, threaded } = await openLibrary('liblzma.so.5');
  const begin = plain<number>('int lzma_stream_decoder(void *, uint64_t, uint32_t)');
  const end = plain<void>('void lzma_end(void *)');
  const decode = threaded<number>('int lzma_code(void *, int)');
  return () => {
    const stream = Buffer.alloc(STREAM_LENGTH);
    let isOpen = false;
    return {
      async step(input, room) {
        if (!isOpen && begin(stream, MAX_MEMORY, NO_FLAGS) !== LZMA_OK) throw new Error('liblzma has no memory');
        isOpen = true;
        const point = (at: number, length: number, bytes: Buffer): void => {
          stream.writeBigUInt64LE(bytes.length === 0 ? 0n : address(bytes), at);
          stream.writeBigUInt64LE(BigInt(bytes.length), length);
        };
        point(NEXT_IN, AVAIL_IN, input);
        point(NEXT_OUT, AVAIL_OUT, room);
        const code = await decode(stream, RUN);
        if (code === LZMA_MEMLIMIT) throw new Error('the xz stream needs too much memory');
        if (code !== LZMA_OK && code !== LZMA_STREAM_END && code !== LZMA_BUF) throw new Error('the xz stream is damaged');
        // The next stream of the file, if there is one, begins anew.
        if (code === LZMA_STREAM_END) isOpen = false;
        return {
          taken: input.length - Number(stream.readBigUInt64LE(AVAIL_IN)),
          made: room.length - Number(stream.readBigUInt64LE(AVAIL_OUT)),
          isEnd: code === LZMA_STREAM_END,
        };
      },
      close: () => end(stream),
    };
  };
});
