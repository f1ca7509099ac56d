/** The simulator's HTTP: a client for all machines, and what its servers share. */
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createAgent, request } from '../wire/http-agent';

interface HttpResponse {
  readonly status: number;
  header(name: string): string | undefined;
  /** The caller reads it or calls `drain`. */
  readonly body: AsyncIterable<Buffer>;
  drain(): Promise<void>;
  json(): Promise<unknown>;
  text(): Promise<string>;
}
interface HttpRequest {
  readonly method?: 'GET' | 'HEAD' | 'POST' | 'PUT';
  readonly headers?: Readonly<Record<string, string>>;
  readonly json?: unknown;
  /** A body that is no JSON. */
  readonly bytes?: Buffer;
  readonly signal: AbortSignal;
}
export interface HttpClient {
  /** Rejects when there is no answer. */
  request(url: string, options: HttpRequest): Promise<HttpResponse>;
  close(): Promise<void>;
}

export function openHttpClient(): HttpClient {
  const dispatcher = createAgent({
    connect: { timeout: 5000, rejectUnauthorized: false },
    bodyBytes: 'streamed',
    headersMs: 30_000,
    bodyMs: 30_000,
  });
  return {
    request: async (url, { method = 'GET', headers = {}, json, bytes, signal }) => {
      const answer = await request(url, {
        dispatcher,
        method,
        signal,
        headers: { ...headers, ...(json === undefined ? {} : { 'content-type': 'application/json' }) },
        body: bytes ?? (json === undefined ? null : JSON.stringify(json)),
      });
      return {
        status: answer.statusCode,
        header: (name) => [answer.headers[name] ?? []].flat()[0],
        body: answer.body,
        drain: () => answer.body.dump(),
        json: () => answer.body.json(),
        text: () => answer.body.text(),
      };
    },
    close: () => dispatcher.destroy(),
  };
}

/** Reads a request's body as JSON; undefined: there is none. @throws when the body is too long or not valid JSON */
export async function readJson(incoming: IncomingMessage, maxBytes: number): Promise<unknown> {
  const parts: Buffer[] = [];
  let length = 0;
  for await (const part of incoming as AsyncIterable<Buffer>) {
    length += part.length;
    if (length > maxBytes) throw new Error('the body is too long');
    parts.push(part);
  }
  return length === 0 ? undefined : JSON.parse(Buffer.concat(parts).toString());
}

export function sendJson(response: ServerResponse, status: number, body: unknown, headers: Readonly<Record<string, string>> = {}): void {
  const text = body === undefined ? '' : JSON.stringify(body);
  response
    .writeHead(status, {
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      ...(status === 204 ? {} : { 'content-length': Buffer.byteLength(text) }),
      ...headers,
    })
    .end(text);
}

export interface HttpListener {
  readonly port: number;
  /** Closes the connections too. */
  readonly close: () => Promise<void>;
}
/** Rejects when the server cannot listen on the port. */
export async function listenOn(server: Server, port: number, host: string): Promise<HttpListener> {
  await new Promise<void>((done, fail) => {
    server.once('error', fail);
    server.listen(port, host, () => {
      server.off('error', fail);
      done();
    });
  });
  return {
    port: (server.address() as AddressInfo).port,
    close: async () => {
      const closed = new Promise<void>((done) => server.close(() => done()));
      server.closeAllConnections();
      await closed;
    },
  };
}
