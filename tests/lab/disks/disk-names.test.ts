/** The disks in the inventory of our ramdisk and in that of the real agent's, on the same machine with every kind of disk that QEMU has. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Inventory, InventoryDisk } from '../../../model/records';
import { buildIpaRamdisk } from '../support/ipa-ramdisk';
import { buildRamdisk } from '../support/ramdisk';
import { root } from '../support/venv';
import { type DiskMachine, PATIENCE, startDiskMachine, startImageApi } from './disk-machine';

const machines: DiskMachine[] = [];
const folders: string[] = [];
afterAll(async () => {
  for (const machine of machines) await machine.stop();
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
});

async function disksOf(initrd: string, memoryMiB: number): Promise<readonly InventoryDisk[]> {
  const folder = mkdtempSync(join(tmpdir(), 'disk-names-'));
  folders.push(folder);
  const api = await startImageApi({});
  const machine = await startDiskMachine(api, { folder, initrd, memoryMiB, words: [], more: [], prepare: () => {} });
  machines.push(machine);
  await machine.waitFor('/v1/continue_inspection');
  const { inventory } = machine.bodyOf('/v1/continue_inspection') as unknown as { readonly inventory: Inventory };
  return inventory.disks!;
}

it(
  'the disks have the values that ironic-python-agent shows',
  async () => {
    await buildRamdisk();
    const [ours, real] = await Promise.all([
      disksOf(join(root, '.cache/ramdisk/initrd'), 1024),
      buildIpaRamdisk().then((initrd) => disksOf(initrd, 3072)),
    ]);
    // Both systems name the disks in the order in which they find them. The real agent picks any of a disk's links.
    const comparable = (disks: readonly InventoryDisk[]) =>
      disks
        .map(({ name, by_path: path, hctl, ...rest }) => ({
          ...rest,
          // lsblk before 2.39 knows no transport of virtio.
          tran: name.startsWith('/dev/vd') ? 'virtio' : rest['tran'],
          kind: name.replace(/\w(?=\d*$)/, ''),
          hctl: hctl?.replace(/^\d+/, 'H') ?? null,
          by_path: path?.replace('/virtio-pci-', '/pci-').replace(/-ata-(\d+)$/, '-ata-$1.0') ?? null,
        }))
        .sort((a, b) => (String(a.serial) < String(b.serial) ? -1 : 1));
    expect(comparable(ours)).toEqual(comparable(real));
    expect(ours).toHaveLength(11);
  },
  (2 * PATIENCE + 60) * 1000,
);
