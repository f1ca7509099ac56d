/** Cleaning inside the ramdisk: booting it with what the agent must know, and putting the machine to rest again. */
import { isFastTrack } from './fast-track';
import { canBeOff } from '../common/power-cycle';
import { type Outcome, type Task, agentThere, wait } from '../interfaces';

/** What the agent's erase steps read from the node. */
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
  // Asked only now: whoever prepared the boot may have switched the machine off for it.
  if (await isFastTrack(task)) return agentThere;
  await task.power('rebooting');
  return wait;
}

/** After a failed step the machine stays as it is, for whoever comes to look; with fast track, for its next flow. */
export async function tearDownCleaning(task: Task): Promise<void> {
  const { node, driver } = task;
  const keep = node.fault === 'clean failure' || (await isFastTrack(task));
  if (!keep && canBeOff(task)) await task.power('power off');
  await driver.boot.cleanUpRamdisk(task);
  await driver.network.removeCleaningNetwork(task);
  if (!keep && node.disable_power_off) await task.power('rebooting');
}
