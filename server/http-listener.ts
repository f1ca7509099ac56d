/**
 * HTTP listeners, with TLS if the setup names certificate files. Ports are opened early, so that a port in use stops the start. Requests
 * get 503 until a handler is set.
 */
import type { RequestListener, Server } from 'node:http';
import type { Log } from '../model/log';
import { StartError } from './settings';
import { urlHost } from '../wire/addresses';
import type { ClientLimits } from '../wire/http/client-limits';
import { listenError } from '../wire/sockets/listen-errors';
import { listenOnSocket, removeStaleSocket } from '../wire/sockets/unix-socket';
import type { UpgradeListener } from '../wire/http/upgrades';
import { createHttpServer, type HttpOptions, type HttpServer, type TlsSettings } from '../wire/http/listener-tls';

/** Where to listen. */
export type ListenAddress =
  | { readonly host: string; readonly port: number }
  | {
      readonly path: string;
      /** Permissions of the socket. Null: those that the umask leaves. */
      readonly mode: number | null;
    };
export interface HttpListener {
  /** Undefined for a Unix socket. */
  readonly port: number | undefined;
  /** The bound address: a URL, or `unix:` and a path. */
  readonly bound: string;
  readonly scheme: 'http' | 'https';
  /** Sets the handler. Before this call, every response is 503. */
  answer(listener: RequestListener): void;
  /** Takes over connections for other protocols, such as WebSocket. Call it at most once. */
  upgrade(listener: UpgradeListener): void;
  /** Reads the files of TLS again. */
  reload(): void;
  /** Waits two seconds for running responses. May be called again. */
  close(): Promise<void>;
}
interface ListenerSetup {
  readonly options: HttpOptions;
  readonly limits: ClientLimits;
  readonly address: ListenAddress;
  /** Purpose and option of the address, for the error message. */
  readonly what: string;
  readonly tls?: TlsSettings | undefined;
  readonly log: Log;
}
const CLOSE_TIMEOUT_MS = 2000;
function listen(server: Server, address: ListenAddress, what: string): Promise<void> {
  return new Promise((done, fail) => {
    const where = 'path' in address ? address.path : `${address.host} port ${address.port}`;
    server.once('error', (error) => {
      fail('path' in address ? new StartError(`cannot listen on ${where} (${what}): ${error.message}`) : listenError(error, where, what));
    });
    if (!('path' in address)) {
      server.listen(address.port, address.host, done);
      return;
    }
    listenOnSocket(server, address.path, address.mode, done);
  });
}

/** @throws Error for the operator */
export async function listenHttp({ options, limits, address, what, tls, log }: ListenerSetup): Promise<HttpListener> {
  let listener: RequestListener = (_, response) => void response.writeHead(503).end();
  const answer: RequestListener = (request, response) => listener(request, response);
  let http: HttpServer;
  try {
    if ('path' in address) await removeStaleSocket(address.path, what);
    http = createHttpServer(options, tls, limits, log, answer);
  } catch (error) {
    throw new StartError((error as Error).message);
  }
  const { server, scheme } = http;
  try {
    await listen(server, address, what);
  } catch (error) {
    await http.close(0);
    throw error;
  }
  const at = server.address();
  const port = at !== null && typeof at === 'object' ? at.port : undefined;
  const bound = at !== null && typeof at === 'object' ? `${scheme}://${urlHost(at.address)}:${at.port}` : `unix:${at ?? ''}`;
  log.info('listening', { address: bound, for: what });
  let closing: Promise<void> | undefined;
  return {
    port,
    bound,
    scheme,
    answer: (given) => {
      listener = given;
    },
    upgrade: (upgradeListener) => http.upgrade(upgradeListener),
    reload: () => http.reload(),
    close: () => (closing ??= http.close(CLOSE_TIMEOUT_MS)),
  };
}
