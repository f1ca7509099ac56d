/** The RPC listener of a conductor: executes calls from other processes that share the database. */
import { createHash } from 'node:crypto';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setImmediate } from 'node:timers/promises';
import type { Options } from '../../config/options';
import type { Clock } from '../../model/clock';
import type { Log } from '../../model/log';
import { silentMetrics, type Metrics } from '../../model/metrics';
import { urlHost } from '../../wire/addresses';
import { API_READ_TIMEOUT_MS, type ClientLimits } from '../../wire/http/client-limits';
import { createHttpServer, type TlsSettings } from '../../wire/http/listener-tls';
import { shareLimits } from '../../wire/shares';
import type { Perform } from '../operations';
import { admitStreams, type StreamListener } from './streams';
import { authorized, RpcError, CODES, createNonces, decodeCall, encodeError, encodeResult, MAX_SKEW_MS, PING, signAnswer } from './codec';

type RpcServerOptions = Pick<
  Options,
  | 'DEFAULT.host'
  | 'json_rpc.host_ip'
  | 'json_rpc.port'
  | 'json_rpc.client_use_ssl'
  | 'api.max_connections'
  | 'api.max_connections_per_source'
  | 'api.max_json_body_size_provision'
  | 'api.max_json_body_size_inspection'
>;
/** Executes the calls. */
interface RpcHandler {
  readonly perform: Perform;
  readonly isLeaving: () => boolean;
}
export interface RpcServer {
  /** Where other processes reach it. */
  readonly address: string;
  /** Accepts calls from now on; earlier ones are rejected, and their callers retry. */
  serve(handler: RpcHandler): void;
  /** Accepts WebSockets from now on. */
  stream(listener: StreamListener): void;
  /** Reads the files of TLS again. */
  reload(): void;
  stop(): Promise<void>;
}

/** A call's size beyond the client's request body: names, origin, quotes. */
const EXTRA_BYTES = 2 ** 20;
const HEADERS_TIMEOUT_MS = 10_000;
const REQUEST_TIMEOUT_MS = 120_000;
/** Longer than callers keep connections (client.ts), so that none closes while a call is sent. */
const KEEP_ALIVE_MS = 60_000;
const LEAVE_MS = 1000;

const isEverywhere = (host: string): boolean => host === '::' || host === '0.0.0.0';

function listen(server: Server, host: string, port: number): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => {
      const reason = error.code === 'EADDRINUSE' ? 'the port is in use' : error.message;
      reject(new Error(`cannot listen on ${host} port ${port} (other processes, [json_rpc]port): ${reason}`));
    });
    const listening = (): void => resolve((server.address() as AddressInfo).port);
    // Without an address, Node listens on both IP versions if possible.
    if (isEverywhere(host)) server.listen(port, listening);
    else server.listen(port, host, listening);
  });
}

/** Reads the body and checks its length and its signed digest. Throws RpcError. */
async function bodyOf(request: IncomingMessage, maxBytes: number, digest: string): Promise<string> {
  const pieces: Buffer[] = [];
  const hash = createHash('sha256');
  let length = 0;
  for await (const piece of request as AsyncIterable<Buffer>) {
    length += piece.length;
    if (length > maxBytes) throw new RpcError(CODES.request, `the call is longer than ${maxBytes} bytes`);
    hash.update(piece);
    pieces.push(piece);
  }
  if (hash.digest('base64url') !== digest) throw new RpcError(CODES.request, 'the call does not match its signature');
  return Buffer.concat(pieces).toString();
}

/**
 * Whether the caller closed the connection. A process that was suspended receives old calls together with the ends of their connections.
 * Such calls must not run: another conductor may have executed them meanwhile. The end of a connection is read one turn after the data
 * before it.
 */
async function isCallerGone({ socket }: IncomingMessage): Promise<boolean> {
  for (let turn = 0; turn < 2; turn++) await setImmediate();
  return socket.destroyed || socket.readableEnded;
}

/** Aborts when the connection closes before the response was sent. */
function abortOnClose(response: ServerResponse): AbortSignal {
  const gone = new AbortController();
  response.once('close', () => {
    if (!response.writableEnded) gone.abort();
  });
  return gone.signal;
}

interface RpcServerSetup {
  readonly options: RpcServerOptions;
  /** Absent: listens without TLS. */
  readonly tls?: TlsSettings | undefined;
  /** The address at which other processes reach this host. */
  readonly announced: string;
  /** Shared by the processes of the database. */
  readonly secret: string;
  readonly clock: Clock;
  readonly log: Log;
  /** Absent: nothing is measured. */
  readonly metrics?: Metrics;
}

async function measured<T>(metrics: Metrics, method: string, work: Promise<T>): Promise<T> {
  const took = metrics.timer();
  let outcome = 'failed';
  try {
    const done = await work;
    outcome = 'ok';
    return done;
  } finally {
    metrics.observe('bloomery_rpc_call_duration_seconds', { side: 'server', method, outcome }, took());
  }
}

/**
 * Answers calls: checks the signature, the clock and the nonce, executes the call and signs the response.
 * @param currentHandler undefined: calls are rejected, and their callers retry
 */
function createCallListener(
  { options, secret, clock, log, metrics = silentMetrics }: RpcServerSetup,
  currentHandler: () => RpcHandler | undefined,
  nonces: ReturnType<typeof createNonces>,
): (request: IncomingMessage, response: ServerResponse) => Promise<void> {
  const name = options['DEFAULT.host'];
  const maxBytes = Math.max(options['api.max_json_body_size_provision'], options['api.max_json_body_size_inspection']) * 1024 + EXTRA_BYTES;

  return async (request, response) => {
    const refuse = (status: number): void => {
      metrics.count('bloomery_rpc_refused_total', {});
      response.writeHead(status, { Connection: 'close' }).end();
      request.resume();
    };
    if (request.method !== 'POST') {
      refuse(405);
      return;
    }
    const signed = authorized(secret, name, request.headers.authorization);
    // The body of an unauthenticated request is not read.
    if (!signed) {
      refuse(401);
      return;
    }
    let id: string | null = null;
    let body: string;
    try {
      const skew = signed.time - clock.now();
      if (Math.abs(skew) > MAX_SKEW_MS)
        throw new RpcError(CODES.clock, `the clocks of the hosts differ by ${Math.round(Math.abs(skew) / 1000)} seconds`);
      if (!nonces.isNew(signed.nonce, clock.now())) {
        refuse(401);
        return;
      }
      const read = decodeCall(await bodyOf(request, maxBytes, signed.digest));
      ({ id } = read);
      const { method, args, origin } = read.call;
      const handler = currentHandler();
      if (method === PING) body = encodeResult(id, name);
      else if (!handler || handler.isLeaving()) throw new RpcError(CODES.leaving, `conductor ${name} is stopping`);
      else if (await isCallerGone(request)) throw new RpcError(CODES.leaving, 'the caller closed the connection');
      else body = encodeResult(id, await measured(metrics, method, handler.perform(method, args, origin, abortOnClose(response))));
    } catch (error) {
      body = encodeError(id, error, log);
    }
    response.writeHead(200, {
      'Content-Type': 'application/json',
      'Content-Length': String(Buffer.byteLength(body)),
      'X-Bloomery-Signature': signAnswer(secret, signed.nonce, body),
    });
    response.end(body);
  };
}

/** @throws Error for the operator: port, certificate */
export async function startRpcServer(setup: RpcServerSetup): Promise<RpcServer> {
  const { options, tls, announced, secret, clock, log, metrics = silentMetrics } = setup;
  let handler: RpcHandler | undefined;
  let streams: StreamListener | undefined;
  const nonces = createNonces();
  const answer = createCallListener(setup, () => handler, nonces);

  const timeouts = { headersTimeout: HEADERS_TIMEOUT_MS, requestTimeout: REQUEST_TIMEOUT_MS, keepAliveTimeout: KEEP_ALIVE_MS };
  const limits: ClientLimits = {
    connections: shareLimits(options['api.max_connections'], options['api.max_connections_per_source']),
    readTimeoutMs: API_READ_TIMEOUT_MS,
    onRefused: (limit) => metrics.count('bloomery_connections_refused_total', { listener: 'rpc', limit }),
  };
  const http = createHttpServer(timeouts, tls, limits, log, (request, response) => {
    answer(request, response).catch((error: unknown) => {
      log.debug('a caller closed the connection', { error });
      response.destroy();
    });
  });
  http.upgrade(
    admitStreams({
      name: options['DEFAULT.host'],
      secret,
      clock,
      isNew: (nonce, now) => nonces.isNew(nonce, now),
      listener: () => (handler && !handler.isLeaving() ? streams : undefined),
      onRefused: () => metrics.count('bloomery_rpc_refused_total', {}),
    }),
  );
  let port: number;
  try {
    port = await listen(http.server, options['json_rpc.host_ip'], options['json_rpc.port']);
  } catch (error) {
    await http.close(0);
    throw error;
  }
  const scheme = tls || options['json_rpc.client_use_ssl'] ? 'https' : 'http';
  const host = isEverywhere(options['json_rpc.host_ip']) ? announced : options['json_rpc.host_ip'];
  return {
    address: `${scheme}://${urlHost(host)}:${port}`,
    serve: (given) => {
      handler = given;
    },
    stream: (listener) => {
      streams = listener;
    },
    reload: () => http.reload(),
    stop: () => http.close(LEAVE_MS),
  };
}
