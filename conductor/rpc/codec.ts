/**
 * JSON-RPC 2.0 between the processes of one database: what goes over the wire, and how each side proves that it is one of them. The key is
 * the secret that they share through the database; TLS may stand below, for those who may listen.
 */
import { createHash, createHmac, timingSafeEqual } from 'node:crypto';
import { Fault, FAULTS, reasonOf, type FaultName } from '../../model/errors';
import type { Log } from '../../model/log';
import type { Origin } from '../../model/origin';
import { isOperation, type OperationName } from '../operations';

/** Asked in the place of an operation: who answers here. */
export const PING = 'ping';
export interface RpcCall {
  readonly method: OperationName | typeof PING;
  readonly args: readonly unknown[];
  readonly origin?: Origin;
}

/** Clocks of hosts may differ by as much; calls are not taken later, nor twice until then. */
export const MAX_SKEW_MS = 60_000;
const SCHEME = 'BLOOMERY1';
const mac = (secret: string, ...parts: readonly (string | number)[]): string =>
  createHmac('sha256', secret).update(parts.join('\n')).digest('base64url');
export const digestOf = (body: string | Buffer): string => createHash('sha256').update(body).digest('base64url');
const equal = (a: string, b: string): boolean => a.length === b.length && timingSafeEqual(Buffer.from(a), Buffer.from(b));

/** What a call carries in `Authorization`. The conductor's name is signed too: the call is worth nothing elsewhere. */
export interface CallSignature {
  readonly time: number;
  readonly nonce: string;
  readonly digest: string;
}
export const authorize = (secret: string, to: string, { time, nonce, digest }: CallSignature): string =>
  [SCHEME, time, nonce, digest, mac(secret, 'call', to, time, nonce, digest)].join(' ');
/** Undefined: it was not made with this secret, or not for this conductor. */
export function authorized(secret: string, to: string, header: string | undefined): CallSignature | undefined {
  const parts = (header ?? '').split(' ');
  const [scheme, time, nonce, digest, signature] = parts;
  if (parts.length !== 5 || scheme !== SCHEME || !/^\d{1,16}$/.test(time!) || nonce!.length > 64) return undefined;
  const signed = { time: Number(time), nonce: nonce!, digest: digest! };
  return equal(signature!, mac(secret, 'call', to, signed.time, signed.nonce, signed.digest)) ? signed : undefined;
}
export const signAnswer = (secret: string, nonce: string, body: string): string => mac(secret, 'answer', nonce, digestOf(body));
export const isAnswerOf = (secret: string, nonce: string, body: string, signature: string | undefined): boolean =>
  signature !== undefined && equal(signature, signAnswer(secret, nonce, body));

/** Which calls were taken already: forgotten once their time is too old to be taken anyway. */
export function createNonces(): { isNew(nonce: string, now: number): boolean } {
  let [young, old] = [new Set<string>(), new Set<string>()];
  let turned = 0;
  return {
    isNew(nonce, now) {
      // A call may be as young as the skew allows ahead, so its nonce is kept for twice that.
      if (now - turned > 2 * MAX_SKEW_MS) {
        [young, old] = [new Set(), now - turned > 4 * MAX_SKEW_MS ? new Set() : young];
        turned = now;
      }
      if (young.has(nonce) || old.has(nonce)) return false;
      young.add(nonce);
      return true;
    },
  };
}

export const encodeCall = (id: string, { method, args, origin }: RpcCall): string => {
  // JSON has no undefined: arguments that are left out at the end stay out.
  const said = args.slice(0, args.findLastIndex((arg) => arg !== undefined) + 1);
  return JSON.stringify({ jsonrpc: '2.0', id, method, params: { args: said, ...(origin ? { origin } : {}) } });
};

/** Codes of JSON-RPC, and of ours: what was refused by a fault of the design; a conductor that takes nothing new. */
export const CODES = {
  parse: -32700,
  request: -32600,
  method: -32601,
  internal: -32603,
  fault: -32000,
  leaving: -32001,
  clock: -32002,
} as const;
/** A call that is none. */
export class RpcError extends Error {
  constructor(
    readonly code: number,
    message: string,
  ) {
    super(message);
  }
}
export function decodeCall(text: string): { readonly id: string; readonly call: RpcCall } {
  let said: Partial<Record<'jsonrpc' | 'id' | 'method' | 'params', unknown>>;
  try {
    said = JSON.parse(text) as typeof said;
  } catch {
    throw new RpcError(CODES.parse, 'no JSON');
  }
  const { id, method } = said;
  const { args = [], origin } = (said.params ?? {}) as { readonly args?: unknown; readonly origin?: Origin };
  if (said.jsonrpc !== '2.0' || typeof id !== 'string' || !Array.isArray(args))
    throw new RpcError(CODES.request, 'no call of JSON-RPC 2.0');
  if (method !== PING && !isOperation(method))
    throw new RpcError(CODES.method, `no operation ${String(method)}: another version of this program?`);
  return { id, call: { method, args, ...(origin ? { origin } : {}) } };
}

export const encodeResult = (id: string, result: unknown): string => JSON.stringify({ jsonrpc: '2.0', id, result: result ?? null });
/** A fault keeps its name and its details; of a defect goes only the message, the rest stands in the log here. */
export function encodeError(id: string | null, error: unknown, log: Log): string {
  const said = (code: number, data?: object): string =>
    JSON.stringify({ jsonrpc: '2.0', id, error: { code, message: reasonOf(error), ...(data ? { data } : {}) } });
  if (error instanceof Fault) return said(CODES.fault, { fault: error.name, details: error.details });
  if (error instanceof RpcError) return said(error.code);
  log.error('a call from another process failed', { error });
  return said(CODES.internal);
}

interface RpcResponse {
  readonly result?: unknown;
  readonly error?: {
    readonly code: number;
    readonly message: string;
    readonly data?: { readonly fault: string; readonly details: Fault['details'] };
  };
}
/** The result. Throws the fault as it was thrown there, BadCall, or an Error for a defect there. */
export function decodeAnswer(text: string): unknown {
  const { result, error } = JSON.parse(text) as RpcResponse;
  if (error === undefined) return result;
  const { code, message, data } = error;
  if (code === CODES.fault && data && Object.hasOwn(FAULTS, data.fault)) throw new Fault(data.fault as FaultName, data.details);
  if (code === CODES.internal || code === CODES.fault) throw new Error(message);
  throw new RpcError(code, message);
}
