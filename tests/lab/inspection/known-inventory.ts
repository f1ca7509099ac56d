/**
 * Checks what any agent must report of the machine of known-machine.ts. The ramdisk gives the devices their names: these are not checked.
 */
import { lldpFacts, tlvOf } from '../../../conductor/inspection/hooks/lldp';
import type { Inventory, JsonObject } from '../../../model/records';
import { KNOWN } from './known-machine';

const GiB = 2 ** 30;

export function expectKnown(data: { readonly inventory: Inventory } & JsonObject): void {
  const { inventory } = data;
  const [first, second] = KNOWN.macs.map((mac) => inventory.interfaces.find((candidate) => candidate.mac_address === mac)!);
  expect(inventory.interfaces).toHaveLength(2);
  expect(first).toMatchObject({
    ipv4_address: '10.0.2.15',
    has_carrier: true,
    vendor: '0x8086',
    product: '0x10d3',
    driver: 'e1000e',
    speed_mbps: 1000,
    client_id: null,
    biosdevname: null,
    pci_address: expect.stringMatching(/^0000:8\d:00\.0$/) as string,
  });
  expect(second).toMatchObject({ ipv4_address: null, has_carrier: true, vendor: '0x1af4', product: '0x0001', driver: 'virtio_net' });
  expect(inventory.cpu).toMatchObject({ count: 4, socket_count: 2, architecture: 'x86_64', model_name: 'QEMU TCG CPU version 2.5+' });
  expect(inventory.cpu!['flags']).toEqual(expect.arrayContaining(['sse2', 'aes', 'nx']));
  expect(inventory.memory).toMatchObject({ physical_mb: KNOWN.memoryMiB });
  expect(inventory.system_vendor).toMatchObject({ ...KNOWN.vendor, firmware: KNOWN.firmware });
  expect(inventory).toMatchObject({ bmc_address: null, bmc_v6address: null, boot: { current_boot_mode: 'bios' } });
  expect(inventory.boot?.pxe_interface).toBe(`01-${KNOWN.macs[0].replaceAll(':', '-')}`);

  const disk = (serial: string): JsonObject | undefined => inventory.disks!.find((candidate) => candidate.serial === serial);
  expect(inventory.disks).toHaveLength(3);
  const same = { logical_sectors: 512, physical_sectors: 512 };
  expect(disk('VIRTIO1')).toMatchObject({ ...same, size: 5 * GiB, wwn: null });
  expect(disk('NVME1')).toMatchObject({ ...same, size: 6 * GiB, tran: 'nvme', model: 'QEMU NVMe Ctrl', rotational: false });
  expect(disk('SATA1')).toMatchObject({
    ...same,
    size: 7 * GiB,
    tran: 'sata',
    vendor: 'ATA',
    model: 'QEMU HARDDISK',
    rotational: true,
    hctl: '0:0:0:0',
    wwn: '0x5000c500a1b2c3d4',
    wwn_with_extension: '0x5000c500a1b2c3d4',
    wwn_vendor_extension: null,
  });
  expect(data['root_disk']).toEqual(disk('VIRTIO1'));
  expect(data['boot_interface']).toBe(inventory.boot?.pxe_interface);

  const numa = data['numa_topology'] as Record<'ram' | 'cpus' | 'nics', readonly JsonObject[]>;
  expect(numa.ram.map((item) => item['numa_node']).sort()).toEqual([0, 1]);
  const byThread = [...numa.cpus].sort((a, b) => JSON.stringify(a['thread_siblings']).localeCompare(JSON.stringify(b['thread_siblings'])));
  expect(byThread.map(({ numa_node: node, thread_siblings: threads }) => [node, threads])).toEqual([
    [0, [0]],
    [0, [1]],
    [1, [2]],
    [1, [3]],
  ]);
  expect(numa.nics).toEqual([{ name: first!.name, numa_node: 1 }]);
  expect(data['dmi']).toMatchObject({
    bios: { Vendor: KNOWN.firmware.vendor, Version: KNOWN.firmware.version },
    cpu: [{ 'Core Count': '2' }, { 'Core Count': '2' }],
    memory: { devices: [{ Size: '1536 MB' }] },
  });
  expect(data['pci_devices']).toEqual(
    expect.arrayContaining([expect.objectContaining({ vendor_id: '8086', product_id: '10d3', class: '020000', numa_node_id: '1' })]),
  );
  expect(data['usb_devices']).toEqual([]);

  expect(first!.lldp).toEqual([]);
  expect((data['lldp_raw'] as JsonObject)[first!.name]).toEqual([]);
  for (const heard of [second!.lldp, (data['lldp_raw'] as JsonObject)[second!.name]]) {
    const facts = lldpFacts((heard as readonly unknown[]).map((pair) => tlvOf(pair)!));
    expect(facts).toMatchObject({ switch_system_name: KNOWN.switch.name, switch_port_id: KNOWN.switch.port });
  }
}
