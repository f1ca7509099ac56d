/** Sends an image of a disk to the API in parts, from one reading of the disk. */
import { AgentError } from '../../model/agent/errors';
import { retry, type Clock } from '../../model/clock';
import { reasonOf } from '../../model/errors';
import type { Log } from '../../model/log';
import { digestOfParts, PART_BYTES, type PartsReport } from '../../wire/snapshot-files';
import { ask, openConnections, type Connections } from '../system/http';
import type { ReportProgress } from '../system/progress';
import { fastSha256 } from '../system/sha256';
import type { SourceDisk } from './clusters';
import type { Fetching } from './download';
import { compressionFor, type Compression } from './compression';
import { streamedImage, type StreamedImage } from './qcow2-image';

interface SnapshotOptions {
  readonly device: SourceDisk;
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
  readonly compression: Compression['name'];
}

/** Parts that are being sent, while the next ones are read and compressed. */
const IN_FLIGHT = 3;
/** The most characters of an answer that the conductor gets to read. */
const MAX_REASON = 300;
/** Parts in flight when an agent is killed may be missing, and others may follow them. */
const MAX_MISSES = 2 * IN_FLIGHT;

interface Part {
  readonly position: number;
  readonly bytes: Buffer;
  /** The memory that the bytes are in. */
  readonly room: Buffer;
}
/** Memory for parts, which is used again once a part has been sent. */
interface PartRooms {
  take(): Buffer;
  giveBack(room: Buffer): void;
}
function partRooms(): PartRooms {
  const free: Buffer[] = [];
  return { take: () => free.pop() ?? Buffer.allocUnsafeSlow(PART_BYTES), giveBack: (room) => void free.push(room) };
}
/** Joins pieces that follow one another to parts. Returns what the source returns. */
async function* inParts<Result>(pieces: AsyncGenerator<readonly [number, Buffer], Result>, rooms: PartRooms): AsyncGenerator<Part, Result> {
  let room = rooms.take();
  let [start, length] = [0, 0];
  for (;;) {
    const next = await pieces.next();
    if (length > 0 && (next.done === true || next.value[0] !== start + length)) {
      yield { position: start, bytes: room.subarray(0, length), room };
      [room, length] = [rooms.take(), 0];
    }
    if (next.done === true) return next.value;
    const [position, bytes] = next.value;
    if (length === 0) start = position;
    for (let done = 0; done < bytes.length;) {
      const taken = bytes.copy(room, length, done);
      done += taken;
      length += taken;
      if (length < PART_BYTES) continue;
      yield { position: start, bytes: room, room };
      start += PART_BYTES;
      [room, length] = [rooms.take(), 0];
    }
  }
}

class Refused extends Error {}
const isRepeated = (status: number): boolean => status >= 500 && status !== 507;

interface Sending extends SnapshotOptions {
  readonly connections: Connections;
  /** Whether the server may have the part already, from an agent that was killed. */
  readonly isStored: (part: Part, digest: Buffer) => Promise<boolean>;
}
const digestField = (digest: Buffer): string => `sha-256=:${digest.toString('base64')}:`;

/**
 * Asks for the parts that an agent before this one sent. What the server has not, or has otherwise, is sent, and after a few of these all is
 * sent without a question. A failure of the question costs no more than sending.
 */
function storedParts({ url, token, fetching, log }: SnapshotOptions, connections: Connections): Sending['isStored'] {
  let misses = 0;
  let hits = 0;
  return async ({ position, bytes }, digest) => {
    if (misses >= (hits === 0 ? 1 : MAX_MISSES)) return false;
    const { status, headers } = await ask({
      method: 'GET',
      url: `${url}/parts/${position}?length=${bytes.length}`,
      headers: { accept: 'application/json', 'x-agent-token': token },
      timeoutMs: fetching.timeoutMs,
      signal: fetching.signal,
      trust: fetching.trust,
      connections,
    }).catch(() => ({ status: 0, headers: {} as Record<string, unknown> }));
    const isStored = status === 204 && headers['content-digest'] === digestField(digest);
    if (isStored && hits++ === 0) log.info('The server has parts of this snapshot; they are not sent again');
    if (!isStored) misses++;
    return isStored;
  };
}
/** Sends a part, again after faults of the network or the server. */
async function send(sending: Sending, part: Part, percent: number) {
  const { url, token, fetching, retries, retryIntervalMs, clock, log, connections } = sending;
  const digest = await fastSha256(part.bytes);
  if (await sending.isStored(part, digest)) return digest;
  const attempt = async (): Promise<void> => {
    const { status, text } = await ask({
      method: 'PUT',
      url: `${url}/parts/${part.position}?progress=${percent}`,
      headers: {
        accept: 'application/json',
        'content-type': 'application/octet-stream',
        'content-digest': digestField(digest),
        'x-agent-token': token,
      },
      body: part.bytes,
      timeoutMs: fetching.timeoutMs,
      signal: fetching.signal,
      trust: fetching.trust,
      connections,
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

/** Sends all parts. @param percent of the disk that has been read */
async function sendAll(options: Sending, image: AsyncGenerator<readonly [number, Buffer], StreamedImage>, percent: () => number) {
  const rooms = partRooms();
  const parts = inParts(image, rooms);
  const sent: Promise<Buffer>[] = [];
  let one = await parts.next();
  for (let end = 0; one.done !== true; one = await parts.next()) {
    // The tables stand before the data. Without them the file is no image, so they go when all else has arrived.
    if (one.value.position < end) await Promise.all(sent);
    end = one.value.position + one.value.bytes.length;
    const { room } = one.value;
    const sending = send(options, one.value, percent()).finally(() => rooms.giveBack(room));
    // Awaited below; before that, a failure must not end the process.
    sending.catch(() => {});
    sent.push(sending);
    if (sent.length > IN_FLIGHT) await sent[sent.length - 1 - IN_FLIGHT];
  }
  return { ...one.value, digest: digestOfParts(await Promise.all(sent)) };
}

/** Throws AgentError with the reason. */
export async function sendSnapshot(options: SnapshotOptions): Promise<SentSnapshot> {
  const { device, fetching, progress, log } = options;
  const compression = await compressionFor(log);
  const connections = openConnections();
  let percent = 0;
  const report = (bytes: number): void => {
    percent = (100 * bytes) / device.size;
    progress(percent);
  };
  const image = streamedImage(device, { compression, signal: fetching.signal, progress: report });
  try {
    const sent = await sendAll({ ...options, connections, isStored: storedParts(options, connections) }, image, () => Math.floor(percent));
    log.info(`Snapshot of ${device.path} sent to ${options.url}: ${sent.size} bytes`);
    return { ...sent, disk_size: device.size, compression: compression.name };
  } catch (error) {
    if (error instanceof AgentError) throw error;
    throw new AgentError('ServicingError', `Reading ${device.path} failed: ${reasonOf(error)}`, { cause: error });
  } finally {
    // Ends what reads the disk.
    await image.return(undefined as never);
    connections.close();
  }
}
