/** Images that nodes are deployed with: location, permission, checksum and format. */
import { createHash } from 'node:crypto';
import { basename, resolve } from 'node:path';
import { Readable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { type Agent, type RequestInit, type Response, fetch } from 'undici';
import { invalidParameter, Fault } from '../../model/errors';
import type { JsonObject, NodeRecord } from '../../model/records';
import { basicAuthorization, credentialsOf, withoutCredentials } from '../../model/urls';
import { createAgent } from '../../wire/http-agent';
import { identifyOciFile, identifyOciImage, parseOci, type OciTask } from '../oci/images';
import { findImage, type GlanceTask } from './glance-images';
import { connectionReason } from './reason';
import type { Upload } from '../../wire/keystone/exchange';
import { partIn, rangeOf } from '../../wire/images/first-bytes';
import { blobUrl, isOciUrl, type BlobReference } from '../../wire/oci/reference';
import { glanceId, glanceUrl, isGlanceUrl } from '../../wire/openstack/glance';
import { imageServerLogin, type ImageServerOptions } from '../../wire/image-servers';
import { checkLocalFile, FileRefused, openFile, openLocalFile, refusalOf, type FileRules, type OpenFile } from '../../wire/local-files';
import { webServerConnector, type WebServerOptions } from '../../wire/web-servers';
import { timeoutSignal } from '../../wire/timeout-signal';

interface FileOptions {
  readonly 'conductor.file_url_allowed_paths': readonly string[];
  readonly 'files.own': readonly string[];
}
/** The members of a task that requests to web servers, and local files, need. */
interface Fetching {
  readonly signal: AbortSignal;
  readonly options: FileOptions &
    ImageServerOptions &
    WebServerOptions & {
      readonly 'DEFAULT.webserver_connection_timeout': number;
      readonly 'DEFAULT.webserver_verify_timeout': number;
      readonly 'conductor.disable_support_for_checksum_files': boolean;
    };
}

/** Where an image is stored. */
export type ImageLocation = { readonly kind: 'http'; readonly url: string } | { readonly kind: 'file'; readonly path: string };

/** Where the image of an instance or a ramdisk is stored. */
export type ImageSource =
  | ImageLocation
  | { readonly kind: 'glance'; readonly id: string }
  | { readonly kind: 'snapshot'; readonly id: string }
  /** A reference that a user names. */
  | { readonly kind: 'oci'; readonly href: string }
  /** What it is: a file in a registry. */
  | { readonly kind: 'blob'; readonly blob: BlobReference };
/** What an image in a registry needs beyond others. */
type ImageTask = GlanceTask & OciTask;

/** The checksum with which the agent verifies the image: an algorithm and its value, or an MD5 sum in the older field. */
interface Checksum {
  readonly os_hash_algo?: string;
  readonly os_hash_value?: string;
  readonly checksum?: string;
}

const CONNECT_TIMEOUT_MS = 10_000;
/** For whole files. */
const DOWNLOAD_TIMEOUT_MS = 30 * 60_000;
/** Checksum files of whole mirrors have some hundred kilobytes. */
const MAX_CHECKSUM_FILE_BYTES = 4 * 1024 * 1024;

const refused = (href: string, reason: string, cause?: unknown) =>
  invalidParameter(`Validation of image href ${href} failed, reason: ${reason}`, cause);

const rulesOf = (options: FileOptions): FileRules => ({
  allowed: options['conductor.file_url_allowed_paths'],
  own: options['files.own'],
});
/** The reason in Ironic's words. */
function refusedFile(href: string, path: string, { refusal }: FileRefused): Fault {
  const reason =
    refusal.kind === 'protected'
      ? `The path ${refusal.path} is not permitted in file URLs`
      : `Path ${path} is not allowed for image source file URLs`;
  return refused(href, `Security: ${reason}`);
}

/**
 * Parses `http(s)://…` or `file:///…`. A file must be in one of the allowed folders (`[conductor]file_url_allowed_paths`). Does not access
 * the image. Throws InvalidParameterValue.
 * @param options null: the operator names the file, which may be in any folder
 */
export function locate(href: string, options: FileOptions | null): ImageLocation {
  const scheme = /^([a-z][a-z0-9+.-]*):/i.exec(href)?.[1]?.toLowerCase();
  if (scheme === undefined) throw refused(href, 'Scheme-less image href is not a UUID.');
  if (!URL.canParse(href)) throw refused(href, 'Invalid URL.');
  if (scheme === 'http' || scheme === 'https') return { kind: 'http', url: href };
  if (scheme !== 'file') throw refused(href, `Image download protocol ${scheme} is not supported.`);
  const path = filePath(href);
  const refusal = refusalOf(path, options ? rulesOf(options) : { allowed: ['/'], own: [] });
  if (refusal) throw refusedFile(href, path, new FileRefused(refusal));
  return { kind: 'file', path };
}

/** As `locate`, also for images in Glance (a UUID or `glance://…/UUID`) and in registries (`oci://…`). */
export function locateImage(href: string, options: FileOptions | null): ImageSource {
  const id = glanceId(href);
  if (id !== undefined) return { kind: 'glance', id };
  if (isGlanceUrl(href)) throw invalidParameter(`Invalid image href ${href}.`);
  if (isOciUrl(href)) {
    parseOci(href);
    return { kind: 'oci', href };
  }
  return locate(href, options);
}

/**
 * As `checkLocation`. For images in Glance: throws ImageNotFound, ImageNotAuthorized, ImageUnacceptable, GlanceConnectionFailed. For files in
 * registries: as `identifyOciFile`.
 */
export async function checkImage(source: ImageSource, task: ImageTask): Promise<ImageSource> {
  switch (source.kind) {
    case 'snapshot':
      throw refused(`snapshot://${source.id}`, 'Image download protocol snapshot is not supported.');
    case 'oci':
      return { kind: 'blob', blob: await identifyOciFile(task, source.href) };
    case 'glance':
      await findImage(task, source.id);
      return source;
    case 'blob':
      return source;
    default:
      return checkLocation(source, task);
  }
}

/** The image in the form of the records that the boot services read (BootRecord.files): a path or a URL. */
export function servedAs(source: ImageSource): string {
  if (source.kind === 'file') return source.path;
  if (source.kind === 'http') return source.url;
  if (source.kind === 'oci') return source.href;
  if (source.kind === 'blob') return blobUrl(source.blob);
  return source.kind === 'glance' ? glanceUrl(source.id) : `snapshot:${source.id}`;
}

function filePath(href: string): string {
  try {
    return resolve(fileURLToPath(href));
  } catch (error) {
    throw refused(href, connectionReason(error), error);
  }
}

/**
 * Checks that the image is available: an allowed file that exists, or a URL whose HEAD answers 200 in time. Returns the URL behind
 * redirections, and the path behind links. Throws InvalidParameterValue with the reason.
 */
export async function checkLocation(location: ImageLocation, fetching: Fetching): Promise<ImageLocation> {
  if (location.kind === 'file') {
    const { path } = location;
    const real = await withReason(path, () => checkLocalFile(path, rulesOf(fetching.options)));
    if (real === undefined) throw missing(path);
    return { kind: 'file', path: real };
  }
  const shown = withoutCredentials(location.url);
  const answer = await send(location.url, { method: 'HEAD' }, fetching).catch((error: unknown) => {
    fetching.signal.throwIfAborted();
    throw refused(shown, connectionReason(error), error);
  });
  if (answer.status !== 200) throw refused(shown, `Got HTTP code ${answer.status} instead of 200 in response to HEAD request.`);
  return answer.redirected ? { kind: 'http', url: answer.url } : location;
}

/** The answer to a HEAD request. Throws an Error if there is none. */
export const headOf = (url: string, fetching: Fetching): Promise<Response> => send(url, { method: 'HEAD' }, fetching);

const missing = (path: string): Fault => refused(`file://${path}`, 'Specified image file not found.');
const withReason = <T>(path: string, work: () => Promise<T>): Promise<T> =>
  work().catch((error: unknown) => {
    throw error instanceof FileRefused ? refusedFile(`file://${path}`, path, error) : error;
  });
/** Opens an image that a user named. Throws InvalidParameterValue. */
async function openImage(path: string, { options }: Fetching): Promise<OpenFile> {
  const file = await withReason(path, () => openLocalFile(path, rulesOf(options)));
  if (!file) throw missing(path);
  return file;
}

/** Checks that a file exists that an option names. Its links stay: they may lead elsewhere later. Throws InvalidParameterValue. @internal */
export async function checkOwnFile(path: string): Promise<ImageLocation> {
  const file = await openFile(path);
  if (!file) throw missing(path);
  await file.handle.close();
  return { kind: 'file', path };
}

/** Checks the file, URL, image in Glance or file in a registry before any machine is touched, and returns it in the form of BootRecord.files. */
export async function servable(href: string, trusted: boolean, task: ImageTask): Promise<string> {
  const isPath = trusted && !href.includes('://') && glanceId(href) === undefined;
  const source: ImageSource = isPath ? { kind: 'file', path: href } : locateImage(href, trusted ? null : task.options);
  return servedAs(trusted && source.kind === 'file' ? await checkOwnFile(source.path) : await checkImage(source, task));
}

/** As `servable`, for an image of any kind: `image_source` in a registry needs no digest. */
export async function checkNamedImage(name: string, href: string, trusted: boolean, task: ImageTask): Promise<void> {
  if (name === 'image_source' && isOciUrl(href)) await identifyOciImage(task, href, 'http');
  else await servable(href, trusted, task);
}

/** The connections to web servers by the options of TLS. A process has one value of each. */
const agents = new Map<string, Agent>();
function agentFor(options: WebServerOptions): Agent {
  const key = `${options['DEFAULT.webserver_tls_minimum_version']} ${options['DEFAULT.webserver_verify_ca']}`;
  const agent = agents.get(key) ?? createAgent({ connect: webServerConnector(options, CONNECT_TIMEOUT_MS), bodyBytes: 'streamed' });
  agents.set(key, agent);
  return agent;
}

/** fetch accepts no URL with credentials. They go as basic authentication, which fetch drops at a redirection to another host. */
async function send(href: string, init: RequestInit, { signal, options }: Fetching, wholeFileMs?: number): Promise<Response> {
  const headers = {
    ...(init.headers as Record<string, string>),
    ...basicAuthorization(imageServerLogin(href, options) ?? credentialsOf(href)),
  };
  const seconds = options[`DEFAULT.webserver_${init.method === 'HEAD' ? 'verify' : 'connection'}_timeout`];
  const limited = timeoutSignal(wholeFileMs ?? seconds * 1000, signal);
  const dispatcher = agentFor(options);
  return fetch(withoutCredentials(href), { ...init, headers, signal: limited, dispatcher });
}

/** Throws MissingParameterValue unless instance_info has a checksum. That of a file is computed, and Glance has those of its images. */
export function requireChecksum(node: NodeRecord): void {
  const { image_source: source, image_checksum: checksum, image_os_hash_algo: algo, image_os_hash_value: value } = node.instance_info;
  if (/^(?:file|snapshot|oci):\/\//i.test(String(source)) || glanceId(String(source)) !== undefined) return;
  if ((value && algo) || (!value && !algo && checksum)) return;
  throw new Fault('MissingParameterValue', {
    message: `image_source's "image_checksum", or "image_os_hash_algo" and "image_os_hash_value" must be provided in instance_info for node ${node.uuid}`,
  });
}

/** Hexadecimal digits of the hashes that Ironic's documentation names. Agents may know others. */
const HASH_DIGITS: Readonly<Record<string, number>> = { md5: 32, sha1: 40, sha224: 56, sha256: 64, sha384: 96, sha512: 128 };
/** Throws InvalidParameterValue for a checksum that no file can have, which the agent would find after it has written the image. */
export function checkChecksumForm({
  instance_info: { image_checksum: given, image_os_hash_algo: algo, image_os_hash_value: value },
}: NodeRecord): void {
  const isHash = (text: unknown, digits: readonly number[]): boolean =>
    typeof text === 'string' && (CHECKSUM_URL.test(text) || (digits.includes(text.length) && /^[0-9a-f]+$/i.test(text)));
  if (algo && value) {
    const digits = typeof algo === 'string' && Object.hasOwn(HASH_DIGITS, algo.toLowerCase()) ? HASH_DIGITS[algo.toLowerCase()] : undefined;
    if (digits !== undefined && !isHash(value, [digits]))
      throw invalidParameter(
        `instance_info/image_os_hash_value must be ${digits} hexadecimal digits (${algo as string}), or the URL of a file of checksums`,
      );
  } else if (given && !isHash(given, Object.keys(ALGORITHMS).map(Number)))
    throw invalidParameter('instance_info/image_checksum must be an MD5, SHA-256 or SHA-512 checksum, or the URL of a file of checksums');
}

const CHECKSUM_URL = /^https?:\/\//;
/** Throws ImageChecksumURLNotSupported if the operator wants no checksum files. */
function refuseChecksumFiles(options: Fetching['options']): void {
  if (options['conductor.disable_support_for_checksum_files']) throw new Fault('ImageChecksumURLNotSupported');
}

/** Length of a checksum in hexadecimal digits → its algorithm. */
const ALGORITHMS: Readonly<Record<number, string>> = { 32: 'md5', 64: 'sha256', 128: 'sha512' };

/**
 * The image's checksum: as given, from the given checksum file, or computed for a file without one. Throws InvalidParameterValue for a
 * checksum of unknown length, or a checksum file that is unavailable or does not list the image.
 */
export async function checksumOf(instance: JsonObject, location: ImageSource, fetching: Fetching): Promise<Checksum> {
  const { image_source: source, image_checksum: given, image_os_hash_algo: algo, image_os_hash_value: value } = instance;
  if (typeof algo === 'string' && typeof value === 'string' && algo && value) {
    if (CHECKSUM_URL.test(value)) refuseChecksumFiles(fetching.options);
    return { os_hash_algo: algo, os_hash_value: value };
  }
  if (typeof given !== 'string' || given === '') {
    if (location.kind === 'file') return { os_hash_algo: 'sha256', os_hash_value: await sha256(location.path, fetching) };
    throw invalidParameter('The image has no checksum');
  }
  if (CHECKSUM_URL.test(given)) refuseChecksumFiles(fetching.options);
  const sum = CHECKSUM_URL.test(given) ? findChecksum((await download(given, fetching)).toString('utf8'), String(source), given) : given;
  const algorithm = ALGORITHMS[sum.length];
  if (algorithm === undefined || !/^[0-9a-f]+$/i.test(sum))
    throw invalidParameter(`${sum.slice(0, 128)} is not an MD5, SHA-256 or SHA-512 checksum`);
  return algorithm === 'md5' ? { checksum: sum } : { checksum: sum, os_hash_algo: algorithm, os_hash_value: sum };
}

/** GNU: `SUM  NAME` or `SUM *NAME`. */
const GNU_LINE = /^([0-9a-f]{128}|[0-9a-f]{64}|[0-9a-f]{32})\s+[*]?(\S.*)$/i;
/** BSD: `SHA256 (NAME) = SUM`. Without a regular expression, which would take quadratic time for a long line. */
function bsdLine(line: string): { readonly name: string; readonly sum: string } | undefined {
  const sum = [128, 64, 32].map((digits) => line.slice(-digits)).find(isSum);
  if (sum === undefined) return undefined;
  const head = line.slice(0, -sum.length);
  const [start, end] = [head.indexOf('('), Math.max(head.lastIndexOf(') '), head.lastIndexOf(')\t'))];
  return start < 0 || end <= start + 1 ? undefined : { name: head.slice(start + 1, end), sum };
}
const isSum = (text: string): boolean => ALGORITHMS[text.length] !== undefined && /^[0-9a-f]+$/i.test(text);

/**
 * Finds an image's checksum in a file: one that holds nothing else, GNU lines (`SUM  NAME`, `SUM *NAME`) or BSD lines
 * (`SHA256 (NAME) = SUM`). Throws InvalidParameterValue.
 * @internal
 */
export function findChecksum(text: string, imageSource: string, checksumUrl: string): string {
  const fail = (reason: string) => invalidParameter(`Failed to download image ${withoutCredentials(checksumUrl)}, reason: ${reason}`);
  const lines = text.split('\n').map((line) => line.trim());
  const filled = lines.filter((line) => line !== '');
  if (filled.length === 0) throw fail('Checksum file empty.');
  if (filled.length === 1 && !filled[0]!.includes(' ')) {
    if (isSum(filled[0]!)) return filled[0]!;
    throw fail('Invalid checksum file (No valid checksum found)');
  }
  const name = basename(URL.canParse(imageSource) ? new URL(imageSource).pathname : imageSource);
  for (const line of filled.filter((candidate) => !candidate.startsWith('#'))) {
    const gnu = GNU_LINE.exec(line);
    if (gnu?.[2] === name) return gnu[1]!;
    const bsd = bsdLine(line);
    if (bsd?.name === name) return bsd.sum;
  }
  throw fail(`Checksum file does not contain name ${name}`);
}

/** @param most bytes. Throws InvalidParameterValue */
export async function download(url: string, fetching: Fetching, most = MAX_CHECKSUM_FILE_BYTES): Promise<Buffer> {
  try {
    const answer = await send(url, {}, fetching);
    if (answer.status !== 200) throw new Error(`Got HTTP code ${answer.status} instead of 200 in response to GET request.`);
    const chunks: Uint8Array[] = [];
    let size = 0;
    for await (const chunk of answer.body ?? []) {
      chunks.push(chunk as Uint8Array);
      size += (chunk as Uint8Array).length;
      if (size > most) throw new Error(`The file is larger than ${most} bytes`);
    }
    return Buffer.concat(chunks);
  } catch (error) {
    fetching.signal.throwIfAborted();
    throw invalidParameter(`Failed to download image ${withoutCredentials(url)}, reason: ${connectionReason(error)}`, error);
  }
}

const sha256 = (path: string, fetching: Fetching): Promise<string> => digestOf({ kind: 'file', path }, 'sha256', fetching);

/** Opens a URL as a stream. A reader that does not read to the end must destroy the stream. Throws an Error with the reason. */
export async function openUrl(url: string, fetching: Fetching): Promise<Upload> {
  const answer = await send(url, {}, fetching, DOWNLOAD_TIMEOUT_MS);
  const size = Number(answer.headers.get('content-length') ?? Number.NaN);
  if (answer.status === 200 && answer.body && Number.isSafeInteger(size)) {
    const body = Readable.fromWeb(answer.body);
    // The stream's reader gets an error too. Before there is a reader, an error must not end the process.
    body.on('error', () => {});
    return { body, size };
  }
  await answer.body?.cancel();
  const problem = answer.status === 200 ? 'an answer without its length' : `HTTP code ${answer.status} instead of 200`;
  throw new Error(`Got ${problem} in response to GET request.`);
}

/** The checksum of an image's bytes, in hexadecimal digits. Throws an Error with the reason. */
export async function digestOf(location: ImageLocation, algorithm: 'sha1' | 'sha256' | 'sha512', fetching: Fetching): Promise<string> {
  const hash = createHash(algorithm);
  for await (const chunk of await bytesOf(location, fetching)) hash.update(chunk as Uint8Array);
  return hash.digest('hex');
}
async function bytesOf(location: ImageLocation, fetching: Fetching): Promise<AsyncIterable<unknown>> {
  if (location.kind === 'file') {
    const { handle } = await openImage(location.path, fetching);
    return handle.createReadStream({ signal: fetching.signal, highWaterMark: 1024 * 1024 });
  }
  const answer = await send(location.url, {}, fetching, DOWNLOAD_TIMEOUT_MS);
  if (answer.status === 200) return answer.body ?? ([] as unknown as AsyncIterable<unknown>);
  await answer.body?.cancel();
  throw new Error(`Got HTTP code ${answer.status} instead of 200 in response to GET request.`);
}

interface Part {
  readonly offset: number;
  readonly length: number;
}
/** Bytes of an image; fewer at its end. Throws an Error if the server cannot send a part. */
export const readPart = (location: ImageSource, part: Part, fetching: Fetching): Promise<Buffer> => {
  if (location.kind === 'file') return filePart(location.path, part, fetching);
  if (location.kind === 'http') return urlPart(location.url, part, fetching);
  throw new Error(`the image is not in a file`);
};

async function filePart(path: string, { offset, length }: Part, fetching: Fetching): Promise<Buffer> {
  const { handle } = await openImage(path, fetching);
  try {
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(length), 0, length, offset);
    return buffer.subarray(0, bytesRead);
  } finally {
    await handle.close();
  }
}

/** Closes the connection of a server that sends more. */
async function urlPart(url: string, { offset, length }: Part, fetching: Fetching): Promise<Buffer> {
  const headers = { 'accept-encoding': 'identity', range: rangeOf(offset, length) };
  const { status, body } = await send(url, { headers }, fetching);
  const stream = body ? Readable.fromWeb(body) : Readable.from([]);
  try {
    return await partIn({ status, body: stream }, offset, length);
  } finally {
    stream.on('error', () => {}).destroy();
  }
}

/** Bytes of an image's file; undefined: nobody says. */
export async function fileSize(source: ImageSource, fetching: Fetching): Promise<number | undefined> {
  if (source.kind === 'file') {
    const { handle } = await openImage(source.path, fetching);
    try {
      return (await handle.stat()).size;
    } finally {
      await handle.close();
    }
  }
  if (source.kind !== 'http') return undefined;
  const answer = await send(source.url, { method: 'HEAD', headers: { 'accept-encoding': 'identity' } }, fetching).catch(() => undefined);
  const length = answer?.status === 200 ? answer.headers.get('content-length') : null;
  return length !== null && length !== undefined && /^\d{1,15}$/.test(length) ? Number(length) : undefined;
}
