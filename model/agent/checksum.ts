/** The expected checksum of an image: given, or read from a checksum file. */
import { getHashes } from 'node:crypto';
import type { JsonObject } from '../records';
import { AgentError } from './errors';

export interface Checksum {
  /** Name of the hash for node:crypto. */
  readonly algorithm: string;
  /** Lower case hexadecimal. */
  readonly value: string;
}
/** The requests that a checksum file needs. */
export interface ChecksumRequests {
  readonly fetchText: (url: string) => Promise<string>;
  /** The URL at which the redirects of this URL end. */
  readonly targetOf: (url: string) => Promise<string>;
}
const BY_LENGTH: Readonly<Record<number, string>> = { 32: 'md5', 64: 'sha256', 128: 'sha512' };
const isUrl = (text: string): boolean => /^https?:\/\//.test(text);

/** Throws AgentError without a checksum, or for an algorithm that is not allowed. */
export async function expectedChecksum(image: JsonObject, md5Allowed: boolean, requests: ChecksumRequests): Promise<Checksum> {
  const [algorithm, hashValue, checksum] = ['os_hash_algo', 'os_hash_value', 'checksum'].map((key) => {
    const value = image[key];
    return typeof value === 'string' && value !== '' ? value : undefined;
  });
  const usable = algorithm !== undefined && getHashes().includes(algorithm.toLowerCase()) ? algorithm.toLowerCase() : undefined;
  const given = usable === undefined ? checksum : (hashValue ?? checksum);
  if (given === undefined) {
    throw new AgentError(
      'InvalidCommandParamsError',
      "Image checksum is not available, either the 'checksum' field or the 'os_hash_algo' and 'os_hash_value' fields pair must be set for image verification.",
    );
  }
  const value = (isUrl(given) ? await fromFile(given, image, requests) : given).toLowerCase();
  const found = usable ?? BY_LENGTH[value.length];
  if (found === undefined) throw new AgentError('InvalidCommandParamsError', `The checksum ${value} is of no known algorithm`);
  if (found === 'md5' && !md5Allowed) throw new AgentError('InvalidCommandParamsError', 'MD5 support is disabled');
  return { algorithm: found, value };
}

/** The file lists the name in the image's URL, or the name of the file to which the server redirects. */
async function fromFile(url: string, image: JsonObject, { fetchText, targetOf }: ChecksumRequests): Promise<string> {
  const text = await fetchText(url);
  const [first] = Array.isArray(image['urls']) ? (image['urls'] as readonly unknown[]) : [];
  const imageUrl = typeof first === 'string' ? first : '';
  const requested = nameOf(imageUrl);
  const found = valueIn(text, requested);
  if (found !== undefined) return found;
  const target = nameOf(await targetOf(imageUrl).catch(() => imageUrl));
  const other = target === requested ? undefined : valueIn(text, target);
  if (other !== undefined) return other;
  const names = target === requested ? requested : `${requested} or ${target}`;
  throw new AgentError('ImageDownloadError', `Checksum file ${url} does not contain name ${names}`);
}

const nameOf = (url: string): string => {
  const last = URL.canParse(url) ? new URL(url).pathname.split('/').at(-1)! : '';
  try {
    return decodeURIComponent(last);
  } catch {
    // A percent sign that encodes nothing.
    return last;
  }
};

/** A lone value, or the one in the line of that name: `value  name`, `value *name`, `SHA256 (name) = value`. */
function valueIn(text: string, name: string): string | undefined {
  const lines = text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '' && !line.startsWith('#'));
  const hex = /^(?:[0-9a-f]{32}|[0-9a-f]{64}|[0-9a-f]{128})$/i;
  if (lines.length === 1 && hex.test(lines[0]!)) return lines[0]!;
  for (const line of lines) {
    const words = line.split(/\s+/);
    const isNamed = words.some((word) => [name, `*${name}`, `(${name})`].includes(word));
    const value = words.find((word) => hex.test(word));
    if (isNamed && value !== undefined) return value;
  }
  return undefined;
}
