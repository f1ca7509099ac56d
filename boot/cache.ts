/**
 * A cache of remote files in a folder. A file is downloaded once, even if several machines request it at the same time, and is served
 * while it downloads. It is revalidated, and downloaded again only if it changed. The least recently used files are removed to stay
 * within the size limit.
 */
import { createHash } from 'node:crypto';
import { EventEmitter, once } from 'node:events';
import { mkdir, open, readdir, readFile, rm, writeFile, type FileHandle } from 'node:fs/promises';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { interceptors, type Dispatcher } from 'undici';
import type { Clock } from '../model/clock';
import { reasonOf } from '../model/errors';
import type { Log } from '../model/log';
import { silentMetrics, type Metrics } from '../model/metrics';
import { withoutCredentials } from '../model/urls';
import { createAgent } from '../wire/http-agent';
import type { ServiceClient } from '../wire/keystone/services';
import type { ImageServerOptions } from '../wire/image-servers';
import { isGlanceUrl } from '../wire/openstack/glance';
import { webServerConnector, type WebServerOptions } from '../wire/web-servers';
import { readPieces } from './read-pieces';
import { fromGlance, fromWebServer, type UpstreamFile } from './upstream';

export interface CachedFile {
  /** Bytes. */
  readonly size: number;
  /** Milliseconds since the epoch. */
  readonly modified: number;
  /** Streams the bytes `start` to `end`, both included, as they arrive. Fails if the download fails. */
  read(start: number, end: number): Readable;
  /** Closes the file. */
  release(): Promise<void>;
}
export interface Cache {
  /** Throws UpstreamError if the remote server does not provide the file. */
  open(url: string): Promise<CachedFile>;
  close(): Promise<void>;
}
interface CacheSetup {
  readonly folder: string;
  readonly maxBytes: number;
  readonly options: ImageServerOptions & WebServerOptions;
  /** Source of `glance://UUID`. */
  readonly glance: ServiceClient;
  readonly log: Log;
  readonly clock: Clock;
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

/** Stored beside a complete file. A file without metadata is removed at the next start. */
interface CachedFileMetadata {
  readonly url: string;
  readonly file: string;
  readonly size: number;
  readonly modified: number;
  readonly etag: string | null;
  readonly lastModified: string | null;
}
interface CacheEntry {
  readonly metadata: CachedFileMetadata;
  /** Bytes in the file; equals the size once it is complete. */
  received: number;
  /** Milliseconds since the epoch. */
  usedAt: number;
  checkedAt: number;
  failure?: Error;
  /** Emits `more` when bytes arrived or the download ended. */
  readonly progress: EventEmitter;
}

/** Milliseconds without revalidation, because many machines boot at the same time. */
const FRESH_MS = 2000;
const CONNECT_TIMEOUT_MS = 10_000;
const TIMEOUTS = { headersMs: 30_000, bodyMs: 60_000 };

/** A URL without credentials and query, for the log. */
export const loggableUrl = (url: string): string => withoutCredentials(url).split(/[?#]/, 1)[0]!;

interface CacheState extends Required<CacheSetup> {
  readonly entries: Map<string, CacheEntry>;
  readonly dispatcher: Dispatcher;
  /** Aborted when the cache closes. */
  readonly closing: AbortController;
  readonly downloads: Set<Promise<void>>;
  /** Makes the names of files unique. */
  serial: number;
}

async function removeEntry({ folder, entries }: CacheState, entry: CacheEntry): Promise<void> {
  const { url, file } = entry.metadata;
  if (entries.get(url) === entry) entries.delete(url);
  await rm(join(folder, `${file}.json`), { force: true });
  await rm(join(folder, file), { force: true });
}

/** Removes old files until the new one fits. Open readers of a removed file can continue. */
async function makeRoom(state: CacheState, newEntry: CacheEntry): Promise<void> {
  const { entries, maxBytes, log } = state;
  const bytes = newEntry.metadata.size;
  if (bytes > maxBytes) throw new UpstreamError(`${bytes} bytes exceed the size of the image cache (${maxBytes})`);
  let total = 0;
  for (const { metadata } of entries.values()) total += metadata.size;
  const complete = [...entries.values()].filter((entry) => entry !== newEntry && entry.metadata.size === entry.received);
  for (const entry of complete.sort((a, b) => a.usedAt - b.usedAt)) {
    if (total <= maxBytes) break;
    total -= entry.metadata.size;
    await removeEntry(state, entry);
    log.info('HTTP boot: removed from the image cache', { url: loggableUrl(entry.metadata.url), bytes: entry.metadata.size });
  }
  if (total > maxBytes) throw new UpstreamError('the image cache is full of files that are still downloading');
}

/** Never rejects: the error is stored in the entry for its readers. */
async function download(state: CacheState, { body, digest }: UpstreamFile, handle: FileHandle, entry: CacheEntry): Promise<void> {
  const { folder, log, closing } = state;
  const { metadata } = entry;
  const where = { url: loggableUrl(metadata.url), bytes: metadata.size };
  const hash = digest && createHash(digest.algorithm);
  try {
    for await (const chunk of body as AsyncIterable<Buffer>) {
      if (entry.received + chunk.length > metadata.size) throw new Error('the server sent more bytes than announced');
      hash?.update(chunk);
      // Checked before readers get the last bytes, so that nobody gets a complete file with a wrong checksum.
      const isLast = entry.received + chunk.length === metadata.size;
      if (isLast && digest && hash?.digest('hex') !== digest.value.toLowerCase())
        throw new Error(`the ${digest.algorithm} checksum does not match`);
      await handle.writeFile(chunk);
      entry.received += chunk.length;
      entry.progress.emit('more');
    }
    if (entry.received < metadata.size) throw new Error(`the connection ended after ${entry.received} bytes`);
    // The URL may contain a password.
    await writeFile(join(folder, `${metadata.file}.json`), JSON.stringify(metadata), { mode: 0o600 });
    log.info('HTTP boot: downloaded into the image cache', where);
  } catch (error) {
    entry.failure = new UpstreamError(reasonOf(error));
    await removeEntry(state, entry).catch(() => {});
    if (!closing.signal.aborted) log.warn('HTTP boot: download failed', { ...where, error: reasonOf(error) });
  } finally {
    await handle.close().catch(() => {});
    entry.progress.emit('more');
  }
}

/** Replaces the entry of this URL by one that downloads the response. */
async function startDownload(state: CacheState, url: string, response: UpstreamFile): Promise<CacheEntry> {
  const { folder, clock, entries, downloads } = state;
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
  const entry: CacheEntry = { metadata, received: 0, usedAt: now, checkedAt: now, progress: new EventEmitter().setMaxListeners(0) };
  // Added before room is made, so that concurrent downloads do not use the same room.
  entries.set(url, entry);
  const handle = await makeRoom(state, entry)
    .then(() => open(join(folder, metadata.file), 'w', 0o600))
    .catch((error: unknown) => {
      entries.delete(url);
      throw error;
    });
  const running = download(state, response, handle, entry).finally(() => downloads.delete(running));
  downloads.add(running);
  return entry;
}

/** Revalidates the file. Starts a download if it is new or changed. */
async function revalidate(state: CacheState, url: string): Promise<CacheEntry> {
  const { entries, dispatcher, closing, clock, metrics, glance, options } = state;
  const known = entries.get(url);
  const { signal } = closing;
  const response = isGlanceUrl(url)
    ? await fromGlance(url, glance, signal)
    : await fromWebServer(
        url,
        {
          ...(known?.metadata.etag ? { 'if-none-match': known.metadata.etag } : {}),
          ...(known?.metadata.lastModified ? { 'if-modified-since': known.metadata.lastModified } : {}),
        },
        { dispatcher, signal, options },
      );
  if (known && response.status === 304) {
    response.body.on('error', () => {}).resume();
    metrics.count('bloomery_image_cache_total', { result: 'hit' });
    known.checkedAt = clock.now();
    return known;
  }
  try {
    const entry = await startDownload(state, url, response);
    metrics.count('bloomery_image_cache_total', { result: 'miss' });
    return entry;
  } catch (error) {
    response.body.on('error', () => {}).destroy();
    throw error;
  }
}

export async function openCache({ folder, maxBytes, options, glance, log, clock, metrics = silentMetrics }: CacheSetup): Promise<Cache> {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const entries = await load(folder, clock);
  const agent = createAgent({ connect: webServerConnector(options, CONNECT_TIMEOUT_MS), bodyBytes: 'streamed', ...TIMEOUTS });
  const state: CacheState = {
    folder,
    maxBytes,
    options,
    glance,
    log,
    clock,
    metrics,
    entries,
    dispatcher: agent.compose(interceptors.redirect({ maxRedirections: 5 })),
    closing: new AbortController(),
    downloads: new Set(),
    serial: clock.now(),
  };
  const revalidating = new Map<string, Promise<CacheEntry>>();

  return {
    open: async (url) => {
      const known = entries.get(url);
      // The data of an image in Glance never changes.
      const isFresh = known && (isGlanceUrl(url) || clock.now() - known.checkedAt < FRESH_MS);
      const isCurrent = known && (known.received < known.metadata.size || isFresh);
      let entry = isCurrent && !revalidating.has(url) ? known : undefined;
      if (entry) metrics.count('bloomery_image_cache_total', { result: 'hit' });
      else {
        const running = revalidating.get(url) ?? revalidate(state, url).finally(() => revalidating.delete(url));
        revalidating.set(url, running);
        entry = await running.catch((error: unknown) => {
          throw error instanceof UpstreamError ? error : new UpstreamError(reasonOf(error), undefined, { cause: error });
        });
      }
      entry.usedAt = clock.now();
      const file = entry;
      const handle = await open(join(folder, file.metadata.file)).catch((error: unknown) => {
        throw file.failure ?? error;
      });
      return {
        size: file.metadata.size,
        modified: file.metadata.modified,
        read: (start, end) => readPieces(handle, start, end, arrivedAfter(file)),
        release: () => handle.close(),
      };
    },
    close: async () => {
      state.closing.abort();
      await Promise.all(state.downloads);
      await agent.destroy();
    },
  };
}

/** Waits for the bytes after `at` of a file that may still be downloading. */
const arrivedAfter =
  (entry: CacheEntry) =>
  async (at: number): Promise<number> => {
    while (entry.received <= at && !entry.failure) await once(entry.progress, 'more');
    if (entry.failure) throw entry.failure;
    return entry.received;
  };

/** Loads the files of an earlier run; incomplete ones are removed. */
async function load(folder: string, clock: Clock): Promise<Map<string, CacheEntry>> {
  const names = await readdir(folder);
  const entries = new Map<string, CacheEntry>();
  const whole = new Set<string>();
  for (const name of names.filter((candidate) => candidate.endsWith('.json'))) {
    const metadata = await readFile(join(folder, name), 'utf8')
      .then((text) => JSON.parse(text) as CachedFileMetadata)
      .catch(() => undefined);
    if (!metadata || `${metadata.file}.json` !== name || !names.includes(metadata.file)) continue;
    whole.add(name).add(metadata.file);
    entries.set(metadata.url, {
      metadata,
      received: metadata.size,
      usedAt: clock.now(),
      checkedAt: 0,
      progress: new EventEmitter().setMaxListeners(0),
    });
  }
  for (const name of names) if (!whole.has(name)) await rm(join(folder, name), { recursive: true, force: true });
  return entries;
}
