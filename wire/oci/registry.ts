/**
 * A client of container registries (OCI distribution specification 1.1) for one repository: tags, manifests and blobs, with the challenges
 * Basic and Bearer. Logins go to the registry, and to the token server that it names. No other host gets them, nor the token.
 */
import { createHash } from 'node:crypto';
import type { Readable } from 'node:stream';
import type { Agent, Dispatcher } from 'undici';
import { retry, type Clock } from '../../model/clock';
import { isObject, objectOf, type JsonObject } from '../../model/json';
import { basicAuthorization, type Credentials } from '../../model/urls';
import { JSON_LIMITS, parseJson } from '../bounded-json';
import { createAgent, request } from '../http-agent';
import { connectionText } from '../http/connection-text';
import { timeoutSignal } from '../timeout-signal';
import { webServerConnector, type WebServerOptions } from '../web-servers';
import { challengesOf, tokenUrl, type Challenge } from './challenge';
import { loginsFor, mayLogIn, type LoginOptions, type LoginSource } from './logins';
import { OCI_INDEX, OCI_MANIFEST } from './manifest';
import { isTag, type BlobReference } from './reference';

export interface RegistryOptions extends LoginOptions, WebServerOptions {
  readonly 'DEFAULT.webserver_connection_timeout': number;
  /** As `webserver_verify_ca`; null: the same. */
  readonly 'oci.verify_ca': string | null;
  /** Hosts, and their subdomains, that get the registry's authorization after a redirect. */
  readonly 'oci.secure_cdn_registries': readonly string[];
  readonly 'oci.permit_fallback_to_http_transport': boolean;
}
interface RegistrySetup extends LoginSource {
  readonly options: RegistryOptions;
  readonly signal: AbortSignal;
  readonly clock: Pick<Clock, 'sleep'>;
  readonly random: (bytes: number) => Buffer;
}
/** A failed request; without a status, the registry did not answer, or not as a registry does. */
export class RegistryError extends Error {
  /** @param url without a query */
  constructor(
    readonly url: string,
    readonly status: number | undefined,
    message: string,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}
interface Manifest {
  readonly content: JsonObject;
  readonly mediaType: string;
  /** SHA-256 of its bytes, or the digest by which it was asked for. */
  readonly digest: string;
}
interface OpenBlob {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: Readable;
}
export interface Registry {
  /** What an agent sends with its requests; undefined: nothing. */
  readonly authorization: string | undefined;
  readonly blobUrl: (digest: string) => string;
  /**
   * Throws RegistryError, also for content that does not match the digest.
   * @param reference a tag, or a digest, which is verified
   */
  readonly manifest: (reference: string, accepts?: readonly string[]) => Promise<Manifest>;
  /** The first tags. Throws RegistryError. */
  readonly tags: () => Promise<readonly string[]>;
  /** The caller verifies the content, and reads or destroys it. The answer may have an error status. Throws RegistryError. */
  readonly openBlob: (digest: string, range?: string) => Promise<OpenBlob>;
}

const CONNECT_TIMEOUT_MS = 10_000;
/** Distribution specification, "Pushing manifests": registries should accept manifests of 4 MiB. */
const MAX_ANSWER_BYTES = 4 * 1024 * 1024;
const STREAM_TIMEOUTS = { headersMs: 30_000, bodyMs: 60_000 };
const MAX_REDIRECTS = 5;
const MAX_PAGES = 20;
const MAX_TAGS = 10_000;
/** Of a request that is limited (429). */
const ATTEMPTS = 5;
const LONGEST_PAUSE_MS = 60_000;
/** Characters that a token may have in a header, which it fills. */
const TOKEN = /^[\x21-\x7e]{1,16384}$/;

interface Agents {
  readonly whole: Agent;
  readonly streams: Agent;
}
/** By the options of TLS. A process has one value of each. */
const agentsBy = new Map<string, Agents>();
function agentsFor(options: RegistryOptions): Agents {
  const verifyCa = options['oci.verify_ca'];
  const tls = verifyCa === null ? options : { ...options, 'DEFAULT.webserver_verify_ca': verifyCa };
  const connect = webServerConnector(tls, CONNECT_TIMEOUT_MS, verifyCa === null ? undefined : '[oci]verify_ca');
  const key = JSON.stringify([options['DEFAULT.webserver_tls_minimum_version'], options['DEFAULT.webserver_verify_ca'], verifyCa]);
  const agents = agentsBy.get(key) ?? {
    whole: createAgent({ connect, bodyBytes: MAX_ANSWER_BYTES }),
    streams: createAgent({ connect, bodyBytes: 'streamed', ...STREAM_TIMEOUTS }),
  };
  agentsBy.set(key, agents);
  return agents;
}

type Headers = Readonly<Record<string, string>>;
interface Answer {
  readonly status: number;
  readonly headers: OpenBlob['headers'];
  readonly body: Dispatcher.ResponseData['body'];
  readonly url: string;
}
const headerOf = ({ headers }: Pick<Answer, 'headers'>, name: string): string | undefined => [headers[name]].flat()[0];
const withoutQuery = (url: string): string => url.split('?', 1)[0]!;
const closed = (body: Readable): void => void body.on('error', () => {}).destroy();

interface Get {
  readonly url: string;
  readonly headers: Headers;
  readonly authorization: string | undefined;
  readonly dispatcher: Agent;
  readonly signal: AbortSignal;
  readonly options: RegistryOptions;
}
const isAt = (host: string, names: readonly string[]): boolean =>
  names.some((name) => host === name.toLowerCase() || host.endsWith(`.${name.toLowerCase()}`));

/** GET with its redirects. Another host gets the authorization only if the operator trusts it. */
async function get(given: Get, redirects = MAX_REDIRECTS): Promise<Answer> {
  const { url, headers, authorization, dispatcher, signal, options } = given;
  const all = { ...headers, ...(authorization === undefined ? {} : { authorization }) };
  const answer = await request(url, { dispatcher, signal, headers: all }).catch((error: unknown) => {
    signal.throwIfAborted();
    throw new RegistryError(withoutQuery(url), undefined, connectionText(error), { cause: error });
  });
  const { statusCode: status, headers: answered, body } = answer;
  const location = headerOf({ headers: answered }, 'location');
  if (![301, 302, 303, 307, 308].includes(status) || location === undefined) return { status, headers: answered, body, url };
  closed(body);
  const refused = (why: string): RegistryError => new RegistryError(withoutQuery(url), status, `it redirects ${why}`);
  if (redirects === 0) throw refused('again and again');
  if (!URL.canParse(location, url)) throw refused('to no URL');
  const [from, to] = [new URL(url), new URL(location, url)];
  const isPlain = to.protocol === 'http:' && from.protocol === 'http:';
  if (to.protocol !== 'https:' && !isPlain) throw refused('to a URL without TLS');
  if (to.username !== '' || to.password !== '') throw refused('to a URL with credentials');
  const isTrusted = to.origin === from.origin || (!isPlain && isAt(to.hostname, options['oci.secure_cdn_registries']));
  return get({ ...given, url: to.href, authorization: isTrusted ? authorization : undefined }, redirects - 1);
}

/** The whole body, within the limits. Throws RegistryError. */
async function jsonOf({ url, status, body }: Answer): Promise<{ readonly bytes: Uint8Array; readonly content: unknown }> {
  try {
    const bytes = new Uint8Array(await body.arrayBuffer());
    return { bytes, content: await parseJson(bytes, JSON_LIMITS.registry) };
  } catch (error) {
    // The parser quotes the text: a token, or what a redirect leads to.
    const reason = error instanceof SyntaxError ? '' : `: ${connectionText(error)}`;
    throw new RegistryError(withoutQuery(url), status, `the answer is no JSON${reason}`, { cause: error });
  }
}

async function failure(answer: Answer): Promise<RegistryError> {
  closed(answer.body);
  return new RegistryError(withoutQuery(answer.url), answer.status, `the server answers ${answer.status}`);
}

/** Seconds that the server asks for, as Retry-After says. */
const askedPause = (answer: Answer): number => {
  const text = headerOf(answer, 'retry-after') ?? '';
  return /^\d{1,6}$/.test(text) ? Number(text) * 1000 : 0;
};

/** Repeats what the server limits, with random pauses that grow. */
async function patient(setup: RegistrySetup, send: () => Promise<Answer>): Promise<Answer> {
  class Limited extends Error {
    constructor(readonly answer: Answer) {
      super();
    }
  }
  const attempt = async (number: number): Promise<Answer> => {
    const answer = await send();
    if (answer.status !== 429 || number === ATTEMPTS) return answer;
    closed(answer.body);
    throw new Limited(answer);
  };
  return retry(setup, attempt, (error, number) => {
    if (!(error instanceof Limited)) return undefined;
    const random = (setup.random(4).readUInt32BE() / 2 ** 32) * 1500 * 2 ** number;
    return Math.min(LONGEST_PAUSE_MS, Math.max(random, askedPause(error.answer)));
  });
}

interface Connection {
  readonly setup: RegistrySetup;
  readonly agents: Agents;
  /** With the scheme. */
  readonly base: string;
}
const limited = ({ options, signal }: RegistrySetup): AbortSignal =>
  timeoutSignal(options['DEFAULT.webserver_connection_timeout'] * 1000, signal);

const getWhole = ({ setup, agents }: Connection, url: string, authorization: string | undefined, accept: string): Promise<Answer> =>
  patient(setup, () =>
    get({ url, authorization, headers: { accept }, dispatcher: agents.whole, signal: limited(setup), options: setup.options }),
  );

/** OpenSSL's errors for a server that does not speak TLS. Those about certificates have other codes. */
function speaksNoTls(error: unknown): boolean {
  const { code, cause } = (error ?? {}) as { readonly code?: unknown; readonly cause?: unknown };
  return (typeof code === 'string' && /^(?:ERR_SSL_|EPROTO$)/.test(code)) || (cause !== undefined && speaksNoTls(cause));
}

/** Asks for the API's version (distribution specification, "Determining support"). Falls back to HTTP if the operator permits that. */
async function ping(connection: Connection): Promise<{ readonly connection: Connection; readonly answer: Answer }> {
  const ask = (at: Connection): Promise<Answer> => getWhole(at, `${at.base}/v2/`, undefined, 'application/json');
  try {
    return { connection, answer: await ask(connection) };
  } catch (error) {
    if (!connection.setup.options['oci.permit_fallback_to_http_transport'] || !speaksNoTls(error)) throw error;
    const plain = { ...connection, base: connection.base.replace(/^https:/, 'http:') };
    return { connection: plain, answer: await ask(plain) };
  }
}

const unauthorized = (url: string): RegistryError => new RegistryError(withoutQuery(url), 401, 'the server answers 401');

async function tokenOf(connection: Connection, challenge: Challenge, repository: string, logins: readonly Credentials[]): Promise<string> {
  const url = tokenUrl(challenge, `repository:${repository}:pull`, connection.base.startsWith('http:'));
  if (url === undefined) throw new RegistryError(connection.base, 401, 'it names no token server with TLS');
  for (const login of logins.length > 0 ? logins : [undefined]) {
    const { authorization } = basicAuthorization(login) as { authorization?: string };
    const answer = await getWhole(connection, url, authorization, 'application/json');
    if (answer.status === 401) {
      closed(answer.body);
      continue;
    }
    if (answer.status !== 200) throw await failure(answer);
    const { token, access_token: other } = objectOf((await jsonOf(answer)).content);
    // Docker's specification of tokens has both names; Ironic knows the first.
    const found = [token, other].find((value): value is string => typeof value === 'string' && value !== '');
    if (found === undefined || !TOKEN.test(found)) throw new RegistryError(withoutQuery(url), 200, 'the answer has no token');
    return `Bearer ${found}`;
  }
  throw unauthorized(url);
}

async function basicOf(connection: Connection, logins: readonly Credentials[]): Promise<string> {
  const url = `${connection.base}/v2/`;
  for (const login of logins.filter(({ username, password }) => username !== '' && password !== '')) {
    const { authorization } = basicAuthorization(login) as { authorization: string };
    const answer = await getWhole(connection, url, authorization, 'application/json');
    closed(answer.body);
    if (answer.status === 200) return authorization;
    if (answer.status !== 401) throw await failure(answer);
  }
  throw unauthorized(url);
}

/** The authorization that the registry asks for. Throws RegistryError. */
async function authorize(connection: Connection, answer: Answer, { registry, repository }: Place): Promise<string | undefined> {
  closed(answer.body);
  if (answer.status === 200) return undefined;
  if (answer.status !== 401) throw await failure(answer);
  const challenge = challengesOf(answer.headers['www-authenticate']).find(({ scheme }) => scheme === 'bearer' || scheme === 'basic');
  if (!challenge) throw new RegistryError(withoutQuery(answer.url), 401, 'it asks for an authentication that is neither Basic nor Bearer');
  const { realm } = challenge;
  const realmHost = challenge.scheme === 'bearer' && URL.canParse(realm) ? new URL(realm).host : undefined;
  const logins = await loginsFor(registry, realmHost, connection.setup);
  return challenge.scheme === 'basic' ? basicOf(connection, logins) : tokenOf(connection, challenge, repository, logins);
}

type Place = Pick<BlobReference, 'registry' | 'repository'>;

/** Logs in, if there is anything to log in with. Throws RegistryError. */
export async function openRegistry(place: Place, setup: RegistrySetup): Promise<Registry> {
  const { registry, repository } = place;
  const first: Connection = { setup, agents: agentsFor(setup.options), base: `https://${registry}` };
  const logsIn = mayLogIn(registry, setup);
  const asks = logsIn || setup.options['oci.permit_fallback_to_http_transport'];
  const { connection, answer } = asks ? await ping(first) : { connection: first, answer: undefined };
  if (answer && !logsIn) closed(answer.body);
  const authorization = answer && logsIn ? await authorize(connection, answer, place) : undefined;
  const at = (path: string): string => `${connection.base}/v2/${repository}/${path}`;
  return {
    authorization,
    blobUrl: (digest) => at(`blobs/${digest}`),
    manifest: async (reference, accepts = [OCI_MANIFEST]) =>
      manifestAt(connection, at(`manifests/${reference}`), reference, { authorization, accepts }),
    tags: () => tagsAt(connection, at('tags/list'), authorization),
    openBlob: async (digest, range) => {
      const {
        agents,
        setup: { options, signal },
      } = connection;
      const headers = { 'accept-encoding': 'identity', ...(range === undefined ? {} : { range }) };
      const {
        status,
        headers: answered,
        body,
      } = await patient(setup, () =>
        get({ url: at(`blobs/${digest}`), headers, authorization, dispatcher: agents.streams, signal, options }),
      );
      return { status, headers: answered, body };
    },
  };
}

interface ManifestRequest {
  readonly authorization: string | undefined;
  readonly accepts: readonly string[];
}
async function manifestAt(
  connection: Connection,
  url: string,
  reference: string,
  { authorization, accepts }: ManifestRequest,
): Promise<Manifest> {
  const answer = await getWhole(connection, url, authorization, accepts.join(', '));
  if (answer.status !== 200) throw await failure(answer);
  const { bytes, content } = await jsonOf(answer);
  const expected = reference.includes(':') ? reference : headerOf(answer, 'docker-content-digest');
  const algorithm = expected?.split(':', 1)[0] ?? '';
  const digest = `sha256:${createHash('sha256').update(bytes).digest('hex')}`;
  const found = algorithm === 'sha512' ? `sha512:${createHash('sha512').update(bytes).digest('hex')}` : digest;
  if (expected !== undefined && found !== expected.toLowerCase())
    throw new RegistryError(withoutQuery(url), 200, 'the manifest does not match its digest');
  if (!isObject(content)) throw new RegistryError(withoutQuery(url), 200, 'the manifest is no object');
  const named = typeof content['mediaType'] === 'string' ? content['mediaType'] : headerOf(answer, 'content-type');
  return { content, mediaType: named ?? '', digest: found };
}

/** The URL of the next page (RFC 8288), which must be of the same server. */
function nextPage(answer: Answer): string | undefined {
  const link = headerOf(answer, 'link') ?? '';
  const target = link.length < 4096 && /;\s*rel="?next"?/i.test(link) ? /^\s*<([^<>]+)>/.exec(link)?.[1] : undefined;
  if (target === undefined || !URL.canParse(target, answer.url)) return undefined;
  const next = new URL(target, answer.url);
  return next.origin === new URL(answer.url).origin ? next.href : undefined;
}
async function tagsAt(connection: Connection, url: string, authorization: string | undefined): Promise<readonly string[]> {
  const found: string[] = [];
  for (let [next, pages]: [string | undefined, number] = [url, 0]; next !== undefined && pages < MAX_PAGES; pages++) {
    const answer: Answer = await getWhole(connection, next, authorization, OCI_INDEX);
    if (answer.status !== 200) throw await failure(answer);
    const { tags } = objectOf((await jsonOf(answer)).content);
    for (const tag of Array.isArray(tags) ? (tags as readonly unknown[]) : []) if (isTag(tag)) found.push(tag);
    next = found.length < MAX_TAGS ? nextPage(answer) : undefined;
  }
  return found;
}
