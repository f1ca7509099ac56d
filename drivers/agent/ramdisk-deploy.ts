/** Deployment of instances that run from memory: the machine boots a kernel with ramdisk, or an ISO image, and no disk is written. */
import { Fault } from '../../model/errors';
import { agentDeploy, prepareDeployed } from './deploy';
import { validateCapabilities } from '../common/capabilities';
import { type DeployInterface, done } from '../interfaces';
import { attachVolumes } from '../storage/boot-volume';

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
      if (!staysOn) await task.power('power off');
      await attachVolumes(task);
    }
  },
};
