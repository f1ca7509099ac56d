/** The agent's HTTPS API, by default on port 9999: version documents, status, commands. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer, type Server } from 'node:https';
import type { SecureVersion } from 'node:tls';
import type { JsonObject } from '../model/records';
import type { Log } from '../model/log';
import { isSameSecret } from '../model/masks';
import type { OwnCertificate } from '../wire/http/certificate';
import type { Runner } from './commands';
import { AgentError } from '../model/agent/errors';
import { reasonOf } from '../model/errors';
import { isObject } from '../model/json';

interface ServerOptions {
  readonly host: string;
  readonly port: number;
  readonly certificate: OwnCertificate;
  readonly minVersion: SecureVersion;
  /** OpenSSL's names; absent: Node's. */
  readonly ciphers?: string | undefined;
  /** The token that this machine shares with the conductor; null: no commands are accepted. */
  readonly token: () => string | null;
  /** Milliseconds since the epoch. */
  readonly startedAt: number;
  readonly version: string;
  readonly runner: Runner;
  /** Called for each request with a valid token. */
  readonly authenticated: () => void;
  /** Awaited before a wrong token is answered. Absent: it is answered at once. */
  readonly refused?: () => Promise<void>;
  /** Bytes; default: a config drive. */
  readonly maxBody?: number;
  readonly log: Log;
}

/** A command may contain a config drive of 64 MiB, base64 encoded. */
const MAX_BODY = 100 * 2 ** 20;

/** Resolves when the server listens. */
export async function serve(options: ServerOptions): Promise<Server> {
  const server = createServer(
    {
      cert: options.certificate.certificate,
      key: options.certificate.privateKey,
      minVersion: options.minVersion,
      ciphers: options.ciphers,
    },
    (request, response) => void respond(options, request, response),
  );
  server.on('tlsClientError', (error) => options.log.warn(`TLS: ${error.message}`));
  const listen = (host: string): Promise<void> =>
    new Promise((resolve, reject) => {
      server.once('error', reject);
      server.listen(options.port, host, resolve);
    });
  await listen(options.host).catch((error: unknown) => {
    // A kernel without IPv6 has no `::`.
    if (options.host !== '::' || (error as NodeJS.ErrnoException).code !== 'EAFNOSUPPORT') throw error;
    return listen('0.0.0.0');
  });
  return server;
}

interface RequestParts {
  readonly url: URL;
  readonly base: string;
  readonly id: string;
  readonly body: () => Promise<Buffer>;
}
interface Route {
  readonly method: 'GET' | 'POST';
  /** Matched against the path without the optional /v1; its group is `id`. */
  readonly path: RegExp;
  readonly open?: true;
  answer(request: RequestParts, options: ServerOptions): Promise<unknown>;
}
const waits = (url: URL): boolean => url.searchParams.get('wait')?.toLowerCase() === 'true';

const ROUTES: readonly Route[] = [
  {
    method: 'GET',
    path: /^\/status\/?$/,
    open: true,
    answer: async (_, { startedAt, version }) => ({ started_at: startedAt / 1000, version }),
  },
  { method: 'GET', path: /^\/commands\/?$/, answer: async (_, { runner }) => ({ commands: runner.list() }) },
  { method: 'GET', path: /^\/commands\/([^/]+)$/, answer: ({ id, url }, { runner }) => runner.get(id, waits(url)) },
  {
    method: 'POST',
    path: /^\/commands\/?$/,
    answer: async ({ body, url }, { runner }) => {
      const { name, params } = parse(await body());
      return runner.execute(name, params, waits(url));
    },
  },
];

async function respond(options: ServerOptions, request: IncomingMessage, response: ServerResponse): Promise<void> {
  let status = 200;
  let answer: unknown;
  try {
    answer = await answerTo(options, request);
  } catch (error) {
    status = error instanceof AgentError ? error.status : 500;
    answer = { faultcode: status >= 500 ? 'Server' : 'Client', faultstring: reasonOf(error) };
    options.log.warn(`${request.method} ${request.url?.split('?')[0]}: ${status} ${reasonOf(error)}`);
  }
  const body = JSON.stringify(answer);
  response.writeHead(status, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) });
  response.end(body);
}

async function answerTo(options: ServerOptions, request: IncomingMessage): Promise<unknown> {
  const url = URL.canParse(request.url ?? '', 'https://agent') ? new URL(request.url!, 'https://agent') : undefined;
  if (!url) throw new AgentError('InvalidContentError', 'not a URL');
  const base = `https://${request.headers.host ?? 'agent'}`;
  if (request.method === 'GET' && url.pathname === '/') return rootDocument(base);
  if (request.method === 'GET' && /^\/v1\/?$/.test(url.pathname)) return versionDocument(base);
  const path = url.pathname.replace(/^\/v1(?=\/)/, '');
  for (const route of ROUTES) {
    const match = route.method === request.method ? route.path.exec(path) : null;
    if (!match) continue;
    if (!route.open) {
      if (!mayCommand(options.token(), url.searchParams.get('agent_token'))) {
        await options.refused?.();
        throw new AgentError('Unauthorized', 'Token invalid.');
      }
      options.authenticated();
    }
    return route.answer({ url, base, id: match[1] ?? '', body: () => read(request, options.maxBody ?? MAX_BODY) }, options);
  }
  throw new AgentError('RequestedObjectNotFoundError', `${request.method} ${url.pathname}`);
}

function mayCommand(token: string | null, given: string | null): boolean {
  if (!token || given === null) return false;
  return isSameSecret(token, given);
}

async function read(request: IncomingMessage, most: number): Promise<Buffer> {
  const parts: Buffer[] = [];
  let size = 0;
  for await (const part of request as AsyncIterable<Buffer>) {
    size += part.length;
    if (size > most) throw new AgentError('InvalidContentError', `larger than ${most} bytes`);
    parts.push(part);
  }
  return Buffer.concat(parts);
}

function parse(body: Buffer): { readonly name: string; readonly params: JsonObject } {
  let value: unknown;
  try {
    value = JSON.parse(body.toString('utf8'));
  } catch (error) {
    throw new AgentError('InvalidContentError', 'not JSON', { cause: error });
  }
  const { name, params } = (value ?? {}) as { name?: unknown; params?: unknown };
  if (typeof name !== 'string' || !isObject(params)) {
    throw new AgentError('InvalidContentError', 'Missing or invalid name or params');
  }
  return { name, params };
}

const link = (base: string, path: string, rel: string): JsonObject => ({ href: `${base}/${path}`, rel });
const version = (base: string): JsonObject => ({ id: 'v1', links: [link(base, 'v1', 'self')] });
const rootDocument = (base: string): JsonObject => ({
  name: 'Bloomery agent API',
  description: 'The agent inside a machine that is inspected, cleaned or deployed',
  versions: [version(base)],
  default_version: version(base),
});
const versionDocument = (base: string): JsonObject => ({
  ...version(base),
  commands: [link(base, 'v1/commands/', 'self')],
  status: [link(base, 'v1/status/', 'self')],
});
