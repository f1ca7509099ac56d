/** Network interfaces (those with hardware, and bonds and VLANs on them), and PCI devices. */
import type { InventoryInterface, JsonObject } from '../../model/records';
import { numberIn, type Tree } from '../system/tree';

/** The result of os.networkInterfaces(). */
export type Addresses = Readonly<Record<string, readonly { readonly address: string; readonly family: string }[] | undefined>>;

const INFINIBAND = '32';

/** Whether the interface has hardware, unlike bonds and VLANs. */
export const isPhysical = (tree: Tree, name: string): boolean => tree.link(`/sys/class/net/${name}/device`) !== null;
const isBond = (tree: Tree, name: string): boolean => tree.text(`/sys/class/net/${name}/bonding/mode`) !== null;
/** The setup from network_data (network/plan.ts) names a VLAN after its parent and its number: eth0.100. */
const isVlan = (name: string): boolean => /^[^.]+(?:\.\d+)+$/.test(name);

export function readInterfaces(tree: Tree, addresses: Addresses): readonly InventoryInterface[] {
  return tree
    .list('/sys/class/net')
    .filter((name) => isPhysical(tree, name) || isBond(tree, name) || isVlan(name))
    .flatMap((name) => {
      const base = `/sys/class/net/${name}`;
      // All interfaces in a bond have the same address. The node's port has the interface's permanent address.
      const hardwareAddress = (tree.text(`${base}/bonding_slave/perm_hwaddr`) ?? tree.text(`${base}/address`))?.toLowerCase();
      if (hardwareAddress === undefined) return [];
      const infiniband = tree.text(`${base}/type`) === INFINIBAND;
      const speed = numberIn(tree.text(`${base}/speed`));
      const of = (family: string): string | null => addressOf(addresses[name] ?? [], family);
      return {
        name,
        mac_address: infiniband ? infinibandMac(hardwareAddress) : hardwareAddress,
        ipv4_address: of('IPv4'),
        ipv6_address: of('IPv6'),
        has_carrier: tree.text(`${base}/carrier`) === '1',
        lldp: null,
        vendor: tree.text(`${base}/device/vendor`),
        product: tree.text(`${base}/device/device`),
        client_id: infiniband ? `ff:00:00:00:00:00:02:00:00:02:c9:00:${hardwareAddress.slice(-23)}` : null,
        biosdevname: null,
        speed_mbps: speed !== null && speed > 0 ? speed : null,
        pci_address: pciAddress(tree, base),
        driver: tree.link(`${base}/device/driver`),
      };
    });
}

/** The interface's address; for IPv6 a global one before a link-local one. */
function addressOf(addresses: readonly { readonly address: string; readonly family: string }[], family: string): string | null {
  const all = addresses.filter((address) => address.family === family).map((address) => address.address);
  return all.find((address) => !/^fe[89ab]/i.test(address)) ?? all[0] ?? null;
}

/** The MAC address that an InfiniBand port boots with: its GUID without the two middle bytes. */
function infinibandMac(address: string): string {
  const guid = address.split(':').slice(-8);
  return [...guid.slice(0, 3), ...guid.slice(5)].join(':');
}

/** The PCI function of virtio and USB interfaces, as in lspci. */
function pciAddress(tree: Tree, base: string): string | null {
  const path = tree.real(`${base}/device`) ?? '';
  return path.split('/').findLast((part) => /^[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]$/.test(part)) ?? null;
}

/** The `pci-devices` collector. Ids are hexadecimal without 0x. */
export function readPciDevices(tree: Tree): readonly JsonObject[] {
  return tree.list('/sys/bus/pci/devices').flatMap((bus) => {
    const base = `/sys/bus/pci/devices/${bus}`;
    const id = (name: string): string | null => tree.text(`${base}/${name}`)?.replace(/^0x/, '') ?? null;
    const [vendor, product, kind] = [id('vendor'), id('device'), id('class')];
    if (vendor === null || product === null || kind === null) return [];
    return {
      vendor_id: vendor,
      product_id: product,
      class: kind,
      revision: id('revision'),
      bus,
      numa_node_id: tree.text(`${base}/numa_node`),
    };
  });
}
