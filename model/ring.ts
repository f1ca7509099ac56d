/** Which conductor serves a node: the alive one of its group and driver with the highest rendezvous hash. */
import { createHash } from 'node:crypto';
import type { ConductorRecord } from './records';

/** The alive conductors that serve a driver in a group. */
export const serving = (
  alive: readonly ConductorRecord[],
  { driver, conductor_group: group }: { readonly driver: string; readonly conductor_group: string },
): readonly ConductorRecord[] => alive.filter((one) => one.conductor_group === group && Object.hasOwn(one.drivers, driver));

/** The candidate with the highest rendezvous hash for the key. Only with several is a hash needed. */
export function chosen(candidates: readonly ConductorRecord[], key: string): ConductorRecord | undefined {
  if (candidates.length < 2) return candidates[0];
  let best: ConductorRecord | undefined;
  let highest = '';
  for (const one of candidates) {
    const weight = createHash('sha256').update(`${one.hostname}\0${key}`).digest('hex');
    if (best && weight <= highest) continue;
    best = one;
    highest = weight;
  }
  return best;
}

type Served = { readonly uuid: string; readonly driver: string; readonly conductor_group: string };
/** Whom clients' requests about the node go to; undefined: nobody serves its driver in its group. */
export const conductorOf = (alive: readonly ConductorRecord[], node: Served): ConductorRecord | undefined =>
  chosen(serving(alive, node), node.uuid);

/** Who looks after the node: as `conductorOf`; one whose driver nobody offers any more is still somebody's of its group. */
export const keeperOf = (alive: readonly ConductorRecord[], node: Served): ConductorRecord | undefined => {
  const able = serving(alive, node);
  return chosen(able.length > 0 ? able : alive.filter(({ conductor_group: group }) => group === node.conductor_group), node.uuid);
};
