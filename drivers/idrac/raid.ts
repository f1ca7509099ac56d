/** RAID of Dell machines: Redfish's, on controllers and drives that are made ready for it. */
import { waitUntil } from '../../model/clock';
import {
  RedfishError,
  hasMessage,
  isStatus,
  linkOf,
  listOf,
  member,
  patchResource,
  readLinked,
  readResource,
  startedTask,
  textOf,
  type SendRedfishRequest,
} from '../../wire/redfish';
import type { RaidInterface, Task } from '../interfaces';
import { hasAgent } from '../common/reboot-step';
import { raidBy, type RaidFollowUp } from '../redfish/steps/raid';
import type { Drive } from '../redfish/steps/raid-plan';
import { storagesOf, type Storage } from '../redfish/steps/storage';
import type { SystemView } from '../redfish/target';
import { startedJob, untilOver } from './jobs';
import { lockable } from './lockdown';
import { callService, isReady, onManager } from './manager';

/** Attempts, and milliseconds between them, until a controller changes volumes without a restart. */
const READY_TRIES = 30;
const READY_PAUSE_MS = 10_000;
/** A controller that is not ready in time gets its requests all the same, and needs a restart for them. */
async function prepare(task: Task): Promise<void> {
  const { power } = task.driver;
  if (!hasAgent(task) && (await power.get(task)) === 'power off') await task.power('power on');
  const isRealtime = (): Promise<boolean> =>
    onManager(task, 'get real-time ready status', (manager, { ask }) => isReady(ask, manager, 'RTStatus'));
  if (!(await waitUntil(task, isRealtime, (checks) => (checks < READY_TRIES ? READY_PAUSE_MS : undefined))))
    task.log.warn('The controllers are not ready for changes without a restart');
}

/** BOSS cards have neither modes of drives nor foreign configurations. */
const isBoss = ({ controller }: Storage): boolean => /BOSS/i.test(textOf(member(controller?.body, 'Name')) ?? '');

/** Whether the controller shows the drive as a volume of its own, which is how it shows drives outside of RAID. */
async function isOutsideRaid(ask: SendRedfishRequest, { path }: Drive): Promise<boolean> {
  const drive = await readResource(ask, path);
  const [first] = listOf(member(drive.body, 'Links', 'Volumes')).flatMap((item) => linkOf(item) ?? []);
  if (first === undefined) return false;
  const volume = await readResource(ask, first).catch((error: unknown) => {
    if (!isStatus(error, 404)) throw error;
    return undefined;
  });
  if (volume === undefined) return false;
  return member(volume.body, 'VolumeType') === 'RawDevice' || (member(volume.body, 'RAIDType') ?? null) === null;
}
/** Makes the drives outside of RAID usable for it. Their sizes change. */
async function convert(task: Task, system: SystemView, drives: readonly Drive[]): Promise<boolean> {
  const { ask } = system;
  const storages = await storagesOf(system);
  const jobs: string[] = [];
  for (const { id } of storages.filter((storage) => !isBoss(storage))) {
    const outside: string[] = [];
    for (const drive of drives) if (drive.controller === id && (await isOutsideRaid(ask, drive))) outside.push(drive.id);
    if (outside.length === 0) continue;
    const action = '#DellRaidService.ConvertToRAID';
    jobs.push(startedJob(await callService(ask, system, action, { PDArray: outside }), action));
  }
  for (const job of jobs) await untilOver(task, ask, job, task.options['drac.raid_job_timeout'] * 1000);
  return jobs.length > 0;
}

/** The controller has no configuration of another machine. */
const NO_FOREIGN = 'STOR018';
/** A job for which the iDRAC restarts the machine. */
const RESTARTS = 'RAIDConfiguration';
async function clearForeign(task: Task, system: SystemView): Promise<RaidFollowUp> {
  const { ask } = system;
  const action = '#DellRaidService.ClearForeignConfig';
  const monitors: string[] = [];
  // Without RAID types in its description, a controller is none for RAID.
  const capable = (storage: Storage): boolean =>
    storage.makesRaid && listOf(member(storage.controller?.body, 'SupportedRAIDTypes')).length > 0;
  for (const { id } of (await storagesOf(system)).filter((storage) => capable(storage) && !isBoss(storage)))
    try {
      monitors.push(startedJob(await callService(ask, system, action, { TargetFQDD: id }), action));
    } catch (error) {
      if (!isStatus(error, 400) || !hasMessage(error, NO_FOREIGN)) throw error;
    }
  if (monitors.length > 0) task.log.info('Foreign configurations are cleared', { jobs: monitors });
  const types = await Promise.all(monitors.map((monitor) => jobType(ask, monitor)));
  return { monitors, restart: types.includes(RESTARTS) ? 'begun' : undefined };
}
async function jobType(ask: SendRedfishRequest, monitor: string): Promise<string | undefined> {
  try {
    return textOf(member((await readResource(ask, monitor)).body, 'Oem', 'Dell', 'JobType'));
  } catch (error) {
    if (error instanceof RedfishError && error.kind !== 'status') throw error;
    return undefined;
  }
}

const RAID_MODE = { Oem: { Dell: { DellStorageController: { ControllerMode: 'RAID' } } } } as const;
/** Controllers that pass their drives through (PERC 9: HBA, PERC 10: enhanced HBA) become RAID controllers at the next start. */
async function toRaidMode(_: Task, { ask, ...system }: SystemView): Promise<RaidFollowUp> {
  const monitors: string[] = [];
  let restart: RaidFollowUp['restart'];
  for (const { controller, resource } of await storagesOf({ ask, ...system })) {
    // The mode is one of controllers that are resources of their own.
    if (!controller || controller.path === resource.path) continue;
    const mode = textOf(member(controller.body, 'Oem', 'Dell', 'DellStorageController', 'ControllerMode'));
    if (mode === undefined || mode === 'RAID') continue;
    const settings = (await readLinked(ask, controller, '@Redfish.Settings', 'SettingsObject')) ?? controller;
    const applyTime = { '@Redfish.SettingsApplyTime': { ApplyTime: 'OnReset' } };
    const monitor = startedTask(await patchResource(ask, settings, { ...RAID_MODE, ...applyTime }));
    if (monitor !== undefined) monitors.push(monitor);
    restart = 'due';
  }
  return { monitors, restart };
}

const raid = raidBy({
  prepare,
  convert,
  afterDeletion: [clearForeign, toRaidMode],
  appearsMs: 30_000,
  pauseMs: 10_000,
  withoutRamdisk: true,
  deletesIn: ['clean', 'deploy'],
});
export const idracRaid: RaidInterface = { ...raid, steps: lockable(raid.steps) };
