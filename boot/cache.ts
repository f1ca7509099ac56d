/**
 * A cache of remote files in a folder. A file is downloaded once, even if several machines request it at the same time, and is served
 * while it downloads. It is revalidated, and downloaded again only if it changed. The least recently used files are removed to stay within
 * the size limit and the room on the disk, and those that nobody used for long. A file that was changed on the disk is not served.
 */
import { createHash } from 'node:crypto';
import { EventEmitter, once } from 'node:events';
import { mkdir, open, type FileHandle } from 'node:fs/promises';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { interceptors, type Dispatcher } from 'undici';
import type { Clock } from '../model/clock';
import { reasonOf } from '../model/errors';
import type { Log } from '../model/log';
import { silentMetrics, type Metrics } from '../model/metrics';
import type { NodeRecord } from '../model/records';
import { withoutCredentials } from '../model/urls';
import { createAgent } from '../wire/http-agent';
import type { ServiceClient } from '../wire/keystone/services';
import { isBlobUrl } from '../wire/oci/reference';
import type { RegistryOptions } from '../wire/oci/registry';
import { isGlanceUrl } from '../wire/openstack/glance';
import { webServerConnector } from '../wire/web-servers';
import {
  type CachedFileMetadata,
  freeBytes,
  hasDigest,
  loadFolder,
  openSparse,
  type Proof,
  removeFile,
  stampOf,
  storeMetadata,
  touch,
} from './cache-folder';
import { createDownloadSlots, type DownloadSlots } from './download-slots';
import { copyPieces, readPieces } from './read-pieces';
import { fromGlance, fromRegistry, fromWebServer, type UpstreamFile } from './upstream';

export interface CachedFile {
  /** Bytes. */
  readonly size: number;
  /** Milliseconds since the epoch. */
  readonly modified: number;
  /** Streams the bytes `start` to `end`, both included, as they arrive. Fails if the download fails. */
  read(start: number, end: number): Readable;
  /** As `read`; a piece is valid until `write` has resolved. Absent: a file that is composed of others. */
  readonly copy?: ((start: number, end: number, write: (piece: Buffer) => Promise<void>) => Promise<void>) | undefined;
  /** Closes the file. */
  release(): Promise<void>;
}
/** Whose secrets count at a registry: those of this node, with or without those of its user. */
export interface Reader {
  readonly node: () => Promise<Pick<NodeRecord, 'driver_info' | 'instance_info'> | undefined>;
  readonly permitsUser: boolean;
}
export interface Cache {
  /**
   * Throws UpstreamError if the remote server does not provide the file.
   * @param reader for files of registries; absent: no node
   */
  open(url: string, reader?: Reader): Promise<CachedFile>;
  close(): Promise<void>;
}
interface CacheSetup {
  readonly folder: string;
  readonly maxBytes: number;
  /** Files that were not used for so long are removed. Absent: none. */
  readonly maxAgeMs?: number;
  /** How often they are looked for. Absent or 0: only at the start. */
  readonly cleanUpMs?: number;
  /** Absent: no limit. */
  readonly downloads?: number;
  /** Room on the disk of the folder; absent: as the file system says. */
  readonly freeBytes?: (folder: string) => Promise<number>;
  readonly options: RegistryOptions;
  /** Source of `glance://UUID`. */
  readonly glance: ServiceClient;
  readonly log: Log;
  readonly clock: Clock;
  readonly random: (bytes: number) => Buffer;
  /** Absent: no metrics. */
  readonly metrics?: Metrics;
}
export class UpstreamError extends Error {
  /** @param message for whoever requests the file. @param detail for the log: it may name local paths */
  constructor(
    message: string,
    readonly detail: string = message,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}

interface CacheEntry {
  readonly metadata: CachedFileMetadata;
  /** Known once the file is complete. */
  proof?: Proof;
  /** Bytes in the file; equals the size once it is complete. */
  received: number;
  /** Milliseconds since the epoch. */
  usedAt: number;
  /** As `usedAt`, on the disk. */
  touchedAt: number;
  checkedAt: number;
  failure?: Error;
  /** Whether the content is the same under another stamp, while it is read. */
  comparing?: Promise<boolean>;
  /** Emits `more` when bytes arrived or the download ended. */
  readonly progress: EventEmitter;
}

/** Milliseconds without revalidation, because many machines boot at the same time. */
const FRESH_MS = 2000;
/** Milliseconds between two writes of the time of use. */
const TOUCH_MS = 60_000;
const CONNECT_TIMEOUT_MS = 10_000;
const TIMEOUTS = { headersMs: 30_000, bodyMs: 60_000 };
/** A download that breaks off continues so often. */
const RESUMPTIONS = 4;
const RESUMPTION_PAUSE_MS = 1000;
/**
 * A slower server fails after the first minute: its download would take a place and room that others need. The timeouts above do not end it,
 * if single bytes arrive again and again.
 */
const SLOWEST = { bytesPerSecond: 4096, afterMs: 60_000 };
/** The digest of files for which no hash is known. */
const OWN_DIGEST = 'sha256';
const MIB = 2 ** 20;

/** A URL without credentials and query, for the log. */
export const loggableUrl = (url: string): string => withoutCredentials(url).split(/[?#]/, 1)[0]!;

interface CacheState {
  readonly setup: Required<Pick<CacheSetup, 'folder' | 'maxBytes' | 'freeBytes' | 'metrics'>> & CacheSetup;
  readonly entries: Map<string, CacheEntry>;
  readonly dispatcher: Dispatcher;
  /** Aborted when the cache closes. */
  readonly closing: AbortController;
  readonly downloads: Set<Promise<void>>;
  readonly slots: DownloadSlots;
  /** Makes the names of files unique. */
  serial: number;
}

const isComplete = ({ metadata, received }: CacheEntry): boolean => metadata.size === received;

async function removeEntry({ setup, entries }: CacheState, entry: CacheEntry): Promise<void> {
  const { url, file } = entry.metadata;
  if (entries.get(url) === entry) entries.delete(url);
  await removeFile(setup.folder, file);
}

/** Bytes that downloads will still write. */
const outstanding = ({ entries }: CacheState): number =>
  [...entries.values()].reduce((sum, { metadata, received }) => sum + metadata.size - received, 0);

/** Removes old files until the new one fits; none if it would not fit without all of them. Open readers of a removed file can continue. */
async function makeRoom(state: CacheState, newEntry: CacheEntry): Promise<void> {
  const { entries } = state;
  const { folder, maxBytes, log } = state.setup;
  const bytes = newEntry.metadata.size;
  if (bytes > maxBytes) throw new UpstreamError(`${bytes} bytes exceed the size of the image cache (${maxBytes})`);
  const sizeOf = (some: Iterable<CacheEntry>): number => [...some].reduce((sum, { metadata }) => sum + metadata.size, 0);
  let total = sizeOf(entries.values());
  const free = (): Promise<number> => state.setup.freeBytes(folder);
  let room = await free();
  /** @param more bytes that files take which can be removed */
  const check = (more: number): void => {
    if (total - more > maxBytes) throw new UpstreamError('the image cache is full of files that are still downloading');
    if (room + more < outstanding(state)) throw diskFull(folder, outstanding(state), room);
  };
  const isEnough = (): boolean => total <= maxBytes && room >= outstanding(state);
  const complete = [...entries.values()].filter((entry) => entry !== newEntry && isComplete(entry));
  check(sizeOf(complete));
  for (const entry of complete.sort((a, b) => a.usedAt - b.usedAt)) {
    if (isEnough()) return;
    total -= entry.metadata.size;
    await removeEntry(state, entry);
    room = await free();
    log.info('HTTP boot: removed from the image cache', { url: loggableUrl(entry.metadata.url), bytes: entry.metadata.size });
  }
  check(0);
}
const diskFull = (folder: string, needed: number, room: number): UpstreamError =>
  new UpstreamError(
    `the disk of the image cache is full: ${needed} bytes are required, and ${room} are free`,
    `Disk volume where '${folder}' is located doesn't have enough disk space. Required ${Math.ceil(needed / MIB)} MiB, only ${Math.floor(room / MIB)} MiB available space present.`,
  );

/** Removes the files that nobody used for long. */
async function removeOld(state: CacheState): Promise<void> {
  const { maxAgeMs, clock, log } = state.setup;
  if (maxAgeMs === undefined) return;
  const oldest = clock.now() - maxAgeMs;
  for (const entry of [...state.entries.values()].filter((candidate) => isComplete(candidate) && candidate.usedAt < oldest)) {
    await removeEntry(state, entry);
    log.info('HTTP boot: removed from the image cache, because it is old', { url: loggableUrl(entry.metadata.url) });
  }
}

/** A body that may break off, and then continues where it broke off. */
async function* continuing(
  { body, resume }: UpstreamFile,
  entry: CacheEntry,
  { setup, closing: { signal } }: CacheState,
): AsyncGenerator<Buffer> {
  let left = RESUMPTIONS;
  const next = async (reason: unknown): Promise<Readable> => {
    if (!resume || signal.aborted || left === 0) throw reason;
    if (left < RESUMPTIONS) await setup.clock.sleep(RESUMPTION_PAUSE_MS, signal);
    left--;
    const rest = await resume(entry.received).catch(next);
    if (!rest) throw reason;
    return rest;
  };
  for (let rest = body; ;) {
    try {
      for await (const chunk of rest as AsyncIterable<Buffer>) yield chunk;
      return;
    } catch (error) {
      rest = await next(error);
    }
  }
}

/** Throws an Error for a download that is too slow. */
function checkSpeed({ received }: CacheEntry, ms: number): void {
  if (ms > SLOWEST.afterMs && received < (ms / 1000) * SLOWEST.bytesPerSecond)
    throw new Error(`the server sent ${received} bytes in ${Math.round(ms / 1000)} seconds`);
}

/** Never rejects: the error is stored in the entry for its readers. */
async function download(
  state: CacheState,
  upstream: UpstreamFile,
  file: Awaited<ReturnType<typeof openSparse>>,
  entry: CacheEntry,
): Promise<void> {
  const { folder, log, clock } = state.setup;
  const { signal } = state.closing;
  const { metadata } = entry;
  const moment = (): number => clock.monotonic?.() ?? clock.now();
  const start = moment();
  const where = { url: loggableUrl(metadata.url), bytes: metadata.size };
  const expected = upstream.digest;
  const hash = createHash(expected?.algorithm ?? OWN_DIGEST);
  let value = '';
  try {
    for await (const chunk of continuing(upstream, entry, state)) {
      if (entry.received + chunk.length > metadata.size) throw new Error('the server sent more bytes than announced');
      hash.update(chunk);
      // Checked before readers get the last bytes, so that nobody gets a complete file with a wrong checksum.
      if (entry.received + chunk.length === metadata.size) {
        value = hash.digest('hex');
        if (expected && value !== expected.value.toLowerCase()) throw new Error(`the ${expected.algorithm} checksum does not match`);
      }
      await file.write(chunk);
      entry.received += chunk.length;
      if (!isComplete(entry)) checkSpeed(entry, moment() - start);
      entry.progress.emit('more');
    }
    if (!isComplete(entry)) throw new Error(`the connection ended after ${entry.received} bytes`);
    await file.handle.sync();
    const digest = { algorithm: expected?.algorithm ?? OWN_DIGEST, value: value || hash.digest('hex') };
    entry.proof = { digest, stamp: await stampOf(file.handle) };
    await storeMetadata(folder, metadata, entry.proof, entry.usedAt);
    log.info('HTTP boot: downloaded into the image cache', where);
  } catch (error) {
    entry.failure = new UpstreamError(reasonOf(error));
    await removeEntry(state, entry).catch(() => {});
    if (!signal.aborted) log.warn('HTTP boot: download failed', { ...where, error: reasonOf(error) });
  } finally {
    await file.handle.close().catch(() => {});
    entry.progress.emit('more');
  }
}

/** Replaces the entry of this URL by one that downloads the response. @param slot is given back at the end of the download */
async function startDownload(state: CacheState, url: string, response: UpstreamFile, slot: () => void): Promise<CacheEntry> {
  const { entries, downloads } = state;
  const { folder, clock } = state.setup;
  const header = (name: string): string | null => [response.headers[name] ?? []].flat()[0] ?? null;
  if (response.status !== 200) throw new UpstreamError(`the server answers ${response.status}`);
  const size = header('content-length');
  if (size === null || !/^\d{1,15}$/.test(size)) throw new UpstreamError('the server does not send Content-Length');
  const replaced = entries.get(url);
  if (replaced) await removeEntry(state, replaced);
  const modified = Date.parse(header('last-modified') ?? '');
  const metadata: CachedFileMetadata = {
    url,
    file: `${createHash('sha256').update(url).digest('hex').slice(0, 32)}-${(state.serial += 1)}`,
    size: Number(size),
    modified: Number.isNaN(modified) ? clock.now() : modified,
    etag: header('etag'),
    lastModified: header('last-modified'),
  };
  const now = clock.now();
  const entry: CacheEntry = {
    metadata,
    received: 0,
    usedAt: now,
    touchedAt: now,
    checkedAt: now,
    progress: new EventEmitter().setMaxListeners(0),
  };
  // Added before room is made, so that concurrent downloads do not use the same room.
  entries.set(url, entry);
  const file = await makeRoom(state, entry)
    .then(() => openSparse(join(folder, metadata.file), metadata.size))
    .catch((error: unknown) => {
      entries.delete(url);
      throw error;
    });
  const running = download(state, response, file, entry).finally(() => {
    downloads.delete(running);
    slot();
  });
  downloads.add(running);
  return entry;
}

/** Asks for the file, on condition that it changed if it is known. */
async function request(state: CacheState, { url, reader }: Wanted, known: CacheEntry | undefined): Promise<UpstreamFile> {
  const { glance, options, clock, random } = state.setup;
  const { signal } = state.closing;
  if (isGlanceUrl(url)) return fromGlance(url, glance, signal);
  if (isBlobUrl(url)) {
    const secrets = await reader?.node();
    return fromRegistry(url, { secrets, permitsUser: reader?.permitsUser ?? false, options, signal, clock, random });
  }
  const conditions = {
    ...(known?.metadata.etag ? { 'if-none-match': known.metadata.etag } : {}),
    ...(known?.metadata.lastModified ? { 'if-modified-since': known.metadata.lastModified } : {}),
  };
  return fromWebServer(url, conditions, { dispatcher: state.dispatcher, signal, options });
}
const discard = ({ body }: UpstreamFile): void => void body.on('error', () => {}).destroy();

interface Wanted {
  readonly url: string;
  readonly reader: Reader | undefined;
}
/** Revalidates the file. Starts a download if it is new or changed. */
async function revalidate(state: CacheState, wanted: Wanted): Promise<CacheEntry> {
  const { entries, slots, setup } = state;
  const { url } = wanted;
  const { clock, metrics } = setup;
  const known = entries.get(url);
  // A known file is asked for without a slot: machines must not wait for downloads of others.
  let slot = known ? undefined : await slots.take();
  try {
    let response = await request(state, wanted, known);
    if (known && response.status === 304) {
      response.body.on('error', () => {}).resume();
      metrics.count('bloomery_image_cache_total', { result: 'hit' });
      known.checkedAt = clock.now();
      return known;
    }
    slot ??= slots.tryTake();
    if (!slot) {
      discard(response);
      slot = await slots.take();
      response = await request(state, wanted, undefined);
    }
    try {
      const entry = await startDownload(state, url, response, slot);
      metrics.count('bloomery_image_cache_total', { result: 'miss' });
      return entry;
    } catch (error) {
      discard(response);
      throw error;
    }
  } catch (error) {
    slot?.();
    throw error;
  }
}

/** Whether a file with another stamp has the content. Copied with the state directory, for example, it has. */
async function compare(
  { setup: { folder } }: CacheState,
  entry: CacheEntry,
  { handle, proof, stamp }: { readonly handle: FileHandle; readonly proof: Proof; readonly stamp: string },
): Promise<boolean> {
  if (!(await hasDigest(handle, proof.digest))) return false;
  entry.proof = { ...proof, stamp };
  await storeMetadata(folder, entry.metadata, entry.proof, entry.usedAt);
  return true;
}

/** Opens the file of an entry. Undefined: it was changed on the disk, and is removed. */
async function openUnchanged(state: CacheState, entry: CacheEntry): Promise<FileHandle | undefined> {
  const { folder, log } = state.setup;
  const { metadata } = entry;
  const handle = await open(join(folder, metadata.file)).catch((error: unknown) => {
    if (entry.failure) throw entry.failure;
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  });
  try {
    const { proof } = entry;
    if (!handle || !proof) return handle ?? (await removeEntry(state, entry), undefined);
    const stamp = await stampOf(handle);
    if (stamp === proof.stamp) return handle;
    // All readers at a time wait for one comparison.
    entry.comparing ??= compare(state, entry, { handle, proof, stamp }).finally(() => delete entry.comparing);
    if (await entry.comparing) return handle;
    log.warn('HTTP boot: a file of the image cache was changed on the disk, and is downloaded again', { url: loggableUrl(metadata.url) });
    await removeEntry(state, entry);
  } catch (error) {
    await handle?.close();
    throw error;
  }
  await handle.close();
  return undefined;
}

export async function openCache(given: CacheSetup): Promise<Cache> {
  const setup = { freeBytes, metrics: silentMetrics, ...given };
  const { folder, options, clock, metrics } = setup;
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const entries = new Map<string, CacheEntry>();
  for (const { metadata, proof, usedAt } of await loadFolder(folder)) {
    const progress = new EventEmitter().setMaxListeners(0);
    entries.set(metadata.url, { metadata, proof, received: metadata.size, usedAt, touchedAt: usedAt, checkedAt: 0, progress });
  }
  const agent = createAgent({ connect: webServerConnector(options, CONNECT_TIMEOUT_MS), bodyBytes: 'streamed', ...TIMEOUTS });
  const state: CacheState = {
    setup,
    entries,
    dispatcher: agent.compose(interceptors.redirect({ maxRedirections: 5 })),
    closing: new AbortController(),
    downloads: new Set(),
    slots: createDownloadSlots(setup.downloads ?? Infinity),
    serial: clock.now(),
  };
  await removeOld(state);
  const cleaning = cleanUp(state);
  const revalidating = new Map<string, Promise<CacheEntry>>();

  const current = async (wanted: Wanted): Promise<CacheEntry> => {
    const { url } = wanted;
    const known = entries.get(url);
    // The data of an image in Glance never changes, nor does what has a digest.
    const isFresh = known && (isGlanceUrl(url) || isBlobUrl(url) || clock.now() - known.checkedAt < FRESH_MS);
    const isCurrent = known && (!isComplete(known) || isFresh);
    if (isCurrent && !revalidating.has(url)) {
      metrics.count('bloomery_image_cache_total', { result: 'hit' });
      return known;
    }
    const running = revalidating.get(url) ?? revalidate(state, wanted).finally(() => revalidating.delete(url));
    revalidating.set(url, running);
    return running.catch((error: unknown) => {
      throw error instanceof UpstreamError ? error : new UpstreamError(reasonOf(error), undefined, { cause: error });
    });
  };
  return {
    open: async (url, reader) => {
      for (let attempts = 0; attempts < 2; attempts++) {
        const file = await current({ url, reader });
        file.usedAt = clock.now();
        if (file.usedAt - file.touchedAt > TOUCH_MS) {
          file.touchedAt = file.usedAt;
          await touch(folder, file.metadata.file, file.usedAt);
        }
        const handle = await openUnchanged(state, file);
        if (!handle) continue;
        const { size, modified } = file.metadata;
        const arrived = arrivedAfter(file);
        return {
          size,
          modified,
          read: (start, end) => readPieces(handle, start, end, arrived),
          copy: (start, end, write) => copyPieces(handle, start, end, write, arrived),
          release: () => handle.close(),
        };
      }
      throw new UpstreamError('the file in the image cache changes again and again');
    },
    close: async () => {
      state.closing.abort();
      await cleaning;
      await Promise.all(state.downloads);
      await agent.destroy();
    },
  };
}

/** Ends when the cache closes. */
async function cleanUp(state: CacheState): Promise<void> {
  const { cleanUpMs = 0, maxAgeMs, clock, log } = state.setup;
  const { signal } = state.closing;
  while (cleanUpMs > 0 && maxAgeMs !== undefined && !signal.aborted) {
    await clock.sleep(cleanUpMs, signal).catch(() => {});
    if (!signal.aborted)
      await removeOld(state).catch((error: unknown) => log.warn('HTTP boot: clean-up failed', { error: reasonOf(error) }));
  }
}

/** Waits for the bytes after `at` of a file that may still be downloading. */
const arrivedAfter =
  (entry: CacheEntry) =>
  async (at: number): Promise<number> => {
    while (entry.received <= at && !entry.failure) await once(entry.progress, 'more');
    if (entry.failure) throw entry.failure;
    return entry.received;
  };
