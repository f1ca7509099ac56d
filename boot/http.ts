/** The HTTP boot service: iPXE scripts, the files of a machine's boot, boot loaders, and the files of [deploy]http_root. GET and HEAD. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Clock } from '../model/clock';
import { reasonOf } from '../model/errors';
import type { Log } from '../model/log';
import { silentMetrics, type Metrics } from '../model/metrics';
import type { Store } from '../store/store';
import { createBootFiles, openSource, type BootFiles } from './boot-files';
import { openCache, UpstreamError, type CachedFile } from './cache';
import { sendContent } from './content';
import type { BootChoiceStore, PxeFilter, ReportBoots } from './discovery';
import { openServedFile, type OpenFile } from './files';
import { ipxeScript } from './ipxe';
import { openMedium } from './media';

export interface HttpBootOptions {
  readonly 'boot.http_host': string;
  /** 0: any free port. */
  readonly 'boot.http_port': number;
  /** Without a trailing slash. */
  readonly 'deploy.http_url': string;
  readonly 'deploy.http_root': string;
  readonly 'pxe.loader_file_paths': Readonly<Record<string, string>>;
  /** MiB. */
  readonly 'pxe.image_cache_size': number;
  /** The folder of files that come from other servers. */
  readonly 'boot.cache_root': string;
}
export interface HttpBootSetup {
  readonly options: HttpBootOptions;
  readonly store: BootChoiceStore & Pick<Store, 'boots' | 'media'>;
  readonly filter: PxeFilter;
  readonly log: Log;
  readonly clock: Clock;
  /** Absent: nothing is measured. */
  readonly metrics?: Metrics;
  readonly reports?: ReportBoots;
}
export interface HttpBootService {
  readonly port: number;
  /** Until the service is stopped. */
  readonly files: BootFiles;
  stop(): Promise<void>;
}

/** Milliseconds. A client that takes longer to ask, or that takes nothing for so long, is cut off. */
const ASKING = 10_000;
const IDLE = 120_000;
const MAX_CONNECTIONS = 4096;
const IPXE = /^\/ipxe\/([0-9a-f]{2}(?:-[0-9a-f]{2}){5})$/i;
const BOOT = /^\/boot\/([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\/([^/]+)$/i;
/** The middle part is the secret. */
const MEDIUM = /^\/media\/([\w-]{20,64})\/[\w.-]+$/;

/** Rejects when the port cannot be had. */
export async function startHttpBoot({
  options,
  store,
  filter,
  log,
  clock,
  metrics = silentMetrics,
  reports,
}: HttpBootSetup): Promise<HttpBootService> {
  const cache = await openCache({
    folder: options['boot.cache_root'],
    maxBytes: options['pxe.image_cache_size'] * 1024 * 1024,
    log,
    clock,
    metrics,
  });
  const files = createBootFiles({ store, filter, cache, log, reports });
  const served = { named: options['pxe.loader_file_paths'], root: options['deploy.http_root'] };
  const server = createServer(
    { headersTimeout: ASKING, requestTimeout: ASKING, keepAliveTimeout: ASKING, connectionsCheckingInterval: ASKING / 4 },
    (request, response) => {
      void handle(request, response);
    },
  );
  server.timeout = IDLE;
  server.maxConnections = MAX_CONNECTIONS;

  const handle = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const started = clock.now();
    const where = { client: request.socket.remoteAddress, path: (request.url ?? '').slice(0, 200).replace(/(\/media\/)[^/]+/, '$1***') };
    try {
      if (request.method !== 'GET' && request.method !== 'HEAD') {
        refuse(response, 405, 'Only GET and HEAD', { allow: 'GET, HEAD' });
        return;
      }
      const bytes = await answer(request, response, pathOf(request.url));
      if (bytes !== undefined) metrics.count('bloomery_http_boot_bytes_total', {}, bytes);
      if (bytes !== undefined) log.info('HTTP boot: sent', { ...where, bytes, ms: clock.now() - started });
    } catch (error) {
      if (response.headersSent) {
        log.info('HTTP boot: ended early', { ...where, error: reasonOf(error) });
        response.destroy();
      } else if (error instanceof UpstreamError) {
        log.warn('HTTP boot: cannot be fetched', { ...where, error: error.message });
        refuse(response, 502, error.message);
      } else {
        log.error('HTTP boot: failed', { ...where, error: reasonOf(error) });
        refuse(response, 500, 'Internal server error');
      }
    } finally {
      const kind = IPXE.test(request.url ?? '') ? 'script' : 'file';
      metrics.count('bloomery_http_boot_answers_total', { kind, status: `${Math.floor(response.statusCode / 100)}xx` });
    }
  };

  /** The bytes that were sent; undefined: refused. */
  const answer = async (request: IncomingMessage, response: ServerResponse, path: string | undefined): Promise<number | undefined> => {
    if (path === undefined) {
      refuse(response, 400, 'Not a path');
      return;
    }
    const mac = IPXE.exec(path)?.[1];
    if (mac !== undefined) return script(response, mac.toLowerCase().replaceAll('-', ':'));
    const [, uuid, name] = BOOT.exec(path) ?? [];
    if (uuid !== undefined) return bootFile(request, response, uuid.toLowerCase(), name!);
    const token = MEDIUM.exec(path)?.[1];
    if (token !== undefined) return medium(request, response, token, path);
    const file = await openServedFile(served, path);
    if (file) return localFile(request, response, file);
    refuse(response, 404, 'Not found');
  };

  const script = async (response: ServerResponse, mac: string): Promise<number | undefined> => {
    const boot = await files.recordFor(mac);
    if (!boot) {
      refuse(response, 404, `Nothing to boot for ${mac}`);
      return;
    }
    const text = Buffer.from(ipxeScript(boot, httpUrl));
    response.writeHead(200, { 'content-type': 'text/plain', 'content-length': text.length, 'cache-control': 'no-store' }).end(text);
    return text.length;
  };

  const bootFile = async (request: IncomingMessage, response: ServerResponse, uuid: string, name: string): Promise<number | undefined> => {
    const opened = await files.open(uuid, name);
    if (!opened) {
      refuse(response, 404, 'Not found');
      return;
    }
    return opened.kind === 'local' ? localFile(request, response, opened.file) : released(request, response, opened.file, name);
  };

  const medium = async (request: IncomingMessage, response: ServerResponse, token: string, path: string): Promise<number | undefined> => {
    const row = await store.media.byToken(token);
    if (!row) {
      refuse(response, 404, 'Not found');
      return;
    }
    const opened = await openMedium(row, async (source) => {
      const found = await openSource(cache, source);
      if (!found) throw new UpstreamError('a file that it is made of is not there');
      return found.kind === 'remote' ? found.file : whileOpen(found.file);
    });
    return released(request, response, opened, path);
  };

  await new Promise<void>((done, fail) => {
    server.once('error', fail);
    server.listen(options['boot.http_port'], options['boot.http_host'], () => {
      server.off('error', fail);
      done();
    });
  }).catch(async (error: unknown) => {
    await cache.close();
    throw error;
  });
  const { port } = server.address() as AddressInfo;
  // Made of port 0, the URL is finished only now.
  const httpUrl = options['deploy.http_url'].replace(/:0$/, `:${port}`);
  return {
    port,
    files,
    stop: async () => {
      const closed = new Promise<void>((done) => server.close(() => done()));
      server.closeAllConnections();
      await closed;
      await cache.close();
    },
  };
}

/** Large pieces: fewer turns between kernel and program for each byte. */
const PIECE = 1024 * 1024;

const whileOpen = ({ size, modified, handle }: OpenFile): CachedFile => ({
  size,
  modified,
  read: (start, end) => handle.createReadStream({ start, end, highWaterMark: PIECE, autoClose: false }),
  release: () => handle.close(),
});

const localFile = (request: IncomingMessage, response: ServerResponse, file: OpenFile): Promise<number> =>
  released(request, response, whileOpen(file), file.path);

async function released(request: IncomingMessage, response: ServerResponse, file: CachedFile, name: string): Promise<number> {
  try {
    return await sendContent(request, response, { ...file, type: typeOf(name) });
  } finally {
    await file.release();
  }
}

/** Firmware that boots by HTTP looks at the type (UEFI 2.10 §24.7.3.2, §24.7.4.2). */
const TYPES: Readonly<Record<string, string>> = { efi: 'application/efi', iso: 'application/vnd.efi-iso', img: 'application/vnd.efi-img' };
const typeOf = (name: string): string => TYPES[/\.(\w+)$/.exec(name)?.[1] ?? ''] ?? 'application/octet-stream';

/** The decoded path, with dots resolved; undefined when it is none. */
function pathOf(url: string | undefined): string | undefined {
  try {
    return decodeURIComponent(new URL((url ?? '').replace(/^\/+/, '/'), 'http://boot').pathname);
  } catch {
    return undefined;
  }
}

/** Answers undefined, as `answer` does for what was not sent. */
function refuse(response: ServerResponse, status: number, text: string, headers: Readonly<Record<string, string>> = {}): undefined {
  const body = `${text}\n`;
  response.writeHead(status, { 'content-type': 'text/plain', 'content-length': Buffer.byteLength(body), ...headers }).end(body);
  return undefined;
}
