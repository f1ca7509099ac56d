/** What udev knows of a block device: its database (/run/udev/data) and its links in /dev/disk/by-path. */
import { numberIn, type Tree } from '../system/tree';

export interface UdevRecord {
  /** Properties such as ID_SERIAL. Empty where no udev runs. */
  readonly properties: ReadonlyMap<string, string>;
  /** Paths below /dev/disk/by-path, that of ID_PATH first. */
  readonly byPath: readonly string[];
}
const BY_PATH = 'disk/by-path/';

/** @param device the path of a block device in /sys */
export function udevRecord(tree: Tree, device: string): UdevRecord {
  const lines = (tree.text(`/run/udev/data/b${tree.text(`${device}/dev`) ?? ''}`) ?? '').split('\n');
  const properties = new Map(
    lines.flatMap((line) => {
      const at = line.indexOf('=');
      return line.startsWith('E:') && at > 0 ? [[line.slice(2, at), line.slice(at + 1)] as const] : [];
    }),
  );
  const own = `${BY_PATH}${properties.get('ID_PATH') ?? ''}`;
  const links = lines.flatMap((line) => (line.startsWith(`S:${BY_PATH}`) ? [line.slice(2)] : []));
  const name = device.slice(device.lastIndexOf('/') + 1);
  // A container may have the host's /dev, but not its /run.
  const seen =
    links.length > 0
      ? links
      : tree.list(`/dev/${BY_PATH}`).flatMap((link) => (tree.link(`/dev/${BY_PATH}${link}`) === name ? [`${BY_PATH}${link}`] : []));
  const sorted = [...seen].sort((a, b) => Number(b === own) - Number(a === own) || a.length - b.length || (a < b ? -1 : 1));
  return { properties, byPath: sorted.map((link) => `/dev/${link}`) };
}

/** `\x20` in udev's escaped values. */
const unescaped = (value: string): string =>
  value.replaceAll(/\\x([0-9a-f]{2})/gi, (_, digits: string) => String.fromCharCode(numberIn(`0x${digits}`) ?? 0));

/** lsblk's MODEL: all of it, where the SCSI model has only 16 characters. */
export function modelOf({ properties }: UdevRecord): string | null {
  const escaped = properties.get('ID_MODEL_ENC');
  if (escaped !== undefined) return unescaped(escaped).trim().replaceAll(/\s+/g, ' ') || null;
  return properties.get('ID_MODEL')?.replaceAll('_', ' ').trim() || null;
}

/** The first of these properties that is not empty. */
export function firstOf({ properties }: UdevRecord, names: readonly string[]): string | null {
  for (const name of names) {
    const value = properties.get(name);
    if (value !== undefined && value !== '') return value;
  }
  return null;
}
