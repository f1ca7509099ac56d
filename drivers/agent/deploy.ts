/**
 * The common part of deploy interfaces that work through the agent: they boot it for deployment, cleaning and servicing, run steps, and
 * boot the instance. The steps' names and priorities are Ironic's.
 */
import { Fault, reasonOf } from '../../model/errors';
import { parseHints } from '../../model/agent/hints';
import { blocksProblem, diskHintsProblem, uploadUrlProblem } from '../../model/agent/save-arguments';
import { repr } from '../../model/python';
import { agentReport } from './report';
import { snapshotStep } from './snapshot';
import { agentArguments, agentStepProblem } from './step-settings';
import { agentSteps, onHeartbeat, runAgentStep } from './steps';
import { ramdiskProperties } from './ramdisk';
import { validateCapabilities } from '../common/capabilities';
import { CLEANING_ERASE, OPAL_PSIDS } from '../common/erase-request';
import { isFastTrack } from './fast-track';
import { startKernel } from './kexec';
import { KEXEC, RESIDENT_KEXEC, wantsKexec, wantsResidentKexec } from '../common/kexec-request';
import { canPowerOff } from '../common/power-cycle';
import {
  type DeployInterface,
  type Outcome,
  type Property,
  type Step,
  type Task,
  agentAlreadyRunning,
  done,
  failed,
  wait,
} from '../interfaces';
import { cleanDhcp } from '../dhcp-providers/providers';
import { attachVolumes, bootsFromVolume, forgetVolumes, saveBootVolume } from '../storage/boot-volume';
import { prepareCleaning, tearDownCleaning } from './ramdisk-cleaning';
import { prepareService, tearDownService } from './ramdisk-servicing';
import { tearDownAgent } from './tear-down';

export const agentProperties: Readonly<Record<string, Property>> = {
  ...ramdiskProperties,
  image_http_proxy: { description: 'URL of a proxy server for HTTP connections. Optional.' },
  image_https_proxy: { description: 'URL of a proxy server for HTTPS connections. Optional.' },
  image_no_proxy: {
    description:
      'A comma-separated list of host names, IP addresses and domain names (with optional :port) that will be excluded from proxying. To denote a domain name, use a dot to prefix the domain name. This value will be ignored if ``image_http_proxy`` and ``image_https_proxy`` are not specified. Optional.',
  },
  image_download_source: {
    description:
      'Specifies whether direct deploy interface should try to use the image source directly or if ironic should cache the image on the conductor and serve it from ironic\'s own HTTP server. Accepted values are "swift", "http" and "local". Optional.',
  },
  deploy_forces_oob_reboot: {
    description:
      'Whether Ironic should force a reboot of the Node via the out-of-band channel after deployment is complete. Provides compatibility with older deploy ramdisks. Defaults to False. Optional.',
  },
  [RESIDENT_KEXEC]: {
    description:
      'Whether the agent in an instance starts the ramdisk by kexec for a service or a rescue, instead of a reboot. Overrides [deploy]resident_kexec. Optional.',
  },
  [KEXEC]: {
    description:
      "Whether deployments end with a kexec into the image's kernel instead of a reboot, where the image allows it. Overrides [deploy]kexec; deploy_kexec in instance_info overrides both. Optional.",
  },
  [CLEANING_ERASE]: {
    description:
      'How automated cleaning erases the disks if no request chooses: "none", "metadata", "express" or "full". Default: the steps with a priority. Optional.',
  },
  [OPAL_PSIDS]: {
    description:
      'The PSIDs of disks with TCG Opal, as SERIAL=PSID, separated by commas without spaces. With the PSID, the agent reverts the disk, which destroys its data. Optional.',
  },
  agent_verify_ca: {
    description:
      "Either a Boolean value, a path to a CA_BUNDLE file or directory with certificates of trusted CAs. If set to True ironic will verify the agent's certificate; if False the driver will ignore verifying the SSL certificate. If it's a path the driver will use the specified certificate or one of the certificates in the directory. Defaults to True. Optional",
  },
};

/** The checks that need no agent. Throws MissingParameterValue, InvalidParameterValue. */
export async function validateAgentDeploy(task: Task): Promise<void> {
  await task.driver.boot.validate?.(task);
  validateCapabilities(task.node);
  wantsKexec(task.node, task.options);
  wantsResidentKexec(task.node, task.options);
  validateRootDevice(task);
}

/** Checks the instance's root device hints, otherwise the machine's. */
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

/** Whether the instance exists already, so that only its boot must be prepared. */
export const isDeployed = (task: Task): boolean => ['active', 'adopting', 'unrescuing'].includes(task.node.provision_state);

/** Prepares the boot of an instance that exists already. */
export async function prepareDeployed(task: Task): Promise<void> {
  await saveBootVolume(task);
  await task.driver.boot.prepareInstance(task);
}

/** Powers the machine off and connects it to the provisioning network. Its next boot starts the agent, unless the agent already runs. */
export async function prepareAgent(task: Task): Promise<void> {
  const { driver } = task;
  await driver.network.validate?.(task);
  const fast = await isFastTrack(task);
  if (!fast && canPowerOff(task)) await task.power('power off');
  await driver.network.unconfigureTenantNetworks(task);
  await driver.network.addProvisioningNetwork(task);
  await attachVolumes(task);
  if (!fast) await driver.boot.prepareRamdisk(task, {});
}

/** The instance is on a volume already: no agent is booted, and no image is written. */
export async function prepareVolumes(task: Task): Promise<void> {
  if (task.node.instance_info['configdrive'])
    task.log.warn('Nothing writes a config drive for an instance on a volume: the config drive is not used');
  if (canPowerOff(task)) await task.power('power off');
  await attachVolumes(task);
}
/** Wraps a step that needs the agent: for an instance on a volume, the step does nothing. */
export const onlyWhenWritingImage =
  (run: Step['run']): Step['run'] =>
  async (task, args) =>
    (await task.driver.storage.shouldWriteImage(task)) ? run(task, args) : done;

async function bootRamdisk(task: Task): Promise<Outcome> {
  if (await isFastTrack(task)) return agentAlreadyRunning;
  const off = task.node.power_state === 'power off' && canPowerOff(task);
  await task.power(off ? 'power on' : 'rebooting');
  return wait;
}

/** Prepares the boot of the instance, and stops serving the image. */
export async function prepareInstance(task: Task): Promise<Outcome> {
  try {
    await task.driver.boot.prepareInstance(task);
  } catch (error) {
    return failed(`Failed to prepare instance for booting: ${reasonOf(error)}`);
  }
  const row = await task.boots.ofNode(task.node.uuid);
  // [pxe]enable_netboot_fallback
  const isFallback = row?.purpose === 'disk' && row.macs.length > 0;
  if (!isFallback && !(await bootsFromVolume(task))) await task.boots.remove(task.node.uuid);
  return done;
}

export async function switchNetwork(task: Task): Promise<Outcome> {
  try {
    await task.driver.network.removeProvisioningNetwork(task);
    await task.driver.network.configureTenantNetworks(task);
    return done;
  } catch (error) {
    return failed(`Error changing node ${task.node.uuid} to tenant networks after deploy. ${reasonOf(error)}`);
  }
}

export async function bootInstance(task: Task): Promise<Outcome> {
  try {
    const isAgentThere = task.node.driver_internal_info.kexec !== undefined;
    if (await startKernel(task)) return done;
    if (isAgentThere) {
      await task.power('rebooting');
      return done;
    }
    // Without power control, the shutdown of the agent has restarted the machine.
    if (task.driver.power.on) await task.power(task.node.disable_power_off ? 'rebooting' : 'power on');
    return done;
  } catch (error) {
    return failed(`Error booting node ${task.node.uuid} after deploy. ${reasonOf(error)}`);
  }
}

export const deployStep = (step: string, priority: number, run: Step['run'], agent: Pick<Step, 'usesAgent'> = {}): Step => ({
  ...agent,
  step,
  priority: { deploy: priority },
  // All may run again: booting and switching are idempotent, and writing the image again gives the same disk.
  resumable: true,
  run,
});
/** A step of servicing: the agent reads a disk, and sends its image to a web server. The instance boots again afterwards. */
const saveDisk: Step = {
  step: 'save_disk',
  priority: { service: 0 },
  args: {
    url: { description: 'URL for the image (HTTP PUT, qcow2).', required: true, type: 'string', problem: uploadUrlProblem },
    checksum_url: { description: 'URL for a file with the SHA-256 checksum (HTTP PUT).', type: 'string', problem: uploadUrlProblem },
    root_device: { description: 'Hints that select the disk. Default: the root disk.', type: 'object', problem: diskHintsProblem },
    blocks: {
      description: 'all, or used: blocks that the file systems do not use are zeros in the image. Default: used.',
      type: 'string',
      problem: blocksProblem,
    },
  },
  abortable: true,
  requiresRamdisk: true,
  usesAgent: true,
  // The agent reads the disk once: a step that runs already is not started again.
  resumable: true,
  run: (task, args) => runAgentStep(task, 'service', { interface: 'deploy', step: 'save_disk', priority: 0, args }),
};

/** The steps of a deployment, and of servicing. `own` are those between boot and shutdown of the agent, with their priorities. */
export const deploymentSteps = (own: Readonly<Record<string, readonly [priority: number, run: Step['run']]>>): readonly Step[] => [
  deployStep('deploy', 100, onlyWhenWritingImage(bootRamdisk), { usesAgent: true }),
  ...Object.entries(own).map(([step, [priority, run]]) => deployStep(step, priority, run, { usesAgent: true })),
  deployStep('tear_down_agent', 40, onlyWhenWritingImage(tearDownAgent)),
  deployStep('switch_to_tenant_network', 30, switchNetwork),
  deployStep('boot_instance', 20, bootInstance),
  saveDisk,
  snapshotStep,
];

export const agentDeploy = {
  cleanUp: async (task) => {
    await task.driver.boot.cleanUpRamdisk(task);
    await task.driver.boot.cleanUpInstance(task);
    await task.boots.remove(task.node.uuid);
    await cleanDhcp(task);
    if (task.node.disable_power_off) await task.power('rebooting');
  },
  tearDown: async (task) => {
    if (canPowerOff(task)) await task.power('power off');
    await forgetVolumes(task);
    await task.driver.network.unconfigureTenantNetworks(task);
    await task.driver.network.removeProvisioningNetwork(task);
    return done;
  },
  prepareCleaning,
  tearDownCleaning,
  prepareService,
  tearDownService,
  agentSteps,
  agentArguments,
  agentStepProblem,
  runAgentStep,
  onHeartbeat,
  agentReport,
} as const satisfies DeployInterface;

/** Prepares a deployment whose image the conductor does not handle. */
export async function prepareWithoutImage(task: Task): Promise<void> {
  if (isDeployed(task)) await prepareDeployed(task);
  else await ((await task.driver.storage.shouldWriteImage(task)) ? prepareAgent(task) : prepareVolumes(task));
}

/** Deployment by steps of the operator or a custom agent: boots the agent, shuts it down, and writes no image. */
export const customAgentDeploy: DeployInterface = {
  ...agentDeploy,
  properties: agentProperties,
  validate: validateAgentDeploy,
  steps: deploymentSteps({ prepare_instance_boot: [60, prepareInstance] }),
  prepare: prepareWithoutImage,
};
