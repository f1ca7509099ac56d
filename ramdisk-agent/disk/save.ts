/** Sends an image of a disk to a web server (HTTP PUT). The server knows its size from the beginning: a part of it is no image. */
import { createHash } from 'node:crypto';
import { basename } from 'node:path';
import type { Clock } from '../../model/clock';
import { AgentError } from '../../model/agent/errors';
import { reasonOf } from '../../model/errors';
import type { Log } from '../../model/log';
import { put } from '../system/http';
import type { ReportProgress } from '../system/progress';
import type { SourceDisk } from './clusters';
import type { Fetching } from './download';
import { compressionFor, type Compression } from './compression';
import { imageOf, type DiskImage } from './qcow2-image';

interface SaveOptions {
  readonly device: SourceDisk;
  readonly url: string;
  readonly checksumUrl: string | undefined;
  readonly fetching: Fetching;
  readonly retries: number;
  readonly retryIntervalMs: number;
  readonly progress: ReportProgress;
  readonly clock: Clock;
  readonly log: Log;
}
interface SavedImage {
  /** Bytes. */
  readonly size: number;
  readonly sha256: string;
  readonly compression: Compression['name'];
}

/** A signature in the query gives access. */
const shown = (url: string): string => url.split('?', 1)[0]!;
const isRepeated = (status: number): boolean => status >= 500 || status === 429 || status === 408;
const isDone = (status: number): boolean => status === 200 || status === 201 || status === 204;

/** Throws AgentError with the reason. */
export async function saveDisk(options: SaveOptions): Promise<SavedImage> {
  const { device, url, checksumUrl, fetching, log } = options;
  let most = -1;
  // The server may have answered before the content comes to its end.
  const progress = (percent: number): void => {
    if (percent <= most) return;
    most = percent;
    options.progress(percent);
  };
  const half = (from: number) => (bytes: number) => progress(from + (50 * Math.min(bytes, device.size)) / device.size);
  let report = half(0);
  const compression = await compressionFor(log);
  const image = await imageOf(device, { compression, signal: fetching.signal, progress: (bytes) => report(bytes) }).catch(
    (error: unknown) => {
      throw new AgentError('ServicingError', `Reading ${device.path} failed: ${reasonOf(error)}`, { cause: error });
    },
  );
  report = half(50);
  let sha256 = '';
  await sent(options, url, image.size, async function* () {
    const hash = createHash('sha256');
    let rest = image.size;
    for await (const bytes of image.content()) {
      hash.update(bytes);
      rest -= bytes.length;
      // The server may answer the last bytes before anything asks for more.
      if (rest === 0) sha256 = hash.digest('hex');
      yield bytes;
    }
  });
  progress(100);
  if (checksumUrl !== undefined) {
    const line = Buffer.from(`${sha256}  ${basename(new URL(url).pathname)}\n`);
    await sent(options, checksumUrl, line.length, async function* () {
      yield line;
    });
  }
  log.info(`Image of ${device.path} sent to ${shown(url)}: ${image.size} bytes, SHA-256 ${sha256}`);
  return { size: image.size, sha256, compression: compression.name };
}

/** Sends a file, again after faults of the network or the server. */
async function sent(options: SaveOptions, url: string, length: number, content: DiskImage['content']): Promise<void> {
  const { fetching, retries, retryIntervalMs, clock, log } = options;
  for (let attempt = 0; ; attempt++) {
    let problem: string;
    let again = true;
    try {
      const { status, text } = await put({ ...fetching, url, content: content(), length });
      if (isDone(status)) return;
      problem = `it answered ${status}${text === '' ? '' : `: ${text}`}`;
      again = isRepeated(status);
    } catch (error) {
      fetching.signal.throwIfAborted();
      problem = reasonOf(error);
    }
    if (!again || attempt >= retries) throw new AgentError('ServicingError', `Sending the image to ${shown(url)} failed: ${problem}`);
    log.warn(`Sending the image to ${shown(url)}: ${problem}; attempt ${attempt + 1} of ${retries + 1}`);
    await clock.sleep(retryIntervalMs, fetching.signal);
  }
}
