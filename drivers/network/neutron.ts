/** The network interfaces `flat` and `neutron`: VIFs are Neutron ports. `neutron` also moves machines' switch ports between networks. */
import type { Options } from '../../config/options';
import { Fault } from '../../model/errors';
import { setBootDevice } from '../common/boot-settings';
import type { NetworkInterface, Property, Step, Task } from '../interfaces';
import { hostNameOf, waitForAgent } from './binding';
import { neutronVifs } from './neutron-vifs';
import { addTemporaryNetwork, findTemporaryNetwork, removeTemporaryNetwork, type TemporaryNetwork } from './temporary-networks';
import { bindFlat, configureTenantNetworks, unbindFlat, unconfigureTenantNetworks } from './tenant-networks';

const networkProperty = (purpose: string): Property => ({
  description: `UUID or name of the Neutron network for ${purpose}, instead of that of the configuration. Optional.`,
});
const properties: Readonly<Record<string, Property>> = {
  cleaning_network: networkProperty('cleaning'),
  provisioning_network: networkProperty('deployment'),
  rescuing_network: networkProperty('rescue'),
  inspection_network: networkProperty('inspection'),
  servicing_network: networkProperty('servicing'),
  fail_on_binding_failure: {
    description:
      'Whether a Neutron port that cannot be bound fails the operation. Default: [neutron]fail_on_port_binding_failure for the network interface neutron, otherwise false; true for Smart NICs. Optional.',
  },
};

/** A Smart NIC's agent configures it, and runs only while the machine is on. A machine that is off starts its firmware setup meanwhile. */
async function withSmartNicsOn(task: Task, work: () => Promise<void>): Promise<void> {
  const [smart] = task.ports.filter((port) => port.is_smartnic);
  if (!smart || (await task.driver.power.get(task)) !== 'power off') return work();
  await setBootDevice(task, 'bios', false);
  await task.power('power on');
  await waitForAgent(task, hostNameOf(smart), 'down');
  await work();
  await task.clock.sleep(task.options['agent.neutron_agent_poll_interval'] * 2000, task.signal);
  await task.power('power off');
}

const groupsOf = (task: Task, network: TemporaryNetwork): readonly string[] => task.options[`neutron.${network}_network_security_groups`];
type Work = (task: Task) => Promise<void>;
const switching =
  (work: Work): Work =>
  (task) =>
    withSmartNicsOn(task, () => work(task));
const adding = (network: TemporaryNetwork): Work => switching((task) => addTemporaryNetwork(task, network, groupsOf(task, network)));
const removing = (network: TemporaryNetwork): Work => switching((task) => removeTemporaryNetwork(task, network));

/** Without an inspection network, the inspection is unmanaged: somebody else boots the ramdisk. */
async function validateInspection(task: Task): Promise<void> {
  try {
    await findTemporaryNetwork(task, 'inspection');
  } catch (error) {
    if (!(error instanceof Fault) || error.name !== 'MissingParameterValue') throw error;
    throw new Fault('Invalid', { message: `Insufficient information provided for managed inspection: ${error.message}` }, { cause: error });
  }
}

/** Reconnects a running instance. */
const reattachNetworking: Step = {
  step: 'reattach_networking',
  priority: { service: 0 },
  requiresRamdisk: false,
  resumable: true,
  run: async (task) => {
    await switching(unconfigureTenantNetworks)(task);
    await switching(configureTenantNetworks)(task);
    return { kind: 'done' };
  },
};

const hasService = (options: Options): boolean =>
  [options['neutron.auth_type'], options['neutron.auth_section'], options['neutron.endpoint_override']].some((value) => value !== null);

export const neutronNetwork: NetworkInterface = {
  ...neutronVifs,
  hasService,
  properties,
  validate: async (task) => {
    await findTemporaryNetwork(task, 'cleaning');
    await findTemporaryNetwork(task, 'provisioning');
    if (task.node.disable_power_off && !task.options['neutron.allow_disabling_power_off'])
      throw new Fault('InvalidParameterValue', {
        message: 'Nodes with disable_power_off cannot be used with the neutron network interface (disallowed in the configuration)',
      });
  },
  validateInspection,
  validateRescue: async (task) => void (await findTemporaryNetwork(task, 'rescuing')),
  steps: [reattachNetworking],
  addProvisioningNetwork: adding('provisioning'),
  removeProvisioningNetwork: removing('provisioning'),
  addCleaningNetwork: adding('cleaning'),
  removeCleaningNetwork: removing('cleaning'),
  addInspectionNetwork: adding('inspection'),
  removeInspectionNetwork: removing('inspection'),
  addRescuingNetwork: adding('rescuing'),
  removeRescuingNetwork: removing('rescuing'),
  addServicingNetwork: adding('servicing'),
  removeServicingNetwork: removing('servicing'),
  configureTenantNetworks: switching(configureTenantNetworks),
  unconfigureTenantNetworks: switching(unconfigureTenantNetworks),
};

const addingFlat =
  (network: TemporaryNetwork): Work =>
  (task) =>
    addTemporaryNetwork(task, network, []);
const removingFlat =
  (network: TemporaryNetwork): Work =>
  (task) =>
    removeTemporaryNetwork(task, network);

export const flatNetwork: NetworkInterface = {
  ...neutronVifs,
  sharesNetwork: true,
  hasService,
  properties,
  validate: async (task) => void (await findTemporaryNetwork(task, 'cleaning')),
  validateInspection,
  addProvisioningNetwork: bindFlat,
  removeProvisioningNetwork: unbindFlat,
  addCleaningNetwork: addingFlat('cleaning'),
  removeCleaningNetwork: removingFlat('cleaning'),
  addInspectionNetwork: addingFlat('inspection'),
  removeInspectionNetwork: removingFlat('inspection'),
  addRescuingNetwork: bindFlat,
  removeRescuingNetwork: unbindFlat,
  addServicingNetwork: bindFlat,
  removeServicingNetwork: unbindFlat,
  configureTenantNetworks: bindFlat,
  unconfigureTenantNetworks: unbindFlat,
};
