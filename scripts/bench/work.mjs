// The work of the benches: the node that they make, and requests side by side.

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
