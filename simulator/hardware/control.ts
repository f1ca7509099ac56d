import type { SerialPort } from '../../wire/ipmi/bmc';

/** What a BMC can do to the machine behind it: the simulated machine and a QEMU machine offer the same. */
export type PowerAction = 'on' | 'off' | 'cycle' | 'reset' | 'soft' | 'diagnostic';
export interface BootSetting {
  readonly device: 'none' | 'pxe' | 'disk' | 'cdrom' | 'bios' | 'safe' | 'uefi-http';
  readonly persistent: boolean;
  readonly mode: 'uefi' | 'bios' | null;
}
export interface MachineControl {
  readonly name: string;
  readonly macs: readonly string[];
  isOn(): boolean;
  act(action: PowerAction): Promise<void>;
  boot(): BootSetting;
  setBoot(setting: BootSetting): void;
  /** Its serial port; absent: one that says back what it is told. */
  readonly serial?: SerialPort;
}
