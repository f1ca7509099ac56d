/**
 * JSON-RPC 2.0 between the processes of one database: the messages, and their authentication. The key is a secret in the database; TLS
 * protects against eavesdropping.
 */
import { createHash, createHmac } from 'node:crypto';
import { Fault, FAULTS, reasonOf, type FaultName } from '../../model/errors';
import type { Log } from '../../model/log';
import type { Origin } from '../../model/origin';
import { isSameSecret } from '../../model/masks';
import { AlreadyRead } from '../conductor';
import { isOperation, type OperationName } from '../operations';

/** A pseudo-operation that returns the conductor's name. */
export const PING = 'ping';
export interface RpcCall {
  readonly method: OperationName | typeof PING;
  readonly args: readonly unknown[];
  readonly origin?: Origin | undefined;
}

/** The tolerated difference of the hosts' clocks. A call is rejected after this time, and if its nonce was used within it. */
export const MAX_SKEW_MS = 60_000;
const SCHEME = 'BLOOMERY1';
const mac = (secret: string, ...parts: readonly (string | number)[]): string =>
  createHmac('sha256', secret).update(parts.join('\n')).digest('base64url');
export const digestOf = (body: string | Buffer): string => createHash('sha256').update(body).digest('base64url');

/** The signature in `Authorization`. It covers the conductor's name, so the call is invalid anywhere else. */
interface CallSignature {
  readonly time: number;
  readonly nonce: string;
  readonly digest: string;
}
export const authorize = (secret: string, to: string, { time, nonce, digest }: CallSignature): string =>
  [SCHEME, time, nonce, digest, mac(secret, 'call', to, time, nonce, digest)].join(' ');
/** Undefined if the signature was made with another secret or for another conductor. */
export function authorized(secret: string, to: string, header: string | undefined): CallSignature | undefined {
  const parts = (header ?? '').split(' ');
  const [scheme, time, nonce, digest, signature] = parts;
  if (parts.length !== 5 || scheme !== SCHEME || !/^\d{1,16}$/.test(time!) || nonce!.length > 64) return undefined;
  const signed = { time: Number(time), nonce: nonce!, digest: digest! };
  return isSameSecret(signature!, mac(secret, 'call', to, signed.time, signed.nonce, signed.digest)) ? signed : undefined;
}
export const signAnswer = (secret: string, nonce: string, body: string): string => mac(secret, 'answer', nonce, digestOf(body));
export const isAnswerOf = (secret: string, nonce: string, body: string, signature: string | undefined): boolean =>
  signature !== undefined && isSameSecret(signature, signAnswer(secret, nonce, body));

/** Nonces that were used; forgotten once their calls are too old to be accepted. */
export function createNonces(): { isNew(nonce: string, now: number): boolean } {
  let [young, old] = [new Set<string>(), new Set<string>()];
  let turned = 0;
  return {
    isNew(nonce, now) {
      // The caller's clock may be ahead by the tolerance, so a nonce is kept for twice that time.
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
  // JSON has no undefined, so trailing undefined arguments are omitted. The conductor there reads its records itself.
  const given = args.slice(0, args.findLastIndex((arg) => arg !== undefined && !(arg instanceof AlreadyRead)) + 1);
  return JSON.stringify({ jsonrpc: '2.0', id, method, params: { args: given, origin } });
};

/** Codes of JSON-RPC, and our own: a Fault, a conductor that does not execute the call, clocks that differ too much. */
export const CODES = {
  parse: -32700,
  request: -32600,
  method: -32601,
  internal: -32603,
  fault: -32000,
  leaving: -32001,
  clock: -32002,
} as const;
/** A malformed or rejected call. */
export class RpcError extends Error {
  constructor(
    readonly code: number,
    message: string,
  ) {
    super(message);
  }
}
export function decodeCall(text: string): { readonly id: string; readonly call: RpcCall } {
  let message: Partial<Record<'jsonrpc' | 'id' | 'method' | 'params', unknown>>;
  try {
    message = JSON.parse(text) as typeof message;
  } catch {
    throw new RpcError(CODES.parse, 'the body is not JSON');
  }
  const { id, method } = message;
  const { args = [], origin } = (message.params ?? {}) as { readonly args?: unknown; readonly origin?: Origin };
  if (message.jsonrpc !== '2.0' || typeof id !== 'string' || !Array.isArray(args))
    throw new RpcError(CODES.request, 'not a call of JSON-RPC 2.0');
  if (method !== PING && !isOperation(method))
    throw new RpcError(CODES.method, `unknown operation ${String(method)}: does the caller run another version of this program?`);
  return { id, call: { method, args, origin } };
}

export const encodeResult = (id: string, result: unknown): string => JSON.stringify({ jsonrpc: '2.0', id, result: result ?? null });
/** A Fault keeps its name and details. Of any other error only the message is sent; the rest is in the log here. */
export function encodeError(id: string | null, error: unknown, log: Log): string {
  const encoded = (code: number, data?: object): string =>
    JSON.stringify({ jsonrpc: '2.0', id, error: { code, message: reasonOf(error), data } });
  if (error instanceof Fault) return encoded(CODES.fault, { fault: error.name, details: error.details });
  if (error instanceof RpcError) return encoded(error.code);
  log.error('a call from another process failed', { error });
  return encoded(CODES.internal);
}

interface RpcResponse {
  readonly result?: unknown;
  readonly error?: {
    readonly code: number;
    readonly message: string;
    readonly data?: { readonly fault: string; readonly details: Fault['details'] };
  };
}
/** Returns the result. Throws the Fault of the remote call, RpcError, or an Error for a defect there. */
export function decodeAnswer(text: string): unknown {
  const { result, error } = JSON.parse(text) as RpcResponse;
  if (error === undefined) return result;
  const { code, message, data } = error;
  if (code === CODES.fault && data && Object.hasOwn(FAULTS, data.fault)) throw new Fault(data.fault as FaultName, data.details);
  if (code === CODES.internal || code === CODES.fault) throw new Error(message);
  throw new RpcError(code, message);
}
