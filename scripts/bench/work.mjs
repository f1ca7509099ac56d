// The work of the benches: the node that they make, what they write to files, and requests side by side.
import { createHash, randomBytes } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

export const NODE = {
  driver: 'fake-hardware',
  driver_info: {
    deploy_kernel: 'http://images.example/kernel',
    deploy_ramdisk: 'http://images.example/ramdisk',
    fake_address: '192.0.2.1',
  },
  properties: { cpus: 64, memory_mb: 262144, local_gb: 894, cpu_arch: 'x86_64', capabilities: 'boot_mode:uefi,boot_option:local' },
  extra: { rack: 7, unit: 12, site: 'fra1', disks: ['INTEL SSDSC2KG960G8', 'SAMSUNG MZ7LH960'], purchase_order: 'PO-2025-00001' },
  instance_info: {
    image_source: 'http://images.example/os.qcow2',
    image_checksum: 'http://images.example/sums',
    image_disk_format: 'qcow2',
  },
  resource_class: 'baremetal',
};

/** The interfaces of fake hardware, besides those for deployment and networks. */
export const KINDS = ['bios', 'boot', 'console', 'firmware', 'inspect', 'management', 'power', 'raid', 'rescue', 'storage', 'vendor'];

/**
 * Runs `work` for each item, `width` at once, or until `work` returns false.
 * @template T
 * @param {number} width
 * @param {Iterable<T>} items
 * @param {(item: T) => Promise<unknown>} work
 */
export async function lanes(width, items, work) {
  // Those of arrays, generators and `keys()` are iterable.
  const rest = /** @type {IterableIterator<T>} */ (items[Symbol.iterator]());
  await Promise.all(
    Array.from({ length: width }, async () => {
      for (const item of rest) if ((await work(item)) === false) return;
    }),
  );
}

/**
 * Options by section and name.
 * @typedef {Readonly<Record<string, Readonly<Record<string, string | number | boolean>>>>} Sections
 */
/** The text of a configuration file. @param {Sections} sections */
export const configurationText = (sections) =>
  Object.entries(sections)
    .flatMap(([name, section]) => [`[${name}]`, ...Object.entries(section).map(([option, value]) => `${option} = ${value}`)])
    .map((line) => `${line}\n`)
    .join('');

/**
 * Writes an image, a kernel and a ramdisk of random bytes.
 * @param {string} folder
 * @param {number} bytes of the image
 * @returns {string} the SHA-256 of the image
 */
export function writeImages(folder, bytes) {
  mkdirSync(folder, { recursive: true });
  const image = randomBytes(bytes);
  writeFileSync(join(folder, 'image.raw'), image);
  for (const name of ['kernel', 'ramdisk']) writeFileSync(join(folder, name), randomBytes(64 << 10));
  return createHash('sha256').update(image).digest('hex');
}
/** The `instance_info` that deploys the image of `writeImages`. @param {string} bootUrl @param {string} sha256 */
export const imageAt = (bootUrl, sha256) => ({
  image_source: `${bootUrl}/image.raw`,
  image_disk_format: 'raw',
  image_os_hash_algo: 'sha256',
  image_os_hash_value: sha256,
});
