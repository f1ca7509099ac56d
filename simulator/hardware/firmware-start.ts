/** A machine's firmware: what it does before it boots. */
import { change, type Hardware } from './hardware';
import { takeBiosSettings } from './bios-settings';
import { note } from '../redfish/resources/log';
import { secureBootAtStart } from '../redfish/resources/secure-boot';
import { settle, startStaged } from './task-records';

/** At each power on and reset: settings and updates that waited for it are taken. */
export function firmwareStarts(hardware: Hardware, now: number): void {
  note(hardware, now, 'The system was started.');
  const { bios } = hardware.state;
  const taken = takeBiosSettings(bios, now);
  if (taken !== bios) change(hardware, { bios: taken! });
  const secureBoot = secureBootAtStart(hardware.state);
  if (secureBoot !== hardware.state.secureBoot) change(hardware, { secureBoot: secureBoot! });
  settle(hardware, now);
  startStaged(hardware, now);
}
