/** Network interfaces with hardware behind them, and what is on the PCI bus. */
import type { InventoryInterface, JsonObject } from '../../model/records';
import { numberIn, type Tree } from '../system/tree';

/** What os.networkInterfaces() answers. */
export type Addresses = Readonly<Record<string, readonly { readonly address: string; readonly family: string }[] | undefined>>;

const INFINIBAND = '32';

export function readInterfaces(tree: Tree, addresses: Addresses): readonly InventoryInterface[] {
  return tree
    .list('/sys/class/net')
    .filter((name) => tree.link(`/sys/class/net/${name}/device`) !== null)
    .flatMap((name) => {
      const base = `/sys/class/net/${name}`;
      const hardwareAddress = tree.text(`${base}/address`)?.toLowerCase();
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
  const all = addresses.filter((one) => one.family === family).map((one) => one.address);
  return all.find((address) => !/^fe[89ab]/i.test(address)) ?? all[0] ?? null;
}

/** The MAC address that an InfiniBand port boots with: its GUID without the two middle bytes. */
function infinibandMac(address: string): string {
  const guid = address.split(':').slice(-8);
  return [...guid.slice(0, 3), ...guid.slice(5)].join(':');
}

/** Of virtio and USB interfaces the function that carries them: what lspci would show. */
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
