/** The files that machines boot: the boot record for a MAC address, and the files that a record names, local or remote. */
import { constants } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { readAgentCaFiles } from '../wire/agent-authorities';
import { checkLocalFile, FileRefused, openFile, openReal, type OpenFile } from '../wire/local-files';
import { snapshotFile } from '../wire/snapshot-files';
import { ifFound } from '../model/errors';
import type { Log } from '../model/log';
import type { BootProtocol, ServedBoot } from '../model/records';
import type { Store } from '../store/store';
import { loggableUrl, type Cache, type CachedFile, type Reader, UpstreamError } from './cache';
import { chooseBoots, type BootChoiceStore, type PxeFilter, type ReportBoots } from './discovery';
import { ramdiskWith, readable, sizeOf, streamPieces } from './composed-files';
import type { BootRequestLog } from './requests';

/** The caller must close or release the file. */
type BootFile = { readonly kind: 'local'; readonly file: OpenFile } | { readonly kind: 'remote'; readonly file: CachedFile };
export interface BootFiles {
  /** The boot record of the machine with this address; undefined: it must not boot. */
  recordFor(mac: string, protocol: BootProtocol): Promise<ServedBoot | undefined>;
  /** A file of the boot record with this token; undefined if there is none. Throws UpstreamError. */
  open(token: string, name: string, protocol: BootProtocol): Promise<BootFile | undefined>;
}
interface BootFilesSetup {
  readonly store: BootChoiceStore & Pick<Store, 'boots'> & NodeStore;
  readonly filter: PxeFilter;
  readonly cache: Cache;
  readonly local: LocalFiles;
  readonly log: Log;
  readonly requests: Pick<BootRequestLog, 'note'>;
  readonly reports?: ReportBoots | undefined;
  /** [agent]api_ca_file: its authorities are added to the agent's ramdisks. Null or empty: none. */
  readonly apiCaFile: string | null;
}

/** Where the secrets of nodes for registries are. */
export interface NodeStore {
  readonly nodes: Pick<Store['nodes'], 'find'>;
}

/** Which local files records may name. */
export interface LocalFiles {
  /** Files and folders of the server itself. */
  readonly own: readonly string[];
  /** Files that options name. They may be anywhere. */
  readonly byOptions: ReadonlySet<string>;
  /** The folder of snapshots. */
  readonly snapshots: string;
}
interface FileSources {
  readonly cache: Cache;
  readonly local: LocalFiles;
}

const NOT_PERMITTED = 'the file is not permitted';
/**
 * Opens the file that a record names by its path. The conductor has checked it against [conductor]file_url_allowed_paths, and recorded the
 * path behind all links: it must not have become a link since then. Undefined if there is no such file. Throws UpstreamError.
 */
async function openRecorded({ own, byOptions }: LocalFiles, path: string): Promise<OpenFile | undefined> {
  if (byOptions.has(path)) return openFile(path);
  try {
    const real = await checkLocalFile(path, { allowed: ['/'], own });
    if (real !== undefined && real !== path) throw new UpstreamError(NOT_PERMITTED, `${path}: it is a link now`);
    return real === undefined ? undefined : await openReal(real);
  } catch (error) {
    throw error instanceof FileRefused ? new UpstreamError(NOT_PERMITTED, `${path}: ${error.message}`) : error;
  }
}

/** The user's secret counts for the image of an instance alone, not for ramdisks and what boots them. */
export const readerOf = ({ nodes }: NodeStore, uuid: string, name: string): Reader => ({
  node: () => ifFound(nodes.find(uuid)),
  permitsUser: name === 'image',
});

/**
 * Opens a path, a `file://`, `http(s)://`, `glance://` or `oci-blob://` URL, or `snapshot:UUID`. Undefined if a local file does not exist.
 * Throws UpstreamError.
 */
export async function openSource({ cache, local }: FileSources, source: string, reader?: Reader): Promise<BootFile | undefined> {
  if (/^(?:https?|glance|oci-blob):/i.test(source)) {
    const file = await cache.open(source, reader).catch((error: unknown) => {
      throw error instanceof UpstreamError ? new UpstreamError(`${loggableUrl(source)}: ${error.message}`) : error;
    });
    return { kind: 'remote', file };
  }
  const snapshot = /^snapshot:([0-9a-f-]{36})$/.exec(source)?.[1];
  if (snapshot !== undefined) {
    const saved = await openFile(snapshotFile(local.snapshots, snapshot), constants.O_NOFOLLOW);
    return saved && { kind: 'local', file: saved };
  }
  const file = await openRecorded(local, /^file:/i.test(source) ? fileURLToPath(source) : source);
  return file && { kind: 'local', file };
}

/** The agent's ramdisk with the authorities of the API. Releases the ramdisk if they cannot be read. */
async function withAuthorities(opened: BootFile, caFile: string): Promise<BootFile> {
  const ramdisk = opened.kind === 'local' ? readable(opened.file) : opened.file;
  try {
    const pieces = ramdiskWith(ramdisk, await readAgentCaFiles(caFile));
    const { modified } = ramdisk;
    const release = (): Promise<void> => ramdisk.release();
    return { kind: 'remote', file: { modified, release, size: sizeOf(pieces), read: (start, end) => streamPieces(pieces, start, end) } };
  } catch (error) {
    await ramdisk.release();
    throw error;
  }
}

/** Files that a machine asks for when it boots. Agents and BMCs ask for others. */
const BOOTED = /^(?:boot_iso|ks\.cfg|(?:kernel|ramdisk)(?:\.\w+)?)$/;
/** The ramdisk, of any architecture. */
const RAMDISK = /^ramdisk(?:\.\w+)?$/;

/** Beside the files that the record names. */
const KICKSTART = 'ks.cfg';
function inMemory(text: string | undefined): BootFile | undefined {
  if (text === undefined) return undefined;
  const from = Buffer.from(text);
  const read = (start: number, end: number) => streamPieces([{ at: 0, size: from.length, from }], start, end);
  return { kind: 'remote', file: { size: from.length, modified: 0, read, release: async () => {} } };
}

export function createBootFiles({ store, filter, cache, local, log, requests, reports, apiCaFile }: BootFilesSetup): BootFiles {
  return {
    recordFor: async (mac, protocol) => {
      const { boots } = (await chooseBoots(store, filter, [mac])).get(mac)!;
      if (typeof boots === 'string') return reports?.[boots];
      if (boots) requests.note(boots.node_uuid, protocol);
      return boots;
    },
    open: async (token, name, protocol) => {
      const report = Object.values(reports ?? {}).find((candidate) => candidate.token === token);
      const boot = report ?? (await store.boots.byToken(token));
      if (boot && !report && BOOTED.test(name)) requests.note(boot.node_uuid, protocol);
      if (boot?.purpose === 'installer' && name === KICKSTART) return inMemory(await store.boots.kickstartOf(token));
      const source = boot && Object.hasOwn(boot.files, name) ? boot.files[name]! : undefined;
      if (source === undefined) return undefined;
      const file = await openSource({ cache, local }, source, readerOf(store, boot!.node_uuid, name));
      if (!file) log.warn('a file of a boot record does not exist', { node: boot!.node_uuid, name, source: loggableUrl(source) });
      const isAgents = boot?.purpose === 'ramdisk' && RAMDISK.test(name);
      return file && isAgents && apiCaFile ? withAuthorities(file, apiCaFile) : file;
    },
  };
}
