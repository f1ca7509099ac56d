/**
 * Resources of a service: reading one, reading a collection, changing one, and their actions. All functions take a `SendRedfishRequest`
 * (in drivers: `redfishRequester` of drivers/redfish/target.ts, or `ask` of a SystemView) and throw RedfishError.
 */
import { withoutEndSlashes } from '../urls';
import { RedfishError, hasMessage, isStatus, unlessStatus } from './errors';
import { linkKey, linkOf, listOf, member, textOf, textsOf } from './json';
import type { RedfishAnswer, RedfishMethod, RedfishUpload } from './transport';

/** Sends one request to a service. Login, timeout and retries are up to the implementation. */
export type SendRedfishRequest = (method: RedfishMethod, path: string, more?: RequestDetails) => Promise<RedfishAnswer>;
export interface RequestDetails {
  readonly body?: unknown;
  readonly upload?: RedfishUpload;
  /** Milliseconds for the whole request. Absent: as the options say. */
  readonly timeoutMs?: number;
  readonly headers?: Readonly<Record<string, string>>;
  /** Sending it twice does no harm. Always so for all methods but POST. */
  readonly repeatable?: boolean;
  /** The caller repeats a request that the service refuses for the moment, so this refusal is thrown at once. */
  readonly impatient?: true;
}

/** A resource as it was when read. */
export interface RedfishResource {
  readonly path: string;
  readonly body: unknown;
  readonly etag: string | undefined;
}

/** Follows a JSON pointer (RFC 6901), as in links such as `…/Thermal#/Fans/0`. */
function pointed(body: unknown, path: string): unknown {
  const fragment = /#(\/.*)/.exec(path)?.[1];
  if (fragment === undefined) return body;
  const names = fragment.slice(1).split('/', 20);
  return names.reduce<unknown>((at, name) => member(at, name.replace(/~1/g, '/').replace(/~0/g, '~')), body);
}

/** Reads a resource with its ETag, for `patchResource`. */
export async function readResource(ask: SendRedfishRequest, path: string): Promise<RedfishResource> {
  const { body, headers } = await ask('GET', path);
  return { path, body: pointed(body, path), etag: headers['etag'] ?? textOf(member(body, '@odata.etag')) };
}
/** Reads the resource behind a property's link (`{ "@odata.id": … }`); undefined: no link, or the resource does not exist. */
export async function readLinked(
  ask: SendRedfishRequest,
  { body }: RedfishResource,
  ...names: readonly string[]
): Promise<RedfishResource | undefined> {
  const path = linkOf(member(body, ...names));
  // Services link to resources that they do not have.
  return path === undefined ? undefined : unlessStatus(404, readResource(ask, path));
}

/** Limits of a collection. */
const MAX_MEMBERS = 1000;
const MAX_PAGES = 100;
/** The link of a member. Some services (Inspur) list plain texts; others expand a member and leave out its link, which its Id gives then. */
function memberLink(item: unknown, collectionPath: string): string | undefined {
  const link = linkOf(item) ?? textOf(item);
  if (link !== undefined) return /^(?:\/|https?:)/i.test(link.trim()) ? link : undefined;
  const id = textOf(member(item, 'Id'));
  return id === undefined ? undefined : `${withoutEndSlashes(collectionPath.replace(/[?#].*/, ''))}/${encodeURIComponent(id)}`;
}
/** The members' links on all pages (`Members@odata.nextLink`). Expanded members come with their body. */
async function membersOf(ask: SendRedfishRequest, path: string): Promise<ReadonlyMap<string, unknown>> {
  const found = new Map<string, unknown>();
  const pages = new Set<string>();
  for (let page: string | undefined = path; page !== undefined && !pages.has(page);) {
    pages.add(page);
    if (pages.size > MAX_PAGES) throw new RedfishError('protocol', `${path} has more than ${MAX_PAGES} pages`);
    const { body }: RedfishAnswer = await ask('GET', page);
    for (const item of listOf(member(body, 'Members'))) {
      const link = memberLink(item, path);
      if (link === undefined || found.has(link)) continue;
      if (found.size >= MAX_MEMBERS) throw new RedfishError('protocol', `${path} has more than ${MAX_MEMBERS} members`);
      found.set(link, typeof item === 'object' && Object.keys(item as object).length > 1 ? item : undefined);
    }
    page = textOf(member(body, 'Members@odata.nextLink'));
  }
  return found;
}
/** The paths of a collection's members on all pages. Bounded; loops end it. */
export const memberPaths = async (ask: SendRedfishRequest, path: string): Promise<readonly string[]> => [
  ...(await membersOf(ask, path)).keys(),
];
/**
 * Reads the members of a collection on all pages, one after another. Members that do not exist are left out.
 * @param most only the last ones, so many. Default: all
 */
export async function collection(ask: SendRedfishRequest, path: string, most = MAX_MEMBERS): Promise<readonly RedfishResource[]> {
  const found: RedfishResource[] = [];
  for (const [link, body] of [...(await membersOf(ask, path))].slice(-most)) {
    const expanded = body === undefined ? undefined : { path: link, body, etag: textOf(member(body, '@odata.etag')) };
    const resource = expanded ?? (await unlessStatus(404, readResource(ask, link)));
    if (resource) found.push(resource);
  }
  return found;
}
/** The members of the collection behind a property's link; undefined: there is none. */
export async function linkedCollection(
  ask: SendRedfishRequest,
  { body }: RedfishResource,
  ...names: readonly string[]
): Promise<readonly RedfishResource[] | undefined> {
  const path = linkOf(member(body, ...names));
  return path === undefined ? undefined : unlessStatus(404, collection(ask, path));
}

/** Some services (Dell) add this to the tag of a packed answer, and do not know it then. */
const packedTag = (etag: string): string => etag.replace(/[-;]gzip(?="?$)/, '');
/** AMI: the resource is changed elsewhere. */
const ELSEWHERE = 'OperationSupportedInFutureStateURI';
/** The place that the refusal names. Without a name: where AMI has it. */
const futureOf = (error: RedfishError, path: string): string =>
  /\(\s*(\/redfish\/[^\s()]{1,300})\s*\)/.exec(error.message)?.[1] ?? `${withoutEndSlashes(path)}/SD`;

/**
 * Changes a resource. The ETag prevents lost updates. Services that cannot compare it answer 412: then it is sent in its strong form, then as it
 * is now, then as `*`, and at last not at all. Some services demand one (428 or 412) and show none: these get `*`. The change goes to another resource where
 * the service says so. The response may start a task (`startedTask`).
 */
export const patchResource = async (ask: SendRedfishRequest, resource: RedfishResource, body: unknown): Promise<RedfishAnswer> =>
  (await patchPlaced(ask, resource, body)).answer;
/** As `patchResource`. @returns also the path that took the change */
export async function patchPlaced(
  ask: SendRedfishRequest,
  resource: RedfishResource,
  body: unknown,
): Promise<{ readonly answer: RedfishAnswer; readonly path: string }> {
  const { path } = resource;
  try {
    return { answer: await patchHere(ask, resource, body), path };
  } catch (error) {
    if (!isStatus(error) || !hasMessage(error, ELSEWHERE)) throw error;
    const elsewhere = futureOf(error, path);
    if (linkKey(elsewhere) === linkKey(path)) throw error;
    return { answer: await patchHere(ask, await readResource(ask, elsewhere), body), path: elsewhere };
  }
}
async function patchHere(ask: SendRedfishRequest, { path, etag }: RedfishResource, body: unknown): Promise<RedfishAnswer> {
  const send = (form?: string): Promise<RedfishAnswer> =>
    ask('PATCH', path, { body, ...(form === undefined ? {} : { headers: { 'if-match': form } }) });
  const attempt = (form: string): Promise<RedfishAnswer | undefined> => unlessStatus(412, send(form));
  if (etag !== undefined) {
    for (const form of new Set([etag, etag.replace(/^W\//, ''), packedTag(etag)])) {
      const answer = await attempt(form);
      if (answer) return answer;
    }
    const { etag: now } = await readResource(ask, path);
    const renewed = now === undefined || now === etag ? undefined : await attempt(now);
    // Some services (NVIDIA DGX) accept no other, and drop a change without it.
    const answer = renewed ?? (await attempt('*'));
    if (answer) return answer;
  }
  const plain = await unlessStatus(428, unlessStatus(412, send()));
  return plain ?? send('*');
}

/** The values that an object lists for its member of this name; undefined: none are listed, and the standard's may all be possible. */
export function allowableValues(object: unknown, name: string): readonly string[] | undefined {
  const values = textsOf(member(object, `${name}@Redfish.AllowableValues`));
  return values?.length ? values : undefined;
}

interface RedfishAction {
  readonly target: string;
  /** The allowed values of a parameter, from the action or its ActionInfo (DSP0266 §9.5.6.5); undefined: the service lists none. */
  allowed(ask: SendRedfishRequest, parameter: string): Promise<readonly string[] | undefined>;
}
/** An action of a resource, such as `#ComputerSystem.Reset` or `#UpdateService.SimpleUpdate`; undefined: not offered. */
export function actionOf({ body }: Pick<RedfishResource, 'body'>, name: string): RedfishAction | undefined {
  const action = member(body, 'Actions', name);
  const target = textOf(member(action, 'target'));
  if (target === undefined) return undefined;
  return {
    target,
    allowed: async (ask, parameter) => {
      const listed = allowableValues(action, parameter);
      const info = textOf(member(action, '@Redfish.ActionInfo'));
      if (listed || info === undefined) return listed;
      try {
        const { body: described } = await ask('GET', info);
        const found = listOf(member(described, 'Parameters')).find((candidate) => member(candidate, 'Name') === parameter);
        const values = textsOf(member(found, 'AllowableValues'));
        return values?.length ? values : undefined;
      } catch (error) {
        if (isStatus(error) || (error instanceof RedfishError && error.kind === 'protocol')) return undefined;
        throw error;
      }
    },
  };
}
