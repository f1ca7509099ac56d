/**
 * Objects of S3 by its REST API: files are sent in parts, and signed URLs give access to them for a time. Signature Version 4
 * (https://docs.aws.amazon.com/AmazonS3/latest/API/sig-v4-header-based-auth.html), with the bucket in the path, which all servers accept.
 */
import { createHash, createHmac } from 'node:crypto';
import { open } from 'node:fs/promises';
import type { Agent } from 'undici';
import { timeoutSignal } from '../timeout-signal';
import { request } from '../http-agent';

interface S3Settings {
  /** http(s)://HOST[:PORT] */
  readonly endpoint: string;
  readonly region: string;
  readonly bucket: string;
  readonly accessKey: string;
  readonly secretKey: string;
}
interface S3Setup extends S3Settings {
  /** Bounds the bodies of answers. */
  readonly agent: Agent;
  /** Milliseconds of the Unix epoch. */
  readonly now: () => number;
}
export interface S3 {
  /** Sends a file. An object without its end does not appear. @throws Error with the reason */
  putFile(key: string, path: string, signal: AbortSignal): Promise<void>;
  /** An object that is not there is no error. @throws Error with the reason */
  remove(key: string, signal: AbortSignal): Promise<void>;
  /** A URL from which everybody can read the object for a time. */
  urlOf(key: string, seconds: number): string;
}

/** The service takes at most 10,000 parts of at least 5 MiB. */
const MIN_PART = 16 * 2 ** 20;
const MAX_PARTS = 10_000;
/** Milliseconds for one request. */
const TIMEOUT_MS = 600_000;
const MAX_REASON = 300;
const UNSIGNED = 'UNSIGNED-PAYLOAD';

const sha256 = (bytes: string | Buffer): string => createHash('sha256').update(bytes).digest('hex');
const hmac = (key: string | Buffer, text: string): Buffer => createHmac('sha256', key).update(text).digest();
/** RFC 3986 §2.3: all others are escaped. */
const escaped = (text: string): string =>
  encodeURIComponent(text).replace(/[!'()*]/g, (one) => `%${one.charCodeAt(0).toString(16).toUpperCase()}`);
const queryText = (query: Readonly<Record<string, string>>): string =>
  Object.entries(query)
    .map(([name, value]) => `${escaped(name)}=${escaped(value)}`)
    .sort()
    .join('&');

interface Signed {
  readonly method: string;
  readonly path: string;
  readonly query: Readonly<Record<string, string>>;
  readonly headers: Readonly<Record<string, string>>;
  readonly payload: string;
}
/** `20130524T000000Z` */
const stampOf = (milliseconds: number): string => `${new Date(milliseconds).toISOString().slice(0, 19).replace(/[-:]/g, '')}Z`;

/** Bucket and key in the path of the endpoint. @internal */
export function createSigner({ region, accessKey, secretKey }: Pick<S3Settings, 'accessKey' | 'region' | 'secretKey'>) {
  const scopeOf = (stamp: string): string => `${stamp.slice(0, 8)}/${region}/s3/aws4_request`;
  const signatureOf = ({ method, path, query, headers, payload }: Signed, stamp: string): string => {
    const names = Object.keys(headers).sort();
    const lines = names.map((name) => `${name}:${headers[name]!.trim()}\n`).join('');
    const canonical = [method, path, queryText(query), lines, names.join(';'), payload].join('\n');
    const toSign = ['AWS4-HMAC-SHA256', stamp, scopeOf(stamp), sha256(canonical)].join('\n');
    const key = ['s3', 'aws4_request'].reduce(hmac, hmac(hmac(`AWS4${secretKey}`, stamp.slice(0, 8)), region));
    return hmac(key, toSign).toString('hex');
  };
  return {
    /** The headers of a request. */
    headersOf(request: Omit<Signed, 'headers'> & { readonly host: string }, now: number): Record<string, string> {
      const stamp = stampOf(now);
      const headers = { host: request.host, 'x-amz-content-sha256': request.payload, 'x-amz-date': stamp };
      const signature = signatureOf({ ...request, headers }, stamp);
      const names = Object.keys(headers).sort().join(';');
      const authorization = `AWS4-HMAC-SHA256 Credential=${accessKey}/${scopeOf(stamp)},SignedHeaders=${names},Signature=${signature}`;
      return { ...headers, authorization };
    },
    /** The query of a URL for GET. */
    queryOf({ host, path }: Pick<Signed, 'path'> & { readonly host: string }, seconds: number, now: number): string {
      const stamp = stampOf(now);
      const query = {
        'X-Amz-Algorithm': 'AWS4-HMAC-SHA256',
        'X-Amz-Credential': `${accessKey}/${scopeOf(stamp)}`,
        'X-Amz-Date': stamp,
        'X-Amz-Expires': String(seconds),
        'X-Amz-SignedHeaders': 'host',
      };
      const signature = signatureOf({ method: 'GET', path, query, headers: { host }, payload: UNSIGNED }, stamp);
      return `${queryText(query)}&X-Amz-Signature=${signature}`;
    },
  };
}

interface Ask {
  readonly method: 'DELETE' | 'POST' | 'PUT';
  readonly key: string;
  readonly query?: Readonly<Record<string, string>>;
  readonly body?: Buffer;
  /** Statuses that are no error, besides 2xx. */
  readonly accept?: readonly number[];
}

export function createS3(setup: S3Setup): S3 {
  const { endpoint, bucket, agent, now } = setup;
  const { host, origin, pathname } = new URL(endpoint);
  const signer = createSigner(setup);
  const pathOf = (key: string): string => `${pathname.replace(/\/$/, '')}/${[bucket, ...key.split('/')].map(escaped).join('/')}`;

  async function ask({ method, key, query = {}, body = Buffer.alloc(0), accept = [] }: Ask, signal: AbortSignal) {
    const path = pathOf(key);
    const search = queryText(query);
    const headers = signer.headersOf({ method, path, query, payload: sha256(body), host }, now());
    const answer = await request(`${origin}${path}${search === '' ? '' : `?${search}`}`, {
      method,
      headers,
      body,
      dispatcher: agent,
      signal: timeoutSignal(TIMEOUT_MS, signal),
    });
    const text = await answer.body.text();
    // Some servers answer 200 before they know the result (CompleteMultipartUpload).
    const isError = answer.statusCode >= 300 || text.includes('<Error>');
    if (isError && !accept.includes(answer.statusCode))
      throw new Error(`S3 at ${origin} answered ${answer.statusCode} to ${method}: ${text.replaceAll(/\s+/g, ' ').slice(0, MAX_REASON)}`);
    return { headers: answer.headers, text };
  }
  async function sendParts(key: string, upload: string, path: string, signal: AbortSignal): Promise<string> {
    const file = await open(path);
    try {
      const { size } = await file.stat();
      const length = Math.max(MIN_PART, Math.ceil(size / MAX_PARTS));
      const tags: string[] = [];
      for (let position = 0; position < size; position += length) {
        signal.throwIfAborted();
        const buffer = Buffer.allocUnsafe(Math.min(length, size - position));
        const { bytesRead } = await file.read(buffer, 0, buffer.length, position);
        if (bytesRead < buffer.length) throw new Error(`${path} ends at ${position + bytesRead}, not at ${size}`);
        const query = { partNumber: String(tags.length + 1), uploadId: upload };
        const { headers } = await ask({ method: 'PUT', key, query, body: buffer }, signal);
        tags.push(String(headers['etag'] ?? ''));
      }
      const rows = tags.map((tag, at) => `<Part><PartNumber>${at + 1}</PartNumber><ETag>${tag}</ETag></Part>`);
      return `<CompleteMultipartUpload xmlns="http://s3.amazonaws.com/doc/2006-03-01/">${rows.join('')}</CompleteMultipartUpload>`;
    } finally {
      await file.close();
    }
  }
  return {
    async putFile(key, path, signal) {
      const { text } = await ask({ method: 'POST', key, query: { uploads: '' } }, signal);
      const upload = /<UploadId>([^<]{1,1024})<\/UploadId>/.exec(text)?.[1];
      if (upload === undefined) throw new Error(`S3 at ${origin} did not begin the upload`);
      try {
        const body = Buffer.from(await sendParts(key, upload, path, signal));
        await ask({ method: 'POST', key, query: { uploadId: upload }, body }, signal);
      } catch (error) {
        // Parts that no object has would cost for ever. The server may be the reason, so this may fail too.
        await ask({ method: 'DELETE', key, query: { uploadId: upload }, accept: [404] }, timeoutSignal(TIMEOUT_MS)).catch(() => {});
        throw error;
      }
    },
    async remove(key, signal) {
      await ask({ method: 'DELETE', key, accept: [404] }, signal);
    },
    urlOf(key, seconds) {
      const path = pathOf(key);
      return `${origin}${path}?${signer.queryOf({ host, path }, seconds, now())}`;
    },
  };
}
