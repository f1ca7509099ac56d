/** What in the ramdisk uses a disk or its partitions. The ramdisk itself uses none: a person, or a program of an extended ramdisk, does. */
import type { Tree } from '../system/tree';

const MAX_USERS = 8;

/** `/dev/sda1 (swap)`, `/dev/sda2 (mounted at /mnt)`, `/dev/sda3 (part of vg0-root)`. */
export function usersOf(tree: Tree, disk: string): readonly string[] {
  const block = disk.slice('/dev/'.length).replaceAll('/', '!');
  const lines = (path: string) => (tree.text(path) ?? '').split('\n').map((line) => line.split(/\s+/));
  const [swaps, mounts] = [lines('/proc/swaps'), lines('/proc/mounts')];
  const parts = tree.list(`/sys/block/${block}`).filter((name) => tree.text(`/sys/block/${block}/${name}/partition`) !== null);
  return ['', ...parts]
    .flatMap((part) => {
      const name = `/dev/${(part || block).replaceAll('!', '/')}`;
      const holders = tree.list(`/sys/block/${block}/${part}/holders`).map((holder) => tree.text(`/sys/block/${holder}/dm/name`) ?? holder);
      return [
        ...swaps.filter(([device]) => device === name).map(() => 'swap'),
        ...mounts.filter(([device]) => device === name).map(([, at]) => `mounted at ${at}`),
        ...holders.map((holder) => `part of ${holder}`),
      ].map((use) => `${name} (${use})`);
    })
    .slice(0, MAX_USERS);
}
