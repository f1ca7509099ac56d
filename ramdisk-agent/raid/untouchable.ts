/** The disks and arrays that stay as they are, which every change of a disk asks for (machine.ts, disk/guard.ts). */
import { usableDisks } from '../../model/agent/root-disk';
import type { JsonObject } from '../../model/records';
import type { FoundDisk } from '../inventory/disks';
import type { Tree } from '../system/tree';
import { arrayStacks } from './arrays';

/**
 * The names of the disks and arrays that `skip_block_devices` or a request keeps; of the arrays that stand on one of them, at any depth; and
 * of all that these arrays stand on.
 */
export function untouchable(tree: Tree, disks: readonly FoundDisk[], node: JsonObject): ReadonlySet<string> {
  const usable = new Set(usableDisks(disks, node));
  const refused = new Set(disks.filter((disk) => !usable.has(disk)).map(({ name }) => name));
  if (refused.size === 0) return refused;
  const staying = arrayStacks(tree).filter(({ name, below }) => [name, ...below].some((each) => refused.has(each)));
  return new Set([...refused, ...staying.flatMap(({ name, below }) => [name, ...below])]);
}
