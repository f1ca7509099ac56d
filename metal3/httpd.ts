/**
 * The HTTP server of the container `httpd`: files of the shared volume, what machines boot, and the API behind TLS. The server in the
 * container `ironic` answers for the last two, on Unix sockets in that volume.
 */
import {
  request as callUpstream,
  ServerResponse,
  type ClientRequest,
  type IncomingMessage,
  type OutgoingHttpHeaders,
  type RequestListener,
} from 'node:http';
import { connect, type Socket } from 'node:net';
import { pipeline } from 'node:stream/promises';
import { openServedFile } from '../boot/files';
import { pathOf, refuse, sendLocal } from '../boot/http';
import { reasonOf } from '../model/errors';
import { systemClock } from '../model/clock';
import { createBoundedLog, type Log } from '../model/log';
import type { UpgradeListener } from '../wire/http/upgrades';
import { proxyHeader } from '../wire/http/proxy-protocol';

/** The ports: HTTP_PORT, that of the API with TLS, and VMEDIA_TLS_PORT. */
export type Port = 'plain' | 'api' | 'media';
/** The area of a request, by its decoded path; the first row that matches counts. */
const AREAS = [
  { area: 'hidden', paths: /(?:^|\/)\.ht/i },
  { area: 'media', paths: /^\/(?:redfish|ilo|media)(?:\/|$)/ },
  { area: 'ramdisk', paths: /^\/images\/ironic[^/]*$/ },
  { area: 'image', paths: /^\/images(?:\/|$)/ },
  { area: 'start script', paths: /^\/boot\.ipxe$/ },
  { area: 'inspector script', paths: /^\/inspector\.ipxe$/ },
  { area: 'boot', paths: /^\/(?:ipxe|boot)\// },
  { area: 'file', paths: /(?:)/ },
] as const;
type Area = (typeof AREAS)[number]['area'];

interface HttpdModes {
  /** Media are served with TLS only. */
  readonly mediaTls: boolean;
  /** Images of nodes are served on the plain port too. */
  readonly plainImages: boolean;
}
/** Whether a port serves an area; `api`: the API answers. @internal */
export function ruleOf(port: Port, path: string, { mediaTls, plainImages }: HttpdModes): Area | 'api' | 'refused' {
  const { area } = AREAS.find(({ paths }) => paths.test(path))!;
  const isImage = area === 'image' || area === 'ramdisk';
  if (area === 'hidden') return 'refused';
  if (port === 'api') return isImage ? area : 'api';
  if (port === 'media') return area === 'media' ? area : 'refused';
  return (area === 'media' && mediaTls) || (area === 'image' && !plainImages) ? 'refused' : area;
}

interface HttpdSetup {
  readonly modes: HttpdModes;
  /** The folder of the files. */
  readonly root: string;
  /** The Unix sockets of the boot service and the API. A number is the API's port on loopback. */
  readonly boot: string;
  readonly api: string | number;
  readonly startScript: string;
  readonly inspectorScript: string;
  /** Answers a request that lacks the right password. @returns whether the request may pass */
  readonly admits: (request: IncomingMessage, response: ServerResponse) => Promise<boolean>;
  readonly log: Log;
}

/** Header fields for one connection only (RFC 9110 §7.6.1), `Expect`, which is answered here, and the password, which is checked here. */
const NOT_PASSED = new Set('connection keep-alive proxy-connection te trailer transfer-encoding upgrade expect authorization'.split(' '));
const passed = (headers: IncomingMessage['headers']): OutgoingHttpHeaders =>
  Object.fromEntries(Object.entries(headers).filter(([name]) => !NOT_PASSED.has(name)));
/**
 * The header fields of a request for the server. A body without a length is in chunks there too, with any method: Node sends that of a GET or
 * a DELETE without a frame, and the server would read it as the next request (RFC 9112 §11.2).
 */
const passedRequest = ({ headers }: IncomingMessage): OutgoingHttpHeaders => ({
  ...passed(headers),
  ...(headers['transfer-encoding'] === undefined ? {} : { 'transfer-encoding': 'chunked' }),
});
/** Silence after which a request to the server in the other container is aborted. Event streams are never silent for this long. */
const UPSTREAM_MS = 300_000;

/**
 * Calls the server in the other container for a client, whom it names in a way that the client cannot write: on a Unix socket by the PROXY
 * protocol, with a connection for each request. On a port, where the server believes nobody, it only tells that there is a client.
 */
function callFor(request: IncomingMessage, target: string | number, more: OutgoingHttpHeaders = {}): ClientRequest {
  const headers = { ...passedRequest(request), ...more };
  const common = { method: request.method, path: request.url, timeout: UPSTREAM_MS };
  if (typeof target === 'number') {
    const before = request.headers['x-forwarded-for'];
    const from = request.socket.remoteAddress ?? 'unknown';
    const chain = before === undefined ? from : `${[before].flat().join(', ')}, ${from}`;
    return callUpstream({ ...common, host: '127.0.0.1', port: target, headers: { ...headers, 'x-forwarded-for': chain } });
  }
  const createConnection = (): Socket => {
    const socket = connect(target);
    socket.write(proxyHeader(request.socket));
    return socket;
  };
  return callUpstream({ ...common, headers, createConnection });
}

/** Passes a request on. Resolves when the response has ended. */
export async function proxyRequest(
  target: string | number,
  request: IncomingMessage,
  response: ServerResponse,
  instead?: (status: number) => string | undefined,
): Promise<void> {
  const upstream = callFor(request, target);
  upstream.on('timeout', () => upstream.destroy(new Error('the server did not answer in time')));
  response.once('close', () => upstream.destroy());
  const answered = new Promise<IncomingMessage>((done, fail) => upstream.once('response', done).once('error', fail));
  // If the client's body ends early, the pipeline destroys the upstream request too; the failure shows in `answered`.
  pipeline(request, upstream).catch(() => {});
  const answer = await answered;
  const text = instead?.(answer.statusCode ?? 0);
  if (text !== undefined) {
    answer.destroy();
    sendText(response, text);
    return;
  }
  response.writeHead(answer.statusCode ?? 502, passed(answer.headers));
  await pipeline(answer, response);
}

const sendText = (response: ServerResponse, text: string): void =>
  void response
    .writeHead(200, { 'content-type': 'text/plain', 'content-length': Buffer.byteLength(text), 'cache-control': 'no-store' })
    .end(text);

const RETRY = { 'retry-after': '5' };

/** @returns the listener of a port */
export function createHttpd(setup: HttpdSetup, port: Port): RequestListener {
  const log = createBoundedLog(setup.log, systemClock);
  const file = async (request: IncomingMessage, response: ServerResponse, path: string): Promise<void> => {
    const opened = await openServedFile({ named: {}, root: setup.root, own: [] }, path);
    if (opened) await sendLocal(request, response, opened);
    else refuse(response, 404, 'Not found');
  };
  /** The handlers of the areas that are not served from files alone. */
  const answers: Readonly<Record<string, (request: IncomingMessage, response: ServerResponse, path: string) => Promise<void>>> = {
    'start script': async (_, response) => sendText(response, setup.startScript),
    'inspector script': async (_, response) => sendText(response, setup.inspectorScript),
    // A machine that belongs to no node boots the inspector script.
    boot: (request, response, path) => {
      const instead = (status: number): string | undefined =>
        status === 404 && path.startsWith('/ipxe/') ? setup.inspectorScript : undefined;
      return proxyRequest(setup.boot, request, response, instead);
    },
    media: (request, response, path) =>
      path.startsWith('/media/') ? proxyRequest(setup.boot, request, response) : file(request, response, path),
  };
  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const path = pathOf(request.url);
    const rule = path === undefined ? undefined : ruleOf(port, path, setup.modes);
    if (path === undefined || rule === undefined) refuse(response, 400, 'Not a path');
    else if (rule === 'refused') refuse(response, 403, 'Forbidden');
    else if (rule === 'api') {
      if (await setup.admits(request, response)) await proxyRequest(setup.api, request, response);
    } else if (request.method !== 'GET' && request.method !== 'HEAD') {
      refuse(response, 405, 'Only GET and HEAD', { allow: 'GET, HEAD' });
    } else {
      await (answers[rule] ?? file)(request, response, path);
    }
  };
  return (request, response) => {
    answer(request, response).catch((error: unknown) => {
      const fields = { path: (request.url ?? '').slice(0, 200).replace(/(\/(?:boot|media)\/)[^/]+/, '$1***'), error: reasonOf(error) };
      if (response.headersSent || response.destroyed) {
        log.info('HTTP: ended early', fields);
        response.destroy();
        return;
      }
      log.warn('HTTP: the server in the other container does not answer', fields);
      refuse(response, 503, 'The server is not ready', RETRY);
    });
  };
}

const LINE_END = '\r\n';
/** The response that begins a WebSocket, as the server wrote it. */
function switching({ statusCode, statusMessage, rawHeaders }: IncomingMessage): string {
  const lines = [`HTTP/1.1 ${statusCode} ${statusMessage}`];
  for (let at = 0; at < rawHeaders.length; at += 2) lines.push(`${rawHeaders[at]}: ${rawHeaders[at + 1]}`);
  return lines.join(LINE_END) + LINE_END + LINE_END;
}
/** Joins two connections until one of them ends. The server pings the client of a WebSocket, and so notices one that is gone. */
function join(client: Socket, server: Socket, first: Buffer, log: Log): void {
  for (const socket of [client, server]) socket.setTimeout(0);
  if (first.length > 0) server.write(first);
  Promise.all([pipeline(client, server), pipeline(server, client)]).catch((error: unknown) => {
    log.debug('HTTP: a WebSocket ended early', { error: reasonOf(error) });
    client.destroy();
    server.destroy();
  });
}

/** @returns what passes the WebSockets of the API's port on, after the password was checked */
export function createTunnel({ api, modes, admits, log }: HttpdSetup): UpgradeListener {
  const open = async (request: IncomingMessage, socket: Socket, head: Buffer, response: ServerResponse): Promise<void> => {
    if (!(await admits(request, response))) return;
    const upstream = callFor(request, api, { connection: 'Upgrade', upgrade: 'websocket' });
    const leave = (): void => void upstream.destroy();
    socket.once('close', leave);
    await new Promise<void>((done, fail) => {
      upstream.once('error', fail).once('timeout', () => upstream.destroy(new Error('the server did not answer in time')));
      upstream.once('response', (answer) => {
        response.writeHead(answer.statusCode ?? 502, passed(answer.headers));
        pipeline(answer, response).then(done, fail);
      });
      upstream.once('upgrade', (answer, server, first) => {
        socket.off('close', leave);
        response.detachSocket(socket);
        socket.write(switching(answer));
        if (first.length > 0) socket.write(first);
        join(socket, server, head, log);
        done();
      });
      upstream.end();
    });
  };
  return (request, duplex, head) => {
    const path = pathOf(request.url);
    const { upgrade, 'content-length': length, 'transfer-encoding': coding } = request.headers;
    // RFC 6455 §4.1: a request without a body.
    const isSocket = request.method === 'GET' && upgrade?.toLowerCase() === 'websocket' && length === undefined && coding === undefined;
    if (!isSocket || path === undefined || ruleOf('api', path, modes) !== 'api') return false;
    const socket = duplex as Socket;
    socket.on('error', () => {});
    const response = new ServerResponse(request);
    response.shouldKeepAlive = false;
    response.assignSocket(socket);
    response.once('finish', () => socket.end());
    open(request, socket, head, response).catch((error: unknown) => {
      log.warn('HTTP: a WebSocket cannot be opened', { error: reasonOf(error) });
      if (response.headersSent || socket.destroyed) socket.destroy();
      else refuse(response, 503, 'The server is not ready', RETRY);
    });
    return true;
  };
}
