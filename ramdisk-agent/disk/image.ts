/** Writers for image formats. They take the bytes in the file's order and write them to their positions on the disk. */
import type { Device } from './device';

/** The target of an image's content. */
export interface Sink {
  /** Capacity in bytes. */
  readonly size: number;
  write(bytes: Uint8Array, position: number): Promise<void>;
  zero(position: number, length: number): Promise<void>;
}
export interface ImageWriter {
  /** Processes the next bytes of the image file. Throws an Error for content that is invalid in this format. */
  take(chunk: Buffer): Promise<void>;
  /** Called at the file's end. `again`: the writer needs the whole file once more. */
  end(): Promise<'done' | 'again'>;
}

export function rawWriter(sink: Sink): ImageWriter {
  let position = 0;
  return {
    async take(chunk) {
      if (position + chunk.length > sink.size) throw new Error(`the image is larger than the disk of ${sink.size} bytes`);
      await sink.write(chunk, position);
      position += chunk.length;
    },
    async end() {
      return 'done';
    },
  };
}

/**
 * The disk as a sink. Only `commit` writes the first MiB, which contains partition table and boot code. The caller commits after it has
 * verified the image, so the disk does not boot before.
 */
export function withDeferredHead(device: Pick<Device, 'size' | 'write' | 'zero' | 'flush'>): Sink & { commit(): Promise<void> } {
  const head = Buffer.alloc(Math.min(EDGE, device.size));
  return {
    size: device.size,
    async write(bytes, position) {
      const inHead = Math.max(0, Math.min(bytes.length, head.length - position));
      if (inHead > 0) head.set(bytes.subarray(0, inHead), position);
      if (inHead < bytes.length) await device.write(bytes.subarray(inHead), position + inHead);
    },
    async zero(position, length) {
      const inHead = Math.max(0, Math.min(length, head.length - position));
      if (inHead > 0) head.fill(0, position, position + inHead);
      if (inHead < length) await device.zero(position + inHead, length - inHead);
    },
    async commit() {
      await device.flush();
      await device.write(head, 0);
      await device.flush();
    },
  };
}

/** Size of both ends of a disk or partition, which contain partition tables, boot code and nearly all volume signatures. */
const EDGE = 2 ** 20;
export async function wipeEdges(device: Device, start = 0, size = device.size): Promise<void> {
  await device.zero(start, Math.min(EDGE, size));
  const tail = Math.max(start, start + size - EDGE);
  await device.zero(tail, start + size - tail);
  await device.flush();
}
