/** The disk for the image on a machine with software RAID. */
import { objectOf } from '../../model/json';
import type { JsonObject } from '../../model/records';
import { hasSoftwareVolumes, keptVolumes } from '../../model/agent/software-raid';
import type { FoundDisk } from '../inventory/disks';
import { arraysOf, hasArrays, isArray, type RaidArray, type RaidHost } from './arrays';
import { fatesOf, type RootVolumes } from './configuration';
import { untouchable } from './untouchable';

/** Whether the node has software RAID by its configuration: then its arrays are no leftovers. */
export const wantsArrays = (node: JsonObject): boolean =>
  [node['raid_config'], node['target_raid_config']].some(hasSoftwareVolumes) || keptVolumes(node).length > 0;

type Candidates = { readonly root: FoundDisk } | { readonly disks: readonly FoundDisk[] };
/**
 * The root volume of a configuration, if this agent has created it, or if the node has no hints; else the disks among which hints choose.
 * Volumes that are not to have the image, with their disks, and those that stay as they are, are not among these. Without hints, neither are
 * arrays of earlier users.
 */
export async function rootCandidates(
  host: RaidHost,
  node: JsonObject,
  disks: readonly FoundDisk[],
  created: RootVolumes = new Map(),
): Promise<Candidates> {
  if (!hasArrays(host.tree)) return { disks };
  const hints = objectOf(node['instance_info'])['root_device'] ?? objectOf(node['properties'])['root_device'];
  const hasHints = Object.keys(objectOf(hints)).length > 0;
  const arrays = await arraysOf(host);
  const isRoot = new Map([...(hasHints ? [] : configuredRoots(arrays, node)), ...created]);
  const untouched = untouchable(host.tree, disks, node);
  const fates = fatesOf(arrays, node, untouched);
  const namesOf = (of: readonly RaidArray[]): readonly string[] => of.flatMap(({ name, below }) => [name, ...below]);
  const staying = new Set([...untouched, ...namesOf(arrays.filter((array) => fates.get(array) === 'keep'))]);
  const root = disks.find(({ name }) => isRoot.get(name) === true && !staying.has(name));
  if (root) return { root };
  const excluded = new Set([...staying, ...namesOf(arrays.filter(({ name }) => isRoot.get(name) === false))]);
  const isLeftover = (disk: FoundDisk): boolean => node['uuid'] !== undefined && !hasHints && !wantsArrays(node) && isArray(disk);
  // The hint volume_name compares it.
  const named = (disk: FoundDisk): FoundDisk =>
    Object.assign({}, disk, { volume_name: arrays.find(({ name }) => name === disk.name)?.volume ?? null });
  return { disks: disks.filter((disk) => !excluded.has(disk.name) && !isLeftover(disk)).map(named) };
}

/** What the node's configuration says of its volumes, which their names identify. */
function configuredRoots(arrays: Awaited<ReturnType<typeof arraysOf>>, node: JsonObject): readonly (readonly [string, boolean])[] {
  const given = objectOf(node['raid_config'])['logical_disks'];
  return (Array.isArray(given) ? given : []).flatMap((disk: unknown) => {
    const { controller, volume_name: volume, is_root_volume: isRoot } = objectOf(disk);
    const array = arrays.find((candidate) => candidate.volume !== null && candidate.volume === volume);
    return controller === 'software' && array && typeof isRoot === 'boolean' ? [[array.name, isRoot] as const] : [];
  });
}
