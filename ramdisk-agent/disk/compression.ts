/** How the clusters of qcow2 images are compressed: zstd where the system has the library, or else zlib. */
import { promisify } from 'node:util';
import { deflateRaw } from 'node:zlib';
import type { Log } from '../../model/log';
import { openZstd, type Zstd } from '../system/zstd';

export interface Compression {
  readonly name: 'zlib' | 'zstd';
  /** The number in the header of an image (QEMU docs/interop/qcow2, "compression_type"). */
  readonly type: 0 | 1;
  /**
   * Resolves with less bytes than the cluster has, which may be in `room`; undefined: it does not become smaller.
   * @param room as large as the cluster
   */
  compress(cluster: Buffer, room: Buffer): Promise<Buffer | undefined>;
}

const deflate = promisify(deflateRaw);
/** QEMU reads clusters with a window of 4 KiB only. */
const DEFLATE = { windowBits: 12, level: 1 } as const;
/** A cluster whose beginning does not shrink to this share does not become smaller: compressed data, mostly. */
const SAMPLE = 64 * 2 ** 10;
const WORTH = 0.95;

const ZLIB: Compression = {
  name: 'zlib',
  type: 0,
  async compress(cluster) {
    const isLong = cluster.length > SAMPLE;
    if (isLong && (await deflate(cluster.subarray(0, SAMPLE), DEFLATE)).length > SAMPLE * WORTH) return undefined;
    const small = await deflate(cluster, DEFLATE);
    return small.length < cluster.length ? small : undefined;
  },
};

/** @param open for tests */
export async function compressionFor(log: Pick<Log, 'warn'>, open: () => Promise<Zstd | undefined> = openZstd): Promise<Compression> {
  const zstd = await open();
  if (!zstd) {
    log.warn('There is no libzstd: the image is compressed with zlib, which is slower');
    return ZLIB;
  }
  return {
    name: 'zstd',
    type: 1,
    async compress(cluster, room) {
      const length = await zstd.compress(cluster, room.subarray(0, cluster.length - 1));
      return length === undefined ? undefined : room.subarray(0, length);
    },
  };
}
