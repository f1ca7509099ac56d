/** The management interface of machines with a Redfish service, assembled from its parts. */
import { RedfishError, isStatus, linkedCollection, member, readResource, rootPath, textOf } from '../../../wire/redfish';
import type { ManagementInterface, Task } from '../../interfaces';
import { BOOT_DEVICES, bootMode, getBootDevice, setBootDevice } from '../boot-settings';
import { CLOCK_STEPS } from '../clock';
import { forgetFailedUpdates, updateFirmware } from './firmware-images';
import { configureNetworkAdapters, networkPorts } from './network-adapters';
import { redfishIndicators } from '../indicators';
import { vendorName } from '../makers';
import { reset } from '../power';
import { SECURE_BOOT_STEPS, secureBoot } from '../secure-boot';
import { redfishMedia } from '../virtual-media';
import { redfishEvents } from '../events';
import { redfishLogs } from '../logs';
import { redfishSensors } from '../sensors';
import { REDFISH_PROPERTIES, onSystem, redfishSystem } from '../target';

/** Undefined: the service does not tell who made it. */
const detectVendor = (task: Task): Promise<string | undefined> =>
  onSystem(task, undefined, async ({ ask, target, body }) => {
    const root = await readResource(ask, rootPath(target)).catch((error: unknown) => {
      if (isStatus(error)) return undefined;
      throw error;
    });
    return vendorName(root?.body, body);
  });

const macAddresses = (task: Task): Promise<readonly string[]> =>
  onSystem(task, undefined, async (system) => {
    const interfaces = await linkedCollection(system.ask, system, 'EthernetInterfaces').catch((error: unknown) => {
      if (!(error instanceof RedfishError)) throw error;
      // In Ironic's words.
      const what = `Failed to get network interface information on node ${task.node.uuid}: ${error.message}`;
      throw new RedfishError('protocol', `Redfish exception occurred. Error: ${what}`, { cause: error });
    });
    return (interfaces ?? []).flatMap(({ body }) => {
      const address = textOf(member(body, 'MACAddress'));
      const [state, health] = ['State', 'Health'].map((name) => member(body, 'Status', name));
      return address !== undefined && state === 'Enabled' && health === 'OK' ? [address.toLowerCase()] : [];
    });
  });

export const redfishManagement: ManagementInterface = {
  properties: REDFISH_PROPERTIES,
  bootDevices: BOOT_DEVICES,
  validate: async (task) => {
    await redfishSystem(task);
  },
  steps: [...SECURE_BOOT_STEPS, ...CLOCK_STEPS, updateFirmware, configureNetworkAdapters],
  periodics: [forgetFailedUpdates],
  sensors: redfishSensors,
  events: redfishEvents,
  logs: redfishLogs,
  injectNmi: (task) => onSystem(task, 'Redfish inject NMI', (system) => reset(task, system, 'nmi')),
  getBootDevice,
  setBootDevice,
  bootMode,
  secureBoot,
  indicators: redfishIndicators,
  virtualMedia: redfishMedia,
  detectVendor,
  macAddresses,
  networkPorts,
};
