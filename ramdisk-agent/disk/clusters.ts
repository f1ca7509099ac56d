/** Reads a disk once, in its order, and compresses its clusters meanwhile. */
import { alignedBuffer } from '../system/aligned';
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
  /** Compresses less if the disk is faster than the processors. Then two readings of a disk do not give the same. */
  readonly keepsUp: boolean;
  readonly signal: AbortSignal;
}

/** The least bytes that are read at a time. */
const MIN_BATCH = 2 ** 20;
/** Reads at a time: the disk has the next one when it has done one. */
const READS = 2;
/** Batches that are read or compressed at a time: as many as keep all threads busy, within a bound of their memory. */
const THREADS = Number(process.env['UV_THREADPOOL_SIZE']) || 4;
const [FEWEST, MOST] = [8, 64];

/** Memory for a batch. It is used again, because getting it from the kernel takes longer than reading a fast disk. */
interface Room {
  readonly bytes: Buffer;
  readonly compressed: Buffer;
}

/** All clusters in their order, in groups. What is `stored` stays valid until the next group is asked for. */
export async function* clustersOf(
  device: SourceDisk,
  { clusterSize, compression, keepsUp, signal }: Reading,
): AsyncGenerator<readonly Cluster[]> {
  const zeros = Buffer.alloc(clusterSize);
  const batchBytes = Math.max(MIN_BATCH, clusterSize);
  const clustersPerBatch = batchBytes / clusterSize;
  const atOnce = Math.min(MOST, Math.max(FEWEST, Math.ceil(THREADS / clustersPerBatch) + READS + 2));

  const read = async (position: number, room: Buffer): Promise<Buffer> => {
    const expected = Math.min(batchBytes, device.size - position);
    const bytes = await device.read(position, expected, room);
    if (bytes.length < expected) throw new Error(`${device.path} ends at ${position + bytes.length}, not at ${device.size}`);
    return bytes;
  };
  /** Batches that are being compressed, or wait for a processor. If those are all, the disk waits too. */
  let compressing = 0;
  /** So many of them do not wait. */
  const processors = Math.min(Math.max(1, THREADS - READS), atOnce / 2);
  const hasteNow = (): number => Math.max(0, (compressing - processors) / (atOnce - 1 - processors));
  const store = async (bytes: Buffer, room: Buffer, haste: number): Promise<Buffer | undefined> => {
    const whole = bytes.length < clusterSize ? Buffer.concat([bytes, zeros.subarray(bytes.length)]) : bytes;
    return whole.equals(zeros) ? undefined : ((await compression.compress(whole, room, haste)) ?? whole);
  };
  const storeAll = async (position: number, content: Buffer, compressed: Buffer): Promise<readonly Cluster[]> => {
    const haste = keepsUp ? hasteNow() : 0;
    compressing++;
    try {
      const starts = Array.from({ length: Math.ceil(content.length / clusterSize) }, (_, at) => at * clusterSize);
      return await Promise.all(
        starts.map(async (start, at) => {
          const stored = await store(content.subarray(start, start + clusterSize), compressed.subarray(start, start + clusterSize), haste);
          return { index: position / clusterSize + at, stored };
        }),
      );
    } finally {
      compressing--;
    }
  };
  /** The disk is read in its order. */
  const reading: Promise<unknown>[] = Array.from({ length: READS }, () => Promise.resolve());
  const begin = (position: number, { bytes, compressed }: Room): Promise<readonly Cluster[]> => {
    const batch = reading.shift()!.then(() => read(position, bytes));
    reading.push(batch.catch(() => {}));
    const clusters = batch.then((content) => storeAll(position, content, compressed));
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
      beginNext({ bytes: await alignedBuffer(batchBytes), compressed: Buffer.allocUnsafeSlow(batchBytes) });
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
