/** Power of machines with an IPMI 2.0 BMC, under Ironic's name for it: `ipmitool`. */
import { isIP } from 'node:net';
import { Fault } from '../../model/errors';
import { COMMANDS } from '../../wire/ipmi/constants';
import type { PowerInterface } from '../interfaces';
import { repeatBootDevice } from './management';
import { IPMI_PROPERTIES, chassisControl, ipmiCommand, ipmiTarget } from './target';

/** A host name (RFC 1123 §2.1): labels of letters, digits and inner hyphens, 63 characters at most each. */
const HOST_NAME = /^(?=.{1,254}$)(?!-)[a-z0-9-]{1,63}(?<!-)(?:\.(?!-)[a-z0-9-]{1,63}(?<!-))*\.?$/i;

export const ipmiPower: PowerInterface = {
  properties: IPMI_PROPERTIES,
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
  on: async (task) => {
    await repeatBootDevice(task);
    await chassisControl(task, 'on');
  },
  off: (task) => chassisControl(task, 'off'),
  softOff: (task) => chassisControl(task, 'soft'),
  reset: async (task) => {
    await repeatBootDevice(task);
    await chassisControl(task, 'reset');
  },
  softReset: async ({ node }, mustStayOn) => {
    if (!mustStayOn) return false;
    throw new Fault('DriverOperationError', {
      message: `Node ${node.uuid} cannot be rebooted softly: IPMI has no soft reboot without a power off, which disable_power_off forbids`,
    });
  },
};
