/** Servicing in the ramdisk, which runs in place of the instance. The instance boots again afterwards. */
import { canPowerOff } from '../common/power-cycle';
import { bootRamdiskInInstance } from './resident';
import { lockDown } from './tear-down';
import { type Outcome, type Task, wait } from '../interfaces';

export async function prepareService(task: Task): Promise<Outcome> {
  const { boot, network } = task.driver;
  await bootRamdiskInInstance(task, async () => {
    await boot.cleanUpInstance(task);
    await network.unconfigureTenantNetworks(task);
    await network.addServicingNetwork(task);
    await boot.prepareRamdisk(task, {});
  });
  return wait;
}

/** After a failed step the machine stays in its ramdisk, so that the operator can examine it. */
export async function tearDownService(task: Task): Promise<void> {
  const { node, driver } = task;
  const keep = node.fault === 'service failure';
  // On a machine that must stay on, the agent may not accept commands while it still runs.
  if (node.disable_power_off) await lockDown(task);
  else if (!keep && canPowerOff(task)) await task.power('power off');
  await driver.boot.cleanUpRamdisk(task);
  if (keep) return;
  await driver.network.removeServicingNetwork(task);
  await driver.network.configureTenantNetworks(task);
  await driver.boot.prepareInstance(task);
  await task.power(canPowerOff(task) ? 'power on' : 'rebooting');
}
