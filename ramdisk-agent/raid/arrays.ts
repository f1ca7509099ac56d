/** The arrays of Linux' software RAID (md) that this machine has, and the disks below them. */
import { AgentError } from '../../model/agent/errors';
import { type Clock, retry } from '../../model/clock';
import type { Log } from '../../model/log';
import { reasonOf } from '../../model/errors';
import type { Device } from '../disk/device';
import type { FoundDisk } from '../inventory/disks';
import { udevRecord } from '../inventory/udev';
import type { Run } from '../system/run';
import type { Tree } from '../system/tree';
import { detailsOf, startAll, stopArray } from './mdadm';

export interface RaidHost {
  readonly tree: Tree;
  readonly run: Run;
  readonly clock: Clock;
  readonly log: Log;
  readonly random: (bytes: number) => Buffer;
  readonly newUuid: () => string;
  /** Opens a disk through the guard (disk/guard.ts). */
  readonly open: (disk: FoundDisk) => Promise<Device>;
  readonly openToRead: (disk: FoundDisk) => Promise<Device>;
  /** The machine's disks, among them its arrays, read again at each call. */
  readonly disks: () => readonly FoundDisk[];
  /** For temporary directories. */
  readonly temporary: string;
}
export interface RaidArray {
  /** /dev/md0 */
  readonly name: string;
  /** The name in its superblocks; null: none. */
  readonly volume: string | null;
  /** 32 hexadecimal digits; null: unknown. */
  readonly uuid: string | null;
  /** Disks and partitions, in the array's order: /dev/sda1. */
  readonly members: readonly string[];
  /** The disks that it stands on at any depth, each once: /dev/sda. Arrays are not among them. */
  readonly holders: readonly string[];
  /** All that it stands on at any depth: these disks, and the arrays between. */
  readonly below: readonly string[];
}

const blockOf = (device: string): string => device.slice('/dev/'.length).replaceAll('/', '!');
const deviceOf = (block: string): string => `/dev/${block.replaceAll('!', '/')}`;

/** Whether a disk is an array. */
export const isArray = ({ name }: { readonly name: string }): boolean => /^\/dev\/md\d/.test(name);

/** The names of arrays in /sys/block, also of those that are not complete. An array that was stopped may stay there for a while. */
const arrayBlocks = (tree: Tree): readonly string[] =>
  tree.list('/sys/block').filter((block) => {
    const state = tree.text(`/sys/block/${block}/md/array_state`);
    return state !== null && state !== 'clear';
  });

/** The disk that a member is on. */
export const holderOf = (tree: Tree, member: string): string => deviceOf(diskOf(tree, blockOf(member)));

export const hasArrays = (tree: Tree): boolean => arrayBlocks(tree).length > 0;

/** The disk of a partition, or of a partition of a multipath device; a disk itself. */
function diskOf(tree: Tree, block: string): string {
  if (tree.text(`/sys/block/${block}/dm/uuid`)?.startsWith('part') === true) return tree.list(`/sys/block/${block}/slaves`)[0] ?? block;
  if (tree.list(`/sys/block/${block}`).length > 0) return block;
  return tree.list('/sys/block').find((disk) => tree.text(`/sys/block/${disk}/${block}/partition`) !== null) ?? block;
}

/** Member → its place in the array. One that is spare or unknown is after the others. */
function membersOf(tree: Tree, array: string): readonly string[] {
  const slot = (member: string): number => {
    const text = tree.text(`/sys/block/${array}/md/${member}/slot`) ?? '';
    return /^\d+$/.test(text) ? Number(text) : Number.MAX_SAFE_INTEGER;
  };
  return tree
    .list(`/sys/block/${array}/md`)
    .filter((name) => name.startsWith('dev-'))
    .sort((a, b) => slot(a) - slot(b))
    .map((name) => name.slice('dev-'.length));
}

/** What a disk or an array is made of; empty: it stands on nothing. The paths of a multipath device are the disk itself. */
const partsOf = (tree: Tree, block: string): readonly string[] => {
  if (tree.text(`/sys/block/${block}/md/array_state`) !== null) return membersOf(tree, block);
  return isPath(tree, block) ? [] : tree.list(`/sys/block/${block}/slaves`);
};
/** All that a block stands on, at any depth, in the order of its members. */
function blocksBelow(tree: Tree, block: string, found = new Set<string>()): ReadonlySet<string> {
  for (const part of partsOf(tree, block)) {
    const disk = diskOf(tree, part);
    if (found.has(disk)) continue;
    found.add(disk);
    blocksBelow(tree, disk, found);
  }
  return found;
}

/** The arrays with what they stand on, as far as /sys tells it: no program runs. */
export const arrayStacks = (tree: Tree): readonly Pick<RaidArray, 'name' | 'holders' | 'below'>[] =>
  arrayBlocks(tree).map((block) => {
    const below = [...blocksBelow(tree, block)];
    return {
      name: deviceOf(block),
      holders: below.filter((each) => partsOf(tree, each).length === 0).map(deviceOf),
      below: below.map(deviceOf),
    };
  });

async function factsOf(run: Run, name: string): Promise<ReadonlyMap<string, string>> {
  const text = await detailsOf(run, name).catch(() => '');
  return new Map(
    text.split('\n').flatMap((line) => {
      const at = line.indexOf('=');
      return at > 0 ? [[line.slice(0, at), line.slice(at + 1)] as const] : [];
    }),
  );
}

export async function arraysOf({ tree, run }: Pick<RaidHost, 'tree' | 'run'>): Promise<readonly RaidArray[]> {
  const found: RaidArray[] = [];
  for (const stack of arrayStacks(tree)) {
    const details = await factsOf(run, stack.name);
    found.push({
      ...stack,
      // `host:name`, or `name`
      volume: details.get('MD_NAME')?.replace(/^.*:/, '') || null,
      uuid: details.get('MD_UUID')?.replaceAll(':', '') ?? null,
      members: membersOf(tree, blockOf(stack.name)).map(deviceOf),
    });
  }
  return found;
}

/** Whether udev has found a member of an array on a disk or a partition. */
const hasMembers = (tree: Tree): boolean =>
  tree.list('/sys/block').some((disk) => {
    const base = `/sys/block/${disk}`;
    const parts = tree.list(base).filter((part) => part.startsWith(disk));
    return [base, ...parts.map((part) => `${base}/${part}`)].some(
      (device) => udevRecord(tree, device).properties.get('ID_FS_TYPE') === 'linux_raid_member',
    );
  });
/** With `start_ro`, the kernel changes nothing on the members before something is written to their array. */
const MODULES = [
  ['-q', 'md_mod', 'start_ro=1'],
  ['-q', '-a', 'raid0', 'raid1', 'raid10', 'raid456'],
] as const;
export async function loadModules(run: Run): Promise<void> {
  for (const words of MODULES) await run('modprobe', [...words]).catch(() => '');
}

/** Starts the arrays that the disks have, also those that lack members; never rejects. */
export async function assembleArrays({ tree, run, log }: Pick<RaidHost, 'tree' | 'run' | 'log'>): Promise<void> {
  if (!hasMembers(tree)) return;
  await loadModules(run);
  await startAll(run).catch((error: unknown) => log.info(`No more arrays can be started: ${reasonOf(error)}`));
  await run('udevadm', ['settle', '-t', '30']).catch(() => '');
}

const STOP_ATTEMPTS = 10;
const STOP_PAUSE_MS = 500;
/** Stops what is above a disk or its partitions: arrays, and what device-mapper made of them. Throws for what it cannot stop. */
export async function releaseHolders(host: Pick<RaidHost, 'tree' | 'run' | 'clock' | 'log'>, disk: string, depth = 0): Promise<void> {
  if (depth > MAX_DEPTH) return;
  const { tree, run, clock, log } = host;
  const base = `/sys/block/${blockOf(disk)}`;
  const parts = tree.list(base).filter((part) => tree.text(`${base}/${part}/partition`) !== null);
  const holders = new Set(['', ...parts].flatMap((part) => tree.list(`${base}/${part}/holders`)));
  for (const holder of holders) {
    await releaseHolders(host, deviceOf(holder), depth + 1);
    if (isPath(tree, holder)) continue;
    const isMd = tree.text(`/sys/block/${holder}/md/array_state`) !== null;
    if (!isMd && tree.text(`/sys/block/${holder}/dm/name`) === null)
      throw new AgentError('CommandExecutionError', `${disk} is in use by ${deviceOf(holder)}, which the agent cannot stop`);
    log.info(`Stopping ${deviceOf(holder)}, which uses ${disk}`);
    await retry(
      { clock },
      () => (isMd ? stopArray(run, deviceOf(holder)) : run('dmsetup', ['remove', deviceOf(holder)])),
      (_, attempt) => (attempt < STOP_ATTEMPTS ? STOP_PAUSE_MS : undefined),
    );
  }
}
const MAX_DEPTH = 8;
/** Multipath devices and their partitions are the disk itself. */
const isPath = (tree: Tree, holder: string): boolean => /^(mpath|part\d+-mpath)-/.test(tree.text(`/sys/block/${holder}/dm/uuid`) ?? '');
