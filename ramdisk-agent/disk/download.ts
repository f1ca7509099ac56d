/** Downloads the URLs of a deployment: the image as a stream, small texts whole. */
import type { ChecksumRequests } from '../../model/agent/checksum';
import type { JsonObject } from '../../model/records';
import { AgentError } from '../../model/agent/errors';
import { imageUrls } from '../../model/agent/write-arguments';
import { reasonOf } from '../../model/errors';
import { oneLine } from '../../model/log';
import { ask, open, type Trust } from '../system/http';
import type { Pieces } from '../system/pieces';
import { receive } from '../system/receive';

export interface Fetching {
  readonly trust: Trust;
  /** A download fails after this time without a byte, in milliseconds. */
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}
export interface Download {
  readonly url: string;
  /** Content-Length, if the server gives it. */
  readonly length: number | null;
  readonly chunks: AsyncIterable<Buffer>;
  /** Closes the connection. */
  close(): void;
}

/**
 * Opens the first URL of the image that answers 200. Throws ImageDownloadError with each URL's error.
 * @param memory for the pieces of a MiB in which the bytes come
 */
export async function openImage(image: JsonObject, fetching: Fetching, memory: Pieces): Promise<Download> {
  const failures: string[] = [];
  for (const url of imageUrls(image)) {
    try {
      const received = await receive({ ...fetching, url, headers: authorization(image) }, memory);
      if (received.status === 200) return { ...received, url };
      const reason = isOwn(image, url, received) ? await reasonIn(received) : '';
      failures.push(`Received status code ${received.status} from ${url}, expected 200${reason}`);
      received.close();
    } catch (error) {
      failures.push(`URL: ${url}. Error: ${reasonOf(error)}`);
    }
  }
  throw new AgentError(
    'ImageDownloadError',
    `Download of image ${String(image['id'])} failed: ${failures.join('; ') || 'no URL is given'}`,
  );
}

/** Whether the conductor's HTTP boot service answers. What other servers say might be secret, and users name these servers. */
const isOwn = (image: JsonObject, url: string, opened: { readonly url: string }): boolean =>
  image['served_by_conductor'] === true && opened.url === url;

const MAX_REASON = 300;
/** What the HTTP boot service says, for example that its disk is full. */
async function reasonIn({ headers, chunks }: Pick<Awaited<ReturnType<typeof receive>>, 'headers' | 'chunks'>): Promise<string> {
  let text = '';
  try {
    if (headers.get('content-type') !== 'text/plain') return '';
    for await (const part of chunks) {
      text += part.toString('utf8', 0, MAX_REASON);
      if (text.length >= MAX_REASON) break;
    }
  } catch {
    // The status says enough.
  }
  const line = oneLine(text).slice(0, MAX_REASON).trim();
  return line === '' ? '' : ` (${line})`;
}

/** Bytes: base64 of a config drive of 64 MiB that gzip does not make smaller. */
const MAX_TEXT = 96 * 2 ** 20;

async function fetchText(url: string, image: JsonObject, fetching: Fetching): Promise<string> {
  const answer = await ask({ ...fetching, method: 'GET', url, headers: authorization(image) }, MAX_TEXT).catch((error: unknown) => {
    throw new AgentError('ImageDownloadError', `URL: ${url}. Error: ${reasonOf(error)}`, { cause: error });
  });
  if (answer.status !== 200) throw new AgentError('ImageDownloadError', `Received status code ${answer.status} from ${url}, expected 200`);
  return answer.text;
}

/** Where the redirects of a URL end. */
async function targetOf(url: string, image: JsonObject, fetching: Fetching): Promise<string> {
  // Servers may refuse HEAD, and signed URLs are valid for one method.
  const opened = await open({ ...fetching, method: 'GET', url, headers: authorization(image) });
  opened.answer.destroy();
  return opened.url;
}

/** Requests for what belongs to the image: checksum files, config drives. */
export const requestsFor = (image: JsonObject, fetching: Fetching): ChecksumRequests => ({
  fetchText: (url) => fetchText(url, image, fetching),
  targetOf: (url) => targetOf(url, image, fetching),
});

/** HTTP basic authentication, or the server's prepared header (base64), if the image requires one. */
function authorization(image: JsonObject): Record<string, string> {
  const ready = image['image_request_authorization'];
  if (typeof ready === 'string' && ready !== '') return { authorization: Buffer.from(ready, 'base64').toString('utf8') };
  if (image['image_server_auth_strategy'] !== 'http_basic') return {};
  const credentials = `${String(image['image_server_user'])}:${String(image['image_server_password'])}`;
  return { authorization: `Basic ${Buffer.from(credentials).toString('base64')}` };
}
