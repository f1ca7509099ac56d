/** A partition as a device of its own, which the kernel need not know. Nothing outside the partition can be written. */
import type { Device } from '../disk/device';

/** @param what is named in errors, after the disk */
export function partitionDevice(device: Device, { start, size }: { readonly start: number; readonly size: number }, what: string): Device {
  const path = `${device.path} (${what})`;
  const check = (position: number, length: number): void => {
    if (position < 0 || position + length > size) throw new Error(`${path} ends at ${size}: cannot write ${length} bytes at ${position}`);
  };
  return {
    ...device,
    path,
    size,
    read: (position, length, room) => device.read(start + position, Math.max(0, Math.min(length, size - position)), room),
    async write(bytes, position) {
      check(position, bytes.length);
      await device.write(bytes, start + position);
    },
    async zero(position, length) {
      check(position, length);
      await device.zero(start + position, length);
    },
  };
}
