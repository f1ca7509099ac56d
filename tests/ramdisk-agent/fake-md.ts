/** A machine whose kernel has software RAID: disks are files, and mdadm, blockdev and addpart change /sys as the real ones do. */
import { mkdirSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { silentLog } from '../../model/log';
import { type Device, openDevice } from '../../ramdisk-agent/disk/device';
import { partitionPath, readPartitions } from '../../ramdisk-agent/disk/partitions';
import type { FoundDisk } from '../../ramdisk-agent/inventory/disks';
import type { RaidHost } from '../../ramdisk-agent/raid/arrays';
import { tree } from '../../ramdisk-agent/system/tree';
import { fakeClock, folder } from './support';

interface Md {
  readonly name: string;
  readonly uuid: string;
  readonly members: readonly string[];
}
export interface FakeMachine {
  readonly host: RaidHost;
  readonly ran: string[];
  /** Disks that the guard refuses. */
  readonly protectedDisks: Set<string>;
  open(disk: string): Promise<Device>;
  arrays(): ReadonlyMap<string, Md>;
  /** Starts an array that an earlier system left. */
  leave(block: string, md: Md): void;
}

const MiB = 2 ** 20;
/** @param disks block → MiB */
export function fakeMachine(disks: Readonly<Record<string, number>>, files: Readonly<Record<string, string>> = {}): FakeMachine {
  const root = folder();
  const ran: string[] = [];
  const arrays = new Map<string, Md>();
  const sizes = new Map<string, number>();
  const protectedDisks = new Set<string>();
  const put = (path: string, text: string): void => {
    mkdirSync(join(root, path, '..'), { recursive: true });
    writeFileSync(join(root, path), text);
  };
  const addDisk = (block: string, size: number): void => {
    put(`sys/block/${block}/size`, String(size / 512));
    put(`sys/block/${block}/queue/logical_block_size`, '512');
    put(`disks/${block}`, '');
    truncateSync(join(root, 'disks', block), size);
    sizes.set(block, size);
  };
  for (const [block, mib] of Object.entries(disks)) addDisk(block, mib * MiB);
  for (const [path, text] of Object.entries(files)) put(path, text);
  put('sys/firmware/x', '');

  const openBlock = (block: string): Promise<Device> =>
    openDevice({ path: join(root, 'disks', block), size: sizes.get(block)!, sectorSize: 512, mode: 'write' }).then((device) => ({
      ...device,
      path: `/dev/${block}`,
      command: async (program: string, args: readonly string[]) => {
        ran.push([program, ...args, `/dev/${block}`].join(' '));
        return '';
      },
    }));
  const placeOf = (part: string): string => {
    const disk = Object.keys(disks).find((block) => part.startsWith(block)) ?? part;
    return part === disk ? `sys/block/${disk}` : `sys/block/${disk}/${part}`;
  };
  async function rescan(block: string): Promise<void> {
    if (arrays.has(block)) return;
    if ([...arrays.values()].some(({ members }) => members.some((member) => member.startsWith(block))))
      throw new Error('Device or resource busy');
    const device = await openBlock(block);
    for (const old of tree(root)
      .list(`/sys/block/${block}`)
      .filter((name) => name.startsWith(block)))
      rmSync(join(root, 'sys/block', block, old), { recursive: true });
    for (const { number } of (await readPartitions(device))?.partitions ?? []) {
      const part = partitionPath(`/dev/${block}`, number).slice('/dev/'.length);
      put(`sys/block/${block}/${part}/partition`, String(number));
    }
    await device.close();
  }
  function start(block: string, md: Md): void {
    arrays.set(block, md);
    addDisk(block, 64 * MiB);
    put(`sys/block/${block}/md/array_state`, 'clean\n');
    for (const [slot, member] of md.members.entries()) {
      put(`sys/block/${block}/md/dev-${member}/slot`, String(slot));
      put(`${placeOf(member)}/holders/${block}/x`, '');
    }
  }
  function stop(block: string): void {
    for (const member of arrays.get(block)!.members) rmSync(join(root, placeOf(member), 'holders', block), { recursive: true });
    rmSync(join(root, 'sys/block', block), { recursive: true });
    arrays.delete(block);
  }
  async function mdadm(args: readonly string[]): Promise<string> {
    const [verb, ...rest] = args;
    const block = (rest.find((word) => word.startsWith('/dev/md')) ?? '').slice('/dev/'.length);
    if (verb === '--create') {
      const members = rest.filter((word) => word.startsWith('/dev/') && word !== `/dev/${block}`).map((word) => word.slice('/dev/'.length));
      for (const member of members)
        if (tree(root).list(`/${placeOf(member)}`).length === 0) throw new Error(`mdadm: cannot open ${member}`);
      const name = rest.find((word) => word.startsWith('--name='))!.slice('--name='.length);
      start(block, { name, uuid: `0000000${arrays.size}:11111111:22222222:33333333`, members });
    } else if (verb === '--stop') stop(block);
    else if (verb === '--detail') {
      const md = arrays.get(block)!;
      return `MD_LEVEL=raid1\nMD_UUID=${md.uuid}\nMD_NAME=localhost:${md.name}\n`;
    }
    return '';
  }
  const host: RaidHost = {
    tree: tree(root),
    run: async (program, args) => {
      ran.push([program, ...args].join(' '));
      if (program === 'mdadm') return mdadm(args);
      if (program === 'blockdev') await rescan(args[1]!.slice('/dev/'.length));
      if (program === 'addpart') {
        const block = args[0]!.slice('/dev/'.length);
        put(`sys/block/${block}/${block}${args[1]}/partition`, args[1]!);
      }
      return '';
    },
    clock: { ...fakeClock(), sleep: async () => {} },
    log: silentLog,
    random: (bytes) => Buffer.alloc(bytes, 7),
    newUuid: () => '99999999-8888-4777-a666-555555555555',
    open: async (disk) => {
      if (protectedDisks.has(disk.name)) throw new Error(`Protected ${disk.name}`);
      return openBlock(disk.name.slice('/dev/'.length));
    },
    openToRead: async (disk) => openBlock(disk.name.slice('/dev/'.length)),
    disks: () =>
      tree(root)
        .list('/sys/block')
        .map(
          (block) =>
            ({ name: `/dev/${block}`, size: sizes.get(block)!, serial: [`S-${block}`], logical_sectors: 512 }) as unknown as FoundDisk,
        ),
    temporary: root,
  };
  return { host, ran, protectedDisks, open: openBlock, arrays: () => arrays, leave: start };
}
