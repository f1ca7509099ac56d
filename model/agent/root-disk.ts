/** Selects the disk for the image, and the disks that may be changed. */
import { keepOf, keptDisks } from './erasure';
import { type HintedDisk, matchDisks, parseHints } from './hints';
import type { JsonObject } from '../records';
import { AgentError } from './errors';
import { reasonOf } from '../errors';

/** The least size, in bytes, of a root disk that is chosen without hints. */
const SMALLEST_ROOT = 4 * 2 ** 30;

const object = (value: unknown): JsonObject => (typeof value === 'object' && value !== null ? (value as JsonObject) : {});

/** The disks, except those in properties.skip_block_devices, and those that a request keeps. */
export function usableDisks<D extends HintedDisk>(disks: readonly D[], node: JsonObject): readonly D[] {
  const skipped = object(node['properties'])['skip_block_devices'];
  const hints = Array.isArray(skipped) ? (skipped as readonly unknown[]).filter((hint) => !('volume_name' in object(hint))) : [];
  const names = new Set(hints.flatMap((hint) => matchDisks(disks, parseHints(hint)).map((disk) => disk.name)));
  const { kept } = keptDisks(disks, keepOf(node));
  return disks.filter((disk) => !names.has(disk.name) && !kept.includes(disk));
}

/**
 * The first disk that matches the hints of instance_info, otherwise of properties. Without hints: the smallest of at least 4 GiB, and among
 * equal ones the first by name. Throws DeviceNotFound with the reason.
 */
export function rootDisk<D extends HintedDisk>(disks: readonly D[], node: JsonObject): D {
  const usable = usableDisks(disks, node);
  const given = object(node['instance_info'])['root_device'] ?? object(node['properties'])['root_device'];
  if (Object.keys(object(given)).length > 0) {
    const found = matchDisks(usable, hintsOf(given))[0];
    if (found) return found;
    throw new AgentError('DeviceNotFound', `No suitable device was found for deployment using these hints ${JSON.stringify(given)}`);
  }
  const large = usable.filter((disk) => disk.size >= SMALLEST_ROOT);
  const smallest = [...large].sort((a, b) => a.size - b.size || (a.name < b.name ? -1 : 1))[0];
  if (smallest) return smallest;
  throw new AgentError(
    'DeviceNotFound',
    `No suitable device was found for deployment - root device hints were not provided and all found block devices are smaller than ${SMALLEST_ROOT}B.`,
  );
}

function hintsOf(given: unknown): ReturnType<typeof parseHints> {
  try {
    return parseHints(given);
  } catch (error) {
    const text = `No devices could be found using the root device hints ${JSON.stringify(given)} because they failed to validate. Error: ${reasonOf(error)}`;
    throw new AgentError('DeviceNotFound', text, { cause: error });
  }
}
