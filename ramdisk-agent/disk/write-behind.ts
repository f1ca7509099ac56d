/** Writes to a disk while more of the image arrives: in pieces, since each write costs as much as its first 64 KiB, and one at a time. */
import { PIECE } from '../system/pieces';
import type { Device } from './device';

interface WriteBehind extends Pick<Device, 'size' | 'write' | 'zero' | 'flush'> {
  /** Waits until nothing is being written; what was collected and not written is lost. */
  abandon(): Promise<void>;
}

/**
 * `write` resolves before its bytes are on the disk, and rejects for an earlier write too. The bytes must not change until `flush` has
 * resolved, when all of them are on the disk. A caller that has an error calls `abandon` before it touches the disk.
 * @param free gets bytes that were written without a copy, when they may change again
 */
export function writeBehind(
  device: Pick<Device, 'size' | 'write' | 'zero' | 'flush'>,
  free: (bytes: Uint8Array) => void = () => {},
): WriteBehind {
  let [collecting, spare] = [Buffer.allocUnsafeSlow(PIECE), Buffer.allocUnsafeSlow(PIECE)];
  let [start, length] = [0, 0];
  let writing = Promise.resolve();

  const begin = (bytes: Uint8Array, position: number): void => {
    writing = device.write(bytes, position);
    // Awaited by the next call.
    writing.catch(() => {});
  };
  const send = async (): Promise<void> => {
    await writing;
    if (length === 0) return;
    begin(collecting.subarray(0, length), start);
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
      if (position !== start + length || bytes.length >= PIECE) {
        await send();
        start = position;
      }
      if (bytes.length >= PIECE) {
        await writing;
        begin(bytes, position);
        writing.then(
          () => free(bytes),
          () => {},
        );
        start += bytes.length;
        return;
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
