/** Boot device of machines with an IPMI 2.0 BMC, under Ironic's name for it: `ipmitool`. */
import { Fault } from '../../model/errors';
import { BOOT_DEVICE, BOOT_FLAG, BOOT_PARAMETER, COMMANDS, KEEP_WITHOUT_CHASSIS_CONTROL } from '../../wire/ipmi/constants';
import { manufacturerOf } from '../../wire/ipmi/records/manufacturers';
import { bootModeOf } from '../common/boot-settings';
import type { ManagementInterface, Task } from '../interfaces';
import { ipmiLogs } from './logs';
import { IPMI_PROPERTIES, chassisControl, flagOf, ipmiCommand, ipmiTarget } from './target';
import { ipmiSensors } from './sensors';

/** For BMCs that forget the boot device: sets it again before the machine starts, if the node requires that. */
export async function repeatBootDevice(task: Task): Promise<void> {
  if (!flagOf(task.node, 'ipmi_force_boot_device', false)) return;
  const { persistent_boot_device: device, is_next_boot_persistent: persistent } = task.node.driver_internal_info;
  // A device for one boot was just set. The persistent one is set again before the next boot.
  if (persistent === false) await task.saveInternal({ is_next_boot_persistent: undefined });
  else if (typeof device === 'string') await ipmiManagement.setBootDevice(task, device, true);
}

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
  logs: ipmiLogs,
  injectNmi: (task) => chassisControl(task, 'diagnostic'),
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
