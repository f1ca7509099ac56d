/** Writes an image as the agent does: downloads the whole image and verifies its checksum. Only the write is simulated, by a record. */
import { createHash, type Hash } from 'node:crypto';
import { gunzipSync } from 'node:zlib';
import { matchDisks, parseHints } from '../../model/hints';
import type { InventoryDisk, JsonObject } from '../../model/records';
import type { HttpClient } from '../http';

/** The error of an agent's failed command (`command_error`). */
export class AgentError extends Error {
  constructor(
    readonly type: string,
    readonly code: number,
    message: string,
    readonly details: string,
  ) {
    super(message);
  }
}
/** The content of a disk. */
export interface DiskContent {
  readonly url: string;
  /** Bytes of the image. */
  readonly size: number;
  /** The hash of the downloaded image, in hexadecimal. */
  readonly sha256: string;
  /** The decompressed config drive; undefined: none. */
  readonly configDrive: Buffer | undefined;
}

const object = (value: unknown): JsonObject => (typeof value === 'object' && value !== null ? (value as JsonObject) : {});
const string = (value: unknown): string | undefined => (typeof value === 'string' && value !== '' ? value : undefined);
const MIN_ROOT_DISK = 4 * 2 ** 30;
const MAX_CONFIG_DRIVE = 64 * 2 ** 20;

/** The name of the disk for the image: the smallest one of at least 4 GiB that the node's hints allow. */
export function chooseDisk(disks: readonly InventoryDisk[], node: JsonObject): string {
  const hints = object(node['instance_info'])['root_device'] ?? object(node['properties'])['root_device'];
  const suitable = matchDisks(disks, parseHints(hints))
    .filter(({ size }) => size >= MIN_ROOT_DISK)
    .sort((a, b) => a.size - b.size);
  if (!suitable[0])
    throw new AgentError(
      'DeviceNotFound',
      404,
      'Error finding the disk or partition device to deploy the image onto',
      `No suitable device was found for deployment using these hints ${JSON.stringify(hints ?? {})}`,
    );
  return suitable[0].name;
}

/** Downloads and verifies the image of `image_info`. @throws AgentError with the real agent's words */
export async function fetchImage(
  info: JsonObject,
  diskSize: number,
  http: HttpClient,
  signal: AbortSignal,
): Promise<Omit<DiskContent, 'configDrive'>> {
  const id = String(info['id']);
  const expected = await expectedChecksum(info, http, signal);
  const reasons: string[] = [];
  for (const url of Array.isArray(info['urls']) ? info['urls'].map(String) : []) {
    const answer = await http.request(url, { signal }).catch((error: unknown) => {
      reasons.push(`${url}: ${error instanceof Error ? error.message : String(error)}`);
    });
    if (!answer) continue;
    if (answer.status !== 200) {
      await answer.drain();
      reasons.push(`${url}: status code ${answer.status}`);
      continue;
    }
    const hashes = [createHash('sha256'), ...(expected ? [createHash(expected.algorithm)] : [])];
    const size = await hashAll(answer.body, hashes, diskSize, id);
    const [sha256, sum] = hashes.map((hash) => hash.digest('hex'));
    if (expected && sum !== expected.value)
      throw new AgentError(
        'ImageChecksumError',
        500,
        'Error verifying image checksum',
        `Image failed to verify against checksum. location: ${url}; image ID: ${id}; image checksum: ${expected.value}; verification checksum: ${sum!}`,
      );
    return { url, size, sha256: sha256! };
  }
  throw new AgentError('ImageDownloadError', 500, 'Error downloading image', `Download of image ${id} failed: ${reasons.join('; ')}`);
}

async function hashAll(body: AsyncIterable<Buffer>, hashes: readonly Hash[], diskSize: number, id: string): Promise<number> {
  let size = 0;
  for await (const chunk of body) {
    // The virtual size of a qcow2 image is in its header, big-endian at offset 24.
    const virtual = size === 0 && chunk.length >= 32 && chunk.readUInt32BE(0) === 0x514649fb ? Number(chunk.readBigUInt64BE(24)) : 0;
    size += chunk.length;
    if (Math.max(size, virtual) > diskSize)
      throw new AgentError(
        'ImageWriteError',
        500,
        'Error writing image to device',
        `Image ${id} is larger than the disk of ${diskSize} bytes`,
      );
    for (const hash of hashes) hash.update(chunk);
  }
  return size;
}

/** From `os_hash_*`, else from `checksum`: a value, whose length gives the algorithm, or the URL of a file with the value. */
async function expectedChecksum(
  info: JsonObject,
  http: HttpClient,
  signal: AbortSignal,
): Promise<{ algorithm: string; value: string } | undefined> {
  const [algorithm, hash] = [string(info['os_hash_algo']), string(info['os_hash_value'])];
  if (algorithm && hash) return { algorithm, value: hash };
  let value = string(info['checksum']);
  if (value === undefined) return undefined;
  if (/^https?:/.test(value)) value = (await (await http.request(value, { signal })).text()).trim().split(/\s+/)[0]!;
  const known = { 32: 'md5', 40: 'sha1', 64: 'sha256', 128: 'sha512' }[value.length];
  if (!known) throw new AgentError('ImageChecksumError', 500, 'Error verifying image checksum', `Unable to tell the algorithm of ${value}`);
  return { algorithm: known, value };
}

/** @param source base64 of gzip, or a URL of such a text */
export async function unpackConfigDrive(source: unknown, http: HttpClient, signal: AbortSignal): Promise<Buffer | undefined> {
  let text = string(source);
  if (text === undefined) return undefined;
  if (/^https?:/.test(text)) text = await (await http.request(text, { signal })).text();
  try {
    return gunzipSync(Buffer.from(text, 'base64'), { maxOutputLength: MAX_CONFIG_DRIVE });
  } catch (error) {
    throw new AgentError('InstanceDeployFailure', 500, 'Failed to create config drive', String(error));
  }
}
