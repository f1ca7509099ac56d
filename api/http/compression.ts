/** Compresses responses for the page: the JSON of many nodes shrinks to a tenth. Other clients get uncompressed ones, as from Ironic. */
import type { IncomingHttpHeaders } from 'node:http';
import { promisify } from 'node:util';
import { constants, gzip } from 'node:zlib';

const compress = promisify(gzip);
/** Smaller responses fit in a few packets. */
const LEAST_BYTES = 16 * 1024;
const ENCODING = 'gzip';

/** Browsers alone send fetch metadata, and the page alone has our origin. */
const wantsCompressed = (headers: IncomingHttpHeaders): boolean =>
  headers['sec-fetch-site'] === 'same-origin' && String(headers['accept-encoding']).split(/,\s*/).includes(ENCODING);

interface Compressible {
  readonly bytes?: readonly Buffer[] | undefined;
  readonly headers?: Readonly<Record<string, string>>;
}
/** The answer as it is, or compressed. */
export function compressed<Answer extends Compressible>(headers: IncomingHttpHeaders, answer: Answer): Answer | Promise<Answer> {
  const { bytes = [] } = answer;
  const length = bytes.reduce((sum, piece) => sum + piece.length, 0);
  if (length < LEAST_BYTES || !wantsCompressed(headers)) return answer;
  return compress(Buffer.concat(bytes, length), { level: constants.Z_BEST_SPEED }).then((content) => ({
    ...answer,
    bytes: [content],
    headers: { ...answer.headers, 'Content-Encoding': ENCODING, Vary: 'Accept-Encoding' },
  }));
}
