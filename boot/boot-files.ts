/** What machines may fetch by the rows of their boots: the row for a MAC address, and the files that a row names, from here or elsewhere. */
import { fileURLToPath } from 'node:url';
import type { Log } from '../model/log';
import type { BootRecord } from '../model/records';
import type { Store } from '../store/store';
import { loggableUrl, type Cache, type CachedFile, UpstreamError } from './cache';
import { chooseBoots, type BootChoiceStore, type PxeFilter, type ReportBoots } from './discovery';
import { openFile, type OpenFile } from './files';

/** The caller closes, or releases. */
export type BootFile = { readonly kind: 'local'; readonly file: OpenFile } | { readonly kind: 'remote'; readonly file: CachedFile };
export interface BootFiles {
  /** What the machine with this address boots; undefined: nothing. */
  recordFor(mac: string): Promise<BootRecord | undefined>;
  /** The file of that name of a node's row; undefined: there is none. Throws UpstreamError. */
  open(nodeUuid: string, name: string): Promise<BootFile | undefined>;
}
export interface BootFilesSetup {
  readonly store: BootChoiceStore & Pick<Store, 'boots'>;
  readonly filter: PxeFilter;
  readonly cache: Cache;
  readonly log: Log;
  readonly reports?: ReportBoots | undefined;
}

/** What a source names: a path, a `file://` or `http(s)://` URL. Undefined: no such file. Throws UpstreamError. */
export async function openSource(cache: Cache, source: string): Promise<BootFile | undefined> {
  if (/^https?:/i.test(source)) {
    const file = await cache.open(source).catch((error: unknown) => {
      throw error instanceof UpstreamError ? new UpstreamError(`${loggableUrl(source)}: ${error.message}`) : error;
    });
    return { kind: 'remote', file };
  }
  const file = await openFile(/^file:/i.test(source) ? fileURLToPath(source) : source);
  return file && { kind: 'local', file };
}

export function createBootFiles({ store, filter, cache, log, reports }: BootFilesSetup): BootFiles {
  return {
    recordFor: async (mac) => {
      const { boots } = (await chooseBoots(store, filter, [mac])).get(mac)!;
      return typeof boots === 'string' ? reports?.[boots] : boots;
    },
    open: async (uuid, name) => {
      const boot = Object.values(reports ?? {}).find((one) => one.node_uuid === uuid) ?? (await store.boots.ofNode(uuid));
      const source = boot && Object.hasOwn(boot.files, name) ? boot.files[name]! : undefined;
      if (source === undefined) return undefined;
      const file = await openSource(cache, source);
      if (!file) log.warn('the file of a boot is not there', { node: uuid, name, source });
      return file;
    },
  };
}
