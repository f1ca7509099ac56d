/** Which conductor serves a node: the alive one of its group and driver with the highest rendezvous hash. */
import { createHash } from 'node:crypto';
import type { ConductorRecord } from './records';

/** Whether it gave a sign of life within the timeout (seconds). */
export const isAlive = (conductor: ConductorRecord, now: number, timeout: number): boolean =>
  conductor.online && now - Date.parse(conductor.updated_at) <= timeout * 1000;

/** The alive conductors that serve a driver in a group. */
export const serving = (
  alive: readonly ConductorRecord[],
  { driver, conductor_group: group }: { readonly driver: string; readonly conductor_group: string },
): readonly ConductorRecord[] => alive.filter((one) => one.conductor_group === group && Object.hasOwn(one.drivers, driver));

/** Only with several candidates is a hash needed. */
export function conductorOf(
  alive: readonly ConductorRecord[],
  node: { readonly uuid: string; readonly driver: string; readonly conductor_group: string },
): ConductorRecord | undefined {
  const candidates = serving(alive, node);
  if (candidates.length < 2) return candidates[0];
  const weight = ({ hostname }: ConductorRecord): string => createHash('sha256').update(`${hostname}\0${node.uuid}`).digest('hex');
  return candidates.reduce((best, one) => (weight(one) > weight(best) ? one : best));
}
