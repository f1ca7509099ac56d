/** Writes to a disk while more of the image arrives: in pieces, since each write costs as much as its first 64 KiB, and one at a time. */
import type { Device } from './device';

/** Bytes. */
const PIECE = 2 ** 20;

export interface WriteBehind extends Pick<Device, 'size' | 'write' | 'zero' | 'flush'> {
  /** Waits until nothing is being written; what was collected and not written is lost. */
  abandon(): Promise<void>;
}

/**
 * `write` resolves when the bytes are collected, and rejects for an earlier write too; they may be used again then. `flush` resolves when
 * all of them are on the disk. A caller that has an error calls `abandon` before it touches the disk.
 */
export function writeBehind(device: Pick<Device, 'size' | 'write' | 'zero' | 'flush'>): WriteBehind {
  let [collecting, spare] = [Buffer.allocUnsafeSlow(PIECE), Buffer.allocUnsafeSlow(PIECE)];
  let [start, length] = [0, 0];
  let writing = Promise.resolve();

  const send = async (): Promise<void> => {
    await writing;
    if (length === 0) return;
    writing = device.write(collecting.subarray(0, length), start);
    // Awaited by the next call.
    writing.catch(() => {});
    [collecting, spare] = [spare, collecting];
    [start, length] = [start + length, 0];
  };
  const settle = async (): Promise<void> => {
    await send();
    await writing;
  };
  return {
    size: device.size,
    async write(bytes, position) {
      if (position !== start + length) {
        await send();
        start = position;
      }
      for (let taken = 0; taken < bytes.length;) {
        const part = bytes.subarray(taken, taken + PIECE - length);
        collecting.set(part, length);
        length += part.length;
        taken += part.length;
        if (length === PIECE) await send();
      }
    },
    async zero(position, count) {
      await settle();
      await device.zero(position, count);
    },
    async flush() {
      await settle();
      await device.flush();
    },
    abandon: () => writing.catch(() => {}),
  };
}
