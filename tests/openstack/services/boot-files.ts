/** What simulated machines boot, and the image that they are deployed with. Their contents do not matter: random bytes. */
import { createHash, randomBytes } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/**
 * Writes a kernel and a ramdisk.
 * @param allowed the folder for file_url_allowed_paths
 * @returns the options of `[conductor]` that name them
 */
export function writeRamdisk(folder: string, allowed: string): Record<string, string> {
  mkdirSync(folder, { recursive: true });
  for (const name of ['kernel', 'ramdisk']) writeFileSync(join(folder, name), randomBytes(1000));
  const [kernel, ramdisk] = [`file://${folder}/kernel`, `file://${folder}/ramdisk`];
  const options = { deploy_kernel: kernel, deploy_ramdisk: ramdisk, rescue_kernel: kernel, rescue_ramdisk: ramdisk };
  return { ...options, file_url_allowed_paths: allowed };
}

export const newImageBytes = (): Buffer => randomBytes(300_000);

/** The instance_info of a node that is deployed with an image. */
export const imageAt = (url: string, bytes: Buffer): Readonly<Record<string, string>> => ({
  image_source: url,
  image_os_hash_algo: 'sha256',
  image_disk_format: 'raw',
  image_os_hash_value: createHash('sha256').update(bytes).digest('hex'),
});

/** Writes an image into the folder that the boot service serves. @param port of the boot service @returns the instance_info for it */
export function writeImage(folder: string, port: number): Readonly<Record<string, string>> {
  mkdirSync(folder, { recursive: true });
  const bytes = newImageBytes();
  writeFileSync(join(folder, 'image.raw'), bytes);
  return imageAt(`http://127.0.0.1:${port}/image.raw`, bytes);
}
