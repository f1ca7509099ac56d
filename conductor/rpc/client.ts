/**
 * Calls conductors in other processes over kept-alive connections with bounded waits. An error says whether the call may have been
 * executed.
 */
import { X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { buildConnector, errors } from 'undici';
import type { WebSocket } from 'ws';
import type { Options } from '../../config/options';
import type { Clock } from '../../model/clock';
import { reasonOf } from '../../model/errors';
import { newUuid } from '../../model/idents';
import type { Log } from '../../model/log';
import { silentMetrics, type Metrics } from '../../model/metrics';
import { createAgent, request } from '../../wire/http-agent';
import { watchFiles } from '../../wire/watch-files';
import type { Probed } from '../runtime/lease';
import { authorize, RpcError, CODES, decodeAnswer, digestOf, encodeCall, isAnswerOf, PING, type RpcCall } from './codec';
import { timeoutSignal } from '../../wire/timeout-signal';
import { openStream } from './stream-client';

type RpcClientOptions = Pick<Options, 'json_rpc.cafile' | 'json_rpc.insecure'>;
/** The conductor that is called: its name, which the signature covers, and its address. */
interface RemoteConductor {
  readonly hostname: string;
  readonly address: string;
}
/** The conductor did not answer. */
export class NoResponse extends Error {
  constructor(
    message: string,
    /** Whether the conductor may have executed the call. */
    readonly mayHaveRun: boolean,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}
export interface RpcClient {
  /** Throws the error that the remote call threw, or NoResponse. */
  call(callee: RemoteConductor, call: RpcCall, signal: AbortSignal): Promise<unknown>;
  probe(callee: RemoteConductor): Promise<Probed>;
  /** Opens a WebSocket to the conductor, which is paused. @throws NoResponse */
  connect(callee: RemoteConductor, path: string, protocols: readonly string[], signal: AbortSignal): Promise<WebSocket>;
  /** Reads [json_rpc]cafile again. */
  reload(): void;
  close(): Promise<void>;
}

const CONNECT_TIMEOUT_MS = 3000;
const PROBE_TIMEOUT_MS = 5000;
const KEEP_ALIVE_MS = 30_000;
/** A response may hold a list of records. */
const MAX_ANSWER_BYTES = 256 * 2 ** 20;
/** Errors before anything was sent: no listener, or an untrusted one. */
const UNSENT = new Set(['ECONNREFUSED', 'EHOSTUNREACH', 'ENETUNREACH', 'EHOSTDOWN', 'ENOTFOUND', 'EAI_AGAIN', 'UND_ERR_CONNECT_TIMEOUT']);
/** Node's error codes for certificates. */
const isUnsent = (code: unknown): boolean => typeof code === 'string' && (UNSENT.has(code) || /CERT|^ERR_TLS|^ERR_SSL|^EPROTO/.test(code));
const codeOf = (error: unknown): unknown => {
  const { code, cause, errors: several } = (error ?? {}) as { code?: unknown; cause?: unknown; errors?: readonly unknown[] };
  return several?.length ? codeOf(several[0]) : (code ?? (cause ? codeOf(cause) : undefined));
};

/** @throws Error for the operator */
function readCa(path: string): Buffer {
  try {
    const ca = readFileSync(path);
    new X509Certificate(ca);
    return ca;
  } catch (error) {
    throw new Error(`[json_rpc]cafile: cannot use ${path}: ${reasonOf(error)}`, { cause: error });
  }
}
const tlsOf = (options: RpcClientOptions): { readonly rejectUnauthorized: boolean; readonly ca: Buffer | undefined } => ({
  rejectUnauthorized: !options['json_rpc.insecure'],
  ca: options['json_rpc.cafile'] === null ? undefined : readCa(options['json_rpc.cafile']),
});

function probedBy(error: unknown): Probed {
  if (!(error instanceof NoResponse)) return 'answers';
  const { cause } = error;
  // The conductor answered with an error of its own, so it is alive.
  if (cause instanceof RpcError) return 'answers';
  // The port is closed, or another program uses it.
  return cause === undefined || codeOf(cause) === 'ECONNREFUSED' ? 'gone' : 'silent';
}
/** A WebSocket that was not opened did nothing. @throws NoResponse */
async function answered<T>({ hostname, address }: RemoteConductor, opening: Promise<T>): Promise<T> {
  try {
    return await opening;
  } catch (error) {
    throw new NoResponse(`conductor ${hostname} at ${address}: ${reasonOf(error)}`, false, { cause: error });
  }
}

/** @throws Error for the operator, for a [json_rpc]cafile that cannot be used */
export function createRpcClient(setup: {
  readonly options: RpcClientOptions;
  readonly secret: string;
  readonly clock: Clock;
  readonly random: (bytes: number) => Buffer;
  readonly log: Log;
  /** Absent: nothing is measured. */
  readonly metrics?: Metrics;
}): RpcClient {
  const { options, secret, clock, random, log, metrics = silentMetrics } = setup;
  const ca = options['json_rpc.cafile'];
  let tls = tlsOf(options);
  let connector = buildConnector({ timeout: CONNECT_TIMEOUT_MS, ...tls });
  /** Only new connections use the new CA certificates. */
  const watch = watchFiles(ca === null ? [] : [ca], () => {
    try {
      tls = tlsOf(options);
      connector = buildConnector({ timeout: CONNECT_TIMEOUT_MS, ...tls });
      log.info('the CA certificates were read again', { file: ca });
    } catch (error) {
      log.error('the new CA certificates cannot be used; the previous ones stay in use', { error: reasonOf(error) });
    }
  });
  const dispatcher = createAgent({
    keepAliveMs: KEEP_ALIVE_MS,
    // The caller's signal bounds the wait; some operations take minutes on a BMC.
    headersMs: 0,
    bodyMs: 0,
    bodyBytes: MAX_ANSWER_BYTES,
    connect: (to, done) => connector(to, done),
  });

  async function call({ hostname, address }: RemoteConductor, rpcCall: RpcCall, signal: AbortSignal): Promise<unknown> {
    const nonce = newUuid(random);
    const body = encodeCall(nonce, rpcCall);
    const authorization = authorize(secret, hostname, { time: Math.round(clock.now()), nonce, digest: digestOf(body) });
    let status: number;
    let text: string;
    let signature: string | string[] | undefined;
    try {
      const answer = await request(address, {
        method: 'POST',
        dispatcher,
        signal,
        headers: { 'content-type': 'application/json', authorization },
        body,
      });
      status = answer.statusCode;
      signature = answer.headers['x-bloomery-signature'];
      text = await answer.body.text();
    } catch (error) {
      const reason = signal.aborted ? reasonOf(signal.reason) : reasonOf(error);
      const mayHaveRun = !isUnsent(codeOf(error)) && !(error instanceof errors.ConnectTimeoutError);
      throw new NoResponse(`conductor ${hostname} at ${address}: ${reason}`, mayHaveRun, { cause: error });
    }
    if (!isAnswerOf(secret, nonce, text, typeof signature === 'string' ? signature : undefined))
      throw new NoResponse(`the service at ${address} (${status}) is not conductor ${hostname} of this database`, false);
    try {
      return decodeAnswer(text);
    } catch (error) {
      if (error instanceof RpcError && [CODES.leaving, CODES.clock, CODES.method].some((code) => code === error.code))
        throw new NoResponse(`conductor ${hostname}: ${error.message}`, false, { cause: error });
      throw error;
    }
  }

  return {
    async call(callee, rpcCall, signal) {
      const took = metrics.timer();
      let outcome = 'ok';
      try {
        return await call(callee, rpcCall, signal);
      } catch (error) {
        outcome = error instanceof NoResponse ? 'unanswered' : 'failed';
        throw error;
      } finally {
        metrics.observe('bloomery_rpc_call_duration_seconds', { side: 'client', method: rpcCall.method, outcome }, took());
      }
    },
    async probe(callee) {
      try {
        await call(callee, { method: PING, args: [] }, timeoutSignal(PROBE_TIMEOUT_MS));
        return 'answers';
      } catch (error) {
        return probedBy(error);
      }
    },
    connect: (callee, path, protocols, signal) =>
      answered(callee, openStream({ callee, path, protocols, secret, nonce: newUuid(random), now: clock.now(), tls, signal })),
    reload: () => watch.reload(),
    close: async () => {
      watch.stop();
      await dispatcher.destroy();
    },
  };
}
