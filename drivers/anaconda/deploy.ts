/**
 * Deployment by the installer Anaconda: the machine boots it over the network, and a kickstart file tells it what to do. It reports by
 * heartbeats with a status, and cannot be asked. Cleaning, services and rescue use the agent.
 */
import { invalidParameter, reasonOf } from '../../model/errors';
import { newSecret } from '../../model/masks';
import { agentDeploy, bootInstance, deployStep, isDeployed, prepareDeployed, prepareInstance, switchNetwork } from '../agent/deploy';
import { onHeartbeat, agentSteps } from '../agent/steps';
import { validateCapabilities } from '../common/capabilities';
import { canPowerOff } from '../common/power-cycle';
import { type DeployInterface, type Outcome, type PlannedStep, type SavedKind, type Task, done, failed, wait } from '../interfaces';
import { cleanDhcp } from '../dhcp-providers/providers';
import { attachVolumes } from '../storage/boot-volume';
import { checkInstaller, installerOf, isRepository } from './installer';
import { ownTemplate } from './kickstart';

/** Finds errors of the images and of the template before the machine is touched. */
async function prepare(task: Task): Promise<void> {
  if (isDeployed(task)) {
    await prepareDeployed(task);
    return;
  }
  const { driver } = task;
  const { facts, shown } = await installerOf(task);
  await task.save({ instance_info: { ...task.node.instance_info, ...facts } });
  await task.saveInternal(shown);
  await driver.network.validate?.(task);
  if (canPowerOff(task)) await task.power('power off');
  await driver.network.unconfigureTenantNetworks(task);
  await driver.network.addProvisioningNetwork(task);
  await attachVolumes(task);
}

/** The token is in the kickstart file, so no machine may ask for one. */
async function bootInstaller(task: Task): Promise<Outcome> {
  const installer = await installerOf(task);
  const token = newSecret(task.random);
  await task.saveInternal({
    agent_secret_token: token,
    agent_secret_token_pregenerated: true,
    agent_status: undefined,
    agent_status_message: undefined,
  });
  await task.driver.boot.prepareInstaller!(task, installer, token);
  const off = task.node.power_state === 'power off' && canPowerOff(task);
  await task.power(off ? 'power on' : 'rebooting');
  return wait;
}

/** What the last heartbeat said. A flow that was interrupted asks again. */
async function heard(task: Task, kind: SavedKind, step: PlannedStep): Promise<Outcome> {
  if (kind !== 'deploy' || step.interface !== 'deploy' || step.step !== 'deploy') return onHeartbeat(task, kind, step);
  const { agent_status: status, agent_status_message: message } = task.node.driver_internal_info;
  if (status === 'end') return done;
  if (status === 'error') return failed(message ?? 'The installer reported an error without a message.');
  return wait;
}

/** The installer has ended: removes its boot files, with the kickstart file, and prepares the boot from disk. */
async function prepareInstanceBoot(task: Task): Promise<Outcome> {
  try {
    await task.boots.remove(task.node.uuid);
    await cleanDhcp(task);
    if (canPowerOff(task)) await task.power('power off');
  } catch (error) {
    task.signal.throwIfAborted();
    return failed(`An error occurred after deployment, while preparing to reboot the node ${task.node.uuid}: ${reasonOf(error)}`);
  }
  return prepareInstance(task);
}

export const anacondaDeploy: DeployInterface = {
  ...agentDeploy,
  installs: true,
  cannotLoad: (options) => {
    try {
      ownTemplate(options['anaconda.default_ks_template']);
      return undefined;
    } catch (error) {
      return `[anaconda]default_ks_template: ${reasonOf(error)}`;
    }
  },
  validate: async (task) => {
    const { boot } = task.driver;
    if (!boot.prepareInstaller)
      throw invalidParameter(
        'Invalid configuration: the deploy interface anaconda needs a boot interface that boots over the network: ipxe, http-ipxe, http or pxe.',
      );
    await boot.validate?.(task);
    validateCapabilities(task.node);
  },
  isRepository,
  checkInstaller,
  steps: [
    { step: 'deploy', priority: { deploy: 100 }, resumable: true, run: bootInstaller },
    deployStep('prepare_instance_boot', 60, prepareInstanceBoot),
    deployStep('switch_to_tenant_network', 30, switchNetwork),
    deployStep('boot_instance', 20, bootInstance),
  ],
  prepare,
  agentSteps: async (task, kind) => (kind === 'deploy' ? [] : agentSteps(task, kind)),
  onHeartbeat: heard,
  agentReport: async (task) => (task.node.driver_internal_info.agent_url ? agentDeploy.agentReport(task) : {}),
};
