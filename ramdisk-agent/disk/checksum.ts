/** What an image's checksum has to be: given, or read from a checksum file. */
import { getHashes } from 'node:crypto';
import type { JsonObject } from '../../model/records';
import { AgentError } from '../system/errors';

export interface Checksum {
  /** Name of the hash for node:crypto. */
  readonly algorithm: string;
  /** Lower case hexadecimal. */
  readonly value: string;
}
const BY_LENGTH: Readonly<Record<number, string>> = { 32: 'md5', 64: 'sha256', 128: 'sha512' };
const isUrl = (text: string): boolean => /^https?:\/\//.test(text);

/** `fetchText`: the content of a checksum file. Throws AgentError: nothing to check with, an algorithm not allowed. */
export async function expectedChecksum(
  image: JsonObject,
  md5Allowed: boolean,
  fetchText: (url: string) => Promise<string>,
): Promise<Checksum> {
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
  const value = (isUrl(given) ? fromFile(await fetchText(given), given, fileName(image)) : given).toLowerCase();
  const found = usable ?? BY_LENGTH[value.length];
  if (found === undefined) throw new AgentError('InvalidCommandParamsError', `The checksum ${value} is of no known algorithm`);
  if (found === 'md5' && !md5Allowed) throw new AgentError('InvalidCommandParamsError', 'MD5 support is disabled');
  return { algorithm: found, value };
}

const fileName = (image: JsonObject): string => {
  const [url] = Array.isArray(image['urls']) ? (image['urls'] as readonly unknown[]) : [];
  return typeof url === 'string' && URL.canParse(url) ? decodeURIComponent(new URL(url).pathname.split('/').at(-1) ?? '') : '';
};

/** Lone, `value  name`, `value *name`, or `SHA256 (name) = value`. */
function fromFile(text: string, url: string, name: string): string {
  const lines = text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '' && !line.startsWith('#'));
  const hex = /^(?:[0-9a-f]{32}|[0-9a-f]{64}|[0-9a-f]{128})$/i;
  if (lines.length === 1 && hex.test(lines[0]!)) return lines[0]!;
  for (const line of lines) {
    const words = line.split(/\s+/);
    const named = words.some((word) => [name, `*${name}`, `(${name})`].includes(word));
    const value = words.find((word) => hex.test(word));
    if (named && value !== undefined) return value;
  }
  throw new AgentError('ImageDownloadError', `Checksum file ${url} does not contain name ${name}`);
}
