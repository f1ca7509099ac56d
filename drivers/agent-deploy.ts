/**
 * What the deploy interfaces have in common that work through the agent: it boots for deployment, cleaning and servicing, runs steps, and
 * leaves the machine to its instance. The steps, their names and priorities are Ironic's.
 */
import { Fault, reasonOf } from '../model/errors';
import { parseHints } from '../model/hints';
import { repr } from '../model/python';
import { agentSteps, onHeartbeat, runAgentStep } from './agent-steps';
import { ramdiskProperties } from './agent-ramdisk';
import { validateCapabilities } from './capabilities';
import { type DeployInterface, type Outcome, type Property, type Step, type Task, done, failed, wait } from './interfaces';
import { prepareCleaning, tearDownCleaning } from './ramdisk-cleaning';
import { tearDownAgent } from './tear-down-agent';

export const agentProperties: Readonly<Record<string, Property>> = {
  ...ramdiskProperties,
  image_http_proxy: { description: 'Proxy through which the agent fetches images by HTTP. Optional.' },
  image_https_proxy: { description: 'Proxy through which the agent fetches images by HTTPS. Optional.' },
  image_no_proxy: {
    description: 'Hosts, addresses and domains (with a leading dot; ports optional) without a proxy, separated by commas. Optional.',
  },
  image_download_source: {
    description: 'http (or swift): the agent fetches the image from where it is; local: through the boot service of this server. Optional.',
  },
  deploy_forces_oob_reboot: {
    description: 'True: after a deployment the BMC switches the machine off, without asking the agent to. Default: false. Optional.',
  },
  agent_verify_ca: {
    description: "What an agent without a certificate of its own is held against: true, false, or a path. Default: the agent's. Optional.",
  },
};

/** What can be known of the machine before its agent is there. Throws MissingParameterValue, InvalidParameterValue. */
export async function validateAgentDeploy(task: Task): Promise<void> {
  await task.driver.boot.validate?.(task);
  validateCapabilities(task.node);
  validateRootDevice(task);
}

/** The instance's hints, or the machine's own. */
function validateRootDevice({ node }: Task): void {
  const [source, hints] = node.instance_info['root_device']
    ? (['instance_info', node.instance_info['root_device']] as const)
    : (['properties', node.properties['root_device']] as const);
  try {
    parseHints(hints);
  } catch (error) {
    throw new Fault('InvalidParameterValue', {
      message: `Failed to validate the root device hints ${repr(hints)} (from the node's ${source}) for node ${node.uuid}: ${reasonOf(error)}`,
    });
  }
}

/** Whether the instance runs, or shall again: then there is nothing to deploy, only to boot. */
export const isDeployed = (task: Task): boolean => ['active', 'adopting', 'unrescuing'].includes(task.node.provision_state);

/** The machine is off and in the provisioning network; its next boot brings the agent. */
export async function prepareAgent(task: Task): Promise<void> {
  const { driver } = task;
  if (!task.node.disable_power_off) await task.power('power off');
  await driver.network.unconfigureTenantNetworks(task);
  await driver.network.addProvisioningNetwork(task);
  await driver.boot.prepareRamdisk(task, {});
}

async function bootRamdisk(task: Task): Promise<Outcome> {
  const off = task.node.power_state === 'power off' && !task.node.disable_power_off;
  await task.power(off ? 'power on' : 'rebooting');
  return wait;
}

/** Hands the machine over to its instance; nobody fetches an image any more. */
export async function prepareInstance(task: Task): Promise<Outcome> {
  try {
    await task.driver.boot.prepareInstance(task);
  } catch (error) {
    return failed(`Failed to prepare instance for booting: ${reasonOf(error)}`);
  }
  await task.boots.remove(task.node.uuid);
  return done;
}

async function switchNetwork(task: Task): Promise<Outcome> {
  try {
    await task.driver.network.removeProvisioningNetwork(task);
    await task.driver.network.configureTenantNetworks(task);
    return done;
  } catch (error) {
    return failed(`Error changing node ${task.node.uuid} to tenant networks after deploy. ${reasonOf(error)}`);
  }
}

async function bootInstance(task: Task): Promise<Outcome> {
  try {
    await task.power(task.node.disable_power_off ? 'rebooting' : 'power on');
    return done;
  } catch (error) {
    return failed(`Error booting node ${task.node.uuid} after deploy. ${reasonOf(error)}`);
  }
}

const deployStep = (step: string, priority: number, run: Step['run']): Step => ({
  step,
  priority: { deploy: priority },
  // Every one of them may run again: booting and switching end in the same state, and an image that is written again is the same image.
  resumable: true,
  run,
});
/** The steps of a deployment; `own` are those between the agent's arrival and its end, by their priority. */
export const deploymentSteps = (own: Readonly<Record<string, readonly [priority: number, run: Step['run']]>>): readonly Step[] => [
  deployStep('deploy', 100, bootRamdisk),
  ...Object.entries(own).map(([step, [priority, run]]) => deployStep(step, priority, run)),
  deployStep('tear_down_agent', 40, tearDownAgent),
  deployStep('switch_to_tenant_network', 30, switchNetwork),
  deployStep('boot_instance', 20, bootInstance),
];

export const agentDeploy = {
  cleanUp: async (task) => {
    await task.driver.boot.cleanUpRamdisk(task);
    await task.driver.boot.cleanUpInstance(task);
    await task.boots.remove(task.node.uuid);
    if (task.node.disable_power_off) await task.power('rebooting');
  },
  tearDown: async (task) => {
    if (!task.node.disable_power_off) await task.power('power off');
    await task.driver.network.unconfigureTenantNetworks(task);
    await task.driver.network.removeProvisioningNetwork(task);
    return done;
  },
  prepareCleaning,
  tearDownCleaning,
  agentSteps,
  runAgentStep,
  onHeartbeat,
} as const satisfies DeployInterface;

/** Deployment by the operator's own steps and those of a custom agent: what boots the agent and ends with it, and no image. */
export const customAgentDeploy: DeployInterface = {
  ...agentDeploy,
  properties: agentProperties,
  validate: validateAgentDeploy,
  steps: deploymentSteps({ prepare_instance_boot: [60, prepareInstance] }),
  prepare: async (task) => {
    if (isDeployed(task)) await task.driver.boot.prepareInstance(task);
    else await prepareAgent(task);
  },
};
