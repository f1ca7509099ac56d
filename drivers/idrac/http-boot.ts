/** UEFI HTTP boot of Dell machines, which need a setting of the BIOS for it where the standard's boot device is not offered. */
import { member, readLinked } from '../../wire/redfish';
import type { ManagementInterface } from '../interfaces';
import { setBootDevice as setDevice } from '../redfish/boot-settings';
import type { SystemView } from '../redfish/target';
import { withHint } from './hints';

/** The firmware has a boot option for HTTP only while this is Enabled. */
const DEVICE = 'HttpDev1EnDis';
const HINT = `the BIOS setting ${DEVICE} is Disabled: bios.apply_configuration can set it to Enabled, and HttpDev1Interface to the name of the network card`;
async function switchedOff(system: SystemView): Promise<string | undefined> {
  const bios = await readLinked(system.ask, system, 'Bios');
  return member(bios?.body, 'Attributes', DEVICE) === 'Disabled' ? HINT : undefined;
}
/** As Redfish's. An error tells which setting gives the machine a boot option for HTTP: it takes a restart, which nobody has asked for here. */
export const setBootDevice: ManagementInterface['setBootDevice'] = (task, device, persistent) => {
  const set = (): Promise<void> => setDevice(task, device, persistent);
  return device === 'uefihttp' ? withHint(task, set, switchedOff) : set();
};
