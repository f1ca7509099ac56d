/** Erases the disks of the machine, and reports what became of each of them. */
import { AgentError } from '../../model/agent/errors';
import { keepOf, keptDisks, psidsIn, SKIPS, type ErasedDisk, type Skip } from '../../model/agent/erasure';
import { usableDisks } from '../../model/agent/root-disk';
import { concerning, describeDisk } from '../../model/agent/subject';
import { reasonOf } from '../../model/errors';
import { isObject } from '../../model/json';
import type { JsonObject } from '../../model/records';
import { isReadOnly } from '../disk/guard';
import { allDisksOf, fixedDisksOf, type FoundDisk, inventoried, mediaOf } from '../inventory/disks';
import { openDisk, raidHost, type Machine } from '../machine';
import { erasableDisks } from '../raid/erasable';
import { untouchable } from '../raid/untouchable';
import type { Erase, Erased } from './erase';
import type { Erasing } from './erasing';
import { awaitUnfinished, disksWithoutSize } from './unfinished';

const memberOf = ({ state }: Machine, name: string): JsonObject => {
  const value = state.node[name];
  return isObject(value) ? value : {};
};
const settingsOf = (machine: Machine): JsonObject => memberOf(machine, 'driver_internal_info');

const UNTOUCHED = { method: null, started_at: null, ended_at: null, seconds: null, overwrite_seconds: null, sample: null } as const;
const factsOf = (disk: FoundDisk) => {
  const { name, serial, wwn, model, size } = inventoried(disk);
  return { name, serial: serial ?? null, wwn: wwn ?? null, model: model ?? null, size };
};

interface Plan {
  readonly disks: readonly FoundDisk[];
  readonly left: readonly { readonly disk: FoundDisk; readonly why: Skip }[];
}
/**
 * Stops the arrays that are leftovers on disks that are erased. Throws BlockDeviceEraseError, before a disk is touched: a disk that is to be
 * kept is not there, or cannot be told from others. Throws ProtectedDeviceError as well.
 */
export async function planOf(machine: Machine): Promise<Plan> {
  const host = raidHost(machine);
  const staying = untouchable(machine.tree, fixedDisksOf(machine.tree), machine.state.node);
  await awaitUnfinished(machine, settingsOf(machine), ({ name }) => staying.has(name));
  const found = host.disks();
  const { kept, unmatched } = keptDisks(found, keepOf(machine.state.node));
  if (unmatched.length > 0)
    throw new AgentError(
      'BlockDeviceEraseError',
      `No disk matches ${unmatched.map((hints) => JSON.stringify(hints)).join(' and ')}, which is to be kept: nothing was erased`,
    );
  const usable = usableDisks(found, { ...machine.state.node, driver_internal_info: {} }).filter((disk) => !kept.includes(disk));
  const disks = await erasableDisks(host, machine.state.node, usable);
  const present = new Set(host.disks().map(({ name }) => name));
  const media = mediaOf(machine);
  return {
    disks,
    left: [
      ...kept.map((disk) => ({ disk, why: 'kept' as const })),
      ...found
        .filter((disk) => !usable.includes(disk) && !kept.includes(disk))
        .map((disk) => ({ disk, why: 'skip_block_devices' as const })),
      ...usable.filter((disk) => !disks.includes(disk) && present.has(disk.name)).map((disk) => ({ disk, why: 'array' as const })),
      ...allDisksOf(machine.tree)
        .filter(({ name }) => media.includes(name))
        .map((disk) => ({ disk, why: 'medium' as const })),
      ...disksWithoutSize(machine).map((disk) => ({ disk, why: 'no-size' as const })),
    ],
  };
}

/** A disk that came while others were erased would go to the next user as it is. */
function lateDisks(machine: Machine, { disks, left }: Plan): readonly FoundDisk[] {
  const known = [...disks, ...left.map(({ disk }) => disk)];
  const names = new Set(known.map(({ name }) => name));
  const serials = new Set(known.flatMap(({ serial }) => serial));
  // A name of a disk that is back, or of a multipath device whose paths were known, is not a disk that came.
  return raidHost(machine)
    .disks()
    .filter(({ name, serial }) => !names.has(name) && !serial.some((each) => serials.has(each)));
}

interface Failure {
  readonly disk: FoundDisk;
  readonly reason: string;
}
/** Erases one disk. Its report counts only if the step succeeds. */
async function erasedDisk(erase: Erase, disk: FoundDisk, erasing: Erasing): Promise<ErasedDisk | Failure> {
  const { clock } = erasing;
  const began = clock.now();
  let erased: Erased;
  try {
    erased = await erase(erasing);
  } catch (error) {
    return { disk, reason: error instanceof AgentError ? error.details : `"${disk.name}": ${reasonOf(error)}` };
  }
  const ended = clock.now();
  if (erased.method === null) return { ...factsOf(disk), ...UNTOUCHED, ...erased };
  const times = { started_at: new Date(began).toISOString(), ended_at: new Date(ended).toISOString(), seconds: (ended - began) / 1000 };
  return { ...factsOf(disk), ...times, ...erased };
}

/** Erases `atOnce` disks at a time. A failure does not stop the other disks. */
export async function eraseEach(
  machine: Machine,
  erase: Erase,
  atOnce: number | undefined,
  progress: (percent: number) => void,
): Promise<JsonObject> {
  const { run, tree, random, clock, log } = machine;
  const plan = await planOf(machine);
  const { disks, left } = plan;
  const settings: JsonObject = { agent_enable_discard_erase: machine.parameters.discardErase, ...settingsOf(machine) };
  const psids = psidsIn(memberOf(machine, 'driver_info')['opal_psids']);
  for (const { disk, why } of left) log.info(`Skipping erase of ${disk.name}. ${SKIPS[why]}`);
  // One protected disk stops the step before it changes another.
  for (const disk of disks) {
    const open = async (): Promise<void> => (await openDisk(machine, disk)).close();
    if (!isReadOnly(tree, disk)) await concerning(() => describeDisk(disk), open);
  }
  const percents = new Map<string, number>(disks.map((disk) => [disk.name, 0]));
  const results = new Map<string, ErasedDisk>();
  const failures: Failure[] = [];
  const queue = [...disks];
  const worker = async (): Promise<void> => {
    for (let disk = queue.shift(); disk; disk = queue.shift()) {
      const { name } = disk;
      const report = (percent: number): void => {
        percents.set(name, percent);
        progress([...percents.values()].reduce((sum, each) => sum + each, 0) / disks.length);
      };
      const open: Erasing['open'] = (which) => openDisk(machine, which);
      const erasing = { disk, settings, psids, open, query: run, tree, random, clock, log, progress: report };
      const result = await erasedDisk(erase, disk, erasing);
      if ('reason' in result) failures.push(result);
      else results.set(name, result);
      report(100);
    }
  };
  const workers = atOnce ?? Math.max(1, Number(settings['disk_erasure_concurrency'] ?? 4));
  await Promise.all(Array.from({ length: Math.min(workers, disks.length) }, worker));
  for (const disk of lateDisks(machine, plan)) failures.push({ disk, reason: `"${disk.name}": it came while others were erased` });
  if (failures.length > 0)
    return concerning(
      () => failures.map(({ disk }) => describeDisk(disk)).join('; '),
      async () => {
        throw new AgentError('BlockDeviceEraseError', failures.map(({ reason }) => reason).join('; '));
      },
    );
  const erased = disks.flatMap(({ name }) => results.get(name) ?? []);
  const untouched = left.map(({ disk, why }): ErasedDisk => ({ ...factsOf(disk), ...UNTOUCHED, skipped: why }));
  return { erased_disks: [...erased, ...untouched] as unknown as JsonObject[] };
}
