/** Reads a disk once, in its order, and compresses its clusters meanwhile. */
import type { Compression } from './compression';
import type { Device } from './device';

export type SourceDisk = Pick<Device, 'path' | 'read' | 'size'>;
interface Cluster {
  readonly index: number;
  /** Undefined: zeros. As long as a cluster: not compressed. */
  readonly stored: Buffer | undefined;
}
interface Reading {
  readonly clusterSize: number;
  readonly compression: Compression;
  readonly signal: AbortSignal;
}

/** The least bytes that are read at a time. */
const MIN_BATCH = 2 ** 20;
/** Batches that are read or compressed at a time: as many as keep all threads busy, within a bound of their memory. */
const THREADS = Number(process.env['UV_THREADPOOL_SIZE']) || 4;
const [FEWEST, MOST] = [6, 64];

/** Memory for a batch. It is used again, because getting it from the kernel takes longer than reading a fast disk. */
interface Room {
  readonly bytes: Buffer;
  readonly compressed: Buffer;
}

/** All clusters in their order, in groups. What is `stored` stays valid until the next group is asked for. */
export async function* clustersOf(device: SourceDisk, { clusterSize, compression, signal }: Reading): AsyncGenerator<readonly Cluster[]> {
  const zeros = Buffer.alloc(clusterSize);
  const batchBytes = Math.max(MIN_BATCH, clusterSize);
  const clustersPerBatch = batchBytes / clusterSize;
  const atOnce = Math.min(MOST, Math.max(FEWEST, Math.ceil(THREADS / clustersPerBatch) + 2));

  const read = async (position: number, room: Buffer): Promise<Buffer> => {
    const expected = Math.min(batchBytes, device.size - position);
    const bytes = await device.read(position, expected, room);
    if (bytes.length < expected) throw new Error(`${device.path} ends at ${position + bytes.length}, not at ${device.size}`);
    return bytes;
  };
  const store = async (bytes: Buffer, room: Buffer): Promise<Buffer | undefined> => {
    const whole = bytes.length < clusterSize ? Buffer.concat([bytes, zeros.subarray(bytes.length)]) : bytes;
    return whole.equals(zeros) ? undefined : ((await compression.compress(whole, room)) ?? whole);
  };
  /** One read at a time: the disk is read in its order. */
  let reading: Promise<unknown> = Promise.resolve();
  const begin = (position: number, { bytes, compressed }: Room): Promise<readonly Cluster[]> => {
    const batch = reading.then(() => read(position, bytes));
    reading = batch.catch(() => {});
    const clusters = batch.then((content) => {
      const starts = Array.from({ length: Math.ceil(content.length / clusterSize) }, (_, at) => at * clusterSize);
      return Promise.all(
        starts.map(async (start, at) => {
          const stored = await store(content.subarray(start, start + clusterSize), compressed.subarray(start, start + clusterSize));
          return { index: position / clusterSize + at, stored };
        }),
      );
    });
    // Awaited below; before that, a failure must not end the process.
    clusters.catch(() => {});
    return clusters;
  };

  const begun: { readonly room: Room; readonly clusters: Promise<readonly Cluster[]> }[] = [];
  let next = 0;
  const beginNext = (room: Room): void => {
    if (next >= device.size) return;
    begun.push({ room, clusters: begin(next, room) });
    next += batchBytes;
  };
  try {
    for (let at = 0; at < atOnce && next < device.size; at++)
      beginNext({ bytes: Buffer.allocUnsafeSlow(batchBytes), compressed: Buffer.allocUnsafeSlow(batchBytes) });
    for (let first = begun.shift(); first; first = begun.shift()) {
      signal.throwIfAborted();
      yield await first.clusters;
      beginNext(first.room);
    }
  } finally {
    // The caller closes the disk next.
    await Promise.allSettled(begun.map(({ clusters }) => clusters));
  }
}
