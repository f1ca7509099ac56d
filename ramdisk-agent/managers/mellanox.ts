/** The manager of NVIDIA's network cards, with the name, the version and the steps that ironic-python-agent's has. */
import type { Machine } from '../machine';
import type { HardwareManager, StepRow } from './manager';
import { hasCard } from './nvidia-devices';
import { updateImages } from './nvidia-image';
import { updateSettings } from './nvidia-settings';

const row = (step: string, argument: string, description: string, run: StepRow['run']): StepRow => ({
  step,
  interface: 'deploy',
  priority: { clean: 0, deploy: 0, service: 0 },
  abortable: false,
  rebootRequested: true,
  argsinfo: { [argument]: { description, required: true } },
  run,
});

const MANAGER: HardwareManager = {
  name: 'MellanoxDeviceHardwareManager',
  version: '1',
  support: 'mainline',
  steps: [
    row(
      'update_nvidia_nic_firmware_image',
      'images',
      'A list of firmware images, each with url (file, http or https), checksum, checksumType (sha256 or sha512), componentFlavor (the PSID of the cards) and version',
      updateImages,
    ),
    row(
      'update_nvidia_nic_firmware_settings',
      'settings',
      'A list of settings, each with deviceID (the PCI device ID of the cards), globalConfig, function0Config and function1Config',
      updateSettings,
    ),
  ],
};
/** Undefined: the machine has no such card. */
export const mellanoxManager = (machine: Machine): HardwareManager | undefined => (hasCard(machine) ? MANAGER : undefined);
