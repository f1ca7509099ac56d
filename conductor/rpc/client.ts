/** Makes calls of conductors in other processes: kept connections, bounded waits, and a clear word on whether a call can have been done. */
import { readFileSync } from 'node:fs';
import { Agent, errors, request } from 'undici';
import type { Options } from '../../config/options';
import type { Clock } from '../../model/clock';
import { reasonOf } from '../../model/errors';
import { newUuid } from '../../model/idents';
import { silentMetrics, type Metrics } from '../../model/metrics';
import type { Probed } from '../core/lease';
import { authorize, BadCall, CODES, decodeAnswer, digestOf, encodeCall, isAnswerOf, PING, type Call } from './codec';

export type RpcClientOptions = Pick<Options, 'json_rpc.cafile' | 'json_rpc.insecure'>;
/** Who is called: by its name, which the call is signed for, and where it is. */
export interface Callee {
  readonly hostname: string;
  readonly address: string;
}
/** No answer of the conductor's came. */
export class NotAnswered extends Error {
  constructor(
    message: string,
    /** Whether it can have done what was asked. */
    readonly maybeDone: boolean,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}
export interface RpcClient {
  /** Throws what the call throws there, as it was thrown; NotAnswered. */
  call(callee: Callee, call: Call, signal: AbortSignal): Promise<unknown>;
  probe(callee: Callee): Promise<Probed>;
  close(): Promise<void>;
}

const CONNECT_TIMEOUT_MS = 3000;
const PROBE_TIMEOUT_MS = 5000;
const KEEP_ALIVE_MS = 30_000;
/** Answers are records and lists of them. */
const MAX_ANSWER_BYTES = 256 * 2 ** 20;
/** Nothing was sent: nobody is there, or nobody who could be trusted. */
const UNSENT = new Set(['ECONNREFUSED', 'EHOSTUNREACH', 'ENETUNREACH', 'EHOSTDOWN', 'ENOTFOUND', 'EAI_AGAIN', 'UND_ERR_CONNECT_TIMEOUT']);
/** Node's names of what is wrong with a certificate. */
const isUnsent = (code: unknown): boolean => typeof code === 'string' && (UNSENT.has(code) || /CERT|^ERR_TLS|^ERR_SSL|^EPROTO/.test(code));
const codeOf = (error: unknown): unknown => {
  const { code, cause, errors: several } = (error ?? {}) as { code?: unknown; cause?: unknown; errors?: readonly unknown[] };
  return several?.length ? codeOf(several[0]) : (code ?? (cause ? codeOf(cause) : undefined));
};

export function createRpcClient(setup: {
  readonly options: RpcClientOptions;
  readonly secret: string;
  readonly clock: Clock;
  readonly random: (bytes: number) => Buffer;
  /** Absent: nothing is measured. */
  readonly metrics?: Metrics;
}): RpcClient {
  const { options, secret, clock, random, metrics = silentMetrics } = setup;
  const ca = options['json_rpc.cafile'];
  const dispatcher = new Agent({
    keepAliveTimeout: KEEP_ALIVE_MS,
    keepAliveMaxTimeout: KEEP_ALIVE_MS,
    // The caller's signal bounds the wait: some operations ask a BMC for minutes.
    headersTimeout: 0,
    bodyTimeout: 0,
    maxResponseSize: MAX_ANSWER_BYTES,
    connect: {
      timeout: CONNECT_TIMEOUT_MS,
      rejectUnauthorized: !options['json_rpc.insecure'],
      ...(ca === null ? {} : { ca: readFileSync(ca) }),
    },
  });

  async function call({ hostname, address }: Callee, asked: Call, signal: AbortSignal): Promise<unknown> {
    const nonce = newUuid(random);
    const body = encodeCall(nonce, asked);
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
      const maybeDone = !isUnsent(codeOf(error)) && !(error instanceof errors.ConnectTimeoutError);
      throw new NotAnswered(`conductor ${hostname} at ${address}: ${reason}`, maybeDone, { cause: error });
    }
    if (!isAnswerOf(secret, nonce, text, typeof signature === 'string' ? signature : undefined))
      throw new NotAnswered(`what answers at ${address} (${status}) is not conductor ${hostname} of this database`, false);
    try {
      return decodeAnswer(text);
    } catch (error) {
      if (error instanceof BadCall && [CODES.leaving, CODES.clock, CODES.method].some((code) => code === error.code))
        throw new NotAnswered(`conductor ${hostname}: ${error.message}`, false, { cause: error });
      throw error;
    }
  }

  return {
    async call(callee, asked, signal) {
      const took = metrics.timer();
      let outcome = 'ok';
      try {
        return await call(callee, asked, signal);
      } catch (error) {
        outcome = error instanceof NotAnswered ? 'unanswered' : 'failed';
        throw error;
      } finally {
        metrics.observe('bloomery_rpc_call_duration_seconds', { side: 'client', method: asked.method, outcome }, took());
      }
    },
    async probe(callee) {
      try {
        await call(callee, { method: PING, args: [] }, AbortSignal.timeout(PROBE_TIMEOUT_MS));
        return 'answers';
      } catch (error) {
        if (!(error instanceof NotAnswered)) return 'answers';
        const { cause } = error;
        // Something refused in its own words: it is there.
        if (cause instanceof BadCall) return 'answers';
        // Another program has the port by now, or none.
        return cause === undefined || codeOf(cause) === 'ECONNREFUSED' ? 'gone' : 'silent';
      }
    },
    close: () => dispatcher.destroy(),
  };
}
