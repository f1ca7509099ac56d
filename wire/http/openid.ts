/**
 * The public keys, endpoints and tokens of an OpenID provider (OpenID Connect Discovery 1.0 §4, RFC 7517, RFC 6749). Bounded in time and
 * size; redirects are not followed.
 */
import { readAuthorities } from '../authorities';
import { parseSmallJson } from '../bounded-json';
import { timeoutSignal } from '../timeout-signal';
import { isLoopback } from '../../model/idents';
import { isObject } from '../../model/json';
import { shortened } from '../../model/text';
import { createAgent, request } from '../http-agent';

export interface OpenIdProvider {
  /** https://…; http://… on this host only. */
  readonly issuer: string;
  /** File or folder of authorities, PEM; null: those of the system. */
  readonly caFile: string | null;
  readonly timeoutMs: number;
}
/** The members of a JWK depend on its type. */
export interface KeySet {
  readonly keys: readonly Readonly<Record<string, unknown>>[];
}

const MAX_BYTES = 256 * 1024;
const MAX_KEYS = 100;
const LIMITS = { values: 10_000, depth: 10 };

/** Why the keys of a provider cannot be trusted if they come from this URL; undefined: they can. */
export function providerUrlProblem(url: string): string | undefined {
  if (!URL.canParse(url)) return 'it is not a URL';
  const { protocol, hostname, username, password } = new URL(url);
  if (username !== '' || password !== '') return 'it has a user name or a password in it';
  return protocol === 'https:' || (protocol === 'http:' && isLoopback(hostname)) ? undefined : 'it must begin with https://';
}

/** An answer of the token endpoint that is a refusal: RFC 6749 §5.2. */
export class GrantRefused extends Error {}

interface ProviderAnswer {
  readonly status: number;
  readonly body: Readonly<Record<string, unknown>>;
}
type Ask = (
  url: string,
  form?: { readonly fields: URLSearchParams; readonly headers: Readonly<Record<string, string>> },
) => Promise<ProviderAnswer>;
/** Runs requests that share one timeout. */
async function asking<T>({ caFile, timeoutMs }: OpenIdProvider, signal: AbortSignal, work: (ask: Ask) => Promise<T>): Promise<T> {
  const ca = caFile === null ? {} : { ca: [...(await readAuthorities(caFile, /(?:)/))] };
  const dispatcher = createAgent({ bodyBytes: MAX_BYTES, connect: { timeout: timeoutMs, ...ca } });
  const limited = timeoutSignal(timeoutMs, signal);
  try {
    return await work(async (url, form) => {
      const answer = await request(url, {
        dispatcher,
        signal: limited,
        headers: { accept: 'application/json', ...form?.headers },
        ...(form ? { method: 'POST', body: form.fields.toString() } : {}),
      });
      const body = parseSmallJson(new Uint8Array(await answer.body.arrayBuffer()), LIMITS);
      if (!isObject(body)) throw new Error(`${url} answers ${answer.statusCode} and no object`);
      return { status: answer.statusCode, body };
    });
  } finally {
    await dispatcher.destroy();
  }
}
async function found(ask: Ask, url: string): Promise<ProviderAnswer['body']> {
  const { status, body } = await ask(url);
  if (status !== 200) throw new Error(`${url} answers ${status}`);
  return body;
}
async function discover(ask: Ask, issuer: string): Promise<ProviderAnswer['body']> {
  const metadata = await found(ask, `${issuer.replace(/(?<!\/)\/$/, '')}/.well-known/openid-configuration`);
  const named = metadata['issuer'];
  if (named !== issuer) throw new Error(`the provider is ${JSON.stringify(named)?.slice(0, 200)}, not ${issuer}`);
  return metadata;
}
function urlIn(metadata: ProviderAnswer['body'], name: string): string {
  const url = metadata[name];
  const problem = typeof url === 'string' ? providerUrlProblem(url) : 'there is none';
  if (problem !== undefined) throw new Error(`${name} of the provider: ${problem}`);
  return url as string;
}

/** @throws Error when there is no usable answer */
export const fetchKeys = (provider: OpenIdProvider, signal: AbortSignal): Promise<KeySet> =>
  asking(provider, signal, async (ask) => {
    const { keys } = await found(ask, urlIn(await discover(ask, provider.issuer), 'jwks_uri'));
    if (!Array.isArray(keys) || !keys.every(isObject) || keys.length > MAX_KEYS) throw new Error('the provider has no list of keys');
    return { keys };
  });

export interface ProviderEndpoints {
  readonly authorization: string;
  readonly token: string;
}
/** @throws Error when there is no usable answer */
export const fetchEndpoints = (provider: OpenIdProvider, signal: AbortSignal): Promise<ProviderEndpoints> =>
  asking(provider, signal, async (ask) => {
    const metadata = await discover(ask, provider.issuer);
    return { authorization: urlIn(metadata, 'authorization_endpoint'), token: urlIn(metadata, 'token_endpoint') };
  });

interface OpenIdClient {
  readonly id: string;
  /** Null: a public client. */
  readonly secret: string | null;
}
export interface IssuedTokens {
  readonly accessToken: string;
  readonly idToken: string | undefined;
  readonly refreshToken: string | undefined;
  /** Seconds. */
  readonly expiresIn: number | undefined;
}
/** RFC 6749 §2.3.1. */
const basicOf = ({ id, secret }: { readonly id: string; readonly secret: string }): string =>
  `Basic ${Buffer.from(`${encodeURIComponent(id)}:${encodeURIComponent(secret)}`).toString('base64')}`;
const textIn = (body: ProviderAnswer['body'], name: string): string | undefined => {
  const value = body[name];
  return typeof value === 'string' && value !== '' ? value : undefined;
};
/**
 * A request to the token endpoint (RFC 6749 §4.1.3 and §6).
 * @throws GrantRefused, Error when there is no usable answer
 */
export const requestTokens = (
  provider: OpenIdProvider,
  { token: url }: ProviderEndpoints,
  { id, secret }: OpenIdClient,
  grant: Readonly<Record<string, string>>,
  signal: AbortSignal,
): Promise<IssuedTokens> =>
  asking(provider, signal, async (ask) => {
    const fields = new URLSearchParams(secret === null ? { ...grant, client_id: id } : grant);
    const headers = {
      'content-type': 'application/x-www-form-urlencoded',
      ...(secret === null ? {} : { authorization: basicOf({ id, secret }) }),
    };
    const { status, body } = await ask(url, { fields, headers });
    if (status >= 500) throw new Error(`${url} answers ${status}`);
    const accessToken = textIn(body, 'access_token');
    if (status !== 200 || accessToken === undefined)
      throw new GrantRefused(
        `${url} answers ${status}: ${shortened([textIn(body, 'error'), textIn(body, 'error_description')].join(' '), 300)}`,
      );
    const lifetime = body['expires_in'];
    return {
      accessToken,
      idToken: textIn(body, 'id_token'),
      refreshToken: textIn(body, 'refresh_token'),
      expiresIn: typeof lifetime === 'number' && lifetime > 0 ? lifetime : undefined,
    };
  });
