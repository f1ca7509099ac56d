/** The storage of a machine with a Redfish service (schemas Storage, Drive, Volume): its drives, and its current volumes. */
import { bareTimestamp } from '../../../model/clock';
import type { JsonObject } from '../../../model/records';
import {
  linkKey,
  linkOf,
  linkedCollection,
  listOf,
  member,
  memberPaths,
  numberOf,
  readResource,
  isStatus,
  textOf,
  textsOf,
  collection,
  type SendRedfishRequest,
  type RedfishResource,
} from '../../../wire/redfish';
import type { Task } from '../../interfaces';
import { levelOfType, type Drive } from './raid-plan';
import type { SystemView } from '../target';
import { withoutEndSlashes } from '../../../wire/urls';

/** When the service applies requests for volumes; undefined: it gives no choice. */
export type ApplyTime = 'Immediate' | 'OnReset' | undefined;
interface Volumes {
  /** Path of the collection. */
  readonly path: string;
  readonly applyTime: ApplyTime;
}
export interface Storage {
  readonly id: string;
  /** Its first controller; undefined: it has none. */
  readonly controller: RedfishResource | undefined;
  /** The controller supports RAID, or does not report its levels. */
  readonly makesRaid: boolean;
  readonly resource: RedfishResource;
  /** Undefined: it has no volumes. */
  readonly volumes: Volumes | undefined;
}

const idOf = ({ body, path }: RedfishResource): string => textOf(member(body, 'Id')) ?? withoutEndSlashes(path).split('/').at(-1)!;

/** The first controller: a resource, or with older schemas a part of the storage itself, whose path it then has. */
async function controllerOf(ask: SendRedfishRequest, storage: RedfishResource): Promise<RedfishResource | undefined> {
  const path = linkOf(member(storage.body, 'Controllers'));
  const [first] = path === undefined ? [] : await unlessMissing(memberPaths(ask, path), []);
  if (first !== undefined) return readResource(ask, first);
  const [part] = listOf(member(storage.body, 'StorageControllers'));
  return part === undefined ? undefined : { ...storage, body: part };
}
/** Whether the RAID types of the controller include a RAID level. Without a list of types it counts as capable. */
function makesRaid(controller: RedfishResource | undefined): boolean {
  const types = textsOf(member(controller?.body, 'SupportedRAIDTypes'));
  return types === undefined || types.some((type) => /^RAID\d/.test(type));
}
async function unlessMissing<T>(work: Promise<T>, otherwise: T): Promise<T> {
  try {
    return await work;
  } catch (error) {
    if (isStatus(error, 404)) return otherwise;
    throw error;
  }
}
async function volumesOf(ask: SendRedfishRequest, storage: RedfishResource): Promise<Volumes | undefined> {
  const path = linkOf(member(storage.body, 'Volumes'));
  const found = path === undefined ? undefined : await unlessMissing(readResource(ask, path), undefined);
  if (path === undefined || !found) return undefined;
  const times = textsOf(member(found.body, '@Redfish.OperationApplyTimeSupport', 'SupportedValues')) ?? [];
  return { path, applyTime: (['Immediate', 'OnReset'] as const).find((time) => times.includes(time)) };
}

/** Further subsystems are ignored. */
const MAX_STORAGES = 64;
export async function storagesOf({ ask, ...system }: SystemView): Promise<readonly Storage[]> {
  const resources = (await linkedCollection(ask, system, 'Storage')) ?? [];
  const storages: Storage[] = [];
  for (const resource of resources.slice(0, MAX_STORAGES)) {
    const controller = await controllerOf(ask, resource);
    storages.push({ id: idOf(resource), resource, controller, makesRaid: makesRaid(controller), volumes: await volumesOf(ask, resource) });
  }
  return storages;
}

const MAX_DRIVES = 512;
/** The state of a drive that waits to replace a failed one. HotspareType tells only what kind of spare a drive can be (DSP0268). */
const SPARE = 'StandbySpare';
/**
 * The drives that volumes can consist of. A drive without a size cannot be used.
 * @param staying RAID volumes whose drives are not free
 */
export async function drivesOf(
  ask: SendRedfishRequest,
  storages: readonly Storage[],
  staying: readonly Volume[],
): Promise<readonly Drive[]> {
  const taken = new Set(staying.flatMap(({ drives: paths }) => paths.map(linkKey)));
  const kept = new Set(staying.map(({ path }) => linkKey(path)));
  const drives: Drive[] = [];
  for (const { id: controller, resource } of storages.filter((storage) => storage.makesRaid && storage.volumes))
    for (const link of listOf(member(resource.body, 'Drives'))) {
      const path = linkOf(link);
      if (path === undefined || drives.length >= MAX_DRIVES) continue;
      const drive = await unlessMissing(readResource(ask, path), undefined);
      const bytes = numberOf(member(drive?.body, 'CapacityBytes'));
      if (!drive || bytes === undefined || !Number.isInteger(bytes) || bytes <= 0) continue;
      const [mediaType, protocol] = [textOf(member(drive.body, 'MediaType')), textOf(member(drive.body, 'Protocol'))];
      const volumes = listOf(member(drive.body, 'Links', 'Volumes')).map((item) => linkKey(linkOf(item) ?? ''));
      const inUse =
        taken.has(linkKey(path)) || volumes.some((volume) => kept.has(volume)) || member(drive.body, 'Status', 'State') === SPARE;
      drives.push({ path, id: idOf(drive), controller, mediaType: mediaType ?? null, protocol: protocol ?? null, bytes, inUse });
    }
  return drives;
}

export interface Volume {
  readonly path: string;
  readonly id: string;
  readonly name: string | null;
  /** Its Storage resource. */
  readonly storage: Storage;
  /** Undefined: not RAID, for instance a drive that is shown as a volume. */
  readonly raidType: string | undefined;
  readonly bytes: number;
  /** Paths. */
  readonly drives: readonly string[];
}
export async function existingVolumes(ask: SendRedfishRequest, storages: readonly Storage[]): Promise<readonly Volume[]> {
  const found: Volume[] = [];
  for (const storage of storages) {
    const { volumes } = storage;
    if (!volumes) continue;
    for (const item of await unlessMissing(collection(ask, volumes.path), [])) {
      found.push({
        path: item.path,
        id: idOf(item),
        name: textOf(member(item.body, 'Name')) ?? null,
        storage,
        raidType: textOf(member(item.body, 'RAIDType')),
        bytes: Math.max(0, numberOf(member(item.body, 'CapacityBytes')) ?? 0),
        drives: listOf(member(item.body, 'Links', 'Drives')).flatMap((drive) => linkOf(drive) ?? []),
      });
    }
  }
  return found;
}

/** raid_config: the volumes whose levels can be requested. */
export function raidConfigOf(task: Task, volumes: readonly Volume[]): JsonObject {
  const disks = volumes.flatMap(({ id, name, storage, raidType, bytes }) => {
    const level = levelOfType(raidType);
    return level === undefined ? [] : [{ id, name, controller: storage.id, size_gb: Math.floor(bytes / 2 ** 30), raid_level: level }];
  });
  return { logical_disks: disks, last_updated: bareTimestamp(task.clock.now()).replace('T', ' ') };
}
