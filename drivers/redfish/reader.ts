/** Reading many resources of a node's Redfish service for an overview: a service that breaks at some of them loses these, not all. */
import { RedfishError, linkOf, memberPaths, type RedfishAnswer, type RedfishAsk } from '../../wire/redfish';
import type { Task } from '../interfaces';

export interface RedfishReader {
  /** The resource that a link leads to, or that is given whole (expanded); undefined: there is none, or the service does not give it. */
  get(link: unknown): Promise<unknown>;
  /** The resources of a collection, whose link is given, or of a list of links. */
  members(collection: unknown): Promise<readonly unknown[]>;
}

/** What one overview may cost, whatever the service links to. */
const MAX_RESOURCES = 1000;
const MAX_MEMBERS = 256;
const MAX_MINUTES = 10;
/** So many resources may go without an answer before the service itself counts as away. */
const MAX_SILENCES = 3;

const isSilence = ({ kind }: RedfishError): boolean => kind === 'unreachable' || kind === 'interrupted';

/** @throws RedfishError from its functions, once the service does not answer any more */
export function redfishReader({ clock, log }: Task, ask: RedfishAsk): RedfishReader {
  const seen = new Map<string, Promise<RedfishAnswer>>();
  const end = clock.now() + MAX_MINUTES * 60_000;
  let silences = 0;

  /** Each resource is asked for once. */
  const once: RedfishAsk = async (method, path) => {
    if (!seen.has(path)) {
      if (seen.size >= MAX_RESOURCES || clock.now() > end)
        throw new RedfishError('protocol', `the service has more than is read of it (${seen.size} resources)`);
      seen.set(path, ask(method, path));
    }
    return seen.get(path)!;
  };
  const unlessLost = async <T>(path: string, read: () => Promise<T>): Promise<T | undefined> => {
    try {
      return await read();
    } catch (error) {
      if (!(error instanceof RedfishError) || error.kind === 'closed') throw error;
      if (isSilence(error) && ++silences >= MAX_SILENCES) throw error;
      log.warn('A resource of the Redfish service cannot be read', { path, reason: error.message });
      return undefined;
    }
  };
  const get = async (value: unknown): Promise<unknown> => {
    const path = linkOf(value);
    // A reference has no other member than its path.
    if (path === undefined || Object.keys(value as object).length > 1) return value;
    return unlessLost(path, async () => (await once('GET', path)).body);
  };
  const listed = async (collection: unknown): Promise<readonly unknown[]> => {
    if (Array.isArray(collection)) return collection as unknown[];
    const path = linkOf(collection);
    const paths = path === undefined ? undefined : await unlessLost(path, () => memberPaths(once, path));
    return (paths ?? []).map((one) => ({ '@odata.id': one }));
  };
  return {
    get,
    members: async (collection) => {
      const resources: unknown[] = [];
      for (const one of (await listed(collection)).slice(0, MAX_MEMBERS)) {
        const resource = await get(one);
        if (typeof resource === 'object' && resource !== null) resources.push(resource);
      }
      return resources;
    },
  };
}
