import type { PartCondition } from './parts';
import type { SerialPort } from '../../wire/ipmi/bmc';

export type PowerAction = 'on' | 'off' | 'cycle' | 'reset' | 'soft' | 'diagnostic';
export interface BootSetting {
  readonly device: 'none' | 'pxe' | 'disk' | 'cdrom' | 'bios' | 'safe' | 'uefi-http';
  readonly persistent: boolean;
  readonly mode: 'uefi' | 'bios' | null;
}
/** The controls that a machine offers to its BMC, whether it is simulated or in QEMU. */
export interface MachineControl {
  readonly name: string;
  readonly macs: readonly string[];
  isOn(): boolean;
  /** Whether the fan of this sensor stands still; absent: none does. */
  readonly isStopped?: (sensor: string) => boolean;
  /** What is wrong with a part (PSU1, sda, DIMM1, …); absent: nothing. */
  readonly conditions?: (part: string) => readonly PartCondition[];
  act(action: PowerAction): Promise<void>;
  boot(): BootSetting;
  setBoot(setting: BootSetting): void;
  /** Absent: the BMC has a port that echoes its input. */
  readonly serial?: SerialPort;
}
