/** Reads many resources of a node's Redfish service. A resource that cannot be read is left out, and does not stop the others. */
import { RedfishError, linkOf, memberPaths, type RedfishAnswer, type SendRedfishRequest } from '../../wire/redfish';
import type { Task } from '../interfaces';

export interface RedfishReader {
  /** The resource behind a link, or the expanded resource itself; undefined: there is none, or the service does not return it. */
  get(link: unknown): Promise<unknown>;
  /** The resources of a collection (by its link), or of a list of links. */
  members(collection: unknown): Promise<readonly unknown[]>;
}

/** Limits of one overview, whatever the service links to. */
const MAX_RESOURCES = 1000;
const MAX_MEMBERS = 256;
const MAX_MINUTES = 10;
/** The service counts as unreachable after this many requests without a response. */
const MAX_TIMEOUTS = 3;

const isTimeout = ({ kind }: RedfishError): boolean => kind === 'unreachable' || kind === 'interrupted';

/** @throws RedfishError from its functions, once the service has stopped answering */
export function redfishReader({ clock, log }: Pick<Task, 'clock' | 'log'>, ask: SendRedfishRequest): RedfishReader {
  const responses = new Map<string, Promise<RedfishAnswer>>();
  const end = clock.now() + MAX_MINUTES * 60_000;
  let timeouts = 0;

  /** Requests each resource once. */
  const once: SendRedfishRequest = async (method, path) => {
    if (!responses.has(path)) {
      if (responses.size >= MAX_RESOURCES || clock.now() > end)
        throw new RedfishError('protocol', `the service has more resources than the limit (${responses.size} were read)`);
      responses.set(path, ask(method, path));
    }
    return responses.get(path)!;
  };
  const unlessLost = async <T>(path: string, read: () => Promise<T>): Promise<T | undefined> => {
    try {
      return await read();
    } catch (error) {
      if (!(error instanceof RedfishError) || error.kind === 'closed') throw error;
      if (isTimeout(error) && ++timeouts >= MAX_TIMEOUTS) throw error;
      log.warn('A resource of the Redfish service cannot be read', { path, reason: error.message });
      return undefined;
    }
  };
  const get = async (value: unknown): Promise<unknown> => {
    // Some services write the path itself in place of a reference.
    const path = linkOf(value) ?? (typeof value === 'string' && value.startsWith('/') ? value : undefined);
    // A reference has no other member than its path.
    if (path === undefined || (typeof value === 'object' && Object.keys(value as object).length > 1)) return value;
    return unlessLost(path, async () => (await once('GET', path)).body);
  };
  const listed = async (collection: unknown): Promise<readonly unknown[]> => {
    if (Array.isArray(collection)) return collection as unknown[];
    const path = linkOf(collection);
    const paths = path === undefined ? undefined : await unlessLost(path, () => memberPaths(once, path));
    return (paths ?? []).map((item) => ({ '@odata.id': item }));
  };
  return {
    get,
    members: async (collection) => {
      const resources: unknown[] = [];
      for (const item of (await listed(collection)).slice(0, MAX_MEMBERS)) {
        const resource = await get(item);
        if (typeof resource === 'object' && resource !== null) resources.push(resource);
      }
      return resources;
    },
  };
}
