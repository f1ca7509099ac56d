/** Maps nodes to conductors by rendezvous hashing over the alive conductors of their group and driver. */
import { createHash } from 'node:crypto';
import type { ConductorRecord } from './records';

/** The alive conductors with this driver in this group. */
export const conductorsServing = (
  alive: readonly ConductorRecord[],
  { driver, conductor_group: group }: { readonly driver: string; readonly conductor_group: string },
): readonly ConductorRecord[] =>
  alive.filter((candidate) => candidate.conductor_group === group && Object.hasOwn(candidate.drivers, driver));

/** The candidate with the highest rendezvous hash for the key. */
export function chooseByHash(candidates: readonly ConductorRecord[], key: string): ConductorRecord | undefined {
  if (candidates.length < 2) return candidates[0];
  let best: ConductorRecord | undefined;
  let highest = '';
  for (const candidate of candidates) {
    const weight = createHash('sha256').update(`${candidate.hostname}\0${key}`).digest('hex');
    if (best && weight <= highest) continue;
    best = candidate;
    highest = weight;
  }
  return best;
}

type Served = { readonly uuid: string; readonly driver: string; readonly conductor_group: string };
/** The conductor for requests about the node; undefined: no conductor of its group has its driver. */
export const conductorOf = (alive: readonly ConductorRecord[], node: Served): ConductorRecord | undefined =>
  chooseByHash(conductorsServing(alive, node), node.uuid);

/** The conductor for periodic work on the node: as `conductorOf`, or any conductor of its group if none has its driver. */
export const periodicConductorOf = (alive: readonly ConductorRecord[], node: Served): ConductorRecord | undefined => {
  const able = conductorsServing(alive, node);
  return chooseByHash(able.length > 0 ? able : alive.filter(({ conductor_group: group }) => group === node.conductor_group), node.uuid);
};
