/** A request's body: read up to a limit of bytes, and parsed after its values and nesting are counted. */
import type { IncomingMessage } from 'node:http';
import { promisify } from 'node:util';
import { gunzip } from 'node:zlib';
import type { Options } from '../../config/options';
import { Fault, invalid } from '../../model/errors';
import { JSON_LIMITS, JsonLimitError, parseStrictJson, type JsonLimits } from '../../wire/bounded-json';
import { PART_BYTES } from '../../wire/snapshot-files';
import { Unread } from './errors';

export interface BodyLimits {
  /** The most bytes, as sent and after decompression. */
  readonly bytes: number;
  /** What the JSON may have, and whether a machine sends it. */
  readonly json: JsonLimits;
  /** The body is a file: it is not joined, and not parsed. */
  readonly isFile?: boolean;
  /** The path takes large bodies without authentication: those of inspection data, and of parts of snapshots. */
  readonly isPublic: boolean;
}
/** Config drives, inventories and records of recorders have limits of their own. The last row is for all other paths. */
const LIMITS: readonly (readonly [path: RegExp, option: BodySizeOption | number, json: Omit<JsonLimits, 'depth'>])[] = [
  [/\/states\/provision(?:\/[^/]*)?$/, 'api.max_json_body_size_provision', JSON_LIMITS.request],
  [/continue_inspection$/, 'api.max_json_body_size_inspection', JSON_LIMITS.inspection],
  [/\/redfish_events\/[^/]*$/, 'health.max_event_size', JSON_LIMITS.event],
  [/\/hardware$/, 'recorder.max_record_size', JSON_LIMITS.record],
  // Bytes of a part of a snapshot. It is no JSON.
  [/\/parts\/\d{1,15}$/, PART_BYTES, JSON_LIMITS.request],
  [/(?:)/, 'api.max_json_body_size', JSON_LIMITS.request],
];
type BodySizeOption =
  | 'health.max_event_size'
  | 'api.max_json_body_size'
  | 'api.max_json_body_size_provision'
  | 'api.max_json_body_size_inspection'
  | 'recorder.max_record_size';
/** @returns the limits of a path */
export function createBodyLimits(options: Pick<Options, BodySizeOption | 'api.max_json_body_depth'>): (path: string) => BodyLimits {
  const depth = options['api.max_json_body_depth'];
  const rows = LIMITS.map(([pattern, option, json]): readonly [RegExp, BodyLimits] => [
    pattern,
    {
      bytes: typeof option === 'number' ? option : 1024 * options[option],
      json: { ...json, depth },
      isFile: typeof option === 'number',
      isPublic: typeof option === 'number' || option === 'api.max_json_body_size_inspection',
    },
  ]);
  return (path) => rows.find(([pattern]) => pattern.test(path))![1];
}

const tooLarge = (): Unread => new Unread(413, 'Request body is too large. Please contact the service administrator.');

/** The bytes of a body; for a file, in pieces of their own. */
export type Body = Buffer | readonly Buffer[];
export const bytesOf = (body: Body): Buffer => (Buffer.isBuffer(body) ? body : Buffer.concat(body));
export const piecesOf = (body: Body): readonly Buffer[] => (Buffer.isBuffer(body) ? [body] : body);

/** Bytes of the first buffer of a body whose length is unknown. */
const FIRST_BUFFER = 16 * 1024;
/** Bytes on the wire that a body may have in addition to twice its own length: chunks may have long extensions (RFC 9112 §7.1.1). */
const FRAMING_FLOOR = 512 * 1024;
/** Each chunk is work, however few bytes it has. Any body may have this many chunks, and one more for every BYTES_OF_CHUNK bytes. */
const CHUNKS_FLOOR = 4096;
const BYTES_OF_CHUNK = 16;
/** Chunks that are received before other work has its turn. */
const CHUNKS_OF_TURN = 256;
export const hasBody = ({ headers }: Pick<IncomingMessage, 'headers'>): boolean =>
  headers['content-length'] !== undefined || headers['transfer-encoding'] !== undefined;

/** Keeps the chunks of a body. */
interface Keeper<Kept> {
  /** Called before a chunk is kept. @param most what the body may have */
  keep(chunk: Buffer, most: number): void;
  end(): Kept;
}
/** Called with the number of bytes by which the memory of the body is about to grow; it may throw. */
type Reserve = (bytes: number) => void;

/** One buffer that grows. Otherwise a body in chunks of one byte would take hundreds of bytes of memory for each chunk. */
function inOneBuffer(announced: number, reserve: Reserve): Keeper<Buffer> {
  const first = Math.min(announced, FIRST_BUFFER);
  reserve(first);
  let buffer = Buffer.allocUnsafeSlow(first);
  let length = 0;
  return {
    keep(chunk, most) {
      if (length + chunk.length > buffer.length) {
        const size = Math.min(most, Math.max(length + chunk.length, 2 * buffer.length));
        reserve(size - buffer.length);
        const larger = Buffer.allocUnsafeSlow(size);
        buffer.copy(larger, 0, 0, length);
        buffer = larger;
      }
      chunk.copy(buffer, length);
      length += chunk.length;
    },
    end: () => buffer.subarray(0, length),
  };
}
/** Chunks that are joined to one piece, if they are so many. */
const CHUNKS_OF_PIECE = 256;
/** The chunks as they are, without a copy of their bytes. Those of a body in many small ones are joined. */
function inPieces(reserve: Reserve): Keeper<readonly Buffer[]> {
  const pieces: Buffer[] = [];
  let chunks: Buffer[] = [];
  return {
    keep(chunk) {
      reserve(chunk.length);
      chunks.push(chunk);
      if (chunks.length < CHUNKS_OF_PIECE) return;
      pieces.push(Buffer.concat(chunks));
      chunks = [];
    },
    end: () => [...pieces, ...chunks],
  };
}

/**
 * @param limit bytes
 * @returns the body as it was sent
 * @throws Unread when the body is longer; the rest is not read
 */
export async function readBody(
  request: IncomingMessage,
  { bytes: limit, isFile }: Pick<BodyLimits, 'bytes' | 'isFile'>,
  reserve: Reserve,
): Promise<Body> {
  const announced = Number(request.headers['content-length'] ?? FIRST_BUFFER);
  if (request.headers['content-length'] !== undefined && announced > limit) throw tooLarge();
  const before = request.socket.bytesRead;
  const keeper = isFile === true ? inPieces(reserve) : inOneBuffer(announced, reserve);
  let chunks = 0;
  let length = 0;
  const add = (chunk: Buffer): void => {
    if (++chunks > CHUNKS_FLOOR + length / BYTES_OF_CHUNK) throw tooLarge();
    if (length + chunk.length > limit || request.socket.bytesRead - before > FRAMING_FLOOR + 2 * (length + chunk.length)) throw tooLarge();
    keeper.keep(chunk, limit);
    length += chunk.length;
  };
  await forEachChunk(request, add);
  return keeper.end();
}

/**
 * Calls `add` for each chunk until the end of the body. An async iterator takes ten times as long, which matters for chunks of one byte.
 * The rest is not read after `add` throws: the client of a refused request still gets the response on this connection.
 * @throws what `add` throws; Error when the connection ends before the body
 */
function forEachChunk(request: IncomingMessage, add: (chunk: Buffer) => void): Promise<void> {
  const { socket } = request;
  return new Promise((resolve, reject) => {
    let ofTurn = 0;
    const nextTurn = (): void => {
      ofTurn = 0;
      socket.resume();
    };
    const stop = (): void => {
      request.off('data', onData).off('end', onEnd).off('error', onError).off('close', onClose);
    };
    const onEnd = (): void => {
      stop();
      resolve();
    };
    const onError = (error: Error): void => {
      stop();
      request.pause();
      reject(error);
    };
    const onClose = (): void => onError(new Error('the connection ended before the body'));
    const onData = (chunk: Buffer): void => {
      if (++ofTurn === CHUNKS_OF_TURN) {
        socket.pause();
        setImmediate(nextTurn);
      }
      try {
        add(chunk);
      } catch (error) {
        onError(error as Error);
      }
    };
    request.on('data', onData).on('end', onEnd).on('error', onError).on('close', onClose);
    if (request.destroyed) onClose();
  });
}

/** Decompressed bytes for each byte of the body. Real JSON shrinks to a twentieth at best; gzip can reach a thousandth. */
const MAX_RATIO = 100;
/** Bytes that any body may unpack to. */
const UNPACKED_FLOOR = 1024 * 1024;
/** @throws Unread when the body is longer than `limit` bytes, or is not what its Content-Encoding says */
export async function unpacked({ headers }: Pick<IncomingMessage, 'headers'>, body: Body, limit: number): Promise<Body> {
  if (headers['content-encoding'] !== 'gzip') return body;
  const packed = bytesOf(body);
  try {
    return await promisify(gunzip)(packed, { maxOutputLength: Math.min(limit, Math.max(UNPACKED_FLOOR, MAX_RATIO * packed.length)) });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE') throw tooLarge();
    throw new Unread(400, 'The request body is not what its Content-Encoding says.');
  }
}

/** A 400. Ironic answers 500 to malformed JSON. */
const malformed = (reason: string, cause: unknown): Fault => invalid(`The request body is not valid JSON: ${reason}`, cause);
const REFUSALS: Readonly<Record<JsonLimitError['limit'], (error: JsonLimitError) => Error>> = {
  values: tooLarge,
  depth: () => new Unread(400, 'Request body JSON is nested too deeply. Please contact the service administrator.'),
  number: (error) => malformed('a number is too long', error),
  blanks: (error) => malformed('there are too many blanks', error),
};

/**
 * @returns the JSON value; `{}` for no body
 * @throws Unread, Fault Invalid
 */
export async function parseBody(body: Buffer, limits: JsonLimits): Promise<unknown> {
  if (body.length === 0) return {};
  try {
    return await parseStrictJson(body, limits);
  } catch (error) {
    throw error instanceof JsonLimitError ? REFUSALS[error.limit](error) : malformed((error as Error).message, error);
  }
}
