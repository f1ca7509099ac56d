/** The interfaces `noop` of deploy, management, network and storage, which do nothing. */
import { Fault } from '../model/errors';
import { type DeployInterface, type ManagementInterface, type NetworkInterface, type StorageInterface, done } from './interfaces';

const nothing = async (): Promise<void> => {};

/** All machines share one network. */
export const noopNetwork: NetworkInterface = {
  sharesNetwork: true,
  addProvisioningNetwork: nothing,
  removeProvisioningNetwork: nothing,
  addCleaningNetwork: nothing,
  removeCleaningNetwork: nothing,
  addInspectionNetwork: nothing,
  removeInspectionNetwork: nothing,
  addRescuingNetwork: nothing,
  removeRescuingNetwork: nothing,
  addServicingNetwork: nothing,
  removeServicingNetwork: nothing,
  configureTenantNetworks: nothing,
  unconfigureTenantNetworks: nothing,
  // Any VIF is accepted, and none is stored.
  vifList: async () => [],
  vifAttach: nothing,
  vifDetach: nothing,
  currentVif: () => undefined,
};

const finished = async () => done;
/** The machine already has its operating system. */
export const noopDeploy: DeployInterface = {
  steps: [{ step: 'deploy', priority: { deploy: 100 }, resumable: true, run: finished }],
  tearDown: finished,
  prepareCleaning: finished,
  tearDownCleaning: nothing,
};

/** The machine boots by its own settings: network first, then disk. */
export const noopManagement: ManagementInterface = {
  bootDevices: ['pxe', 'disk'],
  getBootDevice: async () => ({ device: 'pxe', persistent: true }),
  setBootDevice: async (_task, device) => {
    const supported = noopManagement.bootDevices;
    if (!supported.includes(device)) {
      throw new Fault('InvalidParameterValue', {
        message: `Invalid boot device ${device} specified, supported are ${supported.join(', ')}.`,
      });
    }
  },
};

/** Local disks need no attaching. */
export const noopStorage: StorageInterface = { shouldWriteImage: async () => true };
