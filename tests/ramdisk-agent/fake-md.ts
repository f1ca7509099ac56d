/** A machine whose kernel has software RAID: disks are files, and mdadm, blockdev and addpart change /sys as the real ones do. */
import { createHash } from 'node:crypto';
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

const MAGIC = Buffer.from('fc4e2ba9', 'hex');
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
      flush: async () => {},
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
  /** Writes the beginning of a superblock on a member. @param atEnd metadata 1.0, else 1.2 */
  async function mark(member: string, atEnd: boolean): Promise<void> {
    const disk = Object.keys(disks).find((block) => member.startsWith(block))!;
    const device = await openBlock(disk);
    const parts = (await readPartitions(device))?.partitions ?? [];
    const part = parts.find(({ number }) => partitionPath(`/dev/${disk}`, number) === `/dev/${member}`) ?? { start: 0, size: device.size };
    await device.write(MAGIC, part.start + (atEnd ? Math.floor((part.size - 8192) / 4096) * 4096 : 4096));
    await device.close();
  }
  async function mdadm(args: readonly string[]): Promise<string> {
    const [verb, ...rest] = args;
    const block = (rest.find((word) => word.startsWith('/dev/md')) ?? '').slice('/dev/'.length);
    if (verb === '--create') {
      const members = rest.filter((word) => word.startsWith('/dev/') && word !== `/dev/${block}`).map((word) => word.slice('/dev/'.length));
      for (const member of members)
        if (tree(root).list(`/${placeOf(member)}`).length === 0) throw new Error(`mdadm: cannot open ${member}`);
      const name = rest.find((word) => word.startsWith('--name='))!.slice('--name='.length);
      for (const member of members) await mark(member, rest.includes('--metadata=1.0'));
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

interface Killed {
  readonly host: RaidHost;
  /** When the agent is killed. */
  readonly killed: Promise<'killed'>;
  /** How many changes it has made. */
  count(): number;
  /** What the kernel does after the end of a process. */
  closeAll(): Promise<void>;
}
/** The host of an agent that is killed after so many changes: writes, and programs that it starts. The one after them never ends. */
export function killedAfter(host: RaidHost, changes: number): Killed {
  let count = 0;
  const opened: Device[] = [];
  let kill: (how: 'killed') => void;
  const killed = new Promise<'killed'>((resolve) => (kill = resolve));
  const changing =
    <A extends readonly unknown[], T>(work: (...args: A) => Promise<T>) =>
    async (...args: A): Promise<T> => {
      if (count >= changes) {
        kill('killed');
        return new Promise(() => {});
      }
      count++;
      return work(...args);
    };
  const isRead = (args: readonly string[]): boolean => args[0] === '--detail' || args.length === 0;
  const run = changing(host.run);
  return {
    killed,
    count: () => count,
    closeAll: async () => {
      for (const device of opened) await device.close().catch(() => {});
    },
    host: {
      ...host,
      run: (program, args, options) => (isRead(args) ? host.run(program, args, options) : run(program, args, options)),
      open: async (disk) => {
        const device = await host.open(disk);
        opened.push(device);
        return {
          ...device,
          write: changing((bytes: Uint8Array, position: number) => device.write(bytes, position)),
          zero: changing((position: number, length: number) => device.zero(position, length)),
          command: changing((program: string, args: readonly string[]) => device.command(program, args)),
        };
      },
      openToRead: async (disk) => {
        const device = await host.openToRead(disk);
        opened.push(device);
        return device;
      },
    },
  };
}
/**
 * Kills an agent after each of its changes, one machine each, and lets `again` run in the next one. @returns the machines' states, the
 * first of an agent that was not disturbed, and how many changes that one made
 */
export async function afterEachKill<M extends { readonly host: RaidHost }, S>({
  prepare,
  work,
  again = work,
  state,
}: {
  readonly prepare: () => Promise<M>;
  readonly work: (host: RaidHost, machine: M) => Promise<unknown>;
  readonly again?: (host: RaidHost, machine: M) => Promise<unknown>;
  readonly state: (machine: M) => Promise<S>;
}): Promise<{ readonly undisturbed: S; readonly states: readonly S[] }> {
  const first = await prepare();
  const whole = killedAfter(first.host, Infinity);
  await work(whole.host, first);
  const undisturbed = await state(first);
  const states: S[] = [];
  for (let changes = 0; changes < whole.count(); changes++) {
    const machine = await prepare();
    const agent = killedAfter(machine.host, changes);
    const how = await Promise.race([agent.killed, work(agent.host, machine)]);
    if (how !== 'killed') throw new Error(`the agent was not killed after ${changes} changes`);
    await agent.closeAll();
    await again(machine.host, machine);
    states.push(await state(machine));
  }
  return { undisturbed, states };
}

/** What is on the disks at the places where something may be, and the arrays. */
export async function stateOf(machine: FakeMachine): Promise<object> {
  const disks: object[] = [];
  for (const { name } of machine.host.disks().filter((disk) => !disk.name.startsWith('/dev/md'))) {
    const device = await machine.open(name.slice('/dev/'.length));
    const table = await readPartitions(device);
    const hash = createHash('sha256');
    for (const { start, size } of [{ start: 0, size: device.size }, ...(table?.partitions ?? [])])
      for (const place of [start, start + size - EDGE]) hash.update(await device.read(place, EDGE));
    disks.push({ name, table, sum: hash.digest('hex') });
    await device.close();
  }
  return { disks, arrays: [...machine.arrays()] };
}
const EDGE = 64 * 1024;
