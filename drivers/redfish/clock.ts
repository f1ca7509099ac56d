/** The clock of a BMC with a Redfish service (schema Manager). A step sets it; verification checks it. */
import { instantOf } from '../../model/clock';
import { Fault } from '../../model/errors';
import { str } from '../../model/python';
import type { JsonObject } from '../../model/records';
import { RedfishError, member, patchResource, readResource, textOf, type RedfishResource } from '../../wire/redfish';
import { type Outcome, type Step, type Task, done, failed } from '../interfaces';
import { managersOf } from './managers';
import { onSystem, type SystemView } from './target';

/** The first Manager of the system. Throws RedfishError. */
async function managerOf(system: SystemView): Promise<RedfishResource> {
  const [manager] = await managersOf(system);
  if (manager === undefined) throw new RedfishError('protocol', `Couldn't find any Manager of ${system.path}`);
  return manager;
}

/** ISO 8601 in Redfish's form (DSP0266 §9.12): date, time and offset, UTC by default. Fractions of a second are dropped. */
const TIME = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:[.,]\d+)?(Z|[+-]\d\d:?\d\d)?$/i;
/** The form that the service accepts; undefined: not a time. */
function timeOf(text: string): string | undefined {
  const [, time, offset = '+00:00'] = TIME.exec(text.trim().replace(' ', 'T')) ?? [];
  if (time === undefined) return undefined;
  const time8601 = `${time}${offset.toUpperCase() === 'Z' ? '+00:00' : offset.replace(/^(.\d\d)(\d\d)$/, '$1:$2')}`;
  return Number.isNaN(instantOf(time8601)) ? undefined : time8601;
}
const clockOf = (manager: RedfishResource): number => {
  const time8601 = timeOf(textOf(member(manager.body, 'DateTime')) ?? '');
  if (time8601 === undefined) throw new RedfishError('protocol', `${manager.path} gives no DateTime`);
  return Date.parse(time8601);
};
async function setClock({ ask }: SystemView, manager: RedfishResource, time: string, offset: string | undefined): Promise<RedfishResource> {
  await patchResource(ask, manager, { DateTime: time, DateTimeLocalOffset: offset });
  return readResource(ask, manager.path);
}
const nowOf = (task: Task): string => `${new Date(task.clock.now()).toISOString().slice(0, 19)}+00:00`;

/** Milliseconds: the time that setting the clock may take. */
const SET_TOLERANCE = 5000;
const VERIFY_TOLERANCE = 1000;
/** A clock shows whole seconds. */
const SHOWN = 1000;

async function setBmcClock(task: Task, { target_datetime: target, datetime_local_offset: offset }: JsonObject): Promise<Outcome> {
  const time = target === undefined || target === null ? nowOf(task) : timeOf(str(target));
  if (time === undefined)
    throw new Fault('InvalidParameterValue', { message: `target_datetime is not a time in ISO 8601: ${str(target)}` });
  return onSystem(task, undefined, async (system) => {
    const manager = await managerOf(system);
    const after = await setClock(system, manager, time, typeof offset === 'string' ? offset : undefined);
    if (Math.abs(clockOf(after) - Date.parse(time)) > SET_TOLERANCE)
      throw new RedfishError('protocol', 'Redfish exception occurred. Error: BMC clock update failed: mismatch after setting datetime');
    return done;
  });
}

async function verifyBmcClock(task: Task): Promise<Outcome> {
  if (!task.options['redfish.enable_verify_bmc_clock']) return done;
  try {
    return await onSystem(task, undefined, async (system) => {
      const manager = await managerOf(system);
      const isRight = (resource: RedfishResource): boolean => Math.abs(clockOf(resource) - task.clock.now()) <= VERIFY_TOLERANCE + SHOWN;
      if (isRight(manager)) return done;
      const offset = member(manager.body, 'DateTimeLocalOffset') === '+00:00' ? undefined : '+00:00';
      if (isRight(await setClock(system, manager, nowOf(task), offset))) return done;
      throw new RedfishError('protocol', 'Redfish exception occurred. Error: BMC clock still incorrect after update');
    });
  } catch (error) {
    if (!(error instanceof Fault)) throw error;
    return failed(`Failed to verify node ${task.node.uuid}: BMC clock verify step failed: ${error.message}`);
  }
}

export const CLOCK_STEPS: readonly Step[] = [
  {
    step: 'set_bmc_clock',
    priority: { clean: 0 },
    resumable: true,
    args: {
      target_datetime: {
        description: 'The datetime to set in ISO8601 format. If omitted, the current conductor UTC time is used.',
        required: false,
      },
      datetime_local_offset: { description: 'The local time offset from UTC', required: false },
    },
    run: setBmcClock,
  },
  { step: 'verify_bmc_clock', priority: { verify: 1 }, run: verifyBmcClock },
];
