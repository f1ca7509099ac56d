/** Interfaces that do nothing and say so: the network that needs no switching, the boot order that an operator set, local disks. */
import { Fault } from '../../model/errors';
import { type DeployInterface, type ManagementInterface, type NetworkInterface, type StorageInterface, done } from '../interfaces';

const nothing = async (): Promise<void> => {};

/** All machines share one network, which nobody switches. */
export const noopNetwork: NetworkInterface = {
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
  // Any VIF is welcome, and none is kept.
  vifList: async () => [],
  vifAttach: nothing,
  vifDetach: nothing,
  currentVif: () => undefined,
};

const finished = async () => done;
/** The machine has its system already, and keeps it. */
export const noopDeploy: DeployInterface = {
  steps: [{ step: 'deploy', priority: { deploy: 100 }, resumable: true, run: finished }],
  tearDown: finished,
  prepareCleaning: finished,
  tearDownCleaning: nothing,
};

/** The machine tries the network first and its disk then, by its own settings. */
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

/** The machine's own disks, which need no attaching. */
export const noopStorage: StorageInterface = { shouldWriteImage: async () => true };
