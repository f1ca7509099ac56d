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
   * @param haste from 0 to 1: how far the processors are behind the disk. The same haste and cluster give the same bytes
   */
  compress(cluster: Buffer, room: Buffer, haste: number): Promise<Buffer | undefined>;
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

/**
 * Levels of libzstd, from which the haste selects. Level 1 keeps a processor busy at about five times the rate of zlib's fastest; each further
 * one at about one and a half times the rate of the one before, with a tenth more bytes.
 */
const LEVELS = [1, -3, -10, -50] as const;
const levelFor = (haste: number): number => LEVELS[Math.min(LEVELS.length - 1, Math.floor(haste * LEVELS.length))]!;
/** Places of a cluster that tell whether it shrinks, as parts of it. */
const SAMPLED = [0, 0.4, 0.8] as const;
const SAMPLE_OF_ZSTD = 8 * 2 ** 10;

/** Whether at least one of the samples shrinks. To try the whole cluster in vain takes as long as its checksum. */
async function seemsSmaller(zstd: Zstd, cluster: Buffer, room: Buffer): Promise<boolean> {
  for (const at of SAMPLED) {
    const start = Math.floor(at * cluster.length);
    const sample = cluster.subarray(start, start + SAMPLE_OF_ZSTD);
    if ((await zstd.compress(sample, room.subarray(0, Math.floor(sample.length * WORTH)), LEVELS[1])) !== undefined) return true;
  }
  return false;
}

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
    async compress(cluster, room, haste) {
      if (cluster.length > SAMPLE && !(await seemsSmaller(zstd, cluster, room))) return undefined;
      const length = await zstd.compress(cluster, room.subarray(0, cluster.length - 1), levelFor(haste));
      return length === undefined ? undefined : room.subarray(0, length);
    },
  };
}
