/** The server that a command uses, and its credentials, from the environment variables of the openstack CLI. */

import { HEADER } from '../model/versions';
import { serverFetch } from './server-fetch';
import { timeoutSignal } from '../wire/timeout-signal';

/** Longer than the server waits for machines. */
const TIMEOUT_MS = 30_000;

/** Returns the URL without /v1. */
export const endpoint = (url: string | undefined, environment: NodeJS.ProcessEnv): string =>
  (url ?? environment['OS_ENDPOINT_OVERRIDE'] ?? environment['OS_ENDPOINT'] ?? 'http://127.0.0.1:6385')
    .replace(/(?<!\/)\/+$/, '')
    .replace(/\/v1$/, '');

/** The header with a token (Keystone's, or one of `bloomery token`), or with a user of http_basic and the password. */
export function authorization(environment: NodeJS.ProcessEnv): Record<string, string> {
  const { OS_TOKEN: token, OS_USERNAME: name, OS_PASSWORD: password, OS_AUTH_URL: keystone } = environment;
  if (token) return { 'x-auth-token': token };
  // If a Keystone is set, the password is for Keystone only.
  if (name === undefined || password === undefined || keystone) return {};
  return { authorization: `Basic ${Buffer.from(`${name}:${password}`).toString('base64')}` };
}

export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
/** The message of an error response, in either format. */
function errorMessageOf(text: string): string | undefined {
  const { error_message: inner, error } = (parseJson(text) ?? {}) as { error_message?: unknown; error?: { message?: unknown } };
  const fault = (typeof inner === 'string' ? parseJson(inner) : inner) as { faultstring?: unknown; description?: unknown } | undefined;
  return [fault?.faultstring, fault?.description, error?.message].find(
    (candidate): candidate is string => typeof candidate === 'string' && candidate !== '',
  );
}
/** Describes an error response for the operator. */
export function refusalText(base: string, status: number, text: string): string {
  const todo = status === 401 ? ' (set OS_TOKEN, or OS_USERNAME and OS_PASSWORD of a user of http_basic)' : '';
  return `${base} answers ${status}${todo}: ${errorMessageOf(text) ?? 'the server is not Bloomery, or an older version'}`;
}

/**
 * @param url of the server, as given to the command
 * @param path below /v1
 * @param accept returns undefined if the body is not the expected response
 * @throws Error for the operator
 */
export async function get<Response>(
  url: string | undefined,
  path: string,
  accept: (body: unknown) => Response | undefined,
): Promise<Response> {
  return send(url, { method: 'GET', path }, accept);
}
/** @throws Error for the operator */
export const put = (url: string | undefined, path: string, body: object): Promise<true> =>
  send(url, { method: 'PUT', path, body }, () => true);

/** @throws Error for the operator */
export const post = <Response>(
  url: string | undefined,
  path: string,
  body: object,
  accept: (body: unknown) => Response | undefined,
): Promise<Response> => send(url, { method: 'POST', path, body }, accept);
/** @throws Error for the operator */
export const remove = (url: string | undefined, path: string): Promise<true> => send(url, { method: 'DELETE', path }, () => true);

/** A request that changes something. @throws Error for the operator */
export const change = (url: string | undefined, method: 'DELETE' | 'PATCH' | 'POST', path: string, body?: object): Promise<true> =>
  send(url, { method, path, body }, () => true);

/**
 * GET with the entity tag of an earlier answer, for commands that ask again and again.
 * @returns `unchanged` for 304, `missing` for 404
 * @throws Error for the operator
 */
export async function getTagged(
  url: string | undefined,
  path: string,
  tag: string | undefined,
  signal: AbortSignal,
): Promise<'unchanged' | 'missing' | { readonly tag: string | undefined; readonly body: unknown }> {
  const { base, response, text } = await exchange(url, { method: 'GET', path, ...(tag === undefined ? {} : { tag }), signal });
  if (response.status === 304) return 'unchanged';
  if (response.status === 404) return 'missing';
  const body = response.ok ? parseJson(text) : undefined;
  if (body === undefined) throw new Error(refusalText(base, response.status, text));
  return { tag: response.headers.get('etag') ?? undefined, body };
}

interface Sent {
  readonly method: string;
  readonly path: string;
  readonly body?: object | undefined;
  /** Of If-None-Match. */
  readonly tag?: string;
  readonly signal?: AbortSignal;
}
async function exchange(url: string | undefined, { method, path, body, tag, signal }: Sent) {
  const base = endpoint(url, process.env);
  if (!URL.canParse(base)) throw new Error(`${base} is not a URL`);
  const response = await serverFetch(base, `/v1/${path}`, {
    method,
    headers: {
      accept: 'application/json',
      [HEADER]: 'latest',
      ...(body ? { 'content-type': 'application/json' } : {}),
      ...(tag === undefined ? {} : { 'if-none-match': tag }),
      ...authorization(process.env),
    },
    ...(body ? { body: JSON.stringify(body) } : {}),
    signal: timeoutSignal(TIMEOUT_MS, ...(signal ? [signal] : [])),
  });
  return { base, response, text: await response.text() };
}
async function send<Response>(
  url: string | undefined,
  sent: Pick<Sent, 'method' | 'path' | 'body'>,
  accept: (body: unknown) => Response | undefined,
): Promise<Response> {
  const { base, response, text } = await exchange(url, sent);
  const accepted = response.ok ? accept(parseJson(text)) : undefined;
  if (accepted !== undefined) return accepted;
  throw new Error(refusalText(base, response.status, text));
}
