/** Memory that a disk can write to itself (O_DIRECT, open(2)), without a copy in the kernel's memory. */

/** Bytes. Enough for all disks. */
export const ALIGNMENT = 4096;

/** The memory is not aligned where koffi cannot be loaded. */
export async function alignedBuffer(length: number): Promise<Buffer> {
  const buffer = Buffer.allocUnsafeSlow(length + ALIGNMENT);
  const address = await import('koffi').then(({ default: koffi }) => koffi.address(buffer)).catch(() => 0n);
  const start = (ALIGNMENT - Number(address % BigInt(ALIGNMENT))) % ALIGNMENT;
  return buffer.subarray(start, start + length);
}
