/** Sends an image of a disk to the API in parts, from one reading of the disk. */
import { AgentError } from '../../model/agent/errors';
import { retry, type Clock } from '../../model/clock';
import { reasonOf } from '../../model/errors';
import type { Log } from '../../model/log';
import { digestOfParts, PART_BYTES, sha256, type PartsReport } from '../../wire/snapshot-files';
import { ask } from '../system/http';
import type { ReportProgress } from '../system/progress';
import type { Device } from './device';
import type { Fetching } from './download';
import { streamedImage } from './qcow2-image';

interface SnapshotOptions {
  readonly device: Pick<Device, 'path' | 'read' | 'size'>;
  /** Of the snapshot, in the API. */
  readonly url: string;
  readonly token: string;
  readonly fetching: Fetching;
  readonly retries: number;
  readonly retryIntervalMs: number;
  readonly progress: ReportProgress;
  readonly clock: Clock;
  readonly log: Log;
}
interface SentSnapshot extends PartsReport {
  /** Bytes of the disk. */
  readonly disk_size: number;
}

/** Parts that are being sent, while the next ones are read and compressed. */
const IN_FLIGHT = 3;
/** The most characters of an answer that the conductor gets to read. */
const MAX_REASON = 300;

interface Part {
  readonly position: number;
  readonly bytes: Buffer;
}
/** Joins pieces that follow one another to parts. Returns what the source returns. */
async function* inParts<Result>(pieces: AsyncGenerator<readonly [number, Buffer], Result>): AsyncGenerator<Part, Result> {
  let [start, length] = [0, 0];
  let kept: Buffer[] = [];
  const part = (bytes: Buffer): Part => ({ position: start, bytes });
  for (;;) {
    const next = await pieces.next();
    if (length > 0 && (next.done === true || next.value[0] !== start + length)) {
      yield part(Buffer.concat(kept));
      [kept, length] = [[], 0];
    }
    if (next.done === true) return next.value;
    const [position, bytes] = next.value;
    if (length === 0) start = position;
    kept.push(bytes);
    length += bytes.length;
    while (length >= PART_BYTES) {
      const joined = Buffer.concat(kept);
      yield part(joined.subarray(0, PART_BYTES));
      start += PART_BYTES;
      length -= PART_BYTES;
      kept = length > 0 ? [joined.subarray(PART_BYTES)] : [];
    }
  }
}

class Refused extends Error {}
const isRepeated = (status: number): boolean => status >= 500 && status !== 507;

/** Sends a part, again after faults of the network or the server. */
async function send({ url, token, fetching, retries, retryIntervalMs, clock, log }: SnapshotOptions, part: Part, percent: number) {
  const digest = await sha256(part.bytes);
  const attempt = async (): Promise<void> => {
    const { status, text } = await ask({
      method: 'PUT',
      url: `${url}/parts/${part.position}?progress=${percent}`,
      headers: {
        accept: 'application/json',
        'content-type': 'application/octet-stream',
        'content-digest': `sha-256=:${digest.toString('base64')}:`,
        'x-agent-token': token,
      },
      body: part.bytes,
      timeoutMs: fetching.timeoutMs,
      signal: fetching.signal,
      trust: fetching.trust,
    });
    if (status === 204) return;
    const problem = `${url} answered ${status}: ${text.slice(0, MAX_REASON)}`;
    throw isRepeated(status) ? new Error(problem) : new Refused(problem);
  };
  await retry({ clock, signal: fetching.signal }, attempt, (error, attempts) => {
    if (error instanceof Refused || attempts > retries)
      throw new AgentError('ServicingError', `Sending the snapshot failed: ${reasonOf(error)}`, { cause: error });
    log.warn(`Sending a part of the snapshot: ${reasonOf(error)}; attempt ${attempts} of ${retries + 1}`);
    return retryIntervalMs;
  });
  return digest;
}

/** Throws AgentError with the reason. */
export async function sendSnapshot(options: SnapshotOptions): Promise<SentSnapshot> {
  const { device, fetching, progress, log } = options;
  let read = 0;
  const image = streamedImage(device, fetching.signal, (bytes) => {
    read = bytes;
    progress((100 * bytes) / device.size);
  });
  const parts = inParts(image);
  const sent: Promise<Buffer>[] = [];
  const next = (): ReturnType<typeof parts.next> =>
    parts.next().catch((error: unknown) => {
      throw new AgentError('ServicingError', `Reading ${device.path} failed: ${reasonOf(error)}`, { cause: error });
    });
  let one = await next();
  for (let end = 0; one.done !== true; one = await next()) {
    // The tables stand before the data. Without them the file is no image, so they go when all else has arrived.
    if (one.value.position < end) await Promise.all(sent);
    end = one.value.position + one.value.bytes.length;
    const sending = send(options, one.value, Math.floor((100 * read) / device.size));
    // Awaited below; before that, a failure must not end the process.
    sending.catch(() => {});
    sent.push(sending);
    if (sent.length > IN_FLIGHT) await sent[sent.length - 1 - IN_FLIGHT];
  }
  const digest = digestOfParts(await Promise.all(sent));
  log.info(`Snapshot of ${device.path} sent to ${options.url}: ${one.value.size} bytes`);
  return { ...one.value, digest, disk_size: device.size };
}
