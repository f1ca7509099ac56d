/** Answers calls from the other processes on the database: the listener of a conductor. */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type RequestListener, type Server, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { setImmediate } from 'node:timers/promises';
import type { Options } from '../../config/options';
import type { Clock } from '../../model/clock';
import type { Log } from '../../model/log';
import { silentMetrics, type Metrics } from '../../model/metrics';
import type { Perform } from '../operations';
import { authorized, BadCall, CODES, createNonces, decodeCall, encodeError, encodeResult, MAX_SKEW_MS, PING, signAnswer } from './codec';

export type RpcServerOptions = Pick<
  Options,
  | 'DEFAULT.host'
  | 'json_rpc.host_ip'
  | 'json_rpc.port'
  | 'json_rpc.use_ssl'
  | 'json_rpc.client_use_ssl'
  | 'json_rpc.cert_file'
  | 'json_rpc.key_file'
  | 'json_rpc.server_tls_minimum_version'
  | 'api.max_json_body_size_provision'
  | 'api.max_json_body_size_inspection'
>;
/** Who does what is asked. */
export interface Doer {
  readonly perform: Perform;
  readonly isLeaving: () => boolean;
}
export interface RpcServer {
  /** Where others reach it. */
  readonly address: string;
  /** From now on; before, callers are told to come again. */
  serve(doer: Doer): void;
  stop(): Promise<void>;
}

/** What a call has beside the body that a client sent: names, origin, quotes. */
const EXTRA_BYTES = 2 ** 20;
const HEADERS_TIMEOUT_MS = 10_000;
const REQUEST_TIMEOUT_MS = 120_000;
/** Longer than callers keep connections (rpc-client.ts), so that none is ended while they use it. */
const KEEP_ALIVE_MS = 60_000;
const LEAVE_MS = 1000;

const isEverywhere = (host: string): boolean => host === '::' || host === '0.0.0.0';
const inUrl = (host: string): string => (host.includes(':') ? `[${host}]` : host);

function createListener(options: RpcServerOptions, listener: RequestListener): Server {
  const limits = { headersTimeout: HEADERS_TIMEOUT_MS, requestTimeout: REQUEST_TIMEOUT_MS, keepAliveTimeout: KEEP_ALIVE_MS };
  if (!options['json_rpc.use_ssl']) return createServer(limits, listener);
  const read = (name: 'cert_file' | 'key_file'): Buffer => {
    const file = options[`json_rpc.${name}`];
    if (file === null) throw new Error(`[json_rpc]use_ssl needs [json_rpc]${name}`);
    try {
      return readFileSync(file);
    } catch (error) {
      throw new Error(`[json_rpc]${name}: ${(error as Error).message}`, { cause: error });
    }
  };
  const minVersion = options['json_rpc.server_tls_minimum_version'] === '1.2' ? 'TLSv1.2' : 'TLSv1.3';
  return createTlsServer({ ...limits, cert: read('cert_file'), key: read('key_file'), minVersion }, listener);
}

function listen(server: Server, host: string, port: number): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => {
      const reason = error.code === 'EADDRINUSE' ? 'the port is in use' : error.message;
      reject(new Error(`cannot listen on ${host} port ${port} (other processes, [json_rpc]port): ${reason}`));
    });
    const listening = (): void => resolve((server.address() as AddressInfo).port);
    // Without an address Node takes both families where both are.
    if (isEverywhere(host)) server.listen(port, listening);
    else server.listen(port, host, listening);
  });
}

/** The body, whose length and digest the signature vouches for. Throws BadCall. */
async function bodyOf(request: IncomingMessage, most: number, digest: string): Promise<string> {
  const pieces: Buffer[] = [];
  const hash = createHash('sha256');
  let length = 0;
  for await (const piece of request as AsyncIterable<Buffer>) {
    length += piece.length;
    if (length > most) throw new BadCall(CODES.request, `the call is longer than ${most} bytes`);
    hash.update(piece);
    pieces.push(piece);
  }
  if (hash.digest('base64url') !== digest) throw new BadCall(CODES.request, 'the call is not what was signed');
  return Buffer.concat(pieces).toString();
}

/**
 * Whether the caller went away. A process that was suspended finds old calls beside the ends of their connections: what they asked for may
 * have been asked of another meanwhile, and changed again. The end is read one turn after what came before it.
 */
async function hasGivenUp({ socket }: IncomingMessage): Promise<boolean> {
  for (let turn = 0; turn < 2; turn++) await setImmediate();
  return socket.destroyed || socket.readableEnded;
}

/** Aborted when the connection ends before the answer is given. */
function goneWith(response: ServerResponse): AbortSignal {
  const gone = new AbortController();
  response.once('close', () => {
    if (!response.writableEnded) gone.abort();
  });
  return gone.signal;
}

/**
 * @param announced the address that others reach this host at
 * @param secret shared by the processes on the database
 * @throws Error for the operator: the port, the certificate
 */
export async function startRpcServer(setup: {
  readonly options: RpcServerOptions;
  readonly announced: string;
  readonly secret: string;
  readonly clock: Clock;
  readonly log: Log;
  /** Absent: nothing is measured. */
  readonly metrics?: Metrics;
}): Promise<RpcServer> {
  const { options, announced, secret, clock, log, metrics = silentMetrics } = setup;
  const name = options['DEFAULT.host'];
  const nonces = createNonces();
  const most = Math.max(options['api.max_json_body_size_provision'], options['api.max_json_body_size_inspection']) * 1024 + EXTRA_BYTES;
  let doer: Doer | undefined;

  async function measured<T>(method: string, work: Promise<T>): Promise<T> {
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

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
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
    // Nothing of those is read.
    if (!signed) {
      refuse(401);
      return;
    }
    let id: string | null = null;
    let said: string;
    try {
      const skew = signed.time - clock.now();
      if (Math.abs(skew) > MAX_SKEW_MS)
        throw new BadCall(CODES.clock, `the clocks of the hosts differ by ${Math.round(Math.abs(skew) / 1000)} seconds`);
      if (!nonces.isNew(signed.nonce, clock.now())) {
        refuse(401);
        return;
      }
      const read = decodeCall(await bodyOf(request, most, signed.digest));
      ({ id } = read);
      const { method, args, origin } = read.call;
      if (method === PING) said = encodeResult(id, name);
      else if (!doer || doer.isLeaving()) throw new BadCall(CODES.leaving, `conductor ${name} takes nothing new`);
      else if (await hasGivenUp(request)) throw new BadCall(CODES.leaving, 'the caller has given the call up');
      else said = encodeResult(id, await measured(method, doer.perform(method, args, origin, goneWith(response))));
    } catch (error) {
      said = encodeError(id, error, log);
    }
    response.writeHead(200, {
      'Content-Type': 'application/json',
      'Content-Length': String(Buffer.byteLength(said)),
      'X-Bloomery-Signature': signAnswer(secret, signed.nonce, said),
    });
    response.end(said);
  }

  const server = createListener(options, (request, response) => {
    answer(request, response).catch((error: unknown) => {
      log.debug('a caller went away', { error });
      response.destroy();
    });
  });
  const port = await listen(server, options['json_rpc.host_ip'], options['json_rpc.port']);
  const scheme = options['json_rpc.use_ssl'] || options['json_rpc.client_use_ssl'] ? 'https' : 'http';
  const host = isEverywhere(options['json_rpc.host_ip']) ? announced : options['json_rpc.host_ip'];
  return {
    address: `${scheme}://${inUrl(host)}:${port}`,
    serve: (given) => {
      doer = given;
    },
    stop: async () => {
      const closed = new Promise<void>((done) => server.close(() => done()));
      server.closeIdleConnections();
      const late = setTimeout(() => server.closeAllConnections(), LEAVE_MS);
      await closed;
      clearTimeout(late);
    },
  };
}
