/** Power and boot device of machines with an IPMI 2.0 BMC, under Ironic's name for it: `ipmitool`. */
import { isIP } from 'node:net';
import { Fault } from '../../model/errors';
import { BOOT_DEVICE, BOOT_FLAG, BOOT_PARAMETER, CHASSIS_CONTROL, COMMANDS, KEEP_WITHOUT_CHASSIS_CONTROL } from '../../wire/ipmi/constants';
import { manufacturerOf } from '../../wire/ipmi/records/manufacturers';
import { bootModeOf } from '../common/boot-settings';
import type { ManagementInterface, Power, PowerInterface, Task } from '../interfaces';
import { IPMI_PROPERTIES, flagOf, ipmiCommand, ipmiTarget } from './target';
import { ipmiSensors } from './sensors';
import { waitUntilOff } from '../common/power-cycle';

/** A host name (RFC 1123 §2.1): labels of letters, digits and inner hyphens, 63 characters at most each. */
const HOST_NAME = /^(?=.{1,254}$)(?!-)[a-z0-9-]{1,63}(?<!-)(?:\.(?!-)[a-z0-9-]{1,63}(?<!-))*\.?$/i;

/** Names of the Chassis Control actions in errors. */
const CONTROL_NAMES = { on: 'power on', off: 'power off', soft: 'power soft', reset: 'power reset', diagnostic: 'power diag' } as const;
const control = async (task: Task, action: keyof typeof CONTROL_NAMES): Promise<void> => {
  await ipmiCommand(task, CONTROL_NAMES[action], COMMANDS.chassisControl, CHASSIS_CONTROL[action]);
};

/** For BMCs that forget the boot device: sets it again before the machine starts, if the node requires that. */
async function repeatBootDevice(task: Task): Promise<void> {
  if (!flagOf(task.node, 'ipmi_force_boot_device', false)) return;
  const { persistent_boot_device: device, is_next_boot_persistent: persistent } = task.node.driver_internal_info;
  // A device for one boot was just set. The persistent one is set again before the next boot.
  if (persistent === false) await task.saveInternal({ is_next_boot_persistent: undefined });
  else if (typeof device === 'string') await ipmiManagement.setBootDevice(task, device, true);
}

export const ipmiPower: PowerInterface = {
  properties: IPMI_PROPERTIES,
  supported: ['power on', 'power off', 'rebooting', 'soft rebooting', 'soft power off'],
  validate: async ({ node }) => {
    const { address } = ipmiTarget(node);
    if (isIP(address) === 0 && !HOST_NAME.test(address))
      throw new Fault('InvalidParameterValue', {
        message: `Invalid IPMI address "${address}" for node ${node.uuid}. Must be a valid IP address or hostname.`,
      });
  },
  get: async (task) => {
    const status = await ipmiCommand(task, 'power status', COMMANDS.getChassisStatus);
    if (status.length < 1) throw new Fault('DriverOperationError', { message: 'IPMI call failed: power status. Reason: an empty answer' });
    return status[0]! & 0x01 ? 'power on' : 'power off';
  },
  set: async (task, state, timeoutSeconds) => {
    const limit = timeoutSeconds ?? task.options['conductor.power_state_change_timeout'];
    const softLimit = timeoutSeconds ?? task.options['conductor.soft_power_off_timeout'];
    const start = async (): Promise<void> => {
      await repeatBootDevice(task);
      await control(task, 'on');
    };
    const orders: Readonly<Record<Power, () => Promise<void>>> = {
      'power on': start,
      'power off': () => control(task, 'off'),
      'soft power off': () => control(task, 'soft'),
      rebooting: async () => {
        if (task.node.disable_power_off) {
          await repeatBootDevice(task);
          return control(task, 'reset');
        }
        await control(task, 'off');
        await waitUntilOff(task, limit);
        return start();
      },
      'soft rebooting': async () => {
        if (task.node.disable_power_off)
          throw new Fault('DriverOperationError', {
            message: `Node ${task.node.uuid} cannot be rebooted softly: IPMI has no soft reboot without a power off, which disable_power_off forbids`,
          });
        await control(task, 'soft');
        await waitUntilOff(task, softLimit);
        return start();
      },
    };
    await orders[state]();
  },
};

/** Name in the API → device selector of the boot flags (table 28-14). */
const DEVICES = {
  pxe: BOOT_DEVICE.pxe,
  disk: BOOT_DEVICE.disk,
  cdrom: BOOT_DEVICE.cdrom,
  bios: BOOT_DEVICE.bios,
  safe: BOOT_DEVICE.safe,
} as const;
const isDevice = (name: string): name is keyof typeof DEVICES => Object.hasOwn(DEVICES, name);

/** Supermicro's BMCs in UEFI mode boot from the disk only with the selector 1001b, primary remote media (as in Ironic). */
const selectorOf = (task: Task, device: keyof typeof DEVICES, uefi: boolean): number => {
  const vendor = task.node.properties['vendor'];
  const supermicro = typeof vendor === 'string' && /^super ?micro/i.test(vendor);
  return supermicro && uefi && device === 'disk' ? 0x09 : DEVICES[device];
};

export const ipmiManagement: ManagementInterface = {
  properties: IPMI_PROPERTIES,
  bootDevices: Object.keys(DEVICES),
  validate: async ({ node }) => {
    ipmiTarget(node);
  },
  detectVendor: async (task) => manufacturerOf(await ipmiCommand(task, 'mc info', COMMANDS.getDeviceId))?.toLowerCase(),
  sensors: ipmiSensors,
  injectNmi: (task) => control(task, 'diagnostic'),
  getBootDevice: async (task) => {
    const { persistent_boot_device: stored, is_next_boot_persistent: next } = task.node.driver_internal_info;
    if (flagOf(task.node, 'ipmi_force_boot_device', false) && typeof stored === 'string' && next !== false)
      return { device: stored, persistent: true };
    const answer = await ipmiCommand(task, 'chassis bootparam get 5', COMMANDS.getSystemBootOptions, BOOT_PARAMETER.flags, 0, 0);
    const [flags = 0, selector = 0] = answer.subarray(2);
    const device = Object.entries(DEVICES).find(([, number]) => number === ((selector >> 2) & 0x0f))?.[0] ?? null;
    return { device, persistent: (flags & BOOT_FLAG.persistent) !== 0 };
  },
  setBootDevice: async (task, device, persistent) => {
    if (!isDevice(device)) throw new Fault('InvalidParameterValue', { message: `Invalid boot device ${device} specified.` });
    const force = flagOf(task.node, 'ipmi_force_boot_device', false);
    if (force)
      await task.saveInternal(
        persistent ? { persistent_boot_device: device, is_next_boot_persistent: undefined } : { is_next_boot_persistent: false },
      );
    if (flagOf(task.node, 'ipmi_disable_boot_timeout', task.options['ipmi.disable_boot_timeout']))
      await ipmiCommand(
        task,
        'raw 0x00 0x08 0x03 0x08',
        COMMANDS.setSystemBootOptions,
        BOOT_PARAMETER.validBitClearing,
        KEEP_WITHOUT_CHASSIS_CONTROL,
      );
    const uefi = bootModeOf(task) === 'uefi';
    // With ipmi_force_boot_device each start sets the device again, so the BMC need not remember it.
    const flags = BOOT_FLAG.valid | (persistent && !force ? BOOT_FLAG.persistent : 0) | (uefi ? BOOT_FLAG.uefi : 0);
    const selector = selectorOf(task, device, uefi) << 2;
    await ipmiCommand(task, `chassis bootdev ${device}`, COMMANDS.setSystemBootOptions, BOOT_PARAMETER.flags, flags, selector, 0, 0, 0);
  },
};
