/** Hardware that is not there: every interface succeeds, after `[fake]…_delay`. For trying clients, and for tests of the flows. */
import { Fault } from '../model/errors';
import {
  type BootInterface,
  type DeployInterface,
  type DriverOptions,
  type InspectInterface,
  type Interface,
  type ManagementInterface,
  type Power,
  type PowerInterface,
  type Task,
  done,
} from './interfaces';

type DelayOption = Extract<keyof DriverOptions, `fake.${string}`>;

/** Milliseconds of `N` or `N,M` seconds. `spread` (any integer ≥ 0) picks a value of the range. Throws InvalidParameterValue. */
export function delayOf(text: string, spread: number): number {
  const match = /^\s*(\d+)\s*(?:,\s*(\d+)\s*)?$/.exec(text);
  if (!match) throw new Fault('InvalidParameterValue', { message: `A fake delay is N or N,M seconds, not "${text}".` });
  const from = Number(match[1]) * 1000;
  const to = Math.max(from, Number(match[2] ?? match[1]) * 1000);
  return from + (spread % (to - from + 1));
}

/** What every operation does: wait as long as the option says. The clock's own milliseconds spread the waits of a range. */
const pause =
  (option: DelayOption) =>
  async (task: Task): Promise<void> => {
    const text = task.options[option];
    if (text === '' || text === '0') return;
    await task.clock.sleep(delayOf(text, task.clock.now()), task.signal);
  };
const booting = pause('fake.boot_delay');
const deploying = pause('fake.deploy_delay');
const managing = pause('fake.management_delay');
const powering = pause('fake.power_delay');

/** The state after each order. Nothing but the node's row remembers it, so that any conductor sees the same machine. */
const AFTER: Readonly<Record<Power, 'power on' | 'power off'>> = {
  'power on': 'power on',
  'power off': 'power off',
  rebooting: 'power on',
  'soft power off': 'power off',
  'soft rebooting': 'power on',
};

export const fakePower: PowerInterface = {
  supported: Object.keys(AFTER) as Power[],
  get: async (task) => {
    await powering(task);
    const state = task.node.power_state;
    return state === 'error' ? null : state;
  },
  set: async (task, state) => {
    await powering(task);
    await task.save({ power_state: AFTER[state] });
  },
};

export const fakeManagement: ManagementInterface = {
  bootDevices: ['pxe'],
  getBootDevice: async (task) => {
    await managing(task);
    return { device: 'pxe', persistent: false };
  },
  setBootDevice: async (task, device) => {
    await managing(task);
    if (device !== 'pxe') throw new Fault('InvalidParameterValue', { message: `Invalid boot device ${device} specified.` });
  },
};

export const fakeBoot: BootInterface = {
  prepareRamdisk: booting,
  cleanUpRamdisk: booting,
  prepareInstance: booting,
  cleanUpInstance: booting,
};

const succeed = async (task: Task) => {
  await deploying(task);
  return done;
};
export const fakeDeploy: DeployInterface = {
  steps: [{ step: 'deploy', priority: { deploy: 100 }, resumable: true, run: succeed }],
  prepare: deploying,
  cleanUp: deploying,
  tearDown: succeed,
  prepareCleaning: async () => done,
  tearDownCleaning: async () => {},
};

const inspecting = pause('fake.inspect_delay');
export const fakeInspect: InspectInterface = {
  inspect: async (task) => {
    await inspecting(task);
    return done;
  },
};

const vending = pause('fake.vendor_delay');
export const fakeVendor: Interface = {
  properties: {
    B1: { description: 'An example of a setting that is needed. Required.' },
    B2: { description: 'Another example of a setting that is needed. Required.' },
  },
  steps: [
    {
      step: 'log_passthrough',
      priority: { clean: 1, service: 0 },
      requiresRamdisk: false,
      resumable: true,
      run: async (task, args) => {
        task.log.debug('Fake vendor step', { args });
        await vending(task);
        return done;
      },
    },
  ],
};

/** bios, console, firmware, raid, rescue, storage: valid, and without steps. */
export const fakeInterface: Interface = {};
