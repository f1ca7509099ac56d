/** The hardware managers of this machine: found once, as programs of the site may ask the hardware for a while. */
import type { Machine } from '../machine';
import { genericManager } from '../steps';
import { containerManager } from './containers';
import type { HardwareManager } from './manager';
import { mellanoxManager } from './mellanox';
import { siteManagers } from './operators';

const found = new WeakMap<Machine, Promise<readonly HardwareManager[]>>();

/** @throws what siteManagers and containerManager throw; the next call tries again */
export function managersOf(machine: Machine): Promise<readonly HardwareManager[]> {
  const known = found.get(machine);
  if (known) return known;
  const finding = findManagers(machine);
  found.set(machine, finding);
  finding.catch(() => found.delete(machine));
  return finding;
}

async function findManagers(machine: Machine): Promise<readonly HardwareManager[]> {
  const generic = genericManager(Math.min(99, machine.parameters.injectFilesPriority));
  const site = await siteManagers(machine);
  const others = [generic, mellanoxManager(machine), ...site].filter((manager) => manager !== undefined);
  const reserved = new Set(others.flatMap(({ steps }) => steps.map(({ step }) => step)));
  const containers = await containerManager(machine, reserved);
  const all = containers ? [...others, containers] : others;
  machine.log.info(`Hardware managers: ${all.map(({ name, version, support }) => `${name} ${version} (${support})`).join(', ')}`);
  return all;
}
