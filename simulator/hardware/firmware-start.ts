/** What a machine's firmware does before it boots. */
import { BIOS, applyBiosSettings } from './bios-settings';
import { logEvent } from './event-log';
import type { Hardware } from './hardware';
import { NETWORK_MODES, applyNetworkModes } from './network-modes';
import { SECURE_BOOT, secureBootAtStart } from './secure-boot';
import { settleTasks, startStagedTasks } from './task-records';

/** Called at each power on and reset: applies the pending settings, and starts the tasks that wait for a start. */
export function startFirmware(hardware: Hardware, now: number): void {
  logEvent(hardware, now, 'The system was started.');
  const bios = hardware.get(BIOS);
  const nextBios = applyBiosSettings(bios, now);
  if (nextBios !== bios) hardware.set(BIOS, nextBios);
  const modes = hardware.get(NETWORK_MODES);
  const nextModes = applyNetworkModes(modes);
  if (nextModes !== modes) hardware.set(NETWORK_MODES, nextModes);
  const secureBoot = hardware.get(SECURE_BOOT);
  const nextSecureBoot = secureBootAtStart(secureBoot);
  if (nextSecureBoot !== secureBoot) hardware.set(SECURE_BOOT, nextSecureBoot);
  settleTasks(hardware, now);
  startStagedTasks(hardware, now);
}
