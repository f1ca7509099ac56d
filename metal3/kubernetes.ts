/** A client of the Kubernetes API, with the token of a service account: reads objects and lists, and applies fields of its own. */
import { isObject } from '../model/json';
import { oneLine } from '../model/log';
import type { Json, JsonObject } from '../model/records';
import { shortened } from '../model/text';
import { parseJson, type JsonLimits } from '../wire/bounded-json';
import { connectorWithFiles, createAgent, request } from '../wire/http-agent';
import { connectionText } from '../wire/http/connection-text';
import { timeoutSignal } from '../wire/timeout-signal';
import { watchedFile } from '../wire/watched-file';

interface KubernetesSetup {
  /** https://host:port */
  readonly url: string;
  /** A file with the token, which the cluster replaces every hour. */
  readonly tokenFile: string;
  /** A file with the authorities of the API server, PEM; undefined: the usual ones. */
  readonly caFile?: string | undefined;
  /** The name by which the cluster remembers who set which field. */
  readonly manager: string;
}
export interface KubernetesObject extends JsonObject {
  readonly metadata: JsonObject & { readonly name: string; readonly namespace: string; readonly uid: string };
}
/** An answer that is no success. */
export class KubernetesError extends Error {
  constructor(
    readonly status: number,
    message: string,
  ) {
    super(message);
  }
}
export interface Kubernetes {
  /** All functions throw KubernetesError for a refusal, and Error if there is no answer. Undefined: there is no such object. */
  get(path: string, signal: AbortSignal): Promise<KubernetesObject | undefined>;
  /** All objects of a list, which is read in pages. @param metadata without specification and status */
  list(path: string, metadata: boolean, signal: AbortSignal): AsyncGenerator<KubernetesObject>;
  /** Server-side apply, forced: fields that this manager no longer names, and nobody else has set, are removed. */
  apply(path: string, content: JsonObject, signal: AbortSignal): Promise<KubernetesObject>;
  /** A document with an entity tag. `unchanged`: it is that of the tag. Undefined: there is none, or the account may not read it. */
  document(path: string, tag: string | undefined, signal: AbortSignal): Promise<TaggedDocument | 'unchanged' | undefined>;
  close(): Promise<void>;
}
interface TaggedDocument {
  readonly tag: string | undefined;
  readonly body: Json;
}

/** etcd has objects of up to 1.5 MiB; a page of hosts with their hardware is some MiB. */
const MAX_ANSWER_BYTES = 64 << 20;
const LIMITS: JsonLimits = { values: 2_000_000, depth: 64, foreign: true };
const MAX_TOKEN_BYTES = 64 << 10;
const PAGE = 100;
/** Pages of a list: a server that repeats a page for ever is not followed. */
const MAX_PAGES = 1000;
const CONNECTIONS = 4;
const CONNECT_MS = 10_000;
const TIMEOUT_MS = 30_000;
const MAX_TEXT = 500;

const isNamed = (value: Json): value is KubernetesObject => {
  const metadata = isObject(value) ? value['metadata'] : undefined;
  return isObject(metadata) && ['name', 'namespace', 'uid'].every((name) => typeof metadata[name] === 'string');
};
const bytesOf = async (body: AsyncIterable<Buffer>): Promise<Buffer> => {
  const pieces: Buffer[] = [];
  for await (const piece of body) pieces.push(piece);
  return Buffer.concat(pieces);
};
const messageOf = (body: Json, status: number): string => {
  const message = isObject(body) ? body['message'] : undefined;
  return `the Kubernetes API answers ${status}: ${typeof message === 'string' ? shortened(oneLine(message), MAX_TEXT) : 'without a reason'}`;
};

interface Asked {
  readonly method: 'GET' | 'PATCH';
  readonly path: string;
  readonly accept?: string;
  readonly content?: JsonObject;
  readonly tag?: string | undefined;
}
export function createKubernetes({ url, tokenFile, caFile, manager }: KubernetesSetup): Kubernetes {
  const base = url.replace(/(?<!\/)\/+$/, '');
  const token = watchedFile(tokenFile, MAX_TOKEN_BYTES, (text) => text.trim());
  const authorities = caFile === undefined ? undefined : watchedFile(caFile, 1 << 20, (text) => text);
  const agent = createAgent({
    connect: connectorWithFiles({ timeout: CONNECT_MS }, async () => (authorities ? { ca: authorities() } : {})),
    bodyBytes: MAX_ANSWER_BYTES,
    connections: CONNECTIONS,
  });

  async function exchange({ method, path, accept = 'application/json', content, tag }: Asked, signal: AbortSignal) {
    const limited = timeoutSignal(TIMEOUT_MS, signal);
    const headers = {
      accept,
      authorization: `Bearer ${token()}`,
      // JSON is YAML.
      ...(content ? { 'content-type': 'application/apply-patch+yaml' } : {}),
      ...(tag === undefined ? {} : { 'if-none-match': tag }),
    };
    const sent = content ? { body: JSON.stringify(content) } : {};
    const answer = await request(`${base}${path}`, { dispatcher: agent, method, headers, signal: limited, ...sent }).catch(
      (error: unknown) => {
        throw signal.aborted ? (signal.reason as Error) : new Error(`the Kubernetes API does not answer: ${connectionText(error)}`);
      },
    );
    const bytes = await bytesOf(answer.body);
    const body = await parseJson(bytes, LIMITS).catch(() => undefined);
    const status = answer.statusCode;
    if (status >= 300 && !(status === 304 && tag !== undefined)) throw new KubernetesError(status, messageOf(body, status));
    return { status, tag: [answer.headers['etag']].flat()[0], body };
  }
  const ask = async (asked: Asked, signal: AbortSignal): Promise<Json> => (await exchange(asked, signal)).body;
  const objectOf = (body: Json): KubernetesObject => {
    if (isNamed(body)) return body;
    throw new Error('the Kubernetes API answers without an object');
  };
  return {
    async get(path, signal) {
      try {
        return objectOf(await ask({ method: 'GET', path }, signal));
      } catch (error) {
        if (error instanceof KubernetesError && error.status === 404) return undefined;
        throw error;
      }
    },
    async *list(path, metadata, signal) {
      const accept = metadata ? 'application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io' : 'application/json';
      for (let pages = 0, rest: Json = ''; pages < MAX_PAGES; pages++) {
        const search = new URLSearchParams({ limit: String(PAGE), ...(rest === '' ? {} : { continue: rest as string }) });
        const page = await ask({ method: 'GET', path: `${path}?${search.toString()}`, accept }, signal);
        const { items, metadata: about } = (isObject(page) ? page : {}) as { readonly items?: Json; readonly metadata?: Json };
        // A list of metadata without any object is null.
        if (items !== null && !Array.isArray(items)) throw new Error('the Kubernetes API answers without a list');
        yield* (items ?? []).filter(isNamed);
        rest = isObject(about) ? about['continue'] : undefined;
        if (typeof rest !== 'string' || rest === '') return;
      }
    },
    async apply(path, content, signal) {
      const search = new URLSearchParams({ fieldManager: manager, force: 'true' });
      return objectOf(await ask({ method: 'PATCH', path: `${path}?${search.toString()}`, content }, signal));
    },
    async document(path, known, signal) {
      try {
        const { status, tag, body } = await exchange({ method: 'GET', path, tag: known }, signal);
        return status === 304 ? 'unchanged' : { tag, body };
      } catch (error) {
        if (error instanceof KubernetesError && (error.status === 403 || error.status === 404)) return undefined;
        throw error;
      }
    },
    close: () => agent.destroy(),
  };
}
