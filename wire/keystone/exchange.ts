/** One HTTP exchange with an OpenStack service: bounded in time, size and connections. Redirects are not followed. */
import type { Readable } from 'node:stream';
import { buildConnector } from 'undici';
import { readAuthorities, readRegularFile } from '../authorities';
import { JSON_LIMITS, parseJson } from '../bounded-json';
import { connectorWithFiles, createAgent, request } from '../http-agent';
import type { TlsSettings } from './settings';

export interface ServiceRequest {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE' | 'HEAD';
  readonly headers?: Readonly<Record<string, string>>;
  /** JSON, or bytes of another type. */
  readonly body?: object | Uint8Array;
}
export interface ServiceResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  /** Undefined: it is not JSON, or exceeds `JSON_LIMITS.openstack`. */
  readonly body: unknown;
}
/** A response whose body is read as it arrives. The reader destroys the body that it does not read to its end. */
export interface StreamedResponse {
  readonly status: number;
  readonly headers: ServiceResponse['headers'];
  readonly body: Readable;
}
/** Content that is sent as it is read. `Exchange.upload` destroys the body in the end. */
export interface Upload {
  readonly body: Readable;
  /** Bytes of it. */
  readonly size: number;
}
export interface Exchange {
  /** @throws Error without a response */
  (url: string, request: ServiceRequest, signal: AbortSignal): Promise<ServiceResponse>;
  /** GET, for content of any size. */
  stream(url: string, headers: Readonly<Record<string, string>>, signal: AbortSignal): Promise<StreamedResponse>;
  /** PUT, for content of any size. Resolves with the status of the response, whose body is not read. */
  upload(url: string, upload: Upload, headers: Readonly<Record<string, string>>, signal: AbortSignal): Promise<number>;
  close(): Promise<void>;
}

/** A token with the catalog of a large cloud has some hundred kilobytes. */
const MAX_ANSWER_BYTES = 4 * 1024 * 1024;
/** Concurrent requests; others wait. */
const CONNECTIONS = 32;
const CONNECT_TIMEOUT_MS = 10_000;
/** A service answers an upload when its storage has all of it. */
const UPLOAD_ANSWER_MS = 600_000;
/** Of streamed responses: until the headers, and between two pieces of the body. */
const STREAM_TIMEOUTS = { headersMs: 30_000, bodyMs: 60_000 };

function connectorOf({ caFile, certFile, keyFile, insecure }: TlsSettings): buildConnector.connector {
  const common = { timeout: CONNECT_TIMEOUT_MS, rejectUnauthorized: !insecure };
  if (caFile === null && certFile === null) return buildConnector(common);
  return connectorWithFiles(common, async () => {
    const ca = caFile === null || insecure ? undefined : [...(await readAuthorities(caFile, /(?:)/))];
    const cert = certFile === null ? undefined : await readRegularFile(certFile);
    const key = certFile === null ? undefined : await readRegularFile(keyFile ?? certFile);
    return { ...(ca ? { ca } : {}), ...(cert === undefined ? {} : { cert, key }) };
  });
}

export function createExchange(tls: TlsSettings): Exchange {
  const dispatcher = createAgent({ connections: CONNECTIONS, bodyBytes: MAX_ANSWER_BYTES, connect: connectorOf(tls) });
  const exchange = async (url: string, { method, headers = {}, body }: ServiceRequest, signal: AbortSignal): Promise<ServiceResponse> => {
    const isJson = body !== undefined && !(body instanceof Uint8Array);
    const answer = await request(url, {
      method,
      dispatcher,
      signal,
      headers: { accept: 'application/json', ...(isJson ? { 'content-type': 'application/json' } : {}), ...headers },
      ...(body === undefined ? {} : { body: isJson ? JSON.stringify(body) : body }),
    });
    const bytes = new Uint8Array(await answer.body.arrayBuffer());
    const parsed = await parseJson(bytes, JSON_LIMITS.openstack).catch(() => undefined);
    return { status: answer.statusCode, headers: answer.headers, body: parsed };
  };
  const streams = createAgent({ connections: CONNECTIONS, bodyBytes: 'streamed', connect: connectorOf(tls), ...STREAM_TIMEOUTS });
  const stream: Exchange['stream'] = async (url, headers, signal) => {
    const { statusCode: status, headers: answered, body } = await request(url, { dispatcher: streams, signal, headers });
    return { status, headers: answered, body };
  };
  const upload: Exchange['upload'] = async (url, { body, size }, headers, signal) => {
    const sized = { ...headers, 'content-length': String(size) };
    try {
      const answer = await request(url, {
        dispatcher: streams,
        signal,
        method: 'PUT',
        headers: sized,
        body,
        headersTimeout: UPLOAD_ANSWER_MS,
      });
      await answer.body.dump();
      return answer.statusCode;
    } finally {
      body.on('error', () => {}).destroy();
    }
  };
  const close = async (): Promise<void> => void (await Promise.all([dispatcher.destroy(), streams.destroy()]));
  return Object.assign(exchange, { stream, upload, close });
}
