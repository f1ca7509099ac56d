/** Creates and deletes the volumes of software RAID that `target_raid_config` asks for. */
import type { JsonObject } from '../../model/records';
import { AgentError } from '../../model/agent/errors';
import { describeDisk, concerning } from '../../model/agent/subject';
import { reasonOf } from '../../model/errors';
import {
  bootOf,
  ESP_VOLUME,
  hasSoftwareVolumes,
  inOrder,
  keptVolumes,
  layoutOf,
  placeVolumes,
  type PlacedVolume,
  readVolumes,
} from '../../model/agent/software-raid';
import type { Device } from '../disk/device';
import { rescan } from '../disk/rescan';
import { isReadOnly } from '../disk/guard';
import { createPartitions, partitionPath, readPartitions, wipeMetadata } from '../disk/partitions';
import type { FoundDisk } from '../inventory/disks';
import { bootMode } from '../inventory/inventory';
import { arraysOf, assembleArrays, holderOf, isArray, loadModules, type RaidArray, type RaidHost, releaseHolders } from './arrays';
import { addMember, createArray } from './mdadm';
import { isMember, isUnfinished } from './members';
import { untouchable } from './untouchable';

const raidError = (details: string): AgentError => new AgentError('SoftwareRAIDError', details);

/** What becomes of an array: `wipe` keeps it, and empties it. */
type Fate = 'delete' | 'wipe' | 'keep';
/**
 * Arrays whose names are in `properties.skip_block_devices` stay as they are. Those that share a disk with them stay too, without their
 * content, since their partitions are part of the table that stays; but what boots the machine keeps its content, and so do the arrays that
 * an array with its content is made of, or is part of.
 * @param untouched what is not touched (untouchable.ts)
 */
export function fatesOf(arrays: readonly RaidArray[], node: JsonObject, untouched: ReadonlySet<string>): ReadonlyMap<RaidArray, Fate> {
  const names = keptVolumes(node);
  const fates = new Map<RaidArray, Fate>(
    arrays.map((array) => [
      array,
      (array.volume !== null && names.includes(array.volume)) || untouched.has(array.name) ? 'keep' : 'delete',
    ]),
  );
  for (let changed = true; changed;) {
    changed = false;
    const kept = arrays.filter((array) => fates.get(array) === 'keep');
    const stay = new Set(arrays.filter((array) => fates.get(array) !== 'delete').flatMap(({ holders }) => holders));
    for (const array of arrays) {
      if (fates.get(array) !== 'keep' && kept.some((other) => isStacked(array, other))) {
        fates.set(array, 'keep');
        changed = true;
        continue;
      }
      if (fates.get(array) !== 'delete' || !array.holders.some((disk) => stay.has(disk))) continue;
      fates.set(array, array.volume === ESP_VOLUME ? 'keep' : 'wipe');
      changed = true;
    }
  }
  return fates;
}

/** Whether one of two arrays is made of the other. */
const isStacked = (one: RaidArray, other: RaidArray): boolean => one.below.includes(other.name) || other.below.includes(one.name);

const untouchedBy = (host: RaidHost, node: JsonObject): ReadonlySet<string> => untouchable(host.tree, host.disks(), node);
/** The disks that may be changed, without arrays. */
function usable(host: RaidHost, node: JsonObject): readonly FoundDisk[] {
  const untouched = untouchedBy(host, node);
  return host.disks().filter((disk) => !untouched.has(disk.name) && !isArray(disk) && !isReadOnly(host.tree, disk));
}

async function withDevice<T>(host: RaidHost, disk: FoundDisk, work: (device: Device) => Promise<T>): Promise<T> {
  return concerning(
    () => describeDisk(disk),
    async () => {
      const device = await host.open(disk);
      try {
        return await work(device);
      } finally {
        await device.close();
      }
    },
  );
}

const PASSES = 2;
/**
 * Deletes all arrays but those in `skip_block_devices`, and what is left of others: their superblocks, and the partition tables of their
 * disks. Throws before the first change if a disk is protected.
 */
export async function deleteConfiguration(host: RaidHost, node: JsonObject): Promise<null> {
  await assembleArrays(host);
  for (let pass = 1; ; pass++) {
    const arrays = await arraysOf(host);
    const fates = fatesOf(arrays, node, untouchedBy(host, node));
    const doomed = arrays.filter((array) => fates.get(array) === 'delete');
    const disks = await disksToWipe(host, node, arrays, fates);
    if (doomed.length === 0 && disks.length === 0 && (pass > 1 || !arrays.some((array) => fates.get(array) === 'wipe'))) return null;
    if (pass > PASSES)
      throw raidError(`Unable to clean all softraid correctly. Remaining ${[...doomed, ...disks].map(({ name }) => name).join(', ')}`);
    for (const disk of disks) await withDevice(host, disk, async () => {});
    for (const array of arrays) if (fates.get(array) !== 'keep' && pass === 1) await emptyArray(host, array);
    for (const disk of disks) {
      await releaseHolders(host, disk.name);
      await withDevice(host, disk, wipeMetadata);
      await rescan(host, disk.name);
      host.log.info(`Removed software RAID from ${disk.name}`);
    }
    for (const array of arrays.filter((each) => fates.get(each) !== 'delete'))
      host.log.info(`Software RAID device ${array.name} (${array.volume ?? 'no name'}) stays: ${fates.get(array)}`);
  }
}

/** Disks of arrays that are deleted, and those with members of none. */
async function disksToWipe(
  host: RaidHost,
  node: JsonObject,
  arrays: readonly RaidArray[],
  fates: ReadonlyMap<RaidArray, Fate>,
): Promise<readonly FoundDisk[]> {
  const holdersOf = (wanted: (fate: Fate) => boolean): ReadonlySet<string> =>
    new Set(arrays.filter((array) => wanted(fates.get(array)!)).flatMap(({ holders }) => holders));
  const [doomed, staying] = [holdersOf((fate) => fate === 'delete'), holdersOf((fate) => fate !== 'delete')];
  const found: FoundDisk[] = [];
  for (const disk of usable(host, node)) {
    if (staying.has(disk.name)) continue;
    if (doomed.has(disk.name) || (await isLeftover(host, disk))) found.push(disk);
  }
  return found;
}
async function isLeftover(host: RaidHost, disk: FoundDisk): Promise<boolean> {
  const device = await host.openToRead(disk);
  try {
    return (await isMember(device)) || (await isUnfinished(device));
  } finally {
    await device.close();
  }
}

/** The content of an array would be found again by an array of the same size in its place. One that does not run cannot be written. */
export async function emptyArray(host: RaidHost, { name }: RaidArray): Promise<void> {
  const disk = host.disks().find((candidate) => candidate.name === name);
  if (!disk) return;
  await releaseHolders(host, name);
  await withDevice(host, disk, wipeMetadata).catch((error: unknown) => {
    if (error instanceof AgentError && error.type === 'ProtectedDeviceError') throw error;
    host.log.warn(`Failed to empty ${name}: ${reasonOf(error)}`);
  });
  await rescan(host, name).catch((error: unknown) => host.log.warn(`${name}: ${reasonOf(error)}`));
}

/** Array → is_root_volume, of those whose configuration says it. */
export type RootVolumes = ReadonlyMap<string, boolean>;
interface Created {
  /** The configuration; empty: it has no volumes for the agent. */
  readonly config: JsonObject;
  readonly roots: RootVolumes;
}
/** Throws SoftwareRAIDError, before the first change for a configuration that is not possible on this machine. */
export async function createConfiguration(host: RaidHost, node: JsonObject, config: JsonObject): Promise<Created> {
  if (!hasSoftwareVolumes(config)) return { config: {}, roots: new Map() };
  const disks = usable(host, node);
  const volumes = readVolumes(config, node, disks.length);
  const existing = new Set(
    await volumesToLeave(
      host,
      node,
      volumes.map(({ name }) => name),
    ),
  );
  const wanted = inOrder(
    placeVolumes(
      volumes.filter(({ name }) => name === undefined || !existing.has(name)),
      disks,
    ),
  );
  const involved = disks.filter(({ name }) => wanted.some((volume) => volume.disks.includes(name)));
  await refusePartitions(host, involved);
  const boot = bootOf(node, bootMode(host.tree));
  const layouts = new Map(involved.map((disk) => [disk, layoutOf(wanted, disk, boot)]));
  for (const disk of involved) await withDevice(host, disk, async () => {});

  await loadModules(host.run);
  for (const [disk, { label, partitions }] of layouts) {
    await withDevice(host, disk, async (device) => {
      await wipeMetadata(device);
      // Before the table: one with partitions that are not empty is none of ours (isUnfinished).
      for (const { start, size } of partitions) await wipeMetadataIn(device, start, size);
      await createPartitions(device, label, partitions, host);
    });
    await rescan(host, disk.name);
  }
  await host.run('udevadm', ['settle', '-t', '30']).catch(() => '');
  const taken = new Map<string, number>();
  const roots = new Map<string, boolean>();
  for (const [index, volume] of wanted.entries()) {
    const name = await createVolume(host, index, volume, taken);
    if (volume.isRoot !== undefined) roots.set(name, volume.isRoot);
  }
  host.log.info('Successfully created Software RAID');
  return { config, roots };
}
const EDGE = 2 ** 20;
/** What was at the place of the new partition, such as an older superblock, is not found in it. */
async function wipeMetadataIn(device: Device, start: number, size: number): Promise<void> {
  await device.zero(start, Math.min(EDGE, size));
  await device.zero(start + size - Math.min(EDGE, size), Math.min(EDGE, size));
}

/** The names of volumes that exist and stay, which are not created. Throws SoftwareRAIDError for other arrays. */
async function volumesToLeave(host: RaidHost, node: JsonObject, wanted: readonly (string | undefined)[]): Promise<readonly string[]> {
  const names = keptVolumes(node);
  const arrays = await arraysOf(host);
  if (names.length === 0 || arrays.length === 0) return [];
  if (arrays.some(({ volume }) => volume === null))
    throw raidError(
      "A Software RAID device detected that does not have a volume name. This is not allowed because there is a volume_name hint in the property 'skip_block_devices'.",
    );
  const fates = fatesOf(arrays, node, untouchedBy(host, node));
  const strange = arrays.filter((array) => {
    const fate = fates.get(array)!;
    return fate === 'delete' || !(wanted.includes(array.volume!) || (array.volume === ESP_VOLUME && fate === 'keep'));
  });
  if (strange.length > 0) throw raidError('Existing Software RAID device detected that should not');
  return arrays.map(({ volume }) => volume!);
}

async function refusePartitions(host: RaidHost, disks: readonly FoundDisk[]): Promise<void> {
  const partitioned: string[] = [];
  for (const disk of disks) {
    const device = await host.openToRead(disk);
    try {
      const count = (await readPartitions(device))?.partitions.length ?? 0;
      if (count > 0 && !(await isUnfinished(device))) partitioned.push(disk.name);
    } finally {
      await device.close();
    }
  }
  if (partitioned.length > 0) throw raidError(`Partitions detected on devices ${partitioned.join(', ')} during RAID config`);
  const busy = (await arraysOf(host)).filter(({ holders }) => disks.some(({ name }) => holders.includes(name)));
  if (busy.length > 0) throw raidError('Existing Software RAID device detected that should not');
}

const MAX_ARRAYS = 128;
/** The first name of an array that is free. */
export function freeArray(host: Pick<RaidHost, 'tree'>, first = 0): string {
  for (let index = first; index < MAX_ARRAYS; index++) {
    const state = host.tree.text(`/sys/block/md${index}/md/array_state`);
    if (state === null || state === 'clear') return `/dev/md${index}`;
  }
  throw raidError('No free md (RAID) devices are left');
}
/** @param taken disk → how many of its partitions belong to earlier volumes */
async function createVolume(host: RaidHost, index: number, volume: PlacedVolume, taken: Map<string, number>): Promise<string> {
  const members = volume.disks.map((disk) => {
    const number = (taken.get(disk) ?? 0) + 1;
    taken.set(disk, number);
    return partitionOf(host, disk, number);
  });
  const name = freeArray(host, index);
  const words = ['--force', '--run', '--metadata=1', `--level=${volume.level}`, `--name=${volume.name ?? `md${index}`}`];
  await makeArray(host, name, words, members);
  // What was at its place before, such as the file system of an earlier array, does not appear again.
  const disk = host.disks().find((candidate) => candidate.name === name);
  if (!disk) throw raidError(`Failed to create md device ${name}: it has no size`);
  await withDevice(host, disk, wipeMetadata);
  await rescan(host, name);
  return name;
}
/** Creates an array, and checks that all members are in it. */
export async function makeArray(host: RaidHost, name: string, words: readonly string[], members: readonly string[]): Promise<void> {
  const { run, log, tree } = host;
  const holders = members.map((member) => holderOf(tree, member));
  const opened: Device[] = [];
  try {
    for (const disk of host.disks().filter((candidate) => holders.includes(candidate.name))) opened.push(await host.open(disk));
    await createArray(run, opened, { name, words, members }).catch((error: unknown) => {
      throw raidError(`Failed to create md device ${name} on ${members.join(' ')}: ${reasonOf(error)}`);
    });
    const made = (await arraysOf(host)).find((array) => array.name === name);
    for (const member of members.filter((each) => !made?.members.includes(each)))
      await addMember(run, opened, name, member).catch((error: unknown) => {
        throw raidError(`Failed re-add ${member} to ${name}: ${reasonOf(error)}`);
      });
  } finally {
    for (const device of opened) await device.close();
  }
  log.info(`Created ${name} on ${members.join(', ')}`);
}

/** The device of a partition; those of multipath devices have names of their own. */
export function partitionOf({ tree }: Pick<RaidHost, 'tree'>, disk: string, number: number): string {
  const name = tree.text(`/sys/block/${disk.slice('/dev/'.length).replaceAll('/', '!')}/dm/name`);
  if (name === null) return partitionPath(disk, number);
  const block = tree.list('/sys/block').find((candidate) => tree.text(`/sys/block/${candidate}/dm/name`) === `${name}-part${number}`);
  return block === undefined ? `/dev/mapper/${name}-part${number}` : `/dev/${block}`;
}

/** Deletes what there is, unless told otherwise, and creates the configuration, which is checked before. */
export async function applyConfiguration(host: RaidHost, node: JsonObject, args: JsonObject): Promise<Created> {
  const config = (args['raid_config'] ?? {}) as JsonObject;
  if (hasSoftwareVolumes(config)) {
    const disks = usable(host, node);
    const wanted = inOrder(placeVolumes(readVolumes(config, node, disks.length), disks));
    const boot = bootOf(node, bootMode(host.tree));
    for (const disk of disks.filter(({ name }) => wanted.some((volume) => volume.disks.includes(name)))) layoutOf(wanted, disk, boot);
  }
  if (args['delete_existing'] !== false) await deleteConfiguration(host, node);
  return createConfiguration(host, node, config);
}
