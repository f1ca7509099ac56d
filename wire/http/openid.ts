/** The public keys of an OpenID provider (OpenID Connect Discovery 1.0 §4, RFC 7517). Bounded in time and size; redirects are not followed. */
import { Agent, request } from 'undici';
import { readAuthorities } from '../authorities';
import { isObject, parseSmallJson } from '../bounded-json';
import { timeoutSignal } from '../timeout-signal';

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

const isThisHost = (host: string): boolean => host === 'localhost' || host === '[::1]' || /^127(?:\.\d{1,3}){3}$/.test(host);

/** Why the keys of a provider cannot be trusted if they come from this URL; undefined: they can. */
export function providerUrlProblem(url: string): string | undefined {
  if (!URL.canParse(url)) return 'it is not a URL';
  const { protocol, hostname, username, password } = new URL(url);
  if (username !== '' || password !== '') return 'it has a user name or a password in it';
  return protocol === 'https:' || (protocol === 'http:' && isThisHost(hostname)) ? undefined : 'it must begin with https://';
}

/** @throws Error when there is no usable answer */
export async function fetchKeys({ issuer, caFile, timeoutMs }: OpenIdProvider, signal: AbortSignal): Promise<KeySet> {
  const ca = caFile === null ? {} : { ca: [...(await readAuthorities(caFile, /(?:)/))] };
  const dispatcher = new Agent({ maxResponseSize: MAX_BYTES, connect: { timeout: timeoutMs, ...ca } });
  const limited = timeoutSignal(timeoutMs, signal);
  const get = async (url: string): Promise<Readonly<Record<string, unknown>>> => {
    const answer = await request(url, { dispatcher, signal: limited, headers: { accept: 'application/json' } });
    if (answer.statusCode !== 200) throw new Error(`${url} answers ${answer.statusCode}`);
    const body = parseSmallJson(new Uint8Array(await answer.body.arrayBuffer()), LIMITS);
    if (!isObject(body)) throw new Error(`${url} answers no object`);
    return body;
  };
  try {
    const { issuer: named, jwks_uri: url } = await get(`${issuer.replace(/(?<!\/)\/$/, '')}/.well-known/openid-configuration`);
    if (named !== issuer) throw new Error(`the provider is ${JSON.stringify(named)?.slice(0, 200)}, not ${issuer}`);
    const problem = typeof url === 'string' ? providerUrlProblem(url) : 'there is none';
    if (problem !== undefined) throw new Error(`jwks_uri of the provider: ${problem}`);
    const { keys } = await get(url as string);
    if (!Array.isArray(keys) || !keys.every(isObject) || keys.length > MAX_KEYS) throw new Error('the provider has no list of keys');
    return { keys };
  } finally {
    await dispatcher.destroy();
  }
}
