/** Deployment of instances that run from memory: the machine boots a kernel with ramdisk, or an ISO image, and no disk is written. */
import { Fault } from '../../model/errors';
import { agentDeploy, prepareDeployed } from './deploy';
import { validateCapabilities } from '../common/capabilities';
import { attachVolumes } from '../storage/boot-volume';
import { type DeployInterface, type Task, done } from '../interfaces';
import { inMemoryImages } from './ramdisk';

/** Copies to instance_info the kernel and ramdisk, or the ISO image, that the properties of the instance's image in Glance name. */
async function takeFromImage(task: Task): Promise<void> {
  const { instance_info: instance } = task.node;
  const found = await inMemoryImages(task);
  if (Object.keys(found).length === 0) return;
  // An image and an ISO image exclude each other.
  const { image_source: source, ...others } = instance;
  const kept = found.boot_iso === undefined ? instance : { ...others, original_image_source: source! };
  await task.save({ instance_info: { ...kept, ...found } });
}

export const ramdiskDeploy: DeployInterface = {
  ...agentDeploy,
  inMemory: true,
  validate: async (task) => {
    const { boot } = task.driver;
    if (!boot.bootsInMemory)
      throw new Fault('InvalidParameterValue', {
        message:
          'Invalid configuration: The boot interface must have the `ramdisk_boot` capability. You are using an incompatible boot interface.',
      });
    await boot.validate?.(task);
    validateCapabilities(task.node);
  },
  steps: [
    {
      step: 'deploy',
      priority: { deploy: 100 },
      resumable: true,
      run: async (task) => {
        const { driver, node } = task;
        if (node.instance_info['configdrive'] && !driver.boot.attachesConfigdrive)
          task.log.warn('This boot interface cannot attach a config drive to instances in memory: the config drive is not used');
        if (!node.disable_power_off) await task.power('power off');
        await driver.network.configureTenantNetworks(task);
        await driver.boot.prepareInstance(task);
        await task.power(node.disable_power_off ? 'rebooting' : 'power on');
        return done;
      },
    },
  ],
  prepare: async (task) => {
    const { provision_state: state, disable_power_off: staysOn } = task.node;
    if (['active', 'unrescuing'].includes(state)) await prepareDeployed(task);
    else if (state === 'deploying') {
      await task.driver.network.validate?.(task);
      await takeFromImage(task);
      if (!staysOn) await task.power('power off');
      await attachVolumes(task);
    }
  },
};
