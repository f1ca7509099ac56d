/** Power, boot device and boot mode of machines with a Redfish service (DSP0266, schema ComputerSystem). */
import { Fault } from '../model/errors';
import { RedfishError, actionOf, isStatus, member, patchResource } from '../wire/redfish';
import type { ManagementInterface, Power, PowerInterface, Task } from './interfaces';
import { untilOff } from './power-cycle';
import { REDFISH_PROPERTIES, onSystem, redfishSystem, type SystemView } from './redfish-target';

const validate = async (task: Task): Promise<void> => {
  await redfishSystem(task);
};
/** PowerState → ours. A machine on its way counts as there, as clients of Ironic see it. */
const POWER_STATES: Readonly<Record<string, 'power on' | 'power off'>> = {
  On: 'power on',
  PoweringOn: 'power on',
  Off: 'power off',
  PoweringOff: 'power off',
};
/** ResetType for each order, the best first; a service may offer only some. */
const RESET_TYPES = {
  on: ['On', 'ForceOn'],
  off: ['ForceOff'],
  soft: ['GracefulShutdown'],
  restart: ['ForceRestart', 'PowerCycle'],
  softRestart: ['GracefulRestart'],
  nmi: ['Nmi'],
} as const;

/** A service that is busy with the machine (power on during the end of power off, boot settings during POST) says so with these. */
const BUSY: readonly number[] = [409, 503];
async function patiently(task: Task, tries: number, seconds: number, work: () => Promise<unknown>): Promise<void> {
  for (let n = 1; ; n++) {
    try {
      await work();
      return;
    } catch (error) {
      if (!isStatus(error, ...BUSY) || n >= tries) throw error;
      await task.clock.sleep(seconds * 1000, task.signal);
    }
  }
}

async function reset(task: Task, system: SystemView, order: keyof typeof RESET_TYPES): Promise<void> {
  const { ask, path } = system;
  const action = actionOf(system, '#ComputerSystem.Reset');
  const allowed = action?.allowed('ResetType');
  const types: readonly string[] = RESET_TYPES[order];
  const type = allowed ? types.find((one) => allowed.includes(one)) : types[0];
  if (type === undefined) throw new RedfishError('protocol', `${path} does not offer the reset type ${types.join(' or ')}`);
  const place = action?.target ?? `${path}/Actions/ComputerSystem.Reset`;
  const send = (): Promise<unknown> => ask('POST', place, { body: { ResetType: type } });
  await (order === 'on' ? patiently(task, 6, 10, send) : send());
}

export const redfishPower: PowerInterface = {
  properties: REDFISH_PROPERTIES,
  supported: ['power on', 'power off', 'rebooting', 'soft rebooting', 'soft power off'],
  validate,
  get: (task) =>
    onSystem(task, undefined, async ({ body, path }) => {
      const state = member(body, 'PowerState');
      const known = typeof state === 'string' && Object.hasOwn(POWER_STATES, state) ? POWER_STATES[state] : undefined;
      if (!known) throw new RedfishError('protocol', `${path} gives no power state`);
      return known;
    }),
  set: async (task, state, timeoutSeconds) => {
    const limit = timeoutSeconds ?? task.options['conductor.power_state_change_timeout'];
    const order = (name: keyof typeof RESET_TYPES): Promise<void> => onSystem(task, undefined, (system) => reset(task, system, name));
    const start = async (): Promise<void> => {
      await repeatBootDevice(task);
      await order('on');
    };
    const orders: Readonly<Record<Power, () => Promise<void>>> = {
      'power on': start,
      'power off': () => order('off'),
      'soft power off': () => order('soft'),
      rebooting: async () => {
        if (task.node.disable_power_off) {
          await repeatBootDevice(task);
          return order('restart');
        }
        await order('off');
        await untilOff(task, limit);
        return start();
      },
      'soft rebooting': async () => {
        await repeatBootDevice(task);
        return order('softRestart');
      },
    };
    await orders[state]();
  },
};

/** Name in the API → BootSourceOverrideTarget. */
const DEVICES: Readonly<Record<string, string>> = { pxe: 'Pxe', disk: 'Hdd', cdrom: 'Cd', bios: 'BiosSetup', uefihttp: 'UefiHttp' };
const PERSISTENCE: Readonly<Record<string, boolean>> = { Once: false, Continuous: true };
const MODES: Readonly<Record<string, 'bios' | 'uefi'>> = { UEFI: 'uefi', Legacy: 'bios' };
const lookUp = <T>(table: Readonly<Record<string, T>>, key: unknown): T | null =>
  typeof key === 'string' && Object.hasOwn(table, key) ? table[key]! : null;

async function writeBoot(task: Task, system: SystemView, device: string, enabled: 'Once' | 'Continuous'): Promise<void> {
  const allowed = member(system.body, 'Boot', 'BootSourceOverrideTarget@Redfish.AllowableValues');
  const target = DEVICES[device]!;
  if (Array.isArray(allowed) && !allowed.includes(target))
    throw new RedfishError('protocol', `the system can boot from ${allowed.join(', ').slice(0, 500)} only, not from ${target}`);
  // Some services refuse an Enabled that it already has.
  const unchanged = enabled === 'Continuous' && member(system.body, 'Boot', 'BootSourceOverrideEnabled') === enabled;
  const boot = { BootSourceOverrideTarget: target, ...(unchanged ? {} : { BootSourceOverrideEnabled: enabled }) };
  await patiently(task, 6, 5, () => patchResource(system.ask, system, { Boot: boot }));
}

const SETTING = 'Redfish set boot device';
/** For services that refuse Continuous: a lasting boot device is said again, for one boot, before each start. */
async function repeatBootDevice(task: Task): Promise<void> {
  const device = task.node.driver_internal_info['redfish_boot_device'];
  if (typeof device !== 'string' || !Object.hasOwn(DEVICES, device)) return;
  await onSystem(task, SETTING, (system) => writeBoot(task, system, device, 'Once'));
}

export const redfishManagement: ManagementInterface = {
  properties: REDFISH_PROPERTIES,
  bootDevices: Object.keys(DEVICES),
  validate,
  injectNmi: (task) => onSystem(task, 'Redfish inject NMI', (system) => reset(task, system, 'nmi')),
  getBootDevice: (task) =>
    onSystem(task, undefined, async ({ body }) => {
      const target = member(body, 'Boot', 'BootSourceOverrideTarget');
      return {
        device: Object.entries(DEVICES).find(([, name]) => name === target)?.[0] ?? null,
        persistent: lookUp(PERSISTENCE, member(body, 'Boot', 'BootSourceOverrideEnabled')),
      };
    }),
  setBootDevice: async (task, device, persistent) => {
    if (!Object.hasOwn(DEVICES, device)) throw new Fault('InvalidParameterValue', { message: `Invalid boot device ${device} specified.` });
    let repeated: string | undefined;
    await onSystem(task, SETTING, async (system) => {
      try {
        await writeBoot(task, system, device, persistent ? 'Continuous' : 'Once');
      } catch (error) {
        if (!persistent || !isStatus(error, 400)) throw error;
        await writeBoot(task, system, device, 'Once');
        repeated = device;
      }
    });
    // Whatever was said last counts: a device for one boot ends the repetition of an earlier one.
    if (repeated !== task.node.driver_internal_info['redfish_boot_device']) await task.saveInternal({ redfish_boot_device: repeated });
  },
  bootMode: {
    get: (task) => onSystem(task, undefined, async ({ body }) => lookUp(MODES, member(body, 'Boot', 'BootSourceOverrideMode'))),
    set: (task, mode) =>
      onSystem(task, 'Setting boot mode to ' + mode, async (system) => {
        await patchResource(system.ask, system, { Boot: { BootSourceOverrideMode: mode === 'uefi' ? 'UEFI' : 'Legacy' } });
      }),
  },
};
