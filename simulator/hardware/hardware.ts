/**
 * What a machine's BMC and firmware keep between them besides power and boot device: one plain object for each machine, which can be
 * stored as JSON and handed in again. What it does not say is as it left the factory (`description.ts`, the defaults of each part).
 */
import type { Account } from '../redfish/resources/accounts';
import type { Subscription } from '../redfish/resources/events';
import type { LogState } from '../redfish/resources/log';
import type { ClockState } from '../redfish/resources/manager';
import type { BiosState } from './bios-settings';
import type { Media } from './boot-media';
import type { FirmwareVersions } from './firmware-versions';
import type { Indicators } from '../redfish/resources/indicators';
import type { SecureBootState } from '../redfish/resources/secure-boot';
import type { VolumeState } from './volumes';
import type { TaskList } from './task-records';

export interface HardwareState {
  readonly bios?: BiosState;
  readonly firmware?: FirmwareVersions;
  readonly tasks?: TaskList;
  readonly volumes?: readonly VolumeState[];
  readonly indicators?: Indicators;
  readonly assetTag?: string;
  readonly accounts?: readonly Account[];
  readonly subscriptions?: readonly Subscription[];
  readonly log?: LogState;
  readonly clock?: ClockState;
  readonly secureBoot?: SecureBootState;
  readonly media?: Media;
  /** Where UEFI HTTP boot gets its image. */
  readonly httpBootUri?: string | null;
}
export interface Hardware {
  state: HardwareState;
  /** Called after each change of `state`. */
  readonly changed: () => void;
}
/** @param state as it was stored */
export const newHardware = (state: HardwareState = {}, changed: () => void = () => {}): Hardware => ({ state, changed });

/** Changes the state and says so. */
export function change(hardware: Hardware, changes: Partial<HardwareState>): void {
  hardware.state = { ...hardware.state, ...changes };
  hardware.changed();
}
