/** Sends requests with retries: of connections that failed, and after responses with certain statuses. */
import { connectionText } from '../http/connection-text';
import { timeoutSignal } from '../timeout-signal';
import type { Exchange, ServiceRequest, ServiceResponse } from './exchange';

interface Retrying {
  readonly retries: number;
  /** Absent: half a second, twice as long each time, at most ten seconds. */
  readonly pauseMs?: number | undefined;
}
export interface Retries {
  readonly attemptTimeoutMs: number;
  /** For a request with its retries. Absent: only the number of retries bounds it. */
  readonly timeoutMs?: number;
  readonly connect: Retrying;
  readonly status: Retrying;
  /** HTTP statuses after which `status` applies. */
  readonly statuses: readonly number[];
}
interface SenderParts {
  readonly clock: {
    sleep(milliseconds: number, signal?: AbortSignal): Promise<void>;
  };
  /** Aborted when the program stops. */
  readonly signal: AbortSignal;
}
interface SendOptions {
  /** Follows the reason in the error of a failed connection. */
  readonly hint?: string;
  /** The caller's signal. */
  readonly signal?: AbortSignal | undefined;
}
/** @throws KeystoneError `unreachable` */
type Send = (url: string, request: ServiceRequest, options?: SendOptions) => Promise<ServiceResponse>;
/**
 * `unreachable`: no response, or no usable response to an authentication; `refused`: Keystone refuses this program, or knows no such
 * service; `failing`: an unexpected response to one request.
 */
export class KeystoneError extends Error {
  constructor(
    readonly kind: 'unreachable' | 'refused' | 'failing',
    message: string,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}

const FIRST_PAUSE_MS = 500;
const MAX_PAUSE_MS = 10_000;
const pauseOf = ({ pauseMs }: Retrying, attempt: number): number => pauseMs ?? Math.min(FIRST_PAUSE_MS * 2 ** attempt, MAX_PAUSE_MS);

/** Throws the error of a connection that failed. */
export const throwUnreachable =
  (url: string, hint = '') =>
  (error: unknown): never => {
    throw new KeystoneError('unreachable', `${new URL(url).origin}: ${connectionText(error)}${hint}`, { cause: error });
  };

export function createSender(
  exchange: Exchange,
  { attemptTimeoutMs, timeoutMs, connect, status, statuses }: Retries,
  parts: SenderParts,
): Send {
  const { clock, signal: stopping } = parts;
  return async (url, request, { hint = '', signal: ofCaller } = {}) => {
    const ending = ofCaller ? AbortSignal.any([stopping, ofCaller]) : stopping;
    const signal = timeoutMs === undefined ? ending : timeoutSignal(timeoutMs, ending);
    const fail: (error: unknown) => never = throwUnreachable(url, hint);
    for (let [connects, answers] = [0, 0]; ;) {
      let response: ServiceResponse;
      try {
        response = await exchange(url, request, timeoutSignal(attemptTimeoutMs, signal));
      } catch (error) {
        if (signal.aborted || connects >= connect.retries) fail(error);
        await clock.sleep(pauseOf(connect, connects++), signal).catch(() => fail(error));
        continue;
      }
      if (answers >= status.retries || !statuses.includes(response.status)) return response;
      await clock.sleep(pauseOf(status, answers++), signal).catch(fail);
    }
  };
}
