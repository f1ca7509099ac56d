/**
 * The real ironic-python-agent and ours inspect the same machine of known hardware: both must report its configuration and be equal in each
 * field. Two boots; the first build of the real agent's ramdisk takes minutes.
 */
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { Inventory, Json, JsonObject } from '../../../model/records';
import { expectKnown } from '../../lab/inspection/known-inventory';
import { startKnownMachine } from '../../lab/inspection/known-machine';
import { openLab, type Lab } from '../../../demo/lab/machines';
import { root } from '../../lab/support/venv';

const PATIENCE = 600;
const COLLECTORS = 'default,pci-devices,numa-topology,dmi-decode,usb-devices,lldp';
type Data = { readonly inventory: Inventory } & JsonObject;

let lab: Lab;
beforeAll(async () => {
  const script = join(root, 'tests/reference/inspection/ipa-ramdisk.sh');
  await promisify(execFile)('bash', [script, join(root, '.cache/ipa-ramdisk')], { maxBuffer: 16 << 20, timeout: 1_800_000 });
  lab = await openLab('ref-inventory');
}, 1_900_000);
afterAll(() => lab?.close(), 60_000);

async function inspected(name: string, folder: string): Promise<Data> {
  const words = [`ipa-inspection-collectors=${COLLECTORS}`, 'ipa-collect-lldp=1', 'ipa-lldp-timeout=10'];
  const machine = await startKnownMachine(lab, name, join(root, '.cache', folder), words);
  try {
    return await machine.inspection(PATIENCE);
  } finally {
    await machine.stop();
  }
}

const sorted = (list: Json, by: (one: JsonObject) => Json): readonly JsonObject[] =>
  [...(list as readonly JsonObject[])].sort((a, b) => JSON.stringify(by(a)).localeCompare(JSON.stringify(by(b))));
const without = (value: Json, ...names: readonly string[]): JsonObject =>
  Object.fromEntries(Object.entries(value as JsonObject).filter(([name]) => !names.includes(name)));
/** Whether the address is absent or link-local: this depends on the moment of the report, and the real agent adds the interface's name. */
const isLinkLocal = (address: Json): boolean => (address ?? null) === null || /^fe[89ab]/i.test(String(address));
/** A sorted inventory without intended differences. */
function comparable({ inventory, ...data }: Data): JsonObject {
  const numa = data['numa_topology'] as JsonObject;
  // The switch's LLDP data change while it runs; known-inventory.ts checks them.
  const interfaces = sorted(inventory.interfaces as never, (value) => value['mac_address']!).map((item) =>
    // lsblk and sysfs show virtio devices by their own bus; our agent reports the PCI function that carries them.
    without(
      item,
      'lldp',
      ...(item['driver'] === 'virtio_net' ? ['pci_address'] : []),
      ...(isLinkLocal(item['ipv6_address']) ? ['ipv6_address'] : []),
    ),
  );
  const disk = (value: Json): JsonObject => {
    const path = (value as JsonObject)['by_path'];
    return {
      ...without(value, ...((value as JsonObject)['vendor'] === '0x1af4' ? ['tran'] : [])),
      // udev has two names for an ATA disk, and the real agent reports the last one that it finds.
      by_path: typeof path === 'string' ? path.replace(/(-ata-\d+)\.0$/, '$1') : path!,
    };
  };
  return {
    ...without(data, 'lldp_raw', 'configuration', 'logs'),
    inventory: {
      ...inventory,
      // Our frequency is from /proc/cpuinfo; lscpu has none for these processors.
      cpu: without(inventory.cpu!, 'frequency'),
      // The memory that the kernel has left depends on the size of the ramdisk.
      memory: without(inventory.memory!, 'total'),
      interfaces,
      // The real agent does not report it.
      system_vendor: without(inventory.system_vendor, 'system_uuid'),
      disks: sorted(inventory.disks as never, (value) => value['serial']!).map(disk),
      hostname: null,
    },
    root_disk: disk(data['root_disk']),
    pci_devices: sorted(data['pci_devices'], (pciDevice) => pciDevice['bus']!),
    numa_topology: {
      ...numa,
      ram: sorted(numa['ram'], (value) => value['numa_node']!).map((item) => without(item, 'size_kb')),
      cpus: sorted(numa['cpus'], (value) => value['thread_siblings']!),
    },
  };
}

it(
  'our agent and ironic-python-agent report the same inventory of the same machine',
  async () => {
    const theirs = await inspected('theirs', 'ipa-ramdisk');
    const ours = await inspected('ours', 'ramdisk');
    expectKnown(theirs);
    expectKnown(ours);
    expect(comparable(ours)).toEqual(comparable(theirs));
  },
  3 * PATIENCE * 1000,
);
