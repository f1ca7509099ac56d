/** Hardware that does not exist: every interface succeeds, after `[fake]…_delay`. For trying clients, and for tests of the flows. */
import { Fault } from '../../model/errors';
import { pause } from './delay';
import {
  type BootInterface,
  type ConsoleInterface,
  type DeployInterface,
  type IndicatorTable,
  type InspectInterface,
  type ManagementInterface,
  type PowerInterface,
  type RaidInterface,
  type RescueInterface,
  type StorageInterface,
  type Task,
  done,
} from '../interfaces';

const booting = pause('fake.boot_delay');
const deploying = pause('fake.deploy_delay');
const managing = pause('fake.management_delay');
const powering = pause('fake.power_delay');

/** The machine of a fake power interface. */
interface FakeMachine {
  /** Null: the power was never set. */
  get(task: Task): 'power on' | 'power off' | null;
  set(task: Task, state: 'power on' | 'power off'): Promise<void>;
}
/** @internal Tests have machines of their own. */
export function fakePowerOf(machine: FakeMachine) {
  const becoming = (state: 'power on' | 'power off') => async (task: Task) => {
    await powering(task);
    await machine.set(task, state);
  };
  return {
    rebootsByReset: true,
    get: async (task) => {
      await powering(task);
      return machine.get(task);
    },
    on: becoming('power on'),
    off: becoming('power off'),
    softOff: becoming('power off'),
    reset: becoming('power on'),
    softReset: async (task) => {
      await becoming('power on')(task);
      return true;
    },
  } satisfies PowerInterface;
}
/** The state is stored only in the node's row, so that every conductor sees the same machine. */
export const fakePower: PowerInterface = fakePowerOf({
  get: ({ node: { power_state: state } }) => (state === 'error' ? null : state),
  set: (task, state) => task.save({ power_state: state }),
});

const LAMPS: IndicatorTable = {
  chassis: { 'led-0': { readonly: true, states: ['off', 'on'] } },
  system: { led: { readonly: false, states: ['blinking', 'off', 'on'] } },
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
  sensors: async (task) => {
    await managing(task);
    return {};
  },
  indicators: {
    supported: async (task) => {
      await managing(task);
      return LAMPS;
    },
    get: async (task, component, indicator) => {
      await managing(task);
      const named = Object.hasOwn(LAMPS, component) ? LAMPS[component]! : undefined;
      if (!named) throw new Fault('InvalidParameterValue', { message: `Invalid component ${component} specified.` });
      if (!Object.hasOwn(named, indicator))
        throw new Fault('InvalidParameterValue', { message: `Invalid indicator ${indicator} specified.` });
      return 'on';
    },
  },
};

export const fakeBoot: BootInterface = {
  bootsFromNetwork: true,
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

const consoleOff = async (): Promise<void> => {};
export const fakeConsole: ConsoleInterface = { start: consoleOff, stop: consoleOff, get: async () => ({}) };

/** Accepts any configuration and ignores it. */
export const fakeRaid: RaidInterface = {};

export const fakeStorage: StorageInterface = { shouldWriteImage: async () => true };

const rescuing = pause('fake.rescue_delay');
const rescued = async (task: Task) => {
  await rescuing(task);
  return done;
};
export const fakeRescue: RescueInterface = { rescue: rescued, unrescue: rescued };
