/**
 * The machine's disks, with the values that lsblk and ironic-python-agent show: from udev's database, else from /sys. A disk that several
 * paths lead to is one disk, the multipath device.
 */
import type { InventoryDisk, Json } from '../../model/records';
import { numberIn, type Tree } from '../system/tree';
import { firstOf, modelOf, udevRecord, type UdevRecord } from './udev';

/** Block devices that are not fixed disks: virtual devices and drives for removable media. */
const NOT_DISKS = /^(loop|ram|zram|sr|fd|nbd|mtd)/;
const SECTOR = 512;

/** A disk with all its names of each kind: a hint may have any of them. The first is the one in inventories. */
export interface FoundDisk {
  readonly name: string;
  /** Bytes. */
  readonly size: number;
  readonly model: string | null;
  readonly rotational: boolean;
  readonly wwn: readonly string[];
  readonly wwn_with_extension: string | null;
  readonly wwn_vendor_extension: string | null;
  readonly serial: readonly string[];
  readonly vendor: string | null;
  readonly hctl: string | null;
  readonly by_path: readonly string[];
  /** Bytes; null: unknown. */
  readonly logical_sectors: number | null;
  readonly physical_sectors: number | null;
  readonly tran: string | null;
  readonly [more: string]: Json;
}
export const inventoried = (disk: FoundDisk): InventoryDisk => ({
  ...disk,
  wwn: disk.wwn[0] ?? null,
  serial: disk.serial[0] ?? null,
  by_path: disk.by_path[0] ?? null,
});

interface Host {
  readonly tree: Tree;
  /** The machine was booted from virtual media, or a stick that stands for them. */
  readonly bootedFromMedium: boolean;
}
/** All disks, media of the ramdisk included. */
export const allDisksOf = (tree: Tree): readonly FoundDisk[] => fixedDisksOf(tree).filter(({ size }) => size > 0);

/** Those without a size too: drives without a medium, and disks that do not tell it. */
export function fixedDisksOf(tree: Tree): readonly FoundDisk[] {
  return tree
    .list('/sys/block')
    .filter((name) => isDisk(tree, name))
    .map((name) => {
      const base = `/sys/block/${name}`;
      const size = (numberIn(tree.text(`${base}/size`)) ?? 0) * SECTOR;
      const udev = udevRecord(tree, base);
      return {
        name: `/dev/${name.replaceAll('!', '/')}`,
        model: modelOf(udev) ?? tree.text(`${base}/device/model`),
        size,
        rotational: tree.text(`${base}/queue/rotational`) === '1',
        ...worldWideNames(tree, base, udev),
        serial: serials(tree, base, udev),
        vendor: tree.text(`${base}/device/vendor`),
        hctl: tree.list(`${base}/device/scsi_device`)[0] ?? null,
        by_path: udev.byPath,
        logical_sectors: numberIn(tree.text(`${base}/queue/logical_block_size`)),
        physical_sectors: numberIn(tree.text(`${base}/queue/physical_block_size`)),
        tran: transport(tree, name),
      };
    });
}

export function findDisks(host: Host): readonly FoundDisk[] {
  const media = mediaOf(host);
  return allDisksOf(host.tree).filter(({ name }) => !media.includes(name));
}

const isMultipath = (tree: Tree, name: string): boolean => tree.text(`/sys/block/${name}/dm/uuid`)?.startsWith('mpath-') === true;
function isDisk(tree: Tree, name: string): boolean {
  if (NOT_DISKS.test(name) || tree.text(`/sys/block/${name}/hidden`) === '1') return false;
  if (name.startsWith('dm-')) return isMultipath(tree, name);
  return !tree.list(`/sys/block/${name}/holders`).some((holder) => isMultipath(tree, holder));
}

/** Labels of the media that the server makes: parameters, the ISO image of the ramdisk, its config drive. */
const MEDIA = ['IR-VFD-DEV', 'VMEDIA_BOOT_ISO', 'CONFIG-2'];
/** Deployed systems have a config drive too, in a partition. */
const IN_PARTITIONS = MEDIA.slice(0, 2);
/** Whether a removable disk carries what the ramdisk is booted from or configured by. A label alone is no evidence: tenants write labels. */
function isMedium(tree: Tree, name: string): boolean {
  const base = `/sys/block/${name}`;
  if (tree.text(`${base}/removable`) !== '1' && transport(tree, name) !== 'usb') return false;
  const labelOf = (device: string): string => (firstOf(udevRecord(tree, device), ['ID_FS_LABEL']) ?? '').toUpperCase();
  const parts = tree.list(base).filter((part) => part.startsWith(name));
  return MEDIA.includes(labelOf(base)) || parts.some((part) => IN_PARTITIONS.includes(labelOf(`${base}/${part}`)));
}
/** The disks that `findDisks` omits as media, by their names in /dev. */
export const mediaOf = ({ tree, bootedFromMedium }: Host): readonly string[] =>
  tree
    .list('/sys/block')
    .filter((name) => bootedFromMedium && isDisk(tree, name) && isMedium(tree, name))
    .map((name) => `/dev/${name.replaceAll('!', '/')}`);

const distinct = (values: readonly (string | null)[]): readonly string[] => [
  ...new Set(values.filter((value): value is string => value !== null && value !== '')),
];

/** lsblk's SERIAL first, then udev's short and long serial numbers. */
function serials(tree: Tree, base: string, udev: UdevRecord): readonly string[] {
  const listed =
    firstOf(udev, ['SCSI_IDENT_SERIAL', 'ID_SCSI_SERIAL', 'ID_SERIAL_SHORT', 'ID_SERIAL']) ?? tree.text(`${base}/device/serial`);
  const known = distinct([listed, firstOf(udev, ['ID_SERIAL_SHORT', 'DM_SERIAL_SHORT']), firstOf(udev, ['ID_SERIAL', 'DM_SERIAL'])]);
  if (known.length > 0) return known;
  const page = tree.bytes(`${base}/device/vpd_pg80`);
  return distinct([usbSerial(tree, base), tree.text(`${base}/serial`), vitalSerial(page)]);
}

/** A USB disk has the serial number of its USB device, the parent of its interface. */
function usbSerial(tree: Tree, base: string): string | null {
  const path = (tree.real(base) ?? '').split('/');
  const usb = path.findIndex((part) => /^\d+-[\d.]+:\d+\.\d+$/.test(part));
  return usb < 0 ? null : tree.text(`${path.slice(0, usb).join('/')}/serial`);
}

/** Unit Serial Number VPD page (SPC-4 §7.8.14): a header of four bytes, then text. */
const vitalSerial = (page: Buffer | null): string | null => page?.subarray(4).toString('latin1').replaceAll('\0', '').trim() || null;

interface WorldWideNames {
  readonly wwn: readonly string[];
  readonly wwn_with_extension: string | null;
  readonly wwn_vendor_extension: string | null;
}
/** lsblk's WWN is the name with the vendor's extension, which volumes of RAID controllers and storage arrays have. */
function worldWideNames(tree: Tree, base: string, udev: UdevRecord): WorldWideNames {
  if (udev.properties.size === 0) return nameOfKernel(tree.text(`${base}/device/wwid`) ?? tree.text(`${base}/wwid`));
  return {
    wwn: distinct([firstOf(udev, ['ID_WWN_WITH_EXTENSION', 'ID_WWN']), firstOf(udev, ['ID_WWN', 'DM_WWN'])]),
    wwn_with_extension: firstOf(udev, ['ID_WWN_WITH_EXTENSION', 'DM_WWN_WITH_EXTENSION']),
    wwn_vendor_extension: firstOf(udev, ['ID_WWN_VENDOR_EXTENSION', 'DM_WWN_VENDOR_EXTENSION']),
  };
}
/** `naa.5000c500a1b2c3d4`, `naa.6…` with a vendor's extension (SPC-4 §7.8.6.6), `eui.…`, `nvme.…`; `t10.…` is not a world wide name. */
function nameOfKernel(id: string | null): WorldWideNames {
  const [, kind, digits] = /^(naa|eui|nvme)\.([0-9a-f-]+)/i.exec(id ?? '') ?? [];
  if (digits === undefined) return { wwn: [], wwn_with_extension: null, wwn_vendor_extension: null };
  // As in udev, these have no extension.
  if (kind !== 'naa') return { wwn: distinct([id]), wwn_with_extension: null, wwn_vendor_extension: null };
  const extension = digits.slice(16);
  return {
    wwn: distinct([`0x${digits}`, `0x${digits.slice(0, 16)}`]),
    wwn_with_extension: `0x${digits}`,
    wwn_vendor_extension: extension === '' ? null : `0x${extension}`,
  };
}

/** Class of the SCSI host's transport, or attribute of the SCSI device → lsblk's TRAN. The first that fits counts. */
const SCSI_TRANSPORTS: readonly (readonly [string, (tree: Tree, host: string, device: string) => boolean])[] = [
  ['spi', (tree, host) => tree.list(`/sys/class/spi_host/${host}`).length > 0],
  ['fcoe', (tree, host) => tree.text(`/sys/class/fc_host/${host}/symbolic_name`)?.includes(' over ') === true],
  ['fc', (tree, host) => tree.list(`/sys/class/fc_host/${host}`).length > 0],
  ['sas', (tree, host, device) => [`/sys/class/sas_host/${host}`, `${device}/sas_device`].some((path) => tree.list(path).length > 0)],
  ['sbp', (tree, _, device) => tree.text(`${device}/ieee1394_id`) !== null],
  ['iscsi', (tree, host) => tree.list(`/sys/class/iscsi_host/${host}`).length > 0],
  ['usb', (tree, _, device) => tree.real(device)?.includes('/usb') === true],
  ['sata', (tree, host) => /^(ahci|sata)/.test(tree.text(`/sys/class/scsi_host/${host}/proc_name`) ?? '')],
  ['ata', (tree, host) => tree.text(`/sys/class/scsi_host/${host}/proc_name`)?.includes('ata') === true],
];
const BY_NAME: readonly (readonly [string, string])[] = [
  ['nvme', 'nvme'],
  ['vd', 'virtio'],
  ['mmcblk', 'mmc'],
];
/** lsblk's TRAN; null where it is unknown. */
export function transport(tree: Tree, name: string): string | null {
  const device = `/sys/block/${name}/device`;
  const address = tree.list(`${device}/scsi_device`)[0];
  if (address === undefined) return BY_NAME.find(([prefix]) => name.startsWith(prefix))?.[1] ?? null;
  const host = `host${address.split(':', 1)[0]!}`;
  return SCSI_TRANSPORTS.find(([, fits]) => fits(tree, host, device))?.[0] ?? null;
}
