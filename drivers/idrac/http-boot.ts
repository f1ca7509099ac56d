/** UEFI HTTP boot of Dell machines, which need a setting of the BIOS for it where the standard's boot device is not offered. */
import { Fault } from '../../model/errors';
import { RedfishError, member, readLinked } from '../../wire/redfish';
import type { ManagementInterface, Task } from '../interfaces';
import { setBootDevice as setDevice } from '../redfish/boot-settings';
import { systemOf } from '../redfish/target';

/** The firmware has a boot option for HTTP only while this is Enabled. */
const DEVICE = 'HttpDev1EnDis';
async function isSwitchedOff(task: Task): Promise<boolean> {
  const system = await systemOf(task);
  const bios = await readLinked(system.ask, system, 'Bios');
  return member(bios?.body, 'Attributes', DEVICE) === 'Disabled';
}
/** As Redfish's. An error tells which setting gives the machine a boot option for HTTP: it takes a restart, which nobody has asked for here. */
export const setBootDevice: ManagementInterface['setBootDevice'] = async (task, device, persistent) => {
  try {
    await setDevice(task, device, persistent);
  } catch (error) {
    task.signal.throwIfAborted();
    if (device !== 'uefihttp' || !(error instanceof Fault) || error.name !== 'DriverOperationError') throw error;
    const off = await isSwitchedOff(task).catch((reading: unknown) => {
      task.signal.throwIfAborted();
      if (!(reading instanceof RedfishError || reading instanceof Fault)) throw reading;
      return false;
    });
    if (!off) throw error;
    const message = `${error.message} (the BIOS setting ${DEVICE} is Disabled: bios.apply_configuration can set it to Enabled, and HttpDev1Interface to the name of the network card)`;
    throw new Fault('DriverOperationError', { message }, { cause: error });
  }
};
