/** Where the image cache gets files: web servers, Glance, and container registries. */
import type { Readable } from 'node:stream';
import type { Dispatcher } from 'undici';
import { basicAuthorization, credentialsOf, withoutCredentials } from '../model/urls';
import type { ServiceClient } from '../wire/keystone/services';
import { imageServerLogin, type ImageServerOptions } from '../wire/image-servers';
import { parseBlobUrl } from '../wire/oci/reference';
import { openRegistry, type Registry } from '../wire/oci/registry';
import { glanceId, showImage } from '../wire/openstack/glance';
import { request } from '../wire/http-agent';

export interface UpstreamFile {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: Readable;
  /** The expected hash of the body, in hexadecimal digits. Absent: unknown. */
  readonly digest?: { readonly algorithm: string; readonly value: string } | undefined;
  /** The rest of the same body, after a part of it has arrived; undefined: the server cannot continue. Absent: nor is it asked. */
  readonly resume?: (from: number) => Promise<Readable | undefined>;
}

interface WebRequest {
  readonly dispatcher: Dispatcher;
  readonly signal: AbortSignal;
  readonly options: ImageServerOptions;
}
/** @param conditions headers of a conditional request */
export async function fromWebServer(url: string, conditions: Readonly<Record<string, string>>, given: WebRequest): Promise<UpstreamFile> {
  const { dispatcher, signal, options } = given;
  const get = (headers: Readonly<Record<string, string>>) =>
    request(withoutCredentials(url), {
      dispatcher,
      signal,
      headers: {
        'accept-encoding': 'identity',
        // Not sent after a redirection to another host.
        ...basicAuthorization(imageServerLogin(url, options) ?? credentialsOf(url)),
        ...headers,
      },
    });
  const { statusCode, headers, body } = await get(conditions);
  const etag = [headers.etag].flat()[0];
  // RFC 9110 §13.1.5: a weak entity tag does not say that all bytes are the same.
  const isStrong = etag !== undefined && etag.startsWith('"');
  const resume = async (from: number): Promise<Readable | undefined> => {
    const rest = await get({ range: `bytes=${from}-`, 'if-range': etag! });
    const isRest = rest.statusCode === 206 && String(rest.headers['content-range']).startsWith(`bytes ${from}-`);
    const isAll = rest.statusCode === 200 && from === 0 && rest.headers.etag === etag;
    if (isRest || isAll) return rest.body;
    rest.body.on('error', () => {}).destroy();
    return undefined;
  };
  return { status: statusCode, headers, body, ...(isStrong ? { resume } : {}) };
}

/** Algorithms of `os_hash_algo` that are worth a check. Glance computes SHA-512 unless its configuration says otherwise. */
const ALGORITHMS = new Set(['sha256', 'sha384', 'sha512']);

/**
 * The data of an image. The conductor has checked who may use the image (drivers/common/glance-images.ts).
 * @param url `glance://UUID`
 */
export async function fromGlance(url: string, glance: ServiceClient, signal: AbortSignal): Promise<UpstreamFile> {
  const id = glanceId(url);
  if (id === undefined) throw new Error('no id of an image');
  const image = await showImage(glance, id, { signal });
  if (image?.status !== 'active') throw new Error('the image has no data in Glance');
  const { status, headers, body } = await glance.stream(`/images/${id}/file`, { 'accept-encoding': 'identity' }, signal);
  const length = headers['content-length'] ?? (image.size === null ? undefined : String(image.size));
  const { hashAlgorithm: algorithm, hash: value } = image;
  return {
    status,
    headers: { ...headers, 'content-length': length },
    body,
    digest: algorithm !== null && value !== null && ALGORITHMS.has(algorithm) ? { algorithm, value } : undefined,
  };
}

/**
 * A blob of a registry. The conductor has checked that the node may read it (drivers/oci/images.ts). What a registry names by a digest never
 * changes, so the rest of a download can come from any connection.
 * @param url see `blobUrl`
 */
export async function fromRegistry(url: string, setup: Parameters<typeof openRegistry>[1]): Promise<UpstreamFile> {
  const blob = parseBlobUrl(url);
  // A token may expire during a long download.
  const open = async (range?: string): ReturnType<Registry['openBlob']> => (await openRegistry(blob, setup)).openBlob(blob.digest, range);
  const { status, headers, body } = await open();
  const [algorithm, value] = blob.digest.split(':') as [string, string];
  const resume = async (from: number): Promise<Readable | undefined> => {
    const rest = await open(`bytes=${from}-`);
    const isRest = rest.status === 206 && String(rest.headers['content-range']).startsWith(`bytes ${from}-`);
    if (isRest || (rest.status === 200 && from === 0)) return rest.body;
    rest.body.on('error', () => {}).destroy();
    return undefined;
  };
  return { status, headers, body, digest: { algorithm, value }, resume };
}
