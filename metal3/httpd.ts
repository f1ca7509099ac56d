/**
 * The HTTP server of the container `httpd`: files of the shared volume, what machines boot, and the API behind TLS. The server in the
 * container `ironic` answers for the last two, on Unix sockets in that volume.
 */
import {
  request as callUpstream,
  type IncomingMessage,
  type OutgoingHttpHeaders,
  type RequestListener,
  type ServerResponse,
} from 'node:http';
import { pipeline } from 'node:stream/promises';
import { openServedFile } from '../boot/files';
import { pathOf, refuse, sendLocal } from '../boot/http';
import { reasonOf } from '../model/errors';
import { systemClock } from '../model/clock';
import { createBoundedLog, type Log } from '../model/log';

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

/** Header fields for one connection only (RFC 9110 §7.6.1), and the password, which is checked here. */
const NOT_PASSED = ['connection', 'keep-alive', 'proxy-connection', 'te', 'trailer', 'transfer-encoding', 'upgrade', 'authorization'];
const passed = (headers: IncomingMessage['headers']): OutgoingHttpHeaders =>
  Object.fromEntries(Object.entries(headers).filter(([name]) => !NOT_PASSED.includes(name)));
/** Silence after which a request to the server in the other container is aborted. Event streams are never silent for this long. */
const UPSTREAM_MS = 300_000;

/** Passes a request on. Resolves when the response has ended. */
export async function proxyRequest(
  target: string | number,
  request: IncomingMessage,
  response: ServerResponse,
  instead?: (status: number) => string | undefined,
): Promise<void> {
  const upstream = callUpstream({
    ...(typeof target === 'string' ? { socketPath: target } : { host: '127.0.0.1', port: target }),
    method: request.method,
    path: request.url,
    headers: passed(request.headers),
    timeout: UPSTREAM_MS,
  });
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
