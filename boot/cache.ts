/**
 * Files of other servers, kept in a folder: asked for again only when they changed there, fetched once however many machines want them
 * at the same time, and handed on while they come. The folder stays below its bound; what was used longest ago goes first.
 */
import { createHash } from 'node:crypto';
import { EventEmitter, once } from 'node:events';
import { mkdir, open, readdir, readFile, rm, writeFile, type FileHandle } from 'node:fs/promises';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { Agent, interceptors, request } from 'undici';
import type { Clock } from '../model/clock';
import { reasonOf } from '../model/errors';
import type { Log } from '../model/log';
import { silentMetrics, type Metrics } from '../model/metrics';
import { basicAuthorization, credentialsOf, withoutCredentials } from '../model/urls';

export interface CachedFile {
  /** Bytes. */
  readonly size: number;
  /** Milliseconds since the epoch. */
  readonly modified: number;
  /** Bytes `start` to `end`, both included, as they come. Fails when their source does. */
  read(start: number, end: number): Readable;
  /** The caller needs it no more. */
  release(): Promise<void>;
}
export interface Cache {
  /** Throws UpstreamError when the other server does not give it. */
  open(url: string): Promise<CachedFile>;
  close(): Promise<void>;
}
export interface CacheSetup {
  readonly folder: string;
  readonly maxBytes: number;
  readonly log: Log;
  readonly clock: Clock;
  /** Absent: nothing is measured. */
  readonly metrics?: Metrics;
}
export class UpstreamError extends Error {}

/** What is written beside a file that came whole; a file without it is thrown away at the next start. */
interface CachedFileMetadata {
  readonly url: string;
  readonly file: string;
  readonly size: number;
  readonly modified: number;
  readonly etag: string | null;
  readonly lastModified: string | null;
}
interface CacheEntry {
  readonly kept: CachedFileMetadata;
  /** Bytes that are in the file; when it is whole, its size. */
  received: number;
  /** Milliseconds since the epoch. */
  used: number;
  asked: number;
  failure?: Error;
  /** Emits `more` when bytes came or none will. */
  readonly signs: EventEmitter;
}

const CHUNK = 1024 * 1024;
/** Milliseconds in which a file that was asked about is not asked about again: machines boot many at a time. */
const FRESH = 2000;
const AGENT = { connect: { timeout: 10_000 }, headersTimeout: 30_000, bodyTimeout: 60_000 };

/** A URL for the log: credentials and query left out. */
export const loggableUrl = (url: string): string => withoutCredentials(url).replace(/[?#].*$/, '');

export async function openCache({ folder, maxBytes, log, clock, metrics = silentMetrics }: CacheSetup): Promise<Cache> {
  await mkdir(folder, { recursive: true });
  const entries = await load(folder, clock);
  const asking = new Map<string, Promise<CacheEntry>>();
  const agent = new Agent(AGENT);
  const dispatcher = agent.compose(interceptors.redirect({ maxRedirections: 5 }));
  const closing = new AbortController();
  const fetching = new Set<Promise<void>>();
  let serial = clock.now();

  const drop = async (entry: CacheEntry): Promise<void> => {
    const { url, file } = entry.kept;
    if (entries.get(url) === entry) entries.delete(url);
    await rm(join(folder, `${file}.json`), { force: true });
    await rm(join(folder, file), { force: true });
  };
  /** Whoever still reads a file that goes reads on: it is open. */
  const makeRoomFor = async (newcomer: CacheEntry): Promise<void> => {
    const bytes = newcomer.kept.size;
    if (bytes > maxBytes) throw new UpstreamError(`${bytes} bytes are more than the image cache may hold (${maxBytes})`);
    let total = 0;
    for (const { kept } of entries.values()) total += kept.size;
    const whole = [...entries.values()].filter((one) => one !== newcomer && one.kept.size === one.received);
    for (const entry of whole.sort((a, b) => a.used - b.used)) {
      if (total <= maxBytes) break;
      total -= entry.kept.size;
      await drop(entry);
      log.info('HTTP boot: dropped from the image cache', { url: loggableUrl(entry.kept.url), bytes: entry.kept.size });
    }
    if (total > maxBytes) throw new UpstreamError('the image cache is full of files that are being fetched');
  };

  /** The entry as the other server has it now; a file that is new or changed there begins to come. */
  const ask = async (url: string): Promise<CacheEntry> => {
    const known = entries.get(url);
    const answer = await request(withoutCredentials(url), {
      dispatcher,
      signal: closing.signal,
      headers: {
        'accept-encoding': 'identity',
        // Dropped at a redirection to another host.
        ...basicAuthorization(credentialsOf(url)),
        ...(known?.kept.etag ? { 'if-none-match': known.kept.etag } : {}),
        ...(known?.kept.lastModified ? { 'if-modified-since': known.kept.lastModified } : {}),
      },
    });
    const header = (name: string): string | null => [answer.headers[name] ?? []].flat()[0] ?? null;
    if (known && answer.statusCode === 304) {
      await answer.body.dump();
      metrics.count('bloomery_image_cache_total', { result: 'hit' });
      known.asked = clock.now();
      return known;
    }
    try {
      if (answer.statusCode !== 200) throw new UpstreamError(`the server answers ${answer.statusCode}`);
      const size = header('content-length');
      if (size === null || !/^\d{1,15}$/.test(size)) throw new UpstreamError('the server does not say how large it is');
      if (known) await drop(known);
      const modified = Date.parse(header('last-modified') ?? '');
      const kept: CachedFileMetadata = {
        url,
        file: `${createHash('sha256').update(url).digest('hex').slice(0, 32)}-${(serial += 1)}`,
        size: Number(size),
        modified: Number.isNaN(modified) ? clock.now() : modified,
        etag: header('etag'),
        lastModified: header('last-modified'),
      };
      const entry: CacheEntry = { kept, received: 0, used: clock.now(), asked: clock.now(), signs: new EventEmitter().setMaxListeners(0) };
      // Counted before there is room, so that several that come at once do not take the same room.
      entries.set(url, entry);
      const handle = await makeRoomFor(entry)
        .then(() => open(join(folder, kept.file), 'w'))
        .catch((error: unknown) => {
          entries.delete(url);
          throw error;
        });
      const coming = fetchInto(answer.body, handle, entry).finally(() => fetching.delete(coming));
      fetching.add(coming);
      metrics.count('bloomery_image_cache_total', { result: 'miss' });
      return entry;
    } catch (error) {
      answer.body.on('error', () => {}).destroy();
      throw error;
    }
  };

  /** Never rejects: the failure stays in the entry, for those who read it. */
  const fetchInto = async (body: AsyncIterable<Buffer>, handle: FileHandle, entry: CacheEntry): Promise<void> => {
    const { kept } = entry;
    const where = { url: loggableUrl(kept.url), bytes: kept.size };
    try {
      for await (const chunk of body) {
        if (entry.received + chunk.length > kept.size) throw new Error('more bytes came than were announced');
        await handle.writeFile(chunk);
        entry.received += chunk.length;
        entry.signs.emit('more');
      }
      if (entry.received < kept.size) throw new Error(`the connection ended after ${entry.received} bytes`);
      await writeFile(join(folder, `${kept.file}.json`), JSON.stringify(kept));
      log.info('HTTP boot: fetched into the image cache', where);
    } catch (error) {
      entry.failure = new UpstreamError(reasonOf(error));
      await drop(entry).catch(() => {});
      if (!closing.signal.aborted) log.warn('HTTP boot: fetching failed', { ...where, error: reasonOf(error) });
    } finally {
      await handle.close().catch(() => {});
      entry.signs.emit('more');
    }
  };

  return {
    open: async (url) => {
      const known = entries.get(url);
      const isCurrent = known && (known.received < known.kept.size || clock.now() - known.asked < FRESH);
      let entry = isCurrent && !asking.has(url) ? known : undefined;
      if (entry) metrics.count('bloomery_image_cache_total', { result: 'hit' });
      else {
        const answer = asking.get(url) ?? ask(url).finally(() => asking.delete(url));
        asking.set(url, answer);
        entry = await answer.catch((error: unknown) => {
          throw error instanceof UpstreamError ? error : new UpstreamError(reasonOf(error), { cause: error });
        });
      }
      entry.used = clock.now();
      const file = entry;
      const handle = await open(join(folder, file.kept.file)).catch((error: unknown) => {
        throw file.failure ?? error;
      });
      return {
        size: file.kept.size,
        modified: file.kept.modified,
        read: (start, end) => Readable.from(follow(file, handle, start, end), { objectMode: false }),
        release: () => handle.close(),
      };
    },
    close: async () => {
      closing.abort();
      await Promise.all(fetching);
      await agent.destroy();
    },
  };
}

/** Bytes of a file that may still be growing. */
async function* follow(entry: CacheEntry, handle: FileHandle, start: number, end: number): AsyncGenerator<Buffer> {
  for (let at = start; at <= end;) {
    while (entry.received <= at && !entry.failure) await once(entry.signs, 'more');
    if (entry.failure) throw entry.failure;
    const length = Math.min(entry.received - at, end + 1 - at, CHUNK);
    const { bytesRead, buffer } = await handle.read(Buffer.allocUnsafe(length), 0, length, at);
    if (bytesRead === 0) throw new Error('a file of the image cache became shorter');
    at += bytesRead;
    yield buffer.subarray(0, bytesRead);
  }
}

/** What an earlier run left; files that did not come whole are removed. */
async function load(folder: string, clock: Clock): Promise<Map<string, CacheEntry>> {
  const names = await readdir(folder);
  const entries = new Map<string, CacheEntry>();
  const whole = new Set<string>();
  for (const name of names.filter((one) => one.endsWith('.json'))) {
    const kept = await readFile(join(folder, name), 'utf8')
      .then((text) => JSON.parse(text) as CachedFileMetadata)
      .catch(() => undefined);
    if (!kept || `${kept.file}.json` !== name || !names.includes(kept.file)) continue;
    whole.add(name).add(kept.file);
    entries.set(kept.url, { kept, received: kept.size, used: clock.now(), asked: 0, signs: new EventEmitter().setMaxListeners(0) });
  }
  for (const name of names) if (!whole.has(name)) await rm(join(folder, name), { recursive: true, force: true });
  return entries;
}
