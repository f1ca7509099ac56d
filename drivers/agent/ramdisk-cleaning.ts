/** Cleaning in the ramdisk: boots it with the agent's settings, and cleans up afterwards. */
import { isFastTrack } from './fast-track';
import { canPowerOff } from '../common/power-cycle';
import { type Outcome, type Task, agentAlreadyRunning, wait } from '../interfaces';

/** The settings of the agent's erase steps. */
const eraseSettings = ({ options }: Task): Readonly<Record<string, unknown>> => ({
  agent_erase_devices_iterations: options['deploy.shred_random_overwrite_iterations'],
  agent_erase_devices_zeroize: options['deploy.shred_final_overwrite_with_zeros'],
  agent_continue_if_secure_erase_failed: options['deploy.continue_if_disk_secure_erase_fails'],
  agent_continue_if_ata_erase_failed: options['deploy.continue_if_disk_secure_erase_fails'],
  agent_enable_nvme_secure_erase: options['deploy.enable_nvme_secure_erase'],
  agent_enable_ata_secure_erase: options['deploy.enable_ata_secure_erase'],
  disk_erasure_concurrency: options['deploy.disk_erasure_concurrency'],
  agent_erase_skip_read_only: options['deploy.erase_skip_read_only'],
});

export async function prepareCleaning(task: Task): Promise<Outcome> {
  await task.driver.network.addCleaningNetwork(task);
  await task.saveInternal(eraseSettings(task));
  await task.driver.boot.prepareRamdisk(task, {});
  // Checked last: preparing the boot may have powered the machine off.
  if (await isFastTrack(task)) return agentAlreadyRunning;
  await task.power('rebooting');
  return wait;
}

/** After a failed step the machine stays as it is, so that the operator can examine it; with fast track it stays on for its next flow. */
export async function tearDownCleaning(task: Task): Promise<void> {
  const { node, driver } = task;
  const keep = node.fault === 'clean failure' || (await isFastTrack(task));
  if (!keep && canPowerOff(task)) await task.power('power off');
  await driver.boot.cleanUpRamdisk(task);
  await driver.network.removeCleaningNetwork(task);
  if (!keep && node.disable_power_off) await task.power('rebooting');
}
