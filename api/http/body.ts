/** Reads and parses the body of a request. Its size and its nesting depth are limited. */
import type { IncomingMessage } from 'node:http';
import { promisify } from 'node:util';
import { gunzip } from 'node:zlib';
import type { Options } from '../../config/options';
import { Fault } from '../../model/errors';
import { Unread } from './errors';

/** The maximum size of the body for a path. Config drives, inventories and hardware records have limits of their own. */
export const limitFor = (path: string, options: Options): number =>
  1024 *
  (/\/states\/provision(?:\/[^/]*)?$/.test(path)
    ? options['api.max_json_body_size_provision']
    : path.endsWith('continue_inspection')
      ? options['api.max_json_body_size_inspection']
      : path.endsWith('/hardware')
        ? options['recorder.max_record_size']
        : options['api.max_json_body_size']);

const tooLarge = (): Unread => new Unread(413, 'Request body is too large. Please contact the service administrator.');

const NOTHING = Buffer.alloc(0);
/**
 * @param limit bytes
 * @throws Unread for a longer body, also after decompression; the rest is not read
 */
export async function readBody(request: IncomingMessage, limit: number): Promise<Buffer> {
  const { 'content-length': announced, 'transfer-encoding': coding } = request.headers;
  if (announced === undefined && coding === undefined) return NOTHING;
  if (Number(announced ?? 0) > limit) throw tooLarge();
  const chunks: Buffer[] = [];
  let length = 0;
  // Leaving the loop must not destroy the connection, because the client still gets a response.
  for await (const chunk of request.iterator({ destroyOnReturn: false })) {
    length += (chunk as Buffer).length;
    if (length > limit) throw tooLarge();
    chunks.push(chunk as Buffer);
  }
  const body = Buffer.concat(chunks);
  return request.headers['content-encoding'] === 'gzip' ? decompressed(body, limit) : body;
}

/** Stops at the limit, which protects against decompression bombs. */
async function decompressed(body: Buffer, limit: number): Promise<Buffer> {
  try {
    return await promisify(gunzip)(body, { maxOutputLength: limit });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE') throw tooLarge();
    throw new Unread(400, 'The request body is not what its Content-Encoding says.');
  }
}

const [QUOTE, ESCAPE] = [0x22, 0x5c];
/** Counts brackets outside of strings. */
function isTooDeep(body: Buffer, limit: number): boolean {
  let depth = 0;
  for (let index = 0; index < body.length; index++) {
    const byte = body[index]!;
    if (byte === QUOTE) {
      for (index++; index < body.length && body[index] !== QUOTE; index++) if (body[index] === ESCAPE) index++;
    } else if (byte === 0x7b || byte === 0x5b) {
      if (++depth > limit) return true;
    } else if (byte === 0x7d || byte === 0x5d) depth--;
  }
  return false;
}

/**
 * @param depth the maximum nesting
 * @returns the JSON value; `{}` for no body
 * @throws Unread, Fault Invalid (Ironic answers 500 to invalid JSON)
 */
export function parseBody(body: Buffer, depth: number): unknown {
  if (body.length === 0) return {};
  if (isTooDeep(body, depth)) throw new Unread(400, 'Request body JSON is nested too deeply. Please contact the service administrator.');
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(body)) as unknown;
  } catch (error) {
    throw new Fault('Invalid', { message: `The request body is not valid JSON: ${(error as Error).message}` }, { cause: error });
  }
}
