/** Deployment of instances that run from memory: the machine boots a kernel with ramdisk, or an ISO image, and no disk is written. */
import { Fault, reasonOf } from '../../model/errors';
import { agentDeploy, prepareDeployed } from './deploy';
import { validateCapabilities } from '../common/capabilities';
import { validImage } from '../common/glance-images';
import { attachVolumes } from '../storage/boot-volume';
import { type DeployInterface, type Task, done } from '../interfaces';
import { glanceId } from '../../wire/openstack/glance';
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

/** The mark of an instance that runs from memory: beside its files, or among the properties of its image in Glance. */
const MARK = 'ironic_ramdisk_deploy';
async function supports(task: Task): Promise<boolean> {
  const { [MARK]: marked, boot_iso: iso, kernel, ramdisk, image_source: source } = task.node.instance_info;
  if (marked && (iso || (kernel && ramdisk))) return true;
  const id = typeof source === 'string' ? glanceId(source) : undefined;
  if (id === undefined) return false;
  try {
    const { properties } = await validImage(task, id);
    return Boolean(properties[MARK] && (properties['boot_iso_id'] || (properties['kernel_id'] && properties['ramdisk_id'])));
  } catch (error) {
    task.signal.throwIfAborted();
    task.log.warn('Glance does not say whether the instance runs from memory', { image: id, reason: reasonOf(error) });
    return false;
  }
}

export const ramdiskDeploy: DeployInterface = {
  ...agentDeploy,
  inMemory: true,
  supports,
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
