/** The machine's disks, from /sys/block alone: the ramdisk has no udev. */
import type { InventoryDisk } from '../../model/records';
import { numberIn, type Tree } from '../system/tree';

/** Block devices that are not fixed disks: virtual devices and drives for removable media. */
const NOT_DISKS = /^(loop|ram|zram|sr|fd|dm-|nbd|mtd)/;
const SECTOR = 512;

export function readDisks(tree: Tree): readonly InventoryDisk[] {
  return tree
    .list('/sys/block')
    .filter((name) => !NOT_DISKS.test(name) && tree.text(`/sys/block/${name}/hidden`) !== '1')
    .flatMap((name) => {
      const base = `/sys/block/${name}`;
      const size = (numberIn(tree.text(`${base}/size`)) ?? 0) * SECTOR;
      if (size === 0) return [];
      const serial =
        usbSerial(tree, name) ??
        tree.text(`${base}/serial`) ??
        tree.text(`${base}/device/serial`) ??
        vitalSerial(tree.bytes(`${base}/device/vpd_pg80`));
      return {
        name: `/dev/${name.replaceAll('!', '/')}`,
        model: tree.text(`${base}/device/model`),
        size,
        rotational: tree.text(`${base}/queue/rotational`) === '1',
        ...worldWideName(tree.text(`${base}/device/wwid`) ?? tree.text(`${base}/wwid`)),
        serial,
        vendor: tree.text(`${base}/device/vendor`),
        hctl: tree.list(`${base}/device/scsi_device`)[0] ?? null,
        by_path: byPath(tree, name),
        logical_sectors: numberIn(tree.text(`${base}/queue/logical_block_size`)),
        physical_sectors: numberIn(tree.text(`${base}/queue/physical_block_size`)),
        tran: transport(tree, name),
      };
    });
}

/** A USB disk has the serial number of its USB device, the parent of its interface. */
function usbSerial(tree: Tree, name: string): string | null {
  const path = pathOf(tree, name);
  const usb = path.findIndex((part) => USB_INTERFACE.test(part));
  return usb < 0 ? null : tree.text(`${path.slice(0, usb).join('/')}/serial`);
}

/** Unit Serial Number VPD page (SPC-4 §7.8.14): a header of four bytes, then text. */
const vitalSerial = (page: Buffer | null): string | null => page?.subarray(4).toString('latin1').replaceAll('\0', '').trim() || null;

interface WorldWideNames {
  readonly wwn: string | null;
  readonly wwn_with_extension: string | null;
  readonly wwn_vendor_extension: string | null;
}
/** `naa.5000c500a1b2c3d4`, `naa.6…` with a vendor's extension (SPC-4 §7.8.6.6), `eui.…`, `nvme.…`; `t10.…` is not a world wide name. */
function worldWideName(id: string | null): WorldWideNames {
  const [, kind, digits] = /^(naa|eui|nvme)\.([0-9a-f-]+)/i.exec(id ?? '') ?? [];
  if (digits === undefined) return { wwn: null, wwn_with_extension: null, wwn_vendor_extension: null };
  // As in udev, these have no extension.
  if (kind !== 'naa') return { wwn: id, wwn_with_extension: null, wwn_vendor_extension: null };
  const extension = digits.slice(16);
  return {
    wwn: `0x${digits.slice(0, 16)}`,
    wwn_with_extension: `0x${digits}`,
    wwn_vendor_extension: extension === '' ? null : `0x${extension}`,
  };
}

const pathOf = (tree: Tree, name: string): readonly string[] => (tree.real(`/sys/block/${name}`) ?? '').split('/');
const USB_INTERFACE = /^\d+-[\d.]+:\d+\.\d+$/;
const PCI = /^[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]$/;

/** lsblk's TRAN; null where it is unknown. */
function transport(tree: Tree, name: string): string | null {
  const path = pathOf(tree, name);
  const among = (pattern: RegExp): boolean => path.some((part) => pattern.test(part));
  if (name.startsWith('nvme')) return 'nvme';
  if (among(/^usb\d+$/)) return 'usb';
  if (among(/^ata\d+$/)) return 'sata';
  if (among(/^end_device-/)) return 'sas';
  if (among(/^session\d+$/)) return 'iscsi';
  if (among(/^rport-/)) return 'fc';
  return name.startsWith('vd') || among(/^virtio\d+$/) ? 'virtio' : null;
}

/** udev's name below /dev/disk/by-path: the PCI function, then the path from there. */
function byPath(tree: Tree, name: string): string | null {
  const path = pathOf(tree, name);
  const at = path.findLastIndex((part) => PCI.test(part));
  if (at < 0) return null;
  const below = path.slice(at + 1);
  const scsi = below.map((part) => /^\d+:(\d+:\d+:\d+)$/.exec(part)?.[1]).find((part) => part !== undefined);
  const ata = below.find((part) => /^ata\d+$/.test(part));
  const port = ata === undefined ? null : (tree.text(`${path.slice(0, at + 1).join('/')}/${ata}/ata_port/${ata}/port_no`) ?? ata.slice(3));
  const usb = below.findLast((part) => USB_INTERFACE.test(part));
  const namespace = /^nvme\d+n(\d+)$/.exec(name)?.[1];
  const way = [
    ...(usb === undefined ? [] : [`usb-0:${usb.slice(usb.indexOf('-') + 1)}`]),
    ...(port === null ? [] : [`ata-${port}`]),
    ...(namespace === undefined ? [] : [`nvme-${namespace}`]),
    ...(scsi !== undefined && port === null ? [`scsi-0:${scsi}`] : []),
  ];
  return `/dev/disk/by-path/${[`pci-${path[at]}`, ...way].join('-')}`;
}
