/** Writes an image as the agent does: downloads the whole image and verifies its checksum. Only the write is simulated, by a record. */
import { createHash, type Hash } from 'node:crypto';
import { expectedChecksum, type ChecksumRequests } from '../../model/agent/checksum';
import { AgentError } from '../../model/agent/errors';
import { readConfigDrive } from '../../model/agent/write-arguments';
import { reasonOf } from '../../model/errors';
import type { InventoryDisk, JsonObject } from '../../model/records';
import type { HttpClient } from '../http';

/** The content of a disk. */
export interface DiskContent {
  readonly url: string;
  /** Bytes of the image. */
  readonly size: number;
  /** The hash of the downloaded image, in hexadecimal. */
  readonly sha256: string;
  /** The decompressed config drive; undefined: none. */
  readonly configDrive: Buffer | undefined;
  /** The image is one of a root file system, with partitions made for it. */
  readonly hasPartitions?: true;
}

type Answer = Awaited<ReturnType<HttpClient['request']>>;
const MAX_REDIRECTS = 5;
/** Bytes of a checksum file or an encoded config drive. */
const MAX_TEXT = 96 * 2 ** 20;

/** Follows redirects. @returns the answer, and the URL that gave it */
async function follow(http: HttpClient, start: string, signal: AbortSignal): Promise<{ answer: Answer; url: string }> {
  let url = start;
  for (let redirects = 0; redirects <= MAX_REDIRECTS; redirects++) {
    const answer = await http.request(url, { signal });
    const location = answer.status >= 300 && answer.status < 400 ? answer.header('location') : undefined;
    if (location === undefined) return { answer, url };
    await answer.drain();
    url = new URL(location, url).href;
  }
  throw new Error(`Too many redirects from ${start}`);
}

function requestsBy(http: HttpClient, signal: AbortSignal): ChecksumRequests {
  return {
    fetchText: async (url) => {
      const failed = (reason: string): AgentError => new AgentError('ImageDownloadError', reason);
      const { answer } = await follow(http, url, signal).catch((error: unknown) => {
        throw failed(`URL: ${url}. Error: ${reasonOf(error)}`);
      });
      if (answer.status !== 200) {
        await answer.drain();
        throw failed(`Received status code ${answer.status} from ${url}, expected 200`);
      }
      const parts: Buffer[] = [];
      let size = 0;
      for await (const part of answer.body) {
        size += part.length;
        if (size > MAX_TEXT) throw failed(`The answer of ${url} is larger than ${MAX_TEXT} bytes`);
        parts.push(part);
      }
      return Buffer.concat(parts).toString('utf8');
    },
    targetOf: async (url) => {
      const aborted = new AbortController();
      const found = await follow(http, url, AbortSignal.any([signal, aborted.signal]));
      aborted.abort();
      return found.url;
    },
  };
}

/** The config drive of base64 or of a URL. @throws AgentError */
export const readDrive = (configDrive: string, http: HttpClient, signal: AbortSignal): Promise<Buffer> =>
  readConfigDrive(configDrive, requestsBy(http, signal).fetchText);

/** Downloads and verifies the image, and the config drive. @throws AgentError */
export async function fetchContent(
  image: JsonObject,
  configDrive: string | null,
  disk: InventoryDisk,
  http: HttpClient,
  signal: AbortSignal,
): Promise<DiskContent> {
  const requests = requestsBy(http, signal);
  const expected = await expectedChecksum(image, true, requests);
  const volume = configDrive === null ? undefined : await readDrive(configDrive, http, signal);
  const id = String(image['id']);
  const reasons: string[] = [];
  for (const url of (image['urls'] as readonly unknown[]).map(String)) {
    const found = await follow(http, url, signal).catch((error: unknown) => {
      reasons.push(`URL: ${url}. Error: ${reasonOf(error)}`);
    });
    if (!found) continue;
    if (found.answer.status !== 200) {
      await found.answer.drain();
      reasons.push(`Received status code ${found.answer.status} from ${url}, expected 200`);
      continue;
    }
    const own = createHash('sha256');
    const other = expected.algorithm === 'sha256' ? undefined : createHash(expected.algorithm);
    const size = await hashAll(found.answer.body, other ? [own, other] : [own], disk.size, id);
    const sha256 = own.digest('hex');
    const sum = other?.digest('hex') ?? sha256;
    if (sum !== expected.value) {
      const text = `Image failed to verify against checksum. location: ${disk.name}; image ID: ${id}; image checksum: ${expected.value}; verification checksum: ${sum}`;
      throw new AgentError('ImageChecksumError', text);
    }
    return { url, size, sha256, configDrive: volume };
  }
  throw new AgentError('ImageDownloadError', `Download of image ${id} failed: ${reasons.join('; ')}`);
}

async function hashAll(body: AsyncIterable<Buffer>, hashes: readonly Hash[], diskSize: number, id: string): Promise<number> {
  let size = 0;
  for await (const chunk of body) {
    // The virtual size of a qcow2 image is in its header, big-endian at offset 24.
    const virtual = size === 0 && chunk.length >= 32 && chunk.readUInt32BE(0) === 0x514649fb ? Number(chunk.readBigUInt64BE(24)) : 0;
    size += chunk.length;
    if (Math.max(size, virtual) > diskSize)
      throw new AgentError('ImageWriteError', `Image ${id} is larger than the disk of ${diskSize} bytes`);
    for (const hash of hashes) hash.update(chunk);
  }
  return size;
}
